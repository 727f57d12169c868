//! What a survey says, as text and as JSON.

use std::fmt::Write;

use comfy_table::CellAlignment;
use dray_offload::calls::Call;
use dray_offload::survey::Alignment;
use dray_offload::table::size;

use super::saving::{DEPTH, Ranged, SIZES, WAITS};
use super::survey::{CallSite, SurveyResult};
use super::verdict::verdict;
use crate::print;

/// SiteNames that are printed.
const SITES_SHOWN: usize = 12;

/// A time for people, with its range.
pub(super) fn time(ns: Ranged) -> String {
    match ns.low == ns.high {
        true => one(ns.value),
        false => format!("{} ({} to {})", one(ns.value), one(ns.low), one(ns.high)),
    }
}

fn one(ns: f64) -> String {
    match ns.abs() {
        abs if abs >= 1e9 => format!("{:.2} s", ns / 1e9),
        abs if abs >= 1e6 => format!("{:.2} ms", ns / 1e6),
        abs if abs >= 1e3 => format!("{:.2} us", ns / 1e3),
        _ => format!("{ns:.0} ns"),
    }
}

pub(super) fn percent(part: u64, all: u64) -> String {
    match all {
        0 => "-".to_owned(),
        all => format!("{:.0} %", 100.0 * part as f64 / all as f64),
    }
}

/// Sentences that say what was found.
pub(super) fn sentences(found: &SurveyResult) -> Vec<String> {
    let mut said = vec![format!(
        "{} calls moved, filled or compared {} in {:.2} s; programs: {}.",
        found.calls(),
        size(found.bytes()),
        found.elapsed_s,
        found.programs
    )];
    let cost = found.overhead_ns * found.calls() as f64;
    said.push(format!(
        "Recording a call took {:.0} ns (mean of {} timed): about {} in all, {:.1} % of the time.",
        found.overhead_ns,
        found.timed,
        one(cost),
        cost / found.elapsed_s.max(1e-9) / 1e7
    ));
    if found.lost > 0 {
        said.push(format!(
            "{} calls are not counted: their call sites had no room.",
            found.lost
        ));
    }
    said.push(format!(
        "Modelled on {} with {}: calls of {} and more take a core {}.",
        found.platform,
        found.config,
        size(SIZES[0]),
        time(found.core_ns())
    ));
    let [polling, umwait, asynchronous] = found.saved_ns();
    let ways = [
        ("Synchronously, with a core that polls", polling),
        ("Synchronously, with a core that waits in UMWAIT", umwait),
        (
            "Asynchronously, in a program that has other work meanwhile",
            asynchronous,
        ),
    ];
    for (way, (what, saved)) in ways.into_iter().enumerate() {
        let from = Call::ALL.iter().filter_map(|call| {
            let from = found.least_bytes(*call, way)?;
            Some(format!("{} from {}", call.name(), size(from)))
        });
        let from: Vec<String> = from.collect();
        said.push(match from.is_empty() {
            true => format!("{what}, the device saves nothing."),
            false => format!(
                "{what}, the device saves {} of core time: {}.",
                time(saved),
                from.join(", ")
            ),
        });
    }
    said.push(match found.guesses.is_empty() {
        true => "The ranges are those of where buffers are: memory or cache.".to_owned(),
        false => format!(
            "The ranges are those of where buffers are (memory or cache) and of guessed \
             parameters, one at a time: {}.",
            found.guesses.join(", ")
        ),
    });
    said
}

pub(super) fn text(found: &SurveyResult) -> String {
    let mut text = format!(
        "survey of {}\n{}\n\n",
        found.command,
        verdict(found).join("\n")
    );
    let mut table = print::plain([
        "call",
        "bytes from",
        "calls",
        "bytes",
        "seen",
        "core",
        "device",
        "polling",
        "umwait",
        "async",
    ]);
    for ((call, from), by) in &found.sizes {
        let each = |of: fn(&super::saving::CallTimes) -> Ranged| {
            by.times
                .map_or("-".to_owned(), |times| one(of(&times).value))
        };
        table.add_row([
            Call::ALL[*call].name().to_owned(),
            size(*from),
            by.calls.to_string(),
            size(by.bytes),
            percent(by.seen, by.calls),
            each(|t| t.core),
            each(|t| t.latency),
            each(|t| t.polling),
            each(|t| t.umwait),
            each(|t| t.asynchronous),
        ]);
    }
    let columns = table.column_iter_mut().skip(1);
    columns.for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let _ = writeln!(
        text,
        "{table}\n\nseen: calls whose buffers were used before. core, device: one call, modelled, by \
         the core and by the device with\na core that waits. polling, umwait, async: core time that \
         one call saves, {DEPTH} outstanding in the last.\n"
    );
    let mut table = print::plain([
        "call site",
        "call",
        "calls",
        "bytes",
        "seen",
        "aligned",
        "between",
        "saves async",
    ]);
    for site in found.sites.iter().take(SITES_SHOWN) {
        table.add_row([
            site.name.clone(),
            site.call.name().to_owned(),
            site.calls.to_string(),
            size(site.bytes),
            percent(site.seen, site.calls),
            aligned(site),
            one(site.gap_ns),
            time(site.saved_ns[2]),
        ]);
    }
    let columns = table.column_iter_mut().skip(2);
    columns.for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let _ = writeln!(text, "{table}");
    if let Some(more) = found.sites.len().checked_sub(SITES_SHOWN + 1) {
        let _ = writeln!(
            text,
            "and {} call sites more: --stats-file FILE lists them all",
            more + 1
        );
    }
    let _ = writeln!(text, "\n{}", sentences(found).join("\n"));
    text
}

/// Calls whose operands begin at a cache line.
pub(super) fn aligned(site: &CallSite) -> String {
    let lines = |of: Alignment| of.page + of.line;
    let all = |of: Alignment| lines(of) + of.other;
    percent(
        lines(site.to) + lines(site.from),
        all(site.to) + all(site.from),
    )
}

fn range(ns: Ranged) -> serde_json::Value {
    serde_json::json!({ "value": ns.value, "low": ns.low, "high": ns.high })
}

fn saved(ns: &[Ranged; 3]) -> serde_json::Value {
    let each = WAITS.iter().zip(ns);
    each.map(|(way, ns)| ((*way).to_owned(), range(*ns)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

pub(super) fn json(found: &SurveyResult) -> serde_json::Value {
    let sizes = found.sizes.iter().map(|((call, from), by)| {
        serde_json::json!({
            "call": Call::ALL[*call].name(), "from_bytes": from, "below_bytes": from * 2,
            "calls": by.calls, "bytes": by.bytes, "calls_on_buffers_seen_before": by.seen,
            "calls_to_a_cache_line": by.aligned,
            "core_ns": by.times.map(|times| range(times.core)),
            "device_ns": by.times.map(|times| range(times.latency)),
            "saved_ns": by.times.map(|times| saved(&times.saved())),
        })
    });
    let alignment = |of: Alignment| serde_json::json!({ "page": of.page, "cache_line": of.line, "other": of.other });
    let sites = found.sites.iter().map(|site| {
        serde_json::json!({
            "site": site.name, "call": site.call.name(), "calls": site.calls,
            "bytes": site.bytes, "calls_on_buffers_seen_before": site.seen,
            "to": alignment(site.to), "from": alignment(site.from),
            "median_ns_since_the_call_before": site.gap_ns,
            "core_ns": range(site.core_ns), "saved_ns": saved(&site.saved_ns),
        })
    });
    serde_json::json!({
        "answer": verdict(found)[0],
        "command": found.command,
        "platform": found.platform,
        "config": found.config,
        "executor": "model",
        "programs": found.programs,
        "elapsed_s": found.elapsed_s,
        "calls": found.calls(),
        "bytes": found.bytes(),
        "calls_lost": found.lost,
        "overhead_ns_per_call": found.overhead_ns,
        "calls_timed": found.timed,
        "core_ns": range(found.core_ns()),
        "saved_ns": saved(&found.saved_ns()),
        "guesses": found.guesses,
        "by_size": sizes.collect::<Vec<_>>(),
        "sites": sites.collect::<Vec<_>>(),
    })
}
