//! `dray tier` by the kernel's migration: a program, processes that run, or a control group, from outside.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dray_output::Output;
use dray_run::Ending;
use dray_tier::kernel::{Members, Remote, Rights, check};
use dray_tier::launch::{Hosted, run_beside};
use dray_tier::nodes::{NodesError, Source, Tiers};
use dray_tier::session::{Setup, VIRTUAL};
use dray_tier::size::{Size, machine};
use dray_tier::stats::{Snapshot, snapshot};
use dray_tier::sys::cgroup;
use dray_tier::tracking::Choice;
use dray_tier::{Release, Session as Shared, TierError};

use super::run::{choice, knobs, notes};
use super::{Session, table};
use crate::complain::Usage;
use crate::print;

/// Longest time until an interrupt is seen.
const GLANCE: Duration = Duration::from_millis(100);

static STOPPED: AtomicBool = AtomicBool::new(false);

pub(super) fn run(args: &Session) -> anyhow::Result<ExitCode> {
    only_of_uffd(args)?;
    let (tiers, bytes) = tiers(args, Path::new("/sys"))?;
    let setup = Setup {
        bytes,
        nodes: tiers.nodes.each_ref().map(|tier| tier.first().copied()),
        policy: args.policy.index(),
        shared_read: false,
        release: Release::Kernel,
        device: VIRTUAL,
        tracking: choice(args.tracking),
        filters: 0,
    };
    if setup.tracking == Choice::Hints {
        let error = TierError::Hints;
        return Err(Usage::error(
            error.to_string(),
            error.hint().unwrap_or_default(),
        ));
    }
    let members = members(args)?;
    let stats_file = args.stats_file.as_deref();
    let stats_file = stats_file.map(Output::prepare).transpose()?;
    let hosted = Hosted::new(&setup, &knobs(args, &setup)?)?;
    let session = hosted.session;
    session.by_kernel(0);
    let rights = Rights::own();
    let remote = Remote::new(members, tiers.clone(), session, rights);
    let mut remote = remote.map_err(|error| match error {
        TierError::Untracked { .. } => {
            Usage::error(error.to_string(), error.hint().unwrap_or_default())
        }
        error => error.into(),
    })?;
    if args.speaks() {
        eprint!("{}", conditions(&tiers, rights, &remote));
    }
    let ending = match args.program.is_empty() {
        true => watch(&mut remote).map(|()| Ending::Exited(0))?,
        false => {
            let (code, signal) = run_beside(&args.program, || remote.step())?;
            signal.map_or(Ending::Exited(code), Ending::Signalled)
        }
    };
    let summary = summary(&session, &tiers, &remote);
    // DAMON is given back.
    drop(remote);
    finish(args, &snapshot(&session), stats_file, &summary)?;
    match ending {
        Ending::Exited(0) => Ok(ExitCode::SUCCESS),
        ending => ending.pass_on(),
    }
}

fn finish(
    args: &Session,
    snapshot: &Snapshot,
    stats_file: Option<Output>,
    summary: &str,
) -> anyhow::Result<()> {
    if args.stats {
        eprint!("{}", table::table(snapshot)?);
    } else if args.speaks() {
        eprint!("{}", notes(snapshot));
    }
    if let Some(file) = stats_file {
        file.write(print::document(snapshot)?.as_bytes())?;
    }
    // The standard output of a program is its own.
    match args.program.is_empty() {
        true => print::all(&mut std::io::stdout().lock(), summary)?,
        false if args.speaks() => eprint!("{summary}"),
        false => {}
    }
    Ok(())
}

/// Until the processes have ended, or this command is interrupted.
fn watch(remote: &mut Remote) -> anyhow::Result<()> {
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
    Ok(())
}

/// Options that mean nothing where the kernel moves pages.
fn only_of_uffd(args: &Session) -> anyhow::Result<()> {
    let option = match args {
        _ if args.mover.is_some() => "--mover",
        _ if args.order.is_some() => "--order",
        _ if args.reuse_frames.is_some() => "--reuse-frames",
        _ => return Ok(()),
    };
    Err(Usage::error(
        format!(
            "{option} is of --back-end uffd: here the kernel copies pages, as its module dray_migrate says"
        ),
        "add --back-end uffd, or leave it out",
    ))
}

fn members(args: &Session) -> anyhow::Result<Members> {
    let named = [
        !args.program.is_empty(),
        args.pid.is_some(),
        args.cgroup.is_some(),
    ];
    match named.iter().filter(|named| **named).count() {
        1 => {}
        0 => {
            return Err(Usage::error(
                "no program is named",
                "dray tier -- ./program argument; --pid N or --cgroup PATH for what runs",
            ));
        }
        _ => {
            return Err(Usage::error(
                "more than one of --pid, --cgroup and a program is named",
                "take one of them",
            ));
        }
    }
    if let Some(pid) = args.pid {
        if pid <= 0 || !Path::new("/proc").join(pid.to_string()).exists() {
            return Err(Usage::error(
                format!("there is no process {pid}"),
                "pgrep -a NAME names processes by number",
            ));
        }
        check(pid)?;
        return Ok(Members::of(pid.unsigned_abs()));
    }
    let Some(path) = &args.cgroup else {
        return Ok(Members::own());
    };
    Members::group(Path::new(cgroup::ROOT), path).map_err(|error| {
        Usage::error(
            format!("{} is no control group that can be read: {error}", path.display()),
            format!(
                "a directory below {}, as in the last field of /proc/PID/cgroup; systemctl show -p ControlGroup UNIT",
                cgroup::ROOT
            ),
        )
    })
}

/// The nodes of both tiers and their bytes, as discovered or as named.
fn tiers(args: &Session, sys: &Path) -> anyhow::Result<(Tiers, [u64; 2])> {
    let usage = |error: &NodesError| Usage::error(error.to_string(), error.hint());
    let (_, nodes) = machine();
    let sizes = [("--fast", args.fast), ("--slow", args.slow)];
    for (flag, size) in sizes {
        // A node that is not there is the first that is wrong.
        for node in size.into_iter().flat_map(Size::nodes) {
            resolve(flag, Some(Size::Node(node)), u64::MAX, &nodes)?;
        }
    }
    if nodes.len() < 2 {
        return Err(usage(&NodesError::OneNode));
    }
    let [fast, slow] = sizes.map(|(_, size)| size.map(Size::nodes).unwrap_or_default());
    let others = |named: &[u32]| -> Vec<u32> {
        let all = nodes.iter().map(|(node, _)| *node);
        all.filter(|node| !named.contains(node)).collect()
    };
    let named = match [fast.is_empty(), slow.is_empty()] {
        [true, true] => None,
        [false, true] => Some([fast.clone(), others(&fast)]),
        [true, false] => Some([others(&slow), slow]),
        [false, false] => Some([fast, slow]),
    };
    let tiers = match named {
        None => Tiers::discover(sys).map_err(|error| usage(&error))?,
        Some([fast, slow])
            if fast.is_empty()
                || slow.is_empty()
                || fast.iter().any(|node| slow.contains(node)) =>
        {
            return Err(Usage::error(
                "both tiers are the same node, or one has none",
                "give two nodes, or lists: --fast node:0,1 --slow node:2; or none: they are discovered",
            ));
        }
        Some(named) => Tiers::of(sys, named, Source::Named),
    };
    let bytes = |tier: usize, flag: &str, size: Option<Size>| match size {
        Some(size @ (Size::Bytes(_) | Size::Percent(_))) => {
            resolve(flag, Some(size), tiers.bytes[tier], &nodes)
        }
        Some(Size::NodeBytes(_, bytes)) => Ok(bytes),
        _ => Ok(tiers.bytes[tier]),
    };
    let bytes = [
        bytes(0, "--fast", args.fast)?,
        bytes(1, "--slow", args.slow)?,
    ];
    Ok((tiers, bytes))
}

fn resolve(
    flag: &str,
    size: Option<Size>,
    memory: u64,
    nodes: &[(u32, u64)],
) -> anyhow::Result<u64> {
    let Some(size) = size else { return Ok(memory) };
    match size.resolve(memory, nodes) {
        Ok((bytes, _)) => Ok(bytes),
        Err(error) => Err(Usage::error(
            format!("{flag}: {error}"),
            "numactl --hardware lists nodes and their memory",
        )),
    }
}

/// What is tiered, how accesses are tracked, what a page costs, and what is left out.
fn conditions(tiers: &Tiers, rights: Rights, remote: &Remote) -> String {
    let tier = |tier: usize| {
        let nodes: Vec<String> = tiers.nodes[tier].iter().map(u32::to_string).collect();
        format!(
            "node {} ({})",
            nodes.join(", "),
            table::bytes_text(tiers.bytes[tier])
        )
    };
    let mut lines = vec![
        format!(
            "fast {}, slow {}: {}",
            tier(0),
            tier(1),
            tiers.source.name()
        ),
        remote.tracking(),
        format!(
            "the kernel moves pages, some 3 us of core time for one of 4 KiB; {}",
            match remote.device_copies() {
                true => "dray_migrate is loaded: the statistics say what the device copied",
                false => "cores copy",
            }
        ),
    ];
    if remote.is_version_1() {
        lines.push(
            "the control group is of version 1: its processes are read in the same way".to_owned(),
        );
    }
    lines.extend(rights.left_out());
    lines.iter().map(|line| format!("note: {line}\n")).collect()
}

fn summary(session: &Shared, tiers: &Tiers, remote: &Remote) -> String {
    let snapshot = snapshot(session);
    let [demoted, promoted] = ["demoted_pages", "promoted_pages"].map(|name| snapshot.value(name));
    let [fast, slow] = tiers.nodes.each_ref().map(|nodes| {
        let nodes: Vec<String> = nodes.iter().map(u32::to_string).collect();
        nodes.join(", ")
    });
    let moved = remote.moved();
    let cost = match moved.pages {
        0 => String::new(),
        pages => format!(
            "; {:.2} us of core time a page, {} copied by the device",
            moved.cpu.as_secs_f64() * 1e6 / pages as f64,
            table::bytes_text(moved.by_device)
        ),
    };
    let missed = match remote.missed() {
        0 => String::new(),
        missed => format!("; {missed} processes ended before they were looked at"),
    };
    format!(
        "{demoted} pages demoted to node {slow}, {promoted} promoted to node {fast}{cost}{missed}\n"
    )
}
