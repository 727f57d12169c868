//! `dray tier -- PROGRAM`.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dray_interpose::program::{Obstacle, PreloadSupport, kind};
use dray_output::Output;
use dray_run::Ending;
use dray_tier::launch::{Launch, launch};
use dray_tier::policy::needs_accesses;
use dray_tier::session::{HW, ProcessState, Setup, VIRTUAL};
use dray_tier::size::{Size, SizeError, machine};
use dray_tier::stats::Snapshot;
use dray_tier::sys::damon::DIRECTORY;
use dray_tier::sys::references::can_be_checked;
use dray_tier::tracking::Choice;
use dray_tier::{Engine, Release, TierError};

use super::{BackEnd, Mover, Order, Reused, Session, Tracking, by_kernel, table};
use crate::complain::Usage;
use crate::print;

pub(super) fn run(args: &Session) -> anyhow::Result<ExitCode> {
    if args.back_end == BackEnd::Kernel {
        return by_kernel::run(args);
    }
    if args.pid.is_some() || args.cgroup.is_some() {
        return Err(Usage::error(
            "--pid and --cgroup are of --back-end kernel: uffd needs its agent in the program from the start",
            "leave --back-end out: dray tier --pid N",
        ));
    }
    let setup = setup(args)?;
    let Some(program) = args.program.first() else {
        return Err(Usage::error(
            "no program is named",
            "dray tier --back-end uffd --fast 256M -- ./program argument",
        ));
    };
    let library = dray_preload::tier_library().ok_or_else(|| {
        Usage::error(
            "programs can be tiered on x86-64 Linux with glibc alone",
            "without --back-end uffd all programs can be tiered, between nodes",
        )
    })?;
    check(program)?;
    let opened = Engine::check()?;
    dray_tier::tracking::check(setup.tracking, Path::new(DIRECTORY))?;
    if args.mover() == Mover::Hw {
        dray_tier::copier::HwCopier::open(1)?;
    }
    let launch_it = Launch {
        setup,
        knobs: knobs(args, &setup)?,
        program: args.program.clone(),
        library,
    };
    let stats_file = args.stats_file.as_deref();
    let stats_file = stats_file.map(Output::prepare).transpose()?;
    if args.speaks() {
        eprint!("{}", conditions(&setup, opened.sees_forks()));
    }
    drop(opened);
    let ended = launch(&launch_it)?;
    let snapshot = dray_tier::stats::snapshot(&ended.session);
    if args.stats {
        eprint!("{}", table::table(&snapshot)?);
    } else if args.speaks() {
        eprint!("{}{}", notes(&snapshot), table::untiered(&snapshot));
    }
    if let Some(file) = stats_file {
        file.write(print::document(&snapshot)?.as_bytes())?;
    }
    match (ended.code, ended.signal) {
        (_, Some(signal)) => Ending::Signalled(signal).pass_on(),
        (0, None) => {
            let failed: Vec<_> = snapshot
                .processes
                .iter()
                .filter(|p| p.state == ProcessState::Failed)
                .collect();
            match failed.first() {
                Some(first) => Err(TierError::Untiered {
                    processes: failed.len(),
                    hint: first.hint.clone(),
                }
                .into()),
                None => Ok(ExitCode::SUCCESS),
            }
        }
        (code, None) => Ending::Exited(code).pass_on(),
    }
}

/// What accesses are tracked with, and what the program must not do.
fn conditions(setup: &Setup, sees_forks: bool) -> String {
    let (tracked, more) = match (setup.tracking, setup.shared_read) {
        (Choice::Best, false) => ("writes; what is only read counts as idle", None),
        (Choice::Best, true) => ("nothing", None),
        (Choice::Damon, _) => (
            "reads and writes, by DAMON",
            Some("gives rights up: the process dray-tier keeps them, to use DAMON"),
        ),
        (Choice::Hints, _) => (
            "reads and writes, by hints",
            Some("is dumped or debugged at all: pages are out for whole intervals"),
        ),
    };
    let forks = (!sees_forks).then_some("forks by a system call instruction of its own: without CAP_SYS_PTRACE its child may read zeros");
    let lines = [
        "is killed with a robust mutex that it has just taken, or is read by a debugger that does not stop it",
        "locks all memory, limits its address space, makes guard regions, pins memory for AF_XDP or VFIO, or starts threads, by \
         system calls of its own",
        "waits for orphans (PR_SET_CHILD_SUBREAPER): the processes dray-tier of its children are among them",
        "kills the process dray-tier, or is saved or recorded as it runs (CRIU, rr)",
    ];
    let lines = lines.into_iter().chain(more).chain(forks);
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    format!("note: accesses seen: {tracked}. Not for a program that, while a page moves,\n{lines}")
}

/// What processes said, each text once.
pub(super) fn notes(snapshot: &Snapshot) -> String {
    let mut by_text: Vec<(&str, Vec<String>)> = Vec::new();
    for process in &snapshot.processes {
        let who = match process.pid {
            0 => "ended".to_owned(),
            pid => pid.to_string(),
        };
        for text in &process.notes {
            match by_text.iter_mut().find(|(known, _)| known == text) {
                Some((_, all)) => all.push(who.clone()),
                None => by_text.push((text, vec![who.clone()])),
            }
        }
    }
    let lines = by_text.iter().map(|(text, all)| {
        let more = match all.len() {
            0..=4 => String::new(),
            count => format!(" and {} more", count - 4),
        };
        let all = all[..all.len().min(4)].join(", ");
        format!("warning: process {all}{more}: {text}\n")
    });
    lines.collect()
}

/// Turns what was typed into a setup that this machine can have.
fn setup(args: &Session) -> anyhow::Result<Setup> {
    let (memory, nodes) = machine();
    let resolve = |flag: &str, size: Size| {
        size.resolve(memory, &nodes).map_err(|error: SizeError| {
            Usage::error(
                format!("{flag}: {error}"),
                "numactl --hardware lists nodes; on one node tiers are sizes: --fast 256M",
            )
        })
    };
    let fast = resolve("--fast", args.fast.unwrap_or(Size::Percent(50)))?;
    let slow = match args.slow {
        Some(size) => resolve("--slow", size)?,
        None => (u64::MAX, None),
    };
    if fast.1.is_some() && fast.1 == slow.1 {
        return Err(Usage::error(
            "both tiers are the same node",
            "give two nodes, or sizes: --fast 256M",
        ));
    }
    let shared_read = args.order == Some(Order::SharedRead);
    if shared_read && args.mover() != Mover::Cpu {
        let copier = match args.mover() {
            Mover::Hw => "hw",
            _ => "virtual",
        };
        return Err(TierError::Order { copier }.into());
    }
    let sees_none = shared_read && args.tracking == Tracking::Best;
    if needs_accesses(args.policy.index()) && sees_none {
        return Err(Usage::error(
            "--order shared-read sees no writes, and this policy needs accesses",
            "--tracking hints or damon; or --policy rotate, which needs none",
        ));
    }
    Ok(Setup {
        bytes: [fast.0, slow.0],
        nodes: [fast.1, slow.1],
        policy: args.policy.index(),
        shared_read,
        release: match args.reuse_frames {
            None => Release::Kernel,
            Some(Reused::Always) => Release::Reuse,
            Some(Reused::Checked) if can_be_checked() => Release::Checked,
            Some(Reused::Checked) => {
                // Without userfaultfd nothing can be asked.
                Engine::check()?;
                return Err(Usage::error(
                    "this kernel does not say whether it still refers to a frame",
                    "without --reuse-frames frames go back to the kernel",
                ));
            }
        },
        device: match args.mover() {
            Mover::Hw => HW,
            _ => VIRTUAL,
        },
        tracking: choice(args.tracking),
        filters: dray_tier::sys::processes::filters("self"),
    })
}

pub(super) fn choice(tracking: Tracking) -> Choice {
    match tracking {
        Tracking::Best => Choice::Best,
        Tracking::Damon => Choice::Damon,
        Tracking::Hints => Choice::Hints,
    }
}

/// Knobs in the order in which they are set.
pub(super) fn knobs(args: &Session, setup: &Setup) -> anyhow::Result<Vec<String>> {
    let mut knobs: Vec<String> = Vec::new();
    knobs.extend(args.overhead.map(|percent| format!("overhead={percent}")));
    if args.wants_stats() {
        knobs.push("timer=1".to_owned());
    }
    knobs.extend(args.knob.iter().cloned());
    if args.mover() != Mover::Cpu {
        knobs.push("dsa_state=1".to_owned());
        knobs.push("use_dsa_copy_pages=1".to_owned());
    }
    let trial = dray_tier::Session::private(setup)?;
    for knob in &knobs {
        let set = trial.set(knob);
        set.map_err(|error| Usage::error(error.to_string(), error.hint()))?;
    }
    Ok(knobs)
}

fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|directory| directory.join(program));
    places.find(|place| place.is_file())
}

/// Programs that load no preload library cannot be tiered.
pub(super) fn check(program: &OsStr) -> anyhow::Result<()> {
    let Some(path) = find(program) else {
        return Ok(());
    };
    let text = CString::new(path.as_os_str().as_bytes())?;
    // If it is no program, its execution reports the error.
    if let Ok(PreloadSupport::Hindered(obstacle)) = kind(&text) {
        let which = match obstacle {
            Obstacle::Privileged => " (setuid, setgid or file capabilities)",
            _ => "",
        };
        return Err(Usage::error(
            format!(
                "{} {obstacle}{which}: it loads no preload library",
                path.display()
            ),
            "on a machine with two nodes leave --back-end uffd out: the kernel moves pages of any program",
        ));
    }
    Ok(())
}
