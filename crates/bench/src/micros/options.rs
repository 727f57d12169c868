//! What is measured, in the terms of dsa_perf_micros.

use dray_idxd::known_capabilities;
use dray_ops::BlockSize;
use dray_platform::WaitMode;
use dray_spec::{OpCap, Opcode};
use dray_workload::{FlagChange, Op, Pages, Shape};

use super::lists::CpuQueue;
use crate::BenchError;

/// Where an operand's bytes are when a descriptor is submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing is done about it: in memory.
    None,
    /// The CPU read or wrote it, or fetched it: in its cache.
    Touched,
    /// Demoted to the last-level cache.
    Demoted,
    /// Flushed to memory.
    Flushed,
}

/// A test of how fast descriptors can be handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submission {
    /// MOVDIR64B to the portal.
    Movdir64b,
    /// ENQCMD to the portal.
    Enqcmd,
}

/// A measurement. The defaults are the peer's.
#[derive(Debug, Clone, PartialEq)]
pub struct Micros {
    /// Operation (`-o`).
    pub op: Op,
    /// Bytes of an operation (`-s`).
    pub size: u32,
    /// Operations of an iteration, one buffer each (`-n`).
    pub buffers: u32,
    /// Operations in a batch; 1: none (`-b`).
    pub batch: u32,
    /// Descriptors in flight; `None`: all of an iteration (`-q`).
    pub queue_depth: Option<u32>,
    /// Iterations; `None`: as many as the time holds (`-i`).
    pub iterations: Option<u64>,
    /// Seconds, where iterations are not given (`-T`).
    pub seconds: f64,
    /// Distance of two buffers; `None`: side by side (`-t`).
    pub stride: Option<u64>,
    /// Offset of each operand, in pages (`-O`).
    pub offsets: Vec<u64>,
    /// CPUs (`-k`).
    pub cpus: Vec<u16>,
    /// CPUs with their queues (`-K`).
    pub cpu_queues: Vec<CpuQueue>,
    /// Shared queues wanted, or dedicated ones (`-w`).
    pub shared: Option<bool>,
    /// Node of each operand, -1 is the CPU's, for each CPU in turn (`-S`).
    pub nodes: Vec<Vec<i32>>,
    /// Where each operand is (`-y`, `-z`).
    pub access: Vec<Access>,
    /// Results are written to the cache (`-f`).
    pub cache_control: bool,
    /// Other flags on some descriptors (`-F`).
    pub flags: Option<FlagChange>,
    /// Each descriptor goes to another line of the portal (`-c`).
    pub portal_rotates: bool,
    /// How a core waits (`-x`).
    pub wait: WaitMode,
    /// Only hand descriptors over (`-x`).
    pub submission: Option<Submission>,
    /// Count the preparation of descriptors as work of the core (`-C`).
    pub count_preparation: bool,
    /// Pages of the buffers, in software; the modelled device translates small ones (`-l`).
    pub pages: Pages,
    /// Descriptors take buffers in another order than that of their addresses (`-a`).
    pub shuffled: bool,
    /// Check the bytes (`-v`).
    pub verify: bool,
    /// Words that differ in delta records, in percent (`-D`).
    pub delta_percent: u8,
    /// Data of one integrity field: 0 to 3 for 512, 520, 4096 and 4104 bytes (`-e`).
    pub block: u8,
}

impl Default for Micros {
    fn default() -> Self {
        Micros {
            op: Op::Move,
            size: 4096,
            buffers: 32,
            batch: 1,
            queue_depth: None,
            iterations: Some(1000),
            seconds: 10.0,
            stride: None,
            offsets: Vec::new(),
            cpus: vec![0],
            cpu_queues: Vec::new(),
            shared: None,
            nodes: Vec::new(),
            access: Vec::new(),
            cache_control: false,
            flags: None,
            portal_rotates: false,
            wait: WaitMode::Poll,
            submission: None,
            count_preparation: false,
            pages: Pages::Transparent,
            shuffled: false,
            verify: true,
            delta_percent: 100,
            block: 0,
        }
    }
}

impl Micros {
    /// The configuration that stands in where no profile is given: of the kind of queue that is
    /// asked for; several CPUs on one named queue, as with `-K`, are what shared queues are for.
    pub fn stands_for(&self) -> &'static str {
        let together = self.cpu_queues.iter().any(|q| q.cpus.len() > 1);
        match self.shared.unwrap_or(together) {
            true => "1e1w-s",
            false => "1e1w-d",
        }
    }

    /// One of its operations.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            op: self.op,
            size: self.size,
            block: BlockSize::from_bits(self.block),
            delta_percent: self.delta_percent,
        }
    }

    /// Whether the operation can be had on so many bytes.
    ///
    /// # Errors
    /// By flag, with the nearest size.
    pub fn check(&self) -> Result<(), BenchError> {
        match self.shape().refusal() {
            None => Ok(()),
            Some((reason, nearest)) => Err(BenchError::Value {
                flag: format!("-s {} -e {}", self.size, self.block),
                reason,
                hint: format!("-s{nearest}"),
            }),
        }
    }

    /// Bytes that a rate counts of one operation: the peer takes 64 for one that moves none.
    pub(crate) fn counted_bytes(&self) -> f64 {
        match self.op {
            Op::Nop => 64.0,
            _ => self.shape().counted().into(),
        }
    }

    /// Distance of two buffers of an operand.
    pub(crate) fn stride(&self, operand: usize) -> u64 {
        let shape = self.shape();
        let len = u64::from(shape.operand(operand));
        match self.stride {
            // What is longer than the data does not fit into a distance for the data.
            Some(stride) if len > u64::from(self.size) => stride.max(len),
            Some(stride) => stride,
            None => len.max(1).next_multiple_of(shape.alignment()),
        }
    }

    /// Bytes from the first buffer of an operand to the end of the last of `count`.
    pub(crate) fn span(&self, operand: usize, count: u64) -> u64 {
        let len = u64::from(self.shape().operand(operand).max(64));
        (count - 1) * self.stride(operand) + len
    }

    /// Descriptors of an iteration, batch descriptors counted once.
    pub(crate) fn descriptors(&self) -> u32 {
        self.buffers.div_ceil(self.batch.max(1))
    }
}

/// Operations by opcode (spec 8.1.1), as far as they can be measured.
pub const OPCODES: &[(u8, Op, &str)] = &[
    (0x00, Op::Nop, "noop"),
    (0x03, Op::Move, "memmove"),
    (0x04, Op::Fill, "fill"),
    (0x05, Op::Compare, "compare"),
    (0x06, Op::ComparePattern, "compval"),
    (0x07, Op::CreateDelta, "cr_delta"),
    (0x08, Op::ApplyDelta, "ap_delta"),
    (0x09, Op::Dualcast, "dualcast"),
    (0x10, Op::Crc, "crcgen"),
    (0x11, Op::CopyCrc, "copy_crc"),
    (0x12, Op::DifCheck, "dif_check"),
    (0x13, Op::DifInsert, "dif_ins"),
    (0x14, Op::DifStrip, "dif_strp"),
    (0x15, Op::DifUpdate, "dif_updt"),
    (0x17, Op::DixGenerate, "dix_gen"),
    (0x20, Op::CacheFlush, "cflush"),
];

/// Why an opcode cannot be measured, with the versions that have it.
pub fn not_measured(code: u8) -> String {
    let has = |version| {
        let known = known_capabilities(version);
        known.is_some_and(|known| OpCap(known.op_cap).supports(code))
    };
    let name = Opcode::try_from(code).map_or_else(|_| String::new(), |op| format!(" ({op})"));
    match (has(0x100), has(0x200)) {
        (true, _) => format!("opcode {code:#04x}{name} is not measured"),
        (false, true) => format!(
            "version 1 has no opcode {code:#04x}{name}: see op_cap; version 2 has it, but it is not measured"
        ),
        (false, false) => {
            format!("versions 1 and 2 have no opcode {code:#04x}{name}: see op_cap")
        }
    }
}

/// Reads an opcode: decimal, hexadecimal after 0x, or a name.
///
/// # Errors
/// What is wrong, with what there is.
pub fn opcode(text: &str) -> Result<Op, String> {
    let number = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let number = number.or(text.parse::<Opcode>().ok().map(u8::from));
    let found = OPCODES
        .iter()
        .find(|(code, _, _)| Some(*code) == number)
        .map(|(_, op, _)| *op);
    found.ok_or_else(|| {
        let known: Vec<String> = OPCODES
            .iter()
            .map(|(code, _, name)| format!("{code:#x} {name}"))
            .collect();
        let known = format!("opcodes that can be measured are {}", known.join(", "));
        match number {
            Some(code) => format!("{}; {known}", not_measured(code)),
            None => known,
        }
    })
}
