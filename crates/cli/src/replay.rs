//! `dray replay`: a recorded program on a modelled machine.

mod printed;
mod verdict;

use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use dray_experiment::parse_bytes;
use dray_figures::{FiguresError, Model};
use dray_idxd::Profile;
use dray_platform::{PlatformFile, WaitMode};
use dray_recording::{Header, Kind, Recording};
use dray_replay::{
    Order, Placement, Program, ProgramOptions, ReplayError, Replayed, Think, Way, replay,
};

use crate::complain::Usage;
use crate::configured;
use crate::print::{self, Format};
use crate::said::Stdout;
use printed::Printed;

const EXAMPLES: &str = "\
Examples:
  dray offload --record redis.rec -- redis-server
  dray replay redis.rec
  dray replay redis.rec --threshold 16k,64k,256k --wait poll,umwait --format csv
  dray run --profile 1e1w-d --record program.rec -- ./program
  dray replay program.rec --config 1e1w-d,4e1w-d,4e1w-s
  dray replay program.rec --think none --set umwait_wake=200

Each thread has a core of its own, and rests as long as it did when it was
recorded. The first use of a destination is not recorded: with --by async a
thread goes on until its next call (--window), which is the most that a program
can gain by that.
Exit codes: 0 ok, whatever the verdict; 1 failed; 2 usage or bad input.";

/// Recordings with more combinations are refused.
const MOST_ROWS: usize = 1000;

/// Arguments of `dray replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The recording, of `dray offload --record` or `dray run --record`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Machine to model: a built-in platform or a platform file.
    #[arg(long, value_name = "FILE|NAME", default_value = "spr-2s")]
    platform: String,
    /// Device configurations: accel-config files or names, which say engines and queues, as 4e2w-s does. Without it the device
    /// that is configured here, or 1e1w-d.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    config: Vec<String>,
    /// A parameter of the platform, and its value.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Who carries recorded calls out.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum, default_values_t = [By::Core, By::Sync, By::Async])]
    by: Vec<By>,
    /// Bytes from which on calls go to the device.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "4k,16k,64k,256k"
    )]
    threshold: Vec<String>,
    /// Calls of a thread that may be in flight with --by async.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u32).range(1..=128))]
    window: Vec<u32>,
    /// How threads wait; without it umwait for calls, poll for descriptors.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    wait: Vec<Wait>,
    /// Members of a recorded batch that go to the device together at most; 0: as recorded.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0")]
    batch: Vec<u32>,
    /// What a thread waits for before a recorded descriptor: the end of the one that had its completion record before, which it
    /// has seen for certain; or the last end that it could have seen when it was recorded, which the speed of the virtual
    /// device then decides.
    #[arg(long, value_enum, default_value_t = Waited::Records)]
    order: Waited,
    /// What threads do between requests.
    #[arg(long, value_enum, default_value_t = ThinkTime::Recorded)]
    think: ThinkTime,
    /// Where operands are: as recorded, memory that an earlier request named is in the last-level cache, and other memory
    /// in DRAM.
    #[arg(long, value_enum, default_value_t = Place::Recorded)]
    placement: Place,
    /// Requests that are replayed at most, the first of each thread.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,
    /// How to print it.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// The thread itself.
    Core,
    /// The device, and the thread waits.
    Sync,
    /// The device, and the thread goes on.
    Async,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wait {
    /// Looks at the record again and again.
    Poll,
    /// PAUSE between looks.
    Pause,
    /// Asleep in UMWAIT.
    Umwait,
}

impl Wait {
    fn mode(self) -> WaitMode {
        match self {
            Wait::Poll => WaitMode::Poll,
            Wait::Pause => WaitMode::Pause,
            Wait::Umwait => WaitMode::Umwait,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Waited {
    Records,
    Ends,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ThinkTime {
    /// They use their cores, and rest, as they did.
    Recorded,
    /// Nothing.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Place {
    Recorded,
    Dram,
    Llc,
}

/// One way on one configuration, replayed.
struct Row {
    config: String,
    way: Way,
    replayed: Replayed,
}

/// What all rows have in common.
struct Setting {
    platform: PlatformFile,
    profiles: Vec<(String, Profile)>,
    placement: Placement,
    think: Think,
}

impl Setting {
    fn model(&self, config: &str) -> Option<Model> {
        let found = self.profiles.iter().find(|(name, _)| name == config);
        found.map(|(_, profile)| Model::new(self.platform.clone(), profile.clone()))
    }
}

fn read(args: &Args) -> anyhow::Result<Recording> {
    let refused = |error: &dyn std::fmt::Display| {
        Usage::error(
            format!("{} {error}", args.file.display()),
            "dray offload --record FILE -- PROGRAM, or dray run --record FILE -- PROGRAM, makes one",
        )
    };
    let file = std::fs::File::open(&args.file)
        .map_err(|error| refused(&format!("cannot be read: {error}")))?;
    Recording::read(BufReader::with_capacity(1 << 20, file)).map_err(|error| refused(&error))
}

/// What is said of a recording that is not all of its program.
fn notes(header: &Header, recording: &Recording, program: &Program) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(at) = recording.cut_at {
        notes.push(format!(
            "the file ends at offset {at}, within a chunk that was claimed"
        ));
    }
    if !header.ended {
        notes.push("dray was killed before the recording ended, or it goes on".to_owned());
    }
    if header.lost > 0 {
        notes.push(format!(
            "{} requests are not in the recording: it had no room for them, or a signal handler made them",
            header.lost
        ));
    }
    let left_out = &program.left_out;
    for (operation, count) in &left_out.operations {
        notes.push(format!(
            "{count} requests are left out: the model of a replay has no {operation}"
        ));
    }
    let counts = [
        (
            left_out.later,
            "requests behind the first are left out (--requests)",
        ),
        (
            left_out.empty_batches,
            "batches without members are left out",
        ),
        (
            left_out.failed,
            "requests had failed when they were recorded, and are replayed",
        ),
    ];
    for (count, what) in counts {
        if count > 0 {
            notes.push(format!("{count} {what}"));
        }
    }
    let several = program.of_several_queues();
    if several > 0 {
        notes.push(format!(
            "{several} threads used several work queues, and are replayed on their first one"
        ));
    }
    notes
}

fn setting(args: &Args) -> anyhow::Result<Setting> {
    let mut platform = PlatformFile::resolve(&args.platform).map_err(FiguresError::from)?;
    for text in &args.set {
        let pair = text.split_once('=');
        let value = pair.and_then(|(_, value)| value.trim().parse::<f64>().ok());
        let (Some((name, _)), Some(value)) = (pair, value) else {
            return Err(Usage::error(
                format!("--set {text}: a parameter of the platform, '=' and a number are needed"),
                "--set umwait_wake=200",
            ));
        };
        platform = platform
            .with(name.trim(), value)
            .map_err(FiguresError::from)?;
    }
    let mut profiles = Vec::new();
    for name in &args.config {
        let profile = Profile::resolve(name).map_err(FiguresError::from)?;
        profiles.push((name.clone(), profile));
    }
    if profiles.is_empty() {
        let chosen = configured::profile(None, "1e1w-d").map_err(FiguresError::from)?;
        profiles.push((chosen.name, chosen.profile));
    }
    Ok(Setting {
        platform,
        profiles,
        placement: match args.placement {
            Place::Recorded => Placement::Recorded,
            Place::Dram => Placement::Dram,
            Place::Llc => Placement::Llc,
        },
        think: match args.think {
            ThinkTime::Recorded => Think::Recorded,
            ThinkTime::None => Think::None,
        },
    })
}

/// Every way that the options ask for, on each configuration.
fn ways(args: &Args, kind: Kind) -> anyhow::Result<Vec<Way>> {
    let waits: Vec<WaitMode> = match (args.wait.as_slice(), kind) {
        ([], Kind::Calls) => vec![WaitMode::Umwait],
        ([], Kind::Descriptors) => vec![WaitMode::Poll],
        (some, _) => some.iter().map(|wait| wait.mode()).collect(),
    };
    let each = |way: &dyn Fn(WaitMode) -> Way| waits.iter().map(|wait| way(*wait)).collect();
    if kind == Kind::Descriptors {
        let order = match args.order {
            Waited::Records => Order::Records,
            Waited::Ends => Order::Ends,
        };
        let batches = args.batch.iter();
        let ways: Vec<Vec<Way>> = batches
            .map(|batch| {
                each(&|wait| Way::Recorded {
                    batch: *batch,
                    order,
                    wait,
                })
            })
            .collect();
        return Ok(ways.concat());
    }
    let mut ways: Vec<Way> = Vec::new();
    for by in &args.by {
        if *by == By::Core {
            ways.push(Way::Core);
            continue;
        }
        for text in &args.threshold {
            let threshold = parse_bytes(text).map_err(|error| {
                Usage::error(format!("--threshold {text}: {error}"), "--threshold 4k,64k")
            })?;
            let windows: &[u32] = match by {
                By::Async => &args.window,
                _ => &[0],
            };
            for &window in windows {
                ways.extend(each(&|wait| match by {
                    By::Async => Way::Asynchronous {
                        threshold,
                        window,
                        wait,
                    },
                    _ => Way::Synchronous { threshold, wait },
                }));
            }
        }
    }
    Ok(ways)
}

/// The errors of a replay, as those of other commands are printed.
fn failed(error: ReplayError) -> anyhow::Error {
    match error {
        ReplayError::Machine(error) => error.into(),
        ReplayError::Empty => Usage::error(
            error.to_string(),
            "record one with calls of 512 bytes and more (dray offload --record --min-bytes), or with descriptors",
        ),
        ReplayError::Crowded { .. } => Usage::error(
            error.to_string(),
            "dray replay --config 1e1w-s FILE; --by core needs no queue",
        ),
        ReplayError::Batch { .. } => Usage::error(
            error.to_string(),
            "--batch 32 cuts batches, or a configuration with a larger max_batch_size",
        ),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let recording = read(args)?;
    let options = ProgramOptions {
        most_requests: args.requests,
    };
    let program = Program::of(&recording, options).map_err(failed)?;
    for note in notes(&recording.header, &recording, &program) {
        eprintln!("note: {note}");
    }
    let setting = setting(args)?;
    let ways = ways(args, program.kind)?;
    if ways.len() * setting.profiles.len() > MOST_ROWS {
        return Err(Usage::error(
            format!("more than {MOST_ROWS} combinations"),
            "shorter lists",
        ));
    }
    let mut rows: Vec<Row> = Vec::new();
    for (config, _) in &setting.profiles {
        let Some(model) = setting.model(config) else {
            continue;
        };
        for way in &ways {
            // A core needs no device: it is the same on every configuration.
            if *way == Way::Core && rows.iter().any(|row| row.way == Way::Core) {
                continue;
            }
            let replayed = replay(&model, &program, *way, setting.placement, setting.think);
            rows.push(Row {
                config: config.clone(),
                way: *way,
                replayed: replayed.map_err(failed)?,
            });
        }
    }
    let verdict = verdict::of(&recording, &program, &setting, &rows).map_err(failed)?;
    let printed = Printed {
        recording: &recording,
        program: &program,
        setting: &setting,
        rows: &rows,
        verdict: &verdict,
    };
    let text = match args.format {
        Format::Table => print::wrapped(&printed.table()),
        Format::Json => print::document(&printed.json())?,
        Format::Csv => printed.csv(),
    };
    print::all(&mut Stdout, &text)?;
    Ok(ExitCode::SUCCESS)
}
