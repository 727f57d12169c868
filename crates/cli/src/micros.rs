//! `dray micros`.

mod args;
mod read;
mod refuse;

use std::process::ExitCode;

use dray_bench::micros::{Micros, Outcome, cpu_list, run_core};
use dray_bench::real::{DeviceChoice, context, is_virtual, run_micros, run_micros_on_device};
use dray_bench::{BenchError, Gauge, memory_nodes};
use dray_experiment::Provenance;
use dray_idxd::Profile;
use dray_platform::PlatformFile;
use serde_json::{Value, json};

pub(crate) use args::Args;
use args::Form;

use crate::bench::complaint;
use crate::complain::Usage;
use crate::configured::{self, Configured};
use crate::said::{self, Stdout};
use crate::{print, progress};

/// Machine that is modelled where none is named.
const PLATFORM: &str = "spr-2s";

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    refuse::refuse(args)?;
    let micros = read::measurement(args)?;
    let platform = args.platform.as_deref().unwrap_or(PLATFORM);
    let platform = PlatformFile::resolve(platform).map_err(|e| complaint(e.into()))?;
    if args.cpu {
        return match (&args.platform, missing_node(&micros)) {
            (None, None) => software(args, &micros),
            (None, Some(node)) => {
                eprintln!(
                    "note: this machine has memory nodes {}, not {node}: the core is modelled, on platform {}",
                    memory_nodes(),
                    platform.name
                );
                modelled_core(args, &micros, &platform)
            }
            (Some(_), _) => modelled_core(args, &micros, &platform),
        };
    }
    if let Some(choice) = &args.device {
        return on_device(args, &micros, choice);
    }
    let chosen = match &args.config {
        None => configured::configured().inspect(|found| {
            eprintln!(
                "note: modelled with the devices configured in {}; --config names others",
                found.name
            );
        }),
        Some(name) => Some(Configured {
            profile: Profile::resolve(name).map_err(|e| complaint(e.into()))?,
            name: name.clone(),
        }),
    };
    let profile = chosen.as_ref().map(|chosen| &chosen.profile);
    if args.large_pages.is_some() {
        eprintln!("note: -l has no effect: the modelled device translates pages of 4 KiB");
    }
    let gauge = Gauge::default();
    let outcome = progress::watch(&gauge, &case(), || {
        dray_bench::micros::run(&micros, &platform, profile, &gauge)
    });
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
    let config = chosen
        .as_ref()
        .map_or(micros.stands_for(), |chosen| chosen.name.as_str());
    let made_on = format!("{} {config}", platform.name);
    eprintln!("Modelled time on platform {made_on}");
    report(args, &outcome, Provenance::Modelled, &made_on, &[])
}

/// A memory node that is asked for and that this machine has not.
fn missing_node(micros: &Micros) -> Option<i32> {
    let there = cpu_list(&memory_nodes()).unwrap_or_default();
    let mut nodes = micros.nodes.iter().flatten().copied();
    nodes.find(|node| *node != -1 && !u16::try_from(*node).is_ok_and(|n| there.contains(&n)))
}

/// `-m`: software, on a core of the platform.
fn modelled_core(
    args: &Args,
    micros: &Micros,
    platform: &PlatformFile,
) -> anyhow::Result<ExitCode> {
    if let Some(note) = refuse::without_effect(args) {
        eprintln!("note: {note}");
    }
    let gauge = Gauge::default();
    let outcome = progress::watch(&gauge, &case(), || run_core(micros, platform, &gauge));
    let outcome = outcome.map_err(explained)?;
    eprintln!("Modelled core on platform {}", platform.name);
    report(args, &outcome, Provenance::Modelled, &platform.name, &[])
}

/// Prints what was found; `more` is for programs only.
fn report(
    args: &Args,
    outcome: &Outcome,
    time: Provenance,
    made_on: &str,
    more: &[(String, Value)],
) -> anyhow::Result<ExitCode> {
    let text = match args.format {
        Form::Line => outcome.line(),
        Form::Json => {
            let mut document = outcome.json(&case(), time, made_on);
            if let Some(fields) = document.as_object_mut() {
                fields.extend(more.iter().cloned());
            }
            print::document(&document)?
        }
        Form::Csv => outcome.csv(&case(), time, made_on),
    };
    print::all(&mut Stdout, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// `-m`: software, on this machine.
fn software(args: &Args, micros: &Micros) -> anyhow::Result<ExitCode> {
    let mut head = context("dray micros -m");
    eprintln!("Measured on {}", head.dray_platform);
    if let Some(note) = refuse::without_effect(args) {
        eprintln!("note: {note}");
    }
    let cpus = args.cpus.as_ref().map(|_| micros.cpus.as_slice());
    let gauge = Gauge::default();
    let found = progress::watch(&gauge, &case(), || run_micros(micros, cpus, &gauge));
    let found = found.map_err(complaint)?;
    head.dray_warnings.extend(found.warnings);
    for warning in &head.dray_warnings {
        eprintln!("warning: {warning}");
    }
    let percentiles = found.percentiles.iter();
    let mut more: Vec<(String, Value)> = percentiles
        .map(|p| (format!("{}_ns", p.name), json!(p.value * 1e9)))
        .collect();
    let made_on = head.dray_platform.clone();
    more.push(("machine".to_owned(), serde_json::to_value(head)?));
    report(args, &found.outcome, Provenance::Measured, &made_on, &more)
}

/// `--device`: a device of this machine.
fn on_device(args: &Args, micros: &Micros, choice: &DeviceChoice) -> anyhow::Result<ExitCode> {
    let mut head = context("dray micros --device");
    for (flag, given) in [("-M", args.ignored), ("-W", args.warm_up.is_some())] {
        if given {
            eprintln!("note: {flag} without effect, as with the peer");
        }
    }
    let cpus = args.cpus.as_ref().map(|_| micros.cpus.as_slice());
    let gauge = Gauge::default();
    let found = progress::watch(&gauge, &case(), || {
        run_micros_on_device(micros, cpus, choice, &gauge)
    });
    let found = found.map_err(complaint)?;
    eprintln!("Measured on {}", found.queues.join(", "));
    head.dray_warnings.extend(found.warnings);
    for warning in &head.dray_warnings {
        eprintln!("warning: {warning}");
    }
    let percentiles = found.percentiles.iter();
    let mut more: Vec<(String, Value)> = percentiles
        .map(|p| (format!("{}_ns", p.name), json!(p.value * 1e9)))
        .collect();
    let made_on = format!("{}; {}", found.queues.join(", "), head.dray_platform);
    more.push(("virtual".to_owned(), json!(is_virtual())));
    let samples = match micros.submission {
        None => "iteration_samples_ns",
        Some(_) => "burst_samples_ns",
    };
    more.push((samples.to_owned(), json!(found.samples)));
    more.push(("machine".to_owned(), serde_json::to_value(head)?));
    report(args, &found.outcome, Provenance::Measured, &made_on, &more)
}

/// What names a result: the flags that were given, but those that say how it is printed.
fn case() -> String {
    let mut given = Vec::new();
    let words = said::words().into_iter().skip(1);
    let mut arguments = words.map(|word| word.to_string_lossy().into_owned());
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
