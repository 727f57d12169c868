//! `dray tier bench`.

mod policies;
mod program;

use std::ffi::OsString;
use std::fmt::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use dray_tier::Engine;
use dray_tier::bench::{self, Case, Cost, Frames, Running};
use dray_tier::size::{Size, machine};

use super::Policy;
use super::table::bytes_text;
use crate::complain::Usage;
use crate::print::{self, TextOrJson};

/// Batches of base pages whose cost is measured.
const BATCHES: [u64; 7] = [1, 8, 32, 34, 64, 128, 512];

/// Rounds of the mechanism's cost for one of kernel compaction, which takes as long as many.
const COMPACTS_EVERY: usize = 5;

/// Arguments of `dray tier bench`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to measure; without it, all.
    #[arg(value_enum, value_name = "WHAT")]
    what: Vec<What>,
    /// The fast tier of the workloads; working sets are multiples of it.
    #[arg(long, default_value = "64M", value_parser = super::size)]
    fast: Size,
    /// Which pages go where.
    #[arg(long, value_enum, default_value_t = Policy::Counts)]
    policy: Policy,
    /// Seconds of each phase of a workload.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    time: f64,
    /// Rounds of the mechanism's cost; each measures every batch twice, and one of five compacts memory.
    #[arg(long, default_value_t = 50)]
    rounds: usize,
    /// A control of the workloads' session; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    knob: Vec<String>,
    /// Seed of the accesses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Pairs of runs of a program, with and without dray.
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u64).range(2..=1000))]
    runs: u64,
    /// Milliseconds of the first turn of one of them; each later turn of both is twice as long. With 0 one runs after the
    /// other has ended. The program is stopped and continued by signals meanwhile.
    #[arg(long, default_value_t = 50, value_name = "MS", value_parser = clap::value_parser!(u64).range(..=10_000))]
    slice: u64,
    /// What `program` runs; without it, one that reads and writes 64 MiB, and one that maps, drops and
    /// unmaps memory all the time.
    #[arg(value_name = "PROGRAM", last = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    format: TextOrJson,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Core time a page, by batch, beside HeMem's way.
    Mechanism,
    /// A working set that the fast tier holds.
    Small,
    /// One that it nearly fills.
    Medium,
    /// One that is larger.
    Large,
    /// Random updates with a hot set that moves.
    Gups,
    /// Core time of a program whose memory fits the fast tier, with and without dray, in turn. Only
    /// where it is named.
    Program,
    /// Policies in virtual time: how much of a program's accesses they bring to the fast tier. Only where it is named.
    Policies,
    /// The programs of `program`.
    #[value(hide = true)]
    Fits,
    /// As above.
    #[value(hide = true)]
    Churns,
}

impl What {
    /// It is a program to be measured, and measures nothing.
    fn is_program(self) -> bool {
        matches!(self, What::Fits | What::Churns)
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args.what[..] {
        [What::Fits] => return Ok(program::fits()),
        [What::Churns] => return Ok(program::churns()),
        _ if args.what.iter().any(|what| what.is_program()) => {
            return Err(Usage::error(
                "`fits` and `churns` are what `program` measures: each runs alone",
                "dray tier bench program",
            ));
        }
        _ => {}
    }
    let programs = args.what.contains(&What::Program);
    if !args.program.is_empty() && !programs {
        return Err(Usage::error(
            "a program is named, and nothing to measure with it",
            "dray tier bench program -- ./program",
        ));
    }
    Engine::check()?;
    let programs = match programs {
        true => program::measure(
            &args.program,
            args.runs as usize,
            Duration::from_millis(args.slice),
        )?,
        false => Vec::new(),
    };
    let policies = match args.what.contains(&What::Policies) {
        true => policies::followed_all(args.seed),
        false => Vec::new(),
    };
    let wants = |what| args.what.is_empty() || args.what.contains(&what);
    let (mut costs, mut frames, mut compaction) = (Vec::new(), Vec::new(), None);
    if wants(What::Mechanism) {
        let rounds = args.rounds.max(1);
        costs = bench::costs(&BATCHES, rounds)?;
        costs.extend(bench::hemem(&BATCHES, rounds)?);
        frames = bench::frames(&[128, 512], rounds)?;
        compaction = bench::compaction(256 << 20, rounds.div_ceil(COMPACTS_EVERY))?;
    }
    let mut runs = Vec::new();
    for case in cases(args)? {
        runs.push(bench::run(&case)?);
    }
    let lost: u64 = runs.iter().map(|run| run.lost).sum();
    let mut text = String::new();
    match args.format {
        TextOrJson::Json => {
            let all = serde_json::json!({
                "mechanism": costs, "frames": frames, "compaction": compaction, "workloads": runs,
                "policies": policies,
                "programs": programs.iter().map(program::Program::json).collect::<Result<Vec<_>, _>>()?,
            });
            text = print::document(&all)?;
        }
        TextOrJson::Text => {
            print_costs(&mut text, &costs)?;
            print_frames(&mut text, &frames)?;
            if let Some(compaction) = compaction {
                writeln!(text, "{compaction}")?;
            }
            print_runs(&mut text, &runs)?;
            policies::print(&mut text, &policies)?;
            program::print(&mut text, &programs)?;
        }
    }
    print::all(&mut std::io::stdout().lock(), &text)?;
    if lost > 0 {
        anyhow::bail!("{lost} words were not as they were written");
    }
    Ok(ExitCode::SUCCESS)
}

fn cases(args: &Args) -> anyhow::Result<Vec<Case>> {
    if !(args.time > 0.0 && args.time <= 3600.0) {
        return Err(Usage::error(
            format!(
                "--time {}: a phase takes more than 0 and at most 3600 seconds",
                args.time
            ),
            "--time 2",
        ));
    }
    let (memory, nodes) = machine();
    let refused = |error: dray_tier::size::SizeError| Usage::error(error.to_string(), "--fast 64M");
    let (fast_bytes, _) = args.fast.resolve(memory, &nodes).map_err(refused)?;
    if fast_bytes < 4 << 20 || fast_bytes > memory / 8 {
        return Err(Usage::error(
            format!(
                "--fast: the workloads use up to twice the fast tier: from {} to {} here",
                bytes_text(4 << 20),
                bytes_text(memory / 8)
            ),
            "--fast 64M",
        ));
    }
    for knob in &args.knob {
        let parsed = dray_tier::knobs::parse(knob);
        parsed.map_err(|error| Usage::error(error.to_string(), error.hint()))?;
    }
    let sets = [
        (What::Small, bench::WorkingSet::Small),
        (What::Medium, bench::WorkingSet::Medium),
        (What::Large, bench::WorkingSet::Large),
        (What::Gups, bench::WorkingSet::Gups),
    ];
    let mut cases = Vec::new();
    for (what, working_set) in sets {
        if !args.what.is_empty() && !args.what.contains(&what) {
            continue;
        }
        for access in [bench::Access::Read, bench::Access::Write] {
            cases.push(Case {
                working_set,
                access,
                fast_bytes,
                policy: args.policy.index(),
                knobs: args.knob.clone(),
                time: Duration::from_secs_f64(args.time),
                seed: args.seed,
            });
        }
    }
    Ok(cases)
}

fn print_costs(text: &mut String, costs: &[Cost]) -> fmt::Result {
    if costs.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "core time of a page without its copy, ns: median (quartiles), and medians of the time of its parts"
    )?;
    for cost in costs {
        writeln!(text, "  {cost}")?;
    }
    Ok(())
}

/// The kernel's part of the cost where frames are new with each batch.
fn print_frames(text: &mut String, frames: &[Frames]) -> fmt::Result {
    if frames.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "new frames alone, by the kernel, ns a page: median (quartiles)"
    )?;
    for new in frames {
        writeln!(
            text,
            "  {:>4} x {}  {:>8} ({} to {}) to make, zeroing at least {} of it; {} to drop",
            new.pages,
            if new.huge { "2M" } else { "4K" },
            new.make_ns.median,
            new.make_ns.lower,
            new.make_ns.upper,
            new.zero_ns.median,
            new.drop_ns.median
        )?;
    }
    Ok(())
}

fn print_runs(text: &mut String, runs: &[Running]) -> fmt::Result {
    if runs.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "workloads: thousand accesses a second; pages demoted, promoted; accesses to the fast tier"
    )?;
    for run in runs {
        for (name, phase) in [("in progress", run.in_progress), ("stable", run.stable)] {
            writeln!(
                text,
                "  {:6} {:5} {:>8} {:11} {:>8} k/s {:>8} {:>8} {:>4} %",
                format!("{:?}", run.working_set).to_lowercase(),
                format!("{:?}", run.access).to_lowercase(),
                bytes_text(run.bytes),
                name,
                phase.kilo_accesses,
                phase.demoted,
                phase.promoted,
                phase.fast_percent
            )?;
        }
    }
    writeln!(
        text,
        "  lost writes: {}",
        runs.iter().map(|run| run.lost).sum::<u64>()
    )?;
    Ok(())
}
