//! Whether a DSA is worth it for a program that was surveyed.

use dray_offload::calls::Call;
use dray_offload::table::size;
use dray_output::counted;

use super::saving::{Ranged, SIZES};
use super::summary::time;
use super::survey::SurveyResult;

/// Share of the run time below which nothing is to be gained, in percent.
const WORTH_PERCENT: f64 = 1.0;

/// Ways to wait, as [`SurveyResult::saved_ns`] orders them.
const UMWAIT: usize = 1;
const ASYNCHRONOUS: usize = 2;

/// Why nothing can be said.
fn unknown(found: &SurveyResult) -> Option<String> {
    if found.programs == 0 {
        return Some(
            "Not known: no program was surveyed. It did not start, is static or setuid, or removed LD_PRELOAD."
                .to_owned(),
        );
    }
    (found.core_ns().value <= 0.0).then(|| {
        format!(
            "Not known: the {} seen made no call of {} and more. A program that is static or setuid, or written in Go, is not seen.",
            counted(found.programs as usize, "program"),
            size(SIZES[0])
        )
    })
}

/// The answer in a sentence, and what to type next.
pub(super) fn verdict(found: &SurveyResult) -> Vec<String> {
    if let Some(why) = unknown(found) {
        return vec![why];
    }
    let saved = found.saved_ns();
    let percent = |ns: f64| ns / (found.elapsed_s.max(1e-9) * 1e9) * 100.0;
    let share = |way: usize| percent(saved[way].value);
    let of_time = |way: usize| {
        let Ranged { low, high, .. } = saved[way];
        format!(
            "{}, {:.2} % of the {:.2} s that it ran ({:.2} to {:.2} %)",
            time(saved[way]),
            share(way),
            found.elapsed_s,
            percent(low),
            percent(high),
        )
    };
    if percent(saved[ASYNCHRONOUS].high.max(saved[UMWAIT].high)) < WORTH_PERCENT {
        return vec![format!(
            "No: a DSA would save {} of core time.",
            of_time(ASYNCHRONOUS)
        )];
    }
    let least = |way: usize| {
        let each = Call::ALL
            .iter()
            .filter_map(|call| found.least_bytes(*call, way));
        each.min()
    };
    let (way, sentence) = match () {
        () if share(UMWAIT) >= WORTH_PERCENT => (
            UMWAIT,
            format!(
                "Yes: a DSA would save {} of core time as the program is, waiting in UMWAIT.",
                of_time(UMWAIT)
            ),
        ),
        () if share(ASYNCHRONOUS) >= WORTH_PERCENT => (
            ASYNCHRONOUS,
            format!(
                "Only if the program is changed to go on meanwhile: a DSA would save {} of core time.",
                of_time(ASYNCHRONOUS)
            ),
        ),
        () => (
            ASYNCHRONOUS,
            format!(
                "Hardly: a DSA would save {} of core time; the range includes more than {WORTH_PERCENT} %.",
                of_time(ASYNCHRONOUS)
            ),
        ),
    };
    let mut said = vec![sentence];
    if let Some(least) = least(way) {
        said.push(format!(
            "On a machine with a DSA, from {} on: dray offload --wait umwait --min-bytes {least} -- {}",
            size(least),
            found.command
        ));
    }
    said
}
