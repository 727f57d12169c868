//! `dray offload`.

mod json;
mod page;
pub(crate) mod program;
mod record;
mod run;
mod saving;
mod site_names;
mod summary;
mod survey;
mod verdict;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;

const EXAMPLES: &str = "\
Examples:
  dray offload --stats -- redis-server            calls of 64 KiB and more
  dray offload --min-bytes 16k --wait umwait -- ./program argument
  dray offload --mover virtual --stats-file stats.json -- ./program
  dray run --profile 1e1w-s -- dray offload --mover hw -- ./program
  dray offload --survey --report survey.html -- ./program   needs no DSA
  dray offload --record program.rec -- ./program   for dray replay; needs no DSA

DTO's environment variables are honoured, with the defaults of DTO's code
(DTO_MIN_BYTES=65536, DTO_AUTO_ADJUST_KNOBS=1, DTO_WAIT_METHOD=busypoll); an
option here overrides its variable.
Exit codes: those of the program; a signal that ends it ends dray. 1 the session
failed, 2 usage or bad input, 3 no work queue, 126 the program cannot be
executed, 127 there is no such program.";

/// Arguments of `dray offload`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Executor of offloaded calls.
    #[arg(long, value_enum, default_value_t = Mover::Auto)]
    mover: Mover,
    /// Work queues to use: wq0.0,wq2.0. Without it all shared ones, or else the dedicated ones.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    wq: Vec<String>,
    /// Bytes from which on a call is offloaded (DTO_MIN_BYTES, 64k).
    #[arg(long, value_name = "BYTES")]
    min_bytes: Option<String>,
    /// Part of a call that the core does meanwhile, 0 to 0.99 (DTO_CPU_SIZE_FRACTION, 0). 0 switches
    /// splitting off, if nothing is adapted.
    #[arg(long, value_name = "FRACTION")]
    core_fraction: Option<String>,
    /// Adapt the two options above to the load of the device (DTO_AUTO_ADJUST_KNOBS, on).
    #[arg(long, value_enum)]
    adapt: Option<Switch>,
    /// How threads wait for the device (DTO_WAIT_METHOD, busypoll).
    #[arg(long, value_enum)]
    wait: Option<Wait>,
    /// Prefer work queues on the node of the buffer or of the core (DTO_IS_NUMA_AWARE, off).
    #[arg(long, value_enum)]
    numa: Option<Numa>,
    /// The calls that are taken; without it all four (DTO_DSA_MEMCPY and so on).
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_enum)]
    calls: Vec<Call>,
    /// Treatment of a page fault of the device.
    #[arg(long, value_enum, default_value_t = Faults::Resume)]
    faults: Faults,
    /// How long a call waits for a completion (DRAY_OFFLOAD_DEADLINE, 60); 0: for ever. Then the core
    /// finishes a comparison. After a copy or a fill the program is aborted, for the device may still write
    /// to its memory.
    #[arg(long, value_name = "SECONDS")]
    deadline: Option<String>,
    /// Count calls below the threshold as well, which slows each of them down.
    #[arg(long)]
    count_small: bool,
    /// Print at the end a histogram by size, call and executor.
    #[arg(long)]
    stats: bool,
    /// Write the same to this file as JSON, and print nothing, unless --stats is given as well. /dev/fd/3 is a
    /// descriptor of the caller.
    #[arg(long, value_name = "FILE")]
    stats_file: Option<PathBuf>,
    /// Do not say at the end who executed how much.
    #[arg(long, conflicts_with = "stats")]
    quiet: bool,
    /// Offload nothing: count what the program copies, fills and compares, by size and by the place
    /// that calls, and say by the model what a device would save.
    #[arg(long, conflicts_with_all = ["mover", "wq", "min_bytes", "core_fraction", "adapt", "wait",
                                      "numa", "faults", "deadline", "count_small", "quiet"])]
    survey: bool,
    /// Offload nothing: write each copy, fill and comparison of 512 bytes and more (--min-bytes) to a file as the program
    /// goes, for `dray replay`.
    ///
    /// A call takes 32 bytes: its size, what its operands are, and the CPU time of its thread since the call before. Threads
    /// and children are recorded, too. If the program or dray is killed, the file has all calls that had ended.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mover", "wq", "core_fraction", "adapt", "wait", "numa", "faults",
                                      "deadline", "count_small", "stats", "stats_file", "survey"])]
    record: Option<PathBuf>,
    /// Most bytes of the recording; later calls are counted, and not recorded.
    #[arg(long, value_name = "BYTES", default_value = "1g", requires = "record")]
    record_limit: String,
    /// Machine to model in a survey: a built-in platform or a platform file.
    #[arg(
        long,
        value_name = "FILE|NAME",
        default_value = "spr-2s",
        requires = "survey"
    )]
    platform: String,
    /// Device configuration to model in a survey: an accel-config file or a name. Without it the
    /// device that is configured here, or 1e1w-d.
    #[arg(long, value_name = "FILE|NAME", requires = "survey")]
    config: Option<String>,
    /// Write the survey as a page with charts.
    #[arg(long, value_name = "FILE.html", requires = "survey")]
    report: Option<PathBuf>,
    /// The program and its arguments; `--` before them is needed only if the program's name begins with `-`.
    // Without `allow_hyphen_values`, with which an option that is misspelled would be the program.
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    program: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mover {
    /// The work queues of this machine; where there is none, the virtual device.
    Auto,
    /// The work queues of this machine.
    Hw,
    /// The virtual device, on a thread of the program.
    Virtual,
    /// The core: calls are counted, and nothing is offloaded.
    Cpu,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wait {
    /// PAUSE between looks.
    Busypoll,
    /// UMWAIT on the completion record.
    Umwait,
    /// Other threads run between looks.
    Yield,
    /// TPAUSE between looks.
    Tpause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Numa {
    Off,
    Buffer,
    Core,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Call {
    Memcpy,
    Memmove,
    Memset,
    Memcmp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Faults {
    /// The pages are made present and the device goes on, once.
    Resume,
    /// The core does what is left, as in DTO.
    Core,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    run::run(args)
}
