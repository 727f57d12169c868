//! A session's snapshot as text.

use std::fmt::Write;

use dray_tier::stats::{ProcessSnapshot, Snapshot, TimerSnapshot};

use crate::print::{self, TextOrJson};

/// As a table, or as JSON.
pub(super) fn print(snapshot: &Snapshot, format: TextOrJson) -> anyhow::Result<String> {
    Ok(match format {
        TextOrJson::Text => table(snapshot)?,
        TextOrJson::Json => print::document(snapshot)?,
    })
}

/// As a table.
pub(super) fn table(snapshot: &Snapshot) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let size = |bytes: Option<u64>| bytes.map_or_else(|| "the rest".to_owned(), bytes_text);
    writeln!(
        text,
        "back end {}, policy {}, fast tier {}, slow tier {}",
        snapshot.back_end,
        snapshot.policy,
        size(snapshot.tiers[0]),
        size(snapshot.tiers[1])
    )?;
    for process in &snapshot.processes {
        self::process(&mut text, process)?;
    }
    text.push_str(&untiered(snapshot));
    if snapshot.missed_processes > 0 {
        let missed = snapshot.missed_processes;
        writeln!(
            text,
            "processes that ended before they were looked at: {missed}"
        )?;
    }
    if snapshot.knobs.get("timer") == Some(&1) || snapshot.timer.iter().any(|t| t.calls > 0) {
        for timer in snapshot.timer.iter().filter(|timer| timer.calls > 0) {
            self::timer(&mut text, timer)?;
        }
    }
    Ok(text)
}

/// Programs that are not tiered, a line each.
pub(super) fn untiered(snapshot: &Snapshot) -> String {
    let untiered = &snapshot.untiered;
    let mut lines: Vec<String> = untiered.named.clone();
    let more = untiered.count.saturating_sub(untiered.named.len() as u64);
    if more > 0 {
        lines.push(format!("{more} more programs are not tiered"));
    }
    lines.iter().map(|line| format!("note: {line}\n")).collect()
}

fn process(text: &mut String, process: &ProcessSnapshot) -> std::fmt::Result {
    let value = |name: &str| process.values.get(name).copied().unwrap_or(0);
    match process.pid {
        0 => write!(text, "ended processes")?,
        pid => write!(text, "process {pid} {}", process.state.name())?,
    }
    writeln!(
        text,
        ": fast {}, slow {}, managed {} in {} regions",
        bytes_text(value("fast_bytes")),
        bytes_text(value("slow_bytes")),
        bytes_text(value("managed_bytes")),
        value("regions")
    )?;
    writeln!(
        text,
        "  pages demoted {}, promoted {}, ping-pongs {}; faults: missing {}, protected {}; \
         hints {} touched of {}; agent {} ms of a core",
        value("demoted_pages"),
        value("promoted_pages"),
        value("ping_pongs"),
        value("missing_faults"),
        value("write_protect_faults"),
        value("hints_touched"),
        value("hints_armed"),
        value("agent_cpu_ns") / 1_000_000
    )?;
    if let Some(tracking) = process.tracking {
        writeln!(text, "  tracking: {tracking}")?;
    }
    let left: Vec<String> = process
        .outcomes
        .iter()
        .filter(|(name, pages)| **name != "moved" && **pages > 0)
        .map(|(name, pages)| format!("{name} {pages}"))
        .collect();
    if !left.is_empty() {
        writeln!(text, "  pages not moved: {}", left.join(", "))?;
    }
    for note in &process.notes {
        writeln!(text, "  {note}")?;
    }
    Ok(())
}

fn timer(text: &mut String, timer: &TimerSnapshot) -> std::fmt::Result {
    writeln!(
        text,
        "({}, {}): {} calls, {} pages",
        timer.reason, timer.mode, timer.calls, timer.pages
    )?;
    for (power, calls) in timer.pages_per_call.iter().enumerate() {
        if *calls > 0 {
            let (from, to) = (1u64 << power, (2u64 << power) - 1);
            let bar = "#".repeat((calls * 40 / timer.calls.max(1)) as usize);
            writeln!(text, "  {from:>6}-{to:<6} pages {calls:>8} calls {bar}")?;
        }
    }
    let per_page = |ns: u64| ns / timer.pages.max(1);
    let phases: Vec<String> = timer
        .phase_ns
        .iter()
        .map(|(name, ns)| format!("{name} {}", per_page(*ns)))
        .collect();
    writeln!(text, "  ns a page: {}", phases.join(", "))?;
    let bytes: Vec<String> = timer
        .bytes
        .iter()
        .filter(|(_, bytes)| **bytes > 0)
        .map(|(name, bytes)| format!("{name} {}", bytes_text(*bytes)))
        .collect();
    writeln!(text, "  copied by: {}", bytes.join(", "))
}

/// Bytes with a binary prefix.
pub(super) fn bytes_text(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..10_737_418_240 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}
