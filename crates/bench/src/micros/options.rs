//! What is measured, in the terms of dsa_perf_micros.

use dray_platform::WaitMode;

use super::lists::CpuQueue;
use crate::case::Op;
use crate::real::Pages;
use crate::rounds::FlagChange;

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
    /// Keep submitting across iterations (`-j`).
    pub continuous: bool,
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
            continuous: false,
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
    (0x09, Op::Dualcast, "dualcast"),
    (0x10, Op::Crc, "crcgen"),
    (0x11, Op::CopyCrc, "copy_crc"),
];

/// Reads an opcode: decimal, or hexadecimal after 0x.
///
/// # Errors
/// What is wrong, with what there is.
pub fn opcode(text: &str) -> Result<Op, String> {
    let number = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let found = OPCODES
        .iter()
        .find(|(code, _, _)| Some(*code) == number)
        .map(|(_, op, _)| *op);
    found.ok_or_else(|| {
        let known: Vec<String> = OPCODES
            .iter()
            .map(|(code, _, name)| format!("{code:#x} {name}"))
            .collect();
        format!("opcodes that can be measured are {}", known.join(", "))
    })
}
