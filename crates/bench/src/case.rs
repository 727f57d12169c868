//! A case: what is measured, and the name that says so.

use std::fmt;

use dray_experiment::parse_bytes;
use dray_workload::{Exec, Location, Op, Shape};

/// Every operation, in the order in which cases are listed.
pub const OPS: &[(Op, &str)] = &[
    (Op::Move, "move"),
    (Op::Copy, "copy"),
    (Op::Fill, "fill"),
    (Op::Compare, "compare"),
    (Op::ComparePattern, "compare_pattern"),
    (Op::CreateDelta, "create_delta"),
    (Op::ApplyDelta, "apply_delta"),
    (Op::Dualcast, "dualcast"),
    (Op::Crc, "crc"),
    (Op::CopyCrc, "copy_crc"),
    (Op::DifCheck, "dif_check"),
    (Op::DifInsert, "dif_insert"),
    (Op::DifStrip, "dif_strip"),
    (Op::DifUpdate, "dif_update"),
    (Op::DixGenerate, "dix_generate"),
    (Op::CacheFlush, "cache_flush"),
    (Op::Nop, "nop"),
];

/// The name of an operation in cases.
pub(crate) fn op_name(op: Op) -> &'static str {
    let found = OPS.iter().find(|(known, _)| *known == op);
    found.map_or("", |(_, name)| name)
}

/// The interface that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Api {
    /// DML's low-level C interface.
    C,
    /// DML's high-level C++ interface, which has no integrity fields.
    Cpp,
    /// This project's library.
    Rust,
    /// The C library.
    Glibc,
}

/// Who does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Path {
    /// The device.
    Dsa,
    /// The core.
    Cpu,
}

/// What the clock covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timer {
    /// Preparing descriptors too.
    Full,
    /// Submitting and waiting.
    Proc,
}

/// Location of the output, and whether the device writes to the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Output {
    /// Where it is when an operation starts.
    pub location: Location,
    /// Writes go to the cache instead of memory.
    pub cache_control: bool,
}

/// One case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Case {
    /// Operation.
    pub op: Op,
    /// Interface.
    pub api: Api,
    /// Who does the work.
    pub path: Path,
    /// Submission.
    pub exec: Exec,
    /// Operations in flight, of all threads together; batches counted once.
    pub qsize: u32,
    /// Operations in a batch; 0: none.
    pub bsize: u32,
    /// Input.
    pub in_mem: Location,
    /// Output.
    pub out_mem: Output,
    /// What the clock covers.
    pub timer: Timer,
    /// Bytes of one operation.
    pub size: u32,
    /// Threads; stated by asynchronous cases only.
    pub threads: u32,
}

impl Case {
    /// Operations of one thread in flight, batches counted once.
    pub fn queue_per_thread(&self) -> u32 {
        (self.qsize / self.threads.max(1)).max(1)
    }

    /// Bytes that one iteration of one thread moves.
    pub fn bytes_per_iteration(&self) -> u64 {
        u64::from(self.queue_per_thread())
            * u64::from(self.bsize.max(1))
            * u64::from(self.shape().counted())
    }

    /// One of its operations.
    pub(crate) fn shape(&self) -> Shape {
        Shape::new(self.op, self.size)
    }

    /// The name up to the threads: cases that differ in nothing else are a family.
    pub fn family(&self) -> String {
        format!(
            "{}/api:{}/path:{}/exec:{}/qsize:{}/bsize:{}/in_mem:{}/out_mem:{}/timer:{}/size:{}/real_time",
            op_name(self.op),
            match self.api {
                Api::C => "c",
                Api::Cpp => "cpp",
                Api::Rust => "rust",
                Api::Glibc => "glibc",
            },
            match self.path {
                Path::Dsa => "dsa",
                Path::Cpu => "cpu",
            },
            match self.exec {
                Exec::Sync => "sync",
                Exec::Async => "async",
            },
            self.qsize,
            self.bsize,
            self.in_mem,
            self.out_mem,
            match self.timer {
                Timer::Full => "full",
                Timer::Proc => "proc",
            },
            self.size,
        )
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.family())?;
        match self.exec {
            Exec::Sync => Ok(()),
            Exec::Async => write!(f, "/threads:{}", self.threads),
        }
    }
}

impl Output {
    /// Reads an output: a location, after `cc_` if the device writes to the cache.
    pub fn parse(text: &str) -> Option<Output> {
        let (cache_control, rest) = match text.strip_prefix("cc_") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let location = Location::parse(rest)?;
        Some(Output {
            location,
            cache_control,
        })
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.cache_control { "cc_" } else { "" };
        write!(f, "{prefix}{}", self.location)
    }
}

/// Reads a block size: bytes, or with K or M.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse_block_size(text: &str) -> Result<u32, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    match u32::try_from(bytes) {
        Ok(0) => Err("an operation has at least 1 byte".to_owned()),
        Ok(bytes) if bytes <= 1 << 31 => Ok(bytes),
        _ => Err("the largest transfer of any device is 2 GiB".to_owned()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A copy with four threads, from which the cases of tests differ in a few fields.
    pub(crate) const SEED: Case = Case {
        op: Op::Move,
        api: Api::C,
        path: Path::Dsa,
        exec: Exec::Async,
        qsize: 16,
        bsize: 0,
        in_mem: Location::Llc,
        out_mem: Output {
            location: Location::Llc,
            cache_control: true,
        },
        timer: Timer::Full,
        size: 1 << 20,
        threads: 4,
    };

    #[test]
    fn case_names_are_those_of_dml() {
        assert_eq!(
            SEED.to_string(),
            "move/api:c/path:dsa/exec:async/qsize:16/bsize:0/in_mem:llc/out_mem:cc_llc/timer:full/size:1048576/real_time/threads:4"
        );
        let sync = Case {
            exec: Exec::Sync,
            threads: 1,
            ..SEED
        };
        assert!(sync.to_string().ends_with("/size:1048576/real_time"));
    }

    #[test]
    fn an_iteration_is_one_threads_share_of_the_queue() {
        assert_eq!(SEED.queue_per_thread(), 4);
        assert_eq!(SEED.bytes_per_iteration(), 4 << 20);
        let batches = Case { bsize: 8, ..SEED };
        assert_eq!(batches.bytes_per_iteration(), 32 << 20);
    }

    #[test]
    fn block_sizes_with_bad_units_or_limits_are_refused() {
        assert_eq!(parse_block_size("4K"), Ok(4096));
        for bad in ["0", "4q", "3G", "", "-1"] {
            assert!(parse_block_size(bad).is_err(), "{bad}");
        }
    }
}
