//! Whether a DSA, or another configuration of it, is worth it for a recorded program.

use dray_figures::FiguresError;
use dray_idxd::Profile;
use dray_recording::{Kind, Recording};
use dray_replay::{Compared, Order, Program, ProgramOptions, ReplayError, Replayed, Way, compare};

use super::printed::{time, way_words};
use super::{Row, Setting};

/// Share of the core time below which nothing is to be gained, in percent.
const WORTH_PERCENT: f64 = 1.0;
/// What a run may take longer, in percent, if it saves core time.
const SLOWER_PERCENT: f64 = 1.0;
/// Requests that intervals are worked out of: each parameter of the platform is two more replays.
const INTERVAL_REQUESTS: u64 = 5000;

/// A comparison, in words and numbers.
pub(super) struct Verdict {
    pub(super) sentences: Vec<String>,
    /// The row that is compared, what it is compared with, and how.
    pub(super) compared: Vec<(usize, String, Compared)>,
}

/// Percent that a ratio is less than one, with its interval.
fn less(ratio: f64, (low, high): (f64, f64)) -> String {
    let percent = |ratio: f64| 100.0 * (1.0 - ratio);
    format!(
        "{:.1} % (90 % interval {:.1} to {:.1} %)",
        percent(ratio),
        percent(high),
        percent(low)
    )
}

pub(super) fn of(
    recording: &Recording,
    program: &Program,
    setting: &Setting,
    rows: &[Row],
) -> Result<Verdict, ReplayError> {
    let part = Program::of(
        recording,
        ProgramOptions {
            most_requests: INTERVAL_REQUESTS,
        },
    )?;
    match program.kind {
        Kind::Calls => of_calls((program, &part), setting, rows),
        Kind::Descriptors => of_descriptors((program, &part), setting, rows),
    }
}

/// The row of the least core time among those that `wanted` picks, and that are not slower than `by`.
fn best(rows: &[Row], by: &Row, wanted: impl Fn(Way) -> bool) -> Option<usize> {
    let bound = by.replayed.run_ns * (1.0 + SLOWER_PERCENT / 100.0);
    let of = rows.iter().enumerate();
    let of = of.filter(|(_, row)| wanted(row.way) && row.replayed.run_ns <= bound);
    of.min_by(|a, b| a.1.replayed.core_ns.total_cmp(&b.1.replayed.core_ns))
        .map(|(index, _)| index)
}

fn beside(
    part: &Program,
    setting: &Setting,
    row: &Row,
    other: (&str, Way),
) -> Result<Option<Compared>, ReplayError> {
    let (Some(model), Some(other_model)) = (setting.model(&row.config), setting.model(other.0))
    else {
        return Ok(None);
    };
    let (placement, think) = (setting.placement, setting.think);
    compare(
        part,
        (&model, row.way),
        (&other_model, other.1),
        placement,
        think,
    )
    .map(Some)
}

fn of_calls(
    (program, part): (&Program, &Program),
    setting: &Setting,
    rows: &[Row],
) -> Result<Verdict, ReplayError> {
    let mut verdict = Verdict {
        sentences: Vec::new(),
        compared: Vec::new(),
    };
    let Some(core) = rows.iter().find(|row| row.way == Way::Core) else {
        return Ok(verdict);
    };
    let mut said = Vec::new();
    for (wanted, asynchronous) in [(false, false), (true, true)] {
        let found = best(rows, core, |way| match way {
            Way::Synchronous { .. } => !wanted,
            Way::Asynchronous { .. } => wanted,
            _ => false,
        });
        let Some(index) = found else { continue };
        let row = &rows[index];
        let other = (core.config.as_str(), Way::Core);
        let Some(mut compared) = beside(part, setting, row, other)? else {
            continue;
        };
        compared = around((compared, part), (&row.replayed, program), &core.replayed);
        let saved = core.replayed.core_ns - row.replayed.core_ns;
        said.push((asynchronous, index, compared, saved));
        verdict.compared.push((index, "core".to_owned(), compared));
    }
    let percent = |ratio: f64| 100.0 * (1.0 - ratio);
    let worth = |c: &Compared| percent(c.core) >= WORTH_PERCENT;
    // At the worse end of both intervals as well.
    let certain = |c: &Compared| {
        percent(c.core_90.1) >= WORTH_PERCENT && percent(c.run_90.1) >= -SLOWER_PERCENT
    };
    let sentence = |(_, index, compared, saved): &(bool, usize, Compared, f64)| {
        format!(
            "{} saves {} of core time, {}; run time {}",
            way_words(&rows[*index]),
            time(*saved),
            less(compared.core, compared.core_90),
            change(compared)
        )
    };
    let yes = said.iter().find(|s| !s.0 && worth(&s.2));
    let changed = said.iter().find(|s| s.0 && worth(&s.2));
    verdict.sentences.push(match (yes, changed) {
        (Some(found), _) => {
            let word = match certain(&found.2) {
                true => "Yes",
                false => "Probably",
            };
            format!("{word}, as the program is: {}.", sentence(found))
        }
        (None, Some(found)) => {
            format!("Only if the program goes on meanwhile: {}.", sentence(found))
        }
        (None, None) => match said.iter().find(|s| percent(s.2.core_90.0) >= WORTH_PERCENT) {
            Some(found) => format!(
                "Hardly: {}; the interval includes more than {WORTH_PERCENT} %.",
                sentence(found)
            ),
            None => {
                let requests = core.replayed.on_core_ns / core.replayed.core_ns.max(f64::MIN_POSITIVE);
                format!(
                    "No: nothing that was tried saves {WORTH_PERCENT} % of the core time without a longer run; the calls themselves are {:.1} % of it.",
                    100.0 * requests
                )
            }
        },
    });
    if let Some((_, index, ..)) = yes
        && let Way::Synchronous { threshold, wait } = rows[*index].way
    {
        let wait = match wait {
            dray_platform::WaitMode::Umwait => "umwait",
            _ => "busypoll",
        };
        verdict.sentences.push(format!(
            "On a machine with a DSA: dray offload --wait {wait} --min-bytes {} -- PROGRAM",
            threshold.max(1)
        ));
    }
    if let (Some(_), Some(found)) = (yes, changed) {
        verdict
            .sentences
            .push(format!("If it goes on meanwhile: {}.", sentence(found)));
    }
    verdict.sentences.push(
        "Core time is counted until the last call of each thread; threads without calls are not in it."
            .to_owned(),
    );
    Ok(verdict)
}

/// The ratios of all of a program, with the intervals of a part of it: what a parameter changes is time of the requests, and
/// there are more of them.
fn around(
    (part, of_part): (Compared, &Program),
    (row, of_all): (&Replayed, &Program),
    other: &Replayed,
) -> Compared {
    let more = of_all.requests() as f64 / of_part.requests().max(1) as f64;
    let ratio = |row_ns: f64, other_ns: f64, (from, by_ns, ends): (f64, f64, (f64, f64))| {
        if other_ns <= 0.0 {
            // Of nothing, nothing is saved.
            return (1.0, (1.0, 1.0));
        }
        let ratio = row_ns / other_ns;
        let end = |end: f64| (ratio + (end - from) * by_ns * more / other_ns).max(0.0);
        (ratio, (end(ends.0), end(ends.1)))
    };
    let of_core = (part.core, part.by_core_ns, part.core_90);
    let of_run = (part.run, part.by_run_ns, part.run_90);
    let (core, core_90) = ratio(row.core_ns, other.core_ns, of_core);
    let (run, run_90) = ratio(row.run_ns, other.run_ns, of_run);
    Compared {
        core,
        core_90,
        run,
        run_90,
        by_core_ns: other.core_ns,
        by_run_ns: other.run_ns,
    }
}

/// What becomes of the run time.
fn change(compared: &Compared) -> String {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    format!(
        "{:+.1} % ({:+.1} to {:+.1} %)",
        percent(compared.run),
        percent(compared.run_90.0),
        percent(compared.run_90.1)
    )
}

/// The same device with all engines.
const ALL_ENGINES: [(&str, bool); 2] = [("4e1w-d", false), ("4e1w-s", true)];

fn of_descriptors(
    (program, part): (&Program, &Program),
    setting: &Setting,
    rows: &[Row],
) -> Result<Verdict, ReplayError> {
    let mut verdict = Verdict {
        sentences: Vec::new(),
        compared: Vec::new(),
    };
    let Some(first) = rows.first() else {
        return Ok(verdict);
    };
    let all = first.replayed.threads.iter();
    let elapsed: f64 = all.map(|thread| thread.elapsed_ns).sum();
    let waited = 100.0 * first.replayed.waited_ns / elapsed.max(f64::MIN_POSITIVE);
    let sentence = match waited {
        share if share < 1.0 => "The device does not limit this program".to_owned(),
        share if share < 50.0 => "The device limits this program in part".to_owned(),
        _ => "The device limits this program".to_owned(),
    };
    verdict.sentences.push(format!(
        "{sentence}: with {} its threads wait for it {waited:.1} % of their time.",
        first.config
    ));
    let free = program.unordered();
    if matches!(
        first.way,
        Way::Recorded {
            order: Order::Records,
            ..
        }
    ) && free * 10 > program.requests()
    {
        verdict.sentences.push(format!(
            "{free} of {} descriptors use their completion record for the first time: that they waited for earlier ones is not known, and --order ends gives the other limit.",
            program.requests()
        ));
    }
    let others = rows.iter().enumerate().skip(1);
    let fastest = others.min_by(|a, b| a.1.replayed.run_ns.total_cmp(&b.1.replayed.run_ns));
    if let Some((index, row)) = fastest {
        let Some(compared) = beside(part, setting, row, (&first.config, first.way))? else {
            return Ok(verdict);
        };
        let compared = around((compared, part), (&row.replayed, program), &first.replayed);
        verdict.sentences.push(format!(
            "The fastest other one, {}, changes its run time by {}.",
            way_words(row),
            change(&compared)
        ));
        verdict
            .compared
            .push((index, first.config.clone(), compared));
    } else {
        let shared = setting.profiles[0]
            .1
            .devices()
            .map_err(FiguresError::from)?;
        let shared = shared.first().and_then(|device| device.work_queues.first());
        let shared = shared.is_some_and(|queue| queue.mode == dray_device::WorkQueueMode::Shared);
        for (name, _) in ALL_ENGINES.iter().filter(|(_, of)| *of == shared) {
            let profile = Profile::named(name).map_err(FiguresError::from)?;
            let more = Setting {
                platform: setting.platform.clone(),
                profiles: vec![
                    (first.config.clone(), setting.profiles[0].1.clone()),
                    ((*name).to_owned(), profile),
                ],
                ..*setting
            };
            let (Some(model), Some(base)) = (more.model(name), more.model(&first.config)) else {
                continue;
            };
            let (placement, think) = (setting.placement, setting.think);
            let found = compare(
                part,
                (&model, first.way),
                (&base, first.way),
                placement,
                think,
            )?;
            verdict.sentences.push(format!(
                "{name}, with four engines, changes its run time by {}.",
                change(&found)
            ));
        }
    }
    Ok(verdict)
}
