//! `dray tier`.

mod bench;
mod by_kernel;
mod metrics;
mod prepare;
mod run;
mod set;
mod status;
mod table;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use dray_tier::size::Size;

const EXAMPLES: &str = "\
Examples:
  dray tier -- ./program                           nodes are discovered
  dray tier --fast 4G --stats -- redis-server      at most 4 GiB on the fast nodes
  dray tier --fast node:0:4G --slow node:1 --pid 1234
  dray tier --cgroup system.slice/app.service
  dray tier --back-end uffd --fast 256M -- ./program      on one node, too
  dray tier status                                 while it runs
  dray tier bench                                  cost of moving pages here
  dray tier set promote_rate_limit_MBps=100

The kernel moves pages between NUMA nodes (move_pages(2), Linux 6.7 or later),
from outside of the programs: static, Go and setuid programs, containers, shared
and file memory, huge pages. Nothing is loaded into a program, and if dray ends
the program goes on. A page costs some 3 us of core time; the end of a session
prints the measured time. Private mappings of files that other processes map,
as libraries are, stay.

Fast and slow nodes come from the kernel's memory tiers, or else from the HMAT,
or else nodes without cores are slow. On one node the exit code is 2.
Pages that several processes map need CAP_SYS_NICE and CAP_SYS_ADMIN, processes
of others CAP_SYS_PTRACE. What is left out is printed at the start.
Accesses are tracked by DAMON (virtual addresses, up to 16 processes), or else
by idle page tracking, or else by DAMON (physical addresses): all three need
root; or else writes by soft-dirty bits, which needs no root. Nothing tracks
reads without root. Where nothing is tracked counts and memtis are refused.
A process that ends before it is looked at is counted as missed.

--back-end uffd has a preload library in the program, and a process on its
memory (dray-tier) that has given up all rights, move its pages, and those of
the programs that it starts. This needs Linux 6.8 or later, userfaultfd(2), and
a dynamically linked program without privileges of its own. No memory is
registered before the fast tier is full. Only private anonymous memory moves.
Without --tracking only writes are seen: for counts and memtis a page that is
only read is idle. DAMON and hints see reads too; --order shared-read, which
sees no writes, needs one of them for counts and memtis.
A page is not accessible for the microseconds of a move. A program can behave
differently than without dray if it
  is killed with a robust mutex that it has just taken,
  is read as it runs, without being stopped (of 65536 pages read through
    /proc/PID/mem none was out by default, 41 with hints),
  calls mlockall(2), setrlimit(2), madvise(2) for guard regions, or pins memory
    for AF_XDP or VFIO, or starts threads, by system calls of its own (calls of
    the C library are safe),
  waits for orphans (PR_SET_CHILD_SUBREAPER, or as PID 1 of a namespace): it
    meets the processes dray-tier of its children,
  kills the process dray-tier, or is saved or recorded as it runs (CRIU, rr).
Memory that is locked does not move, and none of a program that has stopped or
dumps core. A program that limits its address space or data is not tiered.

Processes that a program leaves in the background have dray as their parent, as
long as dray runs. dray prints conditions and limits at the start, except with
--stats-file.
Exit codes: those of the program; a signal that ends it ends dray. 1 the session
failed, or with --back-end uffd a process could not be tiered and the program
ended with 0; 2 usage or bad input, one node, 3 there is no DSA (--mover hw),
126 the program cannot be executed, 127 there is no such program.";

/// Arguments of `dray tier`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    session: Session,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print what sessions do, live on a terminal.
    #[command(
        after_help = "Examples:\n  dray tier status --session 4711\n  dray tier status --format openmetrics    all sessions of this user"
    )]
    Status(status::Args),
    /// Set knobs of a session that runs; without any, list them.
    #[command(after_help = "Example:\n  dray tier set limit_mt_num=8 cpu_multi_copy_pages=1")]
    Set(set::Args),
    /// Measure what moving pages costs here, and run micro-benchmarks on two tiers.
    #[command(after_help = "Example:\n  dray tier bench mechanism gups")]
    Bench(bench::Args),
    /// Set a machine with two nodes up for the kernel's own tiering, and undo it.
    #[command(after_help = "Example:\n  sudo dray tier prepare --node 1 --dry-run")]
    Prepare(prepare::Args),
    /// Print histograms of the kernel's own migrations, from its tracepoint.
    #[command(after_help = "Example:\n  sudo dray tier watch --time 30")]
    Watch(watch::Args),
}

/// What `dray tier -- PROGRAM` takes.
#[derive(Debug, clap::Args)]
struct Session {
    /// What moves pages.
    #[arg(long, value_enum, default_value_t = BackEnd::Kernel)]
    back_end: BackEnd,
    /// The fast tier: bytes or percent of it, NUMA nodes (node:0,1), or so much of one (node:0:4G). Without it the discovered
    /// one; with --back-end uffd 50% of memory.
    #[arg(long, value_name = "SIZE|node:N", value_parser = size)]
    fast: Option<Size>,
    /// The slow tier. Without it the discovered one; with --back-end uffd all of memory.
    #[arg(long, value_name = "SIZE|node:N", value_parser = size)]
    slow: Option<Size>,
    /// Which pages are promoted and demoted.
    #[arg(long, value_enum, default_value_t = Policy::Counts)]
    policy: Policy,
    /// Executor of the page copies, with --back-end uffd; without it cores.
    #[arg(long, value_enum)]
    mover: Option<Mover>,
    /// Effect on a thread that accesses a page while it moves, with --back-end uffd; without it strict.
    #[arg(long, value_enum)]
    order: Option<Order>,
    /// With --back-end uffd: reuse the frames that pages leave. By default they go back to the kernel.
    #[arg(long, value_name = "WHICH", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "always")]
    reuse_frames: Option<Reused>,
    /// A control and its value; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    knob: Vec<String>,
    /// Percent of a core that tracking may cost.
    #[arg(long, value_name = "PERCENT")]
    overhead: Option<u64>,
    /// How accesses are tracked.
    #[arg(long, value_enum, default_value_t = Tracking::Best)]
    tracking: Tracking,
    /// Print statistics at the end.
    #[arg(long)]
    stats: bool,
    /// Write statistics to this file as JSON, and print nothing, unless --stats is given as well. /dev/fd/3 is a
    /// descriptor of the caller.
    #[arg(long, value_name = "FILE")]
    stats_file: Option<PathBuf>,
    /// Tier a running process and its children, until they or this command end.
    #[arg(long, value_name = "PID")]
    pid: Option<i32>,
    /// Tier the processes of a control group and of those below it, until it is gone or this command ends. It is
    /// looked for processes every 100 ms.
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// The program and its arguments, after `--`.
    #[arg(value_name = "PROGRAM", last = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// What moves pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BackEnd {
    /// move_pages(2), between NUMA nodes, from outside: any program.
    Kernel,
    /// An agent in the program, by userfaultfd(2): on one node, too, and cheaper for each page. Its limits are below.
    Uffd,
}

/// Which frames are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reused {
    /// Those of 4 KiB pages that the kernel refers to in no other way. It is asked after each batch (MADV_COLLAPSE),
    /// and then drains its lists of pages on every core.
    Checked,
    /// All. Not for programs that call vmsplice(2) or send with MSG_ZEROCOPY.
    Always,
}

/// As the policies of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// The most accessed pages are in the fast tier, as far as a difference of counts is more than chance.
    Counts,
    /// Access counts by powers of two, sized to the fast tier.
    Memtis,
    /// Nothing moves.
    None,
    /// Every block in turn, promote_rate_limit_MBps in all: to measure what migration costs.
    Rotate,
}

impl Session {
    /// Statistics are wanted, and the timer runs for them.
    fn wants_stats(&self) -> bool {
        self.stats || self.stats_file.is_some()
    }

    /// Who copies.
    fn mover(&self) -> Mover {
        self.mover.unwrap_or(Mover::Cpu)
    }

    /// Notes and results go to standard error.
    fn speaks(&self) -> bool {
        self.stats || self.stats_file.is_none()
    }
}

impl Policy {
    /// As the library counts them. It has others for figures and comparison: `dray tier bench policies`.
    fn index(self) -> usize {
        match self {
            Policy::Memtis => 1,
            Policy::None => 3,
            Policy::Rotate => 4,
            Policy::Counts => 5,
        }
    }
}

/// Who copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mover {
    /// Cores.
    Cpu,
    /// The virtual device, on threads of the program.
    Virtual,
    /// The work queues of this machine.
    Hw,
}

/// What accesses are tracked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tracking {
    /// The best that there is: DAMON, idle page tracking, soft-dirty bits. With --back-end uffd writes by
    /// PAGEMAP_SCAN.
    Best,
    /// The kernel's DAMON or nothing. It needs root; with --back-end uffd what moves pages keeps its rights: not for
    /// programs that give rights up.
    Damon,
    /// With --back-end uffd: writes by PAGEMAP_SCAN, reads by unmapping pages for whole intervals: a program that dumps core, is debugged, or
    /// ends a thread by bare system calls meets that often.
    Hints,
}

/// What happens to threads that access a page while it moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// It waits. Safe with memory that devices write for a short time.
    Strict,
    /// It can read, and waits to write.
    SharedRead,
}

fn size(text: &str) -> Result<Size, String> {
    text.parse()
        .map_err(|error: dray_tier::size::SizeError| error.to_string())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(Command::Status(args)) => status::run(args),
        Some(Command::Set(args)) => set::run(args),
        Some(Command::Bench(args)) => bench::run(args),
        Some(Command::Prepare(args)) => prepare::run(args),
        Some(Command::Watch(args)) => watch::run(args),
        None => run::run(&args.session),
    }
}
