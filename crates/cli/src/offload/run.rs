//! `dray offload -- PROGRAM`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::ValueEnum;
use dray::hw::{HwError, HwMover, HwOptions, QueueInfo};
use dray_offload::launch::{Launch, launch};
use dray_offload::settings::{self, Settings, dto};
use dray_offload::{queues, table};
use dray_output::Output;
use dray_run::Ending;

use super::{Args, Call, Faults, Mover, Numa, Switch, Wait, json, program, record, survey};
use crate::complain::Usage;
use crate::print;

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Some(name) = args.program.first() else {
        return Err(Usage::error(
            "no program is named",
            "dray offload --stats -- ./program argument",
        ));
    };
    let library = dray_preload::offload_library().ok_or_else(|| {
        Usage::error(
            "calls can be taken on x86-64 Linux with glibc alone",
            "the library dray offloads operations of programs that are written for it",
        )
    })?;
    if args.survey {
        program::check(name)?;
        return survey::run(args, library);
    }
    if let Some(path) = &args.record {
        program::check(name)?;
        return record::run(args, path, library);
    }
    let mut variables = variables(args)?;
    let settings = checked(&variables)?;
    program::check(name)?;
    let mover = mover(args.mover, &settings)?;
    variables.push((settings::MOVER, mover.name().into()));
    let stats_file = args.stats_file.as_deref();
    let stats_file = stats_file.map(Output::prepare).transpose()?;
    let directory = tempfile::Builder::new().prefix("dray-offload-").tempdir()?;
    let ended = launch(&Launch {
        directory: directory.path(),
        library,
        variables: &variables,
        program: &args.program,
    })?;
    let snapshot = ended.stats.snapshot();
    drop(directory);
    if args.stats {
        eprint!("dray offload: {}", table::render(&snapshot));
    } else if !args.quiet && stats_file.is_none() {
        eprintln!("dray offload: {}", table::summary(&snapshot));
    }
    if let Some(file) = stats_file {
        let document = print::document(&json::histogram(&snapshot, mover))?;
        file.write(document.as_bytes())?;
    }
    match ended.signal {
        Some(signal) => Ending::Signalled(signal).pass_on(),
        None => Ending::Exited(ended.code).pass_on(),
    }
}

/// The variables that the options stand for.
fn variables(args: &Args) -> anyhow::Result<Vec<(&'static str, OsString)>> {
    let mut variables: Vec<(&'static str, OsString)> = Vec::new();
    let mut set = |name, value: &str| variables.push((name, value.into()));
    if let Some(text) = &args.min_bytes {
        let hint = "--min-bytes 64k";
        let bytes = dray_experiment::parse_bytes(text)
            .map_err(|error| Usage::error(format!("--min-bytes {text}: {error}"), hint))?;
        let [least, most] = settings::MIN_BYTES_RANGE;
        if !(least..=most).contains(&bytes) {
            let what = format!("--min-bytes {text}: possible are {least} to {most} bytes");
            return Err(Usage::error(what, hint));
        }
        set(dto::MIN_BYTES, &bytes.to_string());
    }
    if let Some(fraction) = &args.core_fraction {
        set(dto::CPU_SIZE_FRACTION, fraction);
    }
    if let Some(seconds) = &args.deadline {
        set(settings::DEADLINE, seconds);
    }
    if let Some(switch) = args.adapt {
        let on = if switch == Switch::On { "1" } else { "0" };
        set(dto::AUTO_ADJUST_KNOBS, on);
    }
    if let Some(wait) = args.wait {
        let name = match wait {
            Wait::Busypoll => "busypoll",
            Wait::Umwait => "umwait",
            Wait::Yield => "yield",
            Wait::Tpause => "tpause",
        };
        set(dto::WAIT_METHOD, name);
    }
    if let Some(numa) = args.numa {
        let number = match numa {
            Numa::Off => "0",
            Numa::Buffer => "1",
            Numa::Core => "2",
        };
        set(dto::IS_NUMA_AWARE, number);
    }
    if !args.wq.is_empty() {
        set(dto::WQ_LIST, &args.wq.join(";"));
    }
    if args.faults == Faults::Core {
        set(settings::FAULTS, "core");
    }
    if args.count_small {
        set(settings::COUNT_SMALL, "1");
    }
    variables.extend(calls(args));
    Ok(variables)
}

/// The variables that `--calls` stands for.
pub(super) fn calls(args: &Args) -> Vec<(&'static str, OsString)> {
    let names = dto::CALLS.into_iter().zip(Call::value_variants());
    let taken = |call: Call| {
        let taken = args.calls.contains(&call);
        if taken { "1".into() } else { "0".into() }
    };
    let names = names.filter(|_| !args.calls.is_empty());
    names.map(|(name, call)| (name, taken(*call))).collect()
}

/// The settings that the program will find, whether from options or from variables.
fn checked(variables: &[(&'static str, OsString)]) -> anyhow::Result<Settings> {
    let (settings, errors) = Settings::from_variables(|name| {
        let given = variables.iter().find(|(other, _)| *other == name);
        match given {
            Some((_, value)) => value.to_str().map(str::to_owned),
            None => std::env::var(name).ok(),
        }
    });
    match errors.into_iter().next() {
        None => Ok(settings),
        Some(error) => {
            let option = match error.name {
                dto::CPU_SIZE_FRACTION => "--core-fraction 0.25",
                dto::WQ_LIST => "--wq wq0.0,wq2.0",
                dto::MIN_BYTES => "--min-bytes 64k",
                settings::DEADLINE => "--deadline 60",
                _ => "unset the variable to get its default",
            };
            Err(Usage::error(error.to_string(), option))
        }
    }
}

/// Who will execute; said where it is not what was asked for.
fn mover(asked: Mover, settings: &Settings) -> anyhow::Result<settings::Mover> {
    Ok(match asked {
        Mover::Cpu => settings::Mover::Cpu,
        Mover::Virtual => settings::Mover::Virtual,
        Mover::Hw => {
            usable(settings)?;
            settings::Mover::Hw
        }
        Mover::Auto => match usable(settings) {
            Ok(()) => settings::Mover::Hw,
            Err(error) if settings.queues.is_empty() => {
                eprintln!("dray offload: {error}; the virtual device executes");
                settings::Mover::Virtual
            }
            Err(error) => return Err(error.into()),
        },
    })
}

/// Opens one of the work queues, and closes it again.
fn usable(settings: &Settings) -> Result<(), HwError> {
    let queues = queues::choose(&settings.queues)?;
    let mut last = None;
    for queue in &queues {
        match HwMover::open(queue, HwOptions::default()) {
            Ok(_) => return Ok(()),
            Err(error) => last = Some(error),
        }
    }
    let names: Vec<String> = queues.iter().map(QueueInfo::name).collect();
    let none = || HwError::NoSuchQueue {
        name: settings.queues.join(", "),
        available: names.join(", "),
    };
    Err(last.unwrap_or_else(none))
}
