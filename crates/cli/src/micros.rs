//! `dray micros`.

use std::io;
use std::process::ExitCode;

use clap::{ArgAction, ValueEnum};
use dray_bench::micros::{
    Access, CpuQueue, Micros, Outcome, Submission, cpu_list, cpu_queues, opcode, operand_list,
};
use dray_bench::real::{context, run_micros};
use dray_bench::{BenchError, FlagChange, Op, parse_block_size};
use dray_experiment::parse_bytes;
use dray_idxd::Profile;
use dray_platform::{PlatformFile, WaitMode};

use crate::bench::complaint;
use crate::complain::Usage;
use crate::print;

const EXAMPLES: &str = "\
Examples (dsa_perf_micros's own):
  dray micros -n128 -s4k -j -c -f -i1000 -k5 -w0 -zF,F -o3      bandwidth of a dedicated queue
  dray micros -n128 -s4k -j -f -i1000 -k5-8 -w1 -zF,F -o3       of a shared one
  dray micros -n512 -b4 -s4k -j -f -i1000 -k5 -w1 -zF,F -o3     with batches
  dray micros -n2 -w0 -o3 -zF,F -f -s1k -i100 -k1 -q1 -t4k      latency, translations miss
  dray micros -n1 -w0 -o3 -zF,F -f -s1k -i100 -k1 -q1           latency, translations hit
  dray micros -jcf -K[0-3]@dsa0,0 -K[4-7]@dsa2,0 -n32 -o3 -zF,F several devices

  dray micros -m -n128 -s4k -i25 -zF,F -o3                      the CPU of this machine

Without --config, -w0 is 1e1w-d (a device for each CPU) and -w1 is 1e1w-s. Without -m all runs in
modelled time. The result line is dsa_perf_micros's, cycles are of a 2 GHz time stamp counter.
Exit codes: 0 ok, 1 failed, 2 usage or bad input.";

/// Flags are dsa_perf_micros's, with their meaning.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// DSA opcode, such as 3 (memmove) or 0x10 (crcgen).
    #[arg(short = 'o', value_name = "OPCODE", default_value = "3", value_parser = opcode)]
    op: Op,
    /// Bytes of an operation; k, m, g.
    #[arg(short = 's', value_name = "SIZE", default_value = "4k", value_parser = parse_block_size)]
    size: u32,
    /// Buffers, one operation each, in an iteration.
    #[arg(short = 'n', value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=65536))]
    buffers: u32,
    /// Operations in a batch.
    #[arg(short = 'b', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65536))]
    batch: u32,
    /// Descriptors in flight.
    #[arg(short = 'q', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    queue_depth: Option<u32>,
    /// Iterations; -1: as many as -T seconds hold.
    #[arg(
        short = 'i',
        value_name = "N",
        default_value_t = 1000,
        allow_hyphen_values = true
    )]
    iterations: i64,
    /// Seconds, with -i-1.
    #[arg(short = 'T', value_name = "S", default_value_t = 10)]
    seconds: u32,
    /// Keep submitting across iterations.
    #[arg(short = 'j')]
    continuous: bool,
    /// Distance of two buffers.
    #[arg(short = 't', value_name = "SIZE", value_parser = parse_bytes)]
    stride: Option<u64>,
    /// Offset of each operand, in 4 KiB pages.
    #[arg(short = 'O', value_name = "B1,B2,B3")]
    offsets: Option<String>,
    /// CPUs, such as 0-3,5.
    #[arg(short = 'k', value_name = "CPUS")]
    cpus: Option<String>,
    /// CPUs and their work queue, such as [0-3]@dsa0,0; may be repeated.
    #[arg(short = 'K', value_name = "CPUS@DEV,WQ")]
    cpu_queues: Vec<String>,
    /// Work queue: 0 dedicated, 1 shared.
    #[arg(short = 'w', value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    shared: Option<u8>,
    /// Memory node of each operand, -1 the CPU's; once for each CPU.
    #[arg(short = 'S', value_name = "N1,N2,N3", allow_hyphen_values = true)]
    nodes: Vec<String>,
    /// How the CPU accesses each operand before: N, R or W.
    #[arg(short = 'y', value_name = "LIST")]
    access: Option<String>,
    /// Where each operand is before: P first-level cache, D last-level cache, F memory.
    #[arg(short = 'z', value_name = "LIST")]
    placement: Option<String>,
    /// Cache control: results go to the cache.
    #[arg(short = 'f')]
    cache_control: bool,
    /// Descriptor flags to clear and to set, on every nth descriptor.
    #[arg(short = 'F', value_name = "CLEAR:SET:NTH")]
    flags: Option<String>,
    /// Each descriptor goes to another line of the portal.
    #[arg(short = 'c')]
    portal_rotates: bool,
    /// Hexadecimal: 80 pause, 100 umwait, 8000000 MOVDIR64B rate, 40000000 ENQCMD rate.
    #[arg(short = 'x', value_name = "MASK", default_value = "0")]
    misc: String,
    /// Count the preparation of descriptors as work of the CPU.
    #[arg(short = 'C')]
    count_preparation: bool,
    /// Check the bytes: 0 or 1.
    #[arg(short = 'v', value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    verify: u8,
    /// Large pages: 0 for 2 MiB, 1 for 1 GiB.
    #[arg(short = 'l', value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    large_pages: Option<u8>,
    /// Difference of delta records, in percent.
    #[arg(short = 'D', value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100))]
    delta: u8,
    /// Block of DIF operations: 0 to 3.
    #[arg(short = 'e', value_name = "0-3", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=3))]
    block: u8,
    /// Processes instead of threads: the same in modelled time.
    #[arg(short = 'P', hide = true)]
    processes: bool,
    /// Accepted and ignored, as by the peer.
    #[arg(short = 'M', hide = true)]
    ignored: bool,
    /// Accepted: warm-up is by rounds of the queue.
    #[arg(short = 'W', value_name = "N", hide = true)]
    warm_up: Option<u32>,
    /// The CPU of this machine does the work: measured, not modelled.
    #[arg(short = 'm', action = ArgAction::SetTrue, conflicts_with_all = ["platform", "config"])]
    cpu: bool,
    #[arg(short = 'a', hide = true)]
    shuffle: bool,
    #[arg(short = 'Y', hide = true)]
    drain: bool,
    #[arg(short = 'X', hide = true)]
    fetch: Option<String>,
    #[arg(short = 'B', hide = true)]
    mmio: Option<String>,
    #[arg(short = 'u', hide = true, num_args = 0..=1)]
    user_driver: Option<Option<String>>,
    #[arg(short = 'R', hide = true)]
    owners: Option<String>,
    #[arg(short = 'r', hide = true)]
    window: Option<String>,

    /// What is printed: the result line, JSON or CSV.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Form::Line)]
    format: Form,
    /// Machine to model: a built-in platform (spr-2s, emr-2s, dsa2-2s) or a platform file.
    #[arg(long, value_name = "FILE|NAME", default_value = "spr-2s")]
    platform: String,
    /// Device configuration: an accel-config file, or a name such as 4e1w-s.
    #[arg(long, value_name = "FILE|NAME")]
    config: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// dsa_perf_micros's line.
    #[value(alias = "table")]
    Line,
    /// One JSON document.
    Json,
    /// One CSV table.
    Csv,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    refuse(args)?;
    let micros = measurement(args)?;
    if args.cpu {
        return software(args, &micros);
    }
    let platform = PlatformFile::resolve(&args.platform).map_err(|e| complaint(e.into()))?;
    let profile = match &args.config {
        None => None,
        Some(name) => Some(Profile::resolve(name).map_err(|e| complaint(e.into()))?),
    };
    if args.large_pages.is_some() {
        eprintln!("note: -l has no effect: the modelled device translates pages of 4 KiB");
    }
    let outcome = dray_bench::micros::run(&micros, &platform, profile.as_ref());
    let outcome = outcome.map_err(explained)?;
    if let Some(asked) = micros.iterations
        && asked > outcome.iterations
    {
        eprintln!(
            "note: {} of {asked} iterations were simulated; the model repeats itself",
            outcome.iterations
        );
    }
    if args.verify == 1 && !outcome.verified && micros.submission.is_none() {
        eprintln!("note: too many bytes to check them; every status was checked");
    }
    let made_on = match &args.config {
        Some(config) => format!("{} {config}", platform.name),
        None => platform.name.clone(),
    };
    eprintln!("Modelled time on platform {made_on}");
    report(args, &outcome, "modelled", &made_on)
}

fn report(args: &Args, outcome: &Outcome, time: &str, made_on: &str) -> anyhow::Result<ExitCode> {
    let case = command_line();
    let text = match args.format {
        Form::Line => outcome.line(),
        Form::Json => {
            let document = outcome.json(&case, time, made_on);
            format!("{}\n", serde_json::to_string_pretty(&document)?)
        }
        Form::Csv => outcome.csv(&case, time, made_on),
    };
    print::all(&mut io::stdout().lock(), &text)?;
    Ok(ExitCode::SUCCESS)
}

/// `-m`: software, on this machine.
fn software(args: &Args, micros: &Micros) -> anyhow::Result<ExitCode> {
    let head = context();
    eprintln!("Measured on {}", head.dray_platform);
    if !args.nodes.is_empty() || !args.cpu_queues.is_empty() {
        eprintln!("warning: -S and -K have no effect with -m: memory is on the CPU's own node");
    }
    let cpus = args.cpus.as_ref().map(|_| micros.cpus.as_slice());
    let found = run_micros(micros, cpus).map_err(complaint)?;
    for warning in head.dray_warnings.iter().chain(&found.warnings) {
        eprintln!("warning: {warning}");
    }
    report(args, &found.outcome, "measured", &head.dray_platform)
}

/// What names a result: the flags that were given, but those that say how it is printed.
fn command_line() -> String {
    let mut given = Vec::new();
    let mut arguments = std::env::args().skip(2);
    while let Some(argument) = arguments.next() {
        if argument == "--format" {
            arguments.next();
        } else if !argument.starts_with("--format=") {
            given.push(argument);
        }
    }
    given.join(" ")
}

/// Limits in the peer's terms.
fn explained(error: BenchError) -> anyhow::Error {
    match &error {
        BenchError::Limit { what, limit, .. } => {
            let hint = format!("{what}{limit}, or a profile that allows more (--config)");
            Usage::error(error.to_string(), hint)
        }
        _ => complaint(error),
    }
}

/// Flags that need what the model does not have.
fn refuse(args: &Args) -> anyhow::Result<()> {
    let refused = [
        (
            args.shuffle,
            "-a",
            "the modelled device does not see the order of addresses",
            "leave -a out",
        ),
        (
            args.drain,
            "-Y",
            "drain descriptors are not measured",
            "leave -Y out",
        ),
        (
            args.fetch.is_some(),
            "-X",
            "translation fetch is not modelled",
            "leave -X out",
        ),
        (
            args.mmio.is_some(),
            "-B",
            "buffers in PCI devices are not modelled",
            "leave -B out",
        ),
        (
            args.user_driver.is_some(),
            "-u",
            "there is no hardware to bind a driver to",
            "leave -u out",
        ),
        (
            args.owners.is_some(),
            "-R",
            "inter-domain operations are not modelled",
            "leave -R out",
        ),
        (
            args.window.is_some(),
            "-r",
            "inter-domain operations are not modelled",
            "leave -r out",
        ),
    ];
    match refused.iter().find(|(given, ..)| *given) {
        Some((_, flag, reason, hint)) => Err(Usage::error(format!("{flag}: {reason}"), *hint)),
        None => Ok(()),
    }
}

fn measurement(args: &Args) -> anyhow::Result<Micros> {
    let usage = |flag: &'static str, hint: &'static str| {
        move |reason: String| Usage::error(format!("{flag}: {reason}"), hint)
    };
    let cpus = args.cpus.as_deref().map(cpu_list).transpose();
    let mut queues: Vec<CpuQueue> = Vec::new();
    for text in &args.cpu_queues {
        queues.extend(cpu_queues(text).map_err(usage("-K", "-K[0-3]@dsa0,0"))?);
    }
    let mut nodes = Vec::new();
    for text in &args.nodes {
        let list = operand_list(text, |part| part.parse::<i32>().ok());
        nodes.push(list.map_err(usage("-S", "-S-1,1: a node for each operand"))?);
    }
    let offsets = match &args.offsets {
        None => Vec::new(),
        Some(text) => operand_list(text, |part| {
            part.parse::<u64>().ok().filter(|n| *n <= 1 << 20)
        })
        .map_err(usage("-O", "-O0,1,2: pages for each operand"))?,
    };
    if !args.buffers.is_multiple_of(args.batch) {
        return Err(Usage::error(
            format!(
                "-n{} -b{}: buffers do not fill whole batches",
                args.buffers, args.batch
            ),
            format!("-n{}", args.buffers.next_multiple_of(args.batch)),
        ));
    }
    if u64::from(args.buffers) * u64::from(args.size) > 1 << 40 {
        return Err(Usage::error(
            format!(
                "-n{} -s{}: more than 1 TiB of buffers",
                args.buffers, args.size
            ),
            "fewer or smaller buffers",
        ));
    }
    let (wait, submission) = misc(&args.misc)?;
    Ok(Micros {
        op: args.op,
        size: args.size,
        buffers: args.buffers,
        batch: args.batch,
        queue_depth: args.queue_depth,
        iterations: match args.iterations {
            -1 => None,
            n if n > 0 => Some(n as u64),
            n => {
                return Err(Usage::error(
                    format!("-i{n}: iterations are 1 or more"),
                    "-i1000, or -i-1 -T10 for a time",
                ));
            }
        },
        seconds: f64::from(args.seconds),
        continuous: args.continuous,
        stride: args.stride.filter(|stride| *stride > 0),
        offsets,
        cpus: cpus.map_err(usage("-k", "-k0-3,5"))?.unwrap_or(vec![0]),
        cpu_queues: queues,
        shared: args.shared.map(|w| w == 1),
        nodes,
        access: places(args)?,
        cache_control: args.cache_control,
        flags: args.flags.as_deref().map(flag_change).transpose()?,
        portal_rotates: args.portal_rotates,
        wait,
        submission,
        count_preparation: args.count_preparation,
        verify: args.verify == 1,
    })
}

/// `-y`, then `-z` for the operands that it names.
fn places(args: &Args) -> anyhow::Result<Vec<Access>> {
    let read = |text: &Option<String>,
                flag: &'static str,
                hint: &'static str,
                letters: &'static [(&str, Access)]| {
        let Some(text) = text else {
            return Ok(Vec::new());
        };
        let list = operand_list(text, |part| {
            let found = letters
                .iter()
                .find(|(letter, _)| letter.eq_ignore_ascii_case(part));
            found.map(|(_, access)| *access)
        });
        list.map_err(|reason| Usage::error(format!("{flag}: {reason}"), hint))
    };
    let mut places = read(
        &args.access,
        "-y",
        "-yR,W: N, R or W for each operand",
        &[
            ("N", Access::None),
            ("R", Access::Touched),
            ("W", Access::Touched),
        ],
    )?;
    let placed = read(
        &args.placement,
        "-z",
        "-zF,F: N, P, D or F for each operand",
        &[
            ("N", Access::None),
            ("P", Access::Touched),
            ("D", Access::Demoted),
            ("F", Access::Flushed),
        ],
    )?;
    for (index, place) in placed.into_iter().enumerate() {
        match places.get_mut(index) {
            Some(_) if place == Access::None => {}
            Some(old) => *old = place,
            None => places.push(place),
        }
    }
    Ok(places)
}

const PAUSE: u32 = 1 << 7;
const UMWAIT: u32 = 1 << 8;
const MOVDIR64B_RATE: u32 = 1 << 27;
const ENQCMD_RATE: u32 = 1 << 30;
/// A doorbell write, MOVDIR64B to memory, ENQCMD to memory: nothing published tells their cost.
const UNKNOWN_RATES: u32 = (1 << 28) | (1 << 29) | (1 << 31);

fn misc(text: &str) -> anyhow::Result<(WaitMode, Option<Submission>)> {
    let hint = "-x 80 pause, -x 100 umwait, -x 8000000 MOVDIR64B rate, -x 40000000 ENQCMD rate";
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let mask = u32::from_str_radix(digits.unwrap_or(text), 16).map_err(|_| {
        Usage::error(
            format!("-x {text}: not a hexadecimal mask of 32 bits"),
            hint,
        )
    })?;
    if mask & UNKNOWN_RATES != 0 {
        let reason = "doorbells and writes to memory have no parameter in the model";
        return Err(Usage::error(format!("-x {text}: {reason}"), hint));
    }
    let submission = match (mask & MOVDIR64B_RATE != 0, mask & ENQCMD_RATE != 0) {
        (true, _) => Some(Submission::Movdir64b),
        (_, true) => Some(Submission::Enqcmd),
        _ => None,
    };
    let wait = match (mask & UMWAIT != 0, mask & PAUSE != 0) {
        (true, _) => WaitMode::Umwait,
        (_, true) => WaitMode::Pause,
        _ => WaitMode::Poll,
    };
    Ok((wait, submission))
}

fn flag_change(text: &str) -> anyhow::Result<FlagChange> {
    let number = |part: &str| match part.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => part.parse().ok(),
    };
    let parts: Option<Vec<u32>> = text.split(':').map(number).collect();
    match parts.as_deref() {
        Some([clear, set, every]) if *every > 0 => Ok(FlagChange {
            clear: *clear,
            set: *set,
            every: *every,
        }),
        _ => Err(Usage::error(
            format!("-F {text}: bits to clear, bits to set and every nth are needed"),
            "-F 0:0x100:1",
        )),
    }
}
