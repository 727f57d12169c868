//! `dray tier watch`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dray_tier::watch::{Histograms, Trace};

use crate::complain::Usage;
use crate::print::{self, TextOrJson};

/// Arguments of `dray tier watch`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Seconds to watch; Ctrl-C ends it before.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    time: u64,
    /// How to print.
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    format: TextOrJson,
    /// Where the trace file system is; without it, where it usually is.
    #[arg(long, value_name = "DIRECTORY")]
    tracefs: Option<PathBuf>,
}

static STOPPED: AtomicBool = AtomicBool::new(false);

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let usual = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let found = || {
        let mut places = usual.iter().map(Path::new);
        places.find(|place| place.join("instances").is_dir())
    };
    let tracefs = match &args.tracefs {
        Some(path) => path.as_path(),
        None => found().ok_or_else(|| {
            Usage::error(
                "the trace file system is not mounted",
                "as root: mount -t tracefs tracefs /sys/kernel/tracing",
            )
        })?,
    };
    let mut trace = Trace::start(tracefs).map_err(|error| {
        Usage::error(
            format!("{} cannot be used: {error}", tracefs.display()),
            "run as root, with a trace file system: mount -t tracefs tracefs /sys/kernel/tracing",
        )
    })?;
    let _ = ctrlc::set_handler(|| STOPPED.store(true, Ordering::Relaxed));
    let mut histograms = Histograms::default();
    let time = Duration::from_secs(args.time);
    trace.read(time, || STOPPED.load(Ordering::Relaxed), &mut histograms)?;
    drop(trace);
    show(&histograms, args.format)?;
    Ok(ExitCode::SUCCESS)
}

fn show(histograms: &Histograms, format: TextOrJson) -> anyhow::Result<()> {
    if format == TextOrJson::Json {
        let calls: Vec<_> = histograms
            .calls
            .iter()
            .map(|((reason, mode), calls)| {
                serde_json::json!({ "reason": reason, "mode": mode, "calls": calls })
            })
            .collect();
        let all = serde_json::json!({ "migrations": calls, "unknown_lines": histograms.unknown });
        let text = print::document(&all)?;
        return Ok(print::all(&mut std::io::stdout().lock(), &text)?);
    }
    let mut text = String::new();
    if histograms.calls.is_empty() {
        text += "the kernel migrated nothing\n";
    }
    for ((reason, mode), calls) in &histograms.calls {
        writeln!(
            text,
            "({reason}, {mode}): {} calls, {} pages moved, {} not, {} huge pages",
            calls.calls, calls.succeeded, calls.failed, calls.huge[0]
        )?;
        for (power, count) in calls.pages_per_call.iter().enumerate() {
            if *count > 0 {
                let (from, to) = (1u64 << power, (2u64 << power) - 1);
                let bar = "#".repeat((count * 40 / calls.calls.max(1)) as usize);
                writeln!(text, "  {from:>6}-{to:<6} pages {count:>8} calls {bar}")?;
            }
        }
    }
    print::all(&mut std::io::stdout().lock(), &text)?;
    if histograms.unknown > 0 {
        eprintln!("warning: {} lines could not be read", histograms.unknown);
    }
    Ok(())
}
