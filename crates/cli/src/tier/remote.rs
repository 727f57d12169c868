//! `dray tier --pid`: a process that runs is tiered from outside, by the kernel.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dray_output::Output;
use dray_tier::kernel::RemoteProcess;
use dray_tier::launch::Hosted;
use dray_tier::session::Setup;
use dray_tier::stats::snapshot;
use dray_tier::sys::damon::DIRECTORY;

use super::run::{knobs, notes};
use super::{Session, table};
use crate::complain::Usage;
use crate::print;

/// Longest time until an interrupt is seen.
const GLANCE: Duration = Duration::from_millis(100);

static STOPPED: AtomicBool = AtomicBool::new(false);

pub(super) fn run(args: &Session, setup: &Setup, pid: i32) -> anyhow::Result<ExitCode> {
    if !args.program.is_empty() {
        return Err(Usage::error(
            "both --pid and a program are named",
            "take one of them",
        ));
    }
    let [Some(fast), Some(slow)] = setup.nodes else {
        return Err(Usage::error(
            "--pid moves pages with move_pages(2), between NUMA nodes: both tiers must be nodes",
            "dray tier --fast node:0 --slow node:1 --pid N; numactl --hardware lists nodes",
        ));
    };
    if pid <= 0 || !Path::new("/proc").join(pid.to_string()).exists() {
        return Err(Usage::error(
            format!("there is no process {pid}"),
            "pgrep -a NAME names processes by number",
        ));
    }
    let stats_file = args.stats_file.as_deref();
    let stats_file = stats_file.map(Output::prepare).transpose()?;
    let hosted = Hosted::new(setup, &knobs(args, setup)?)?;
    let session = hosted.session;
    let mut remote = RemoteProcess::new(pid, [fast, slow], session, Path::new(DIRECTORY))?;
    eprint!("{}", notes(&snapshot(&session)));
    let _ = ctrlc::set_handler(|| STOPPED.store(true, Ordering::Relaxed));
    while let Some(pause) = remote.step()? {
        let until = Instant::now() + pause;
        while !STOPPED.load(Ordering::Relaxed) && Instant::now() < until {
            std::thread::sleep(until.saturating_duration_since(Instant::now()).min(GLANCE));
        }
        if STOPPED.load(Ordering::Relaxed) {
            break;
        }
    }
    // DAMON is given back.
    drop(remote);
    let snapshot = snapshot(&session);
    if args.stats {
        eprint!("{}", table::table(&snapshot)?);
    }
    if let Some(file) = stats_file {
        file.write(print::document(&snapshot)?.as_bytes())?;
    }
    let [demoted, promoted] = ["demoted_pages", "promoted_pages"].map(|name| snapshot.value(name));
    let text = format!(
        "process {pid}: {demoted} pages demoted to node {slow}, {promoted} promoted to node {fast}\n"
    );
    print::all(&mut std::io::stdout().lock(), &text)?;
    Ok(ExitCode::SUCCESS)
}
