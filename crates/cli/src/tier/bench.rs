//! `dray tier bench`.

mod program;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use dray_tier::Engine;
use dray_tier::bench::{self, Case, Cost, Frames, Running};
use dray_tier::size::{Size, machine};

use super::Policy;
use super::status::Format;
use super::table::bytes_text;
use crate::complain::Usage;

/// Batches of base pages whose cost is measured.
const BATCHES: [u64; 7] = [1, 8, 32, 34, 64, 128, 512];

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
    #[arg(long, value_enum, default_value_t = Policy::Tpp)]
    policy: Policy,
    /// Seconds of each phase of a workload.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    time: f64,
    /// Rounds of the mechanism's cost; each measures every batch twice.
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
    /// What `program` runs; without it, one that reads and writes 64 MiB, and one that maps, drops and
    /// unmaps memory all the time.
    #[arg(value_name = "PROGRAM", last = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
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
    /// The programs of `program`.
    #[value(hide = true)]
    Fits,
    /// As above.
    #[value(hide = true)]
    Churns,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args.what[..] {
        [What::Fits] => return Ok(program::fits()),
        [What::Churns] => return Ok(program::churns()),
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
        true => program::measure(&args.program, args.runs as usize)?,
        false => Vec::new(),
    };
    let wants = |what| args.what.is_empty() || args.what.contains(&what);
    let (mut costs, mut frames, mut compaction) = (Vec::new(), Vec::new(), None);
    if wants(What::Mechanism) {
        costs = bench::costs(&BATCHES, args.rounds.max(1))?;
        costs.extend(bench::hemem(&BATCHES, args.rounds.max(1))?);
        frames = bench::frames(&[128, 512], args.rounds.max(1))?;
        compaction = bench::compaction(256 << 20, 9)?;
    }
    let mut runs = Vec::new();
    for case in cases(args)? {
        runs.push(bench::run(&case)?);
    }
    let lost: u64 = runs.iter().map(|run| run.lost).sum();
    match args.format {
        Format::Json => {
            let all = serde_json::json!({
                "mechanism": costs, "frames": frames, "compaction": compaction, "workloads": runs,
                "programs": programs.iter().map(program::Program::json).collect::<Result<Vec<_>, _>>()?,
            });
            println!("{}", serde_json::to_string_pretty(&all)?);
        }
        Format::Table => {
            print_costs(&costs);
            print_frames(&frames);
            if let Some(compaction) = compaction {
                println!("{compaction}");
            }
            print_runs(&runs);
            program::print(&programs);
        }
    }
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

fn print_costs(costs: &[Cost]) {
    if costs.is_empty() {
        return;
    }
    println!("core time of a page without its copy, ns: median (quartiles)");
    for cost in costs {
        let frames = match (cost.way, cost.reuse) {
            ("hemem", _) => "mapped files",
            (_, true) => "reused frames",
            (_, false) => "new frames",
        };
        println!(
            "  {:11} {:13} {:>4} x {}  {:>8} ({} to {}), {} batches",
            cost.way,
            frames,
            cost.pages,
            if cost.huge { "2M" } else { "4K" },
            cost.core_ns.median,
            cost.core_ns.lower,
            cost.core_ns.upper,
            cost.batches
        );
    }
}

/// The kernel's part of the cost where frames are new with each batch.
fn print_frames(frames: &[Frames]) {
    if frames.is_empty() {
        return;
    }
    println!("new frames alone, by the kernel, ns a page: median (quartiles)");
    for new in frames {
        println!(
            "  {:>4} x {}  {:>8} ({} to {}) to make, zeroing at least {} of it; {} to drop",
            new.pages,
            if new.huge { "2M" } else { "4K" },
            new.make_ns.median,
            new.make_ns.lower,
            new.make_ns.upper,
            new.zero_ns.median,
            new.drop_ns.median
        );
    }
}

fn print_runs(runs: &[Running]) {
    if runs.is_empty() {
        return;
    }
    println!(
        "workloads: thousand accesses a second; pages demoted, promoted; accesses to the fast tier"
    );
    for run in runs {
        for (name, phase) in [("in progress", run.in_progress), ("stable", run.stable)] {
            println!(
                "  {:6} {:5} {:>8} {:11} {:>8} k/s {:>8} {:>8} {:>4} %",
                format!("{:?}", run.working_set).to_lowercase(),
                format!("{:?}", run.access).to_lowercase(),
                bytes_text(run.bytes),
                name,
                phase.kilo_accesses,
                phase.demoted,
                phase.promoted,
                phase.fast_percent
            );
        }
    }
    println!(
        "  lost writes: {}",
        runs.iter().map(|run| run.lost).sum::<u64>()
    );
}
