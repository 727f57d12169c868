//! The sums as a table, with advice.

use std::fmt;

use dray_device::WorkQueueMode;
use dray_spec::Opcode;

use super::{Stats, Tally};
use crate::advice;

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<8} {:<9} {:>4} {:>10} {:>8} {:>10} {:>9} {:>6} {:>7} {:>9} {:>9}",
            "queue",
            "mode",
            "size",
            "submitted",
            "batches",
            "mean batch",
            "retries",
            "lost",
            "faults",
            "wait 50 %",
            "wait 99 %"
        )?;
        for queue in &self.queues {
            let mode = match queue.mode {
                Some(WorkQueueMode::Dedicated) => "dedicated",
                Some(WorkQueueMode::Shared) => "shared",
                None => "disabled",
            };
            let size = queue.size.map_or_else(|| "-".to_owned(), |s| s.to_string());
            let batches = queue.batches();
            let mean = batches.map_or_else(|| "-".to_owned(), |b| ratio(b.size, b.count()));
            let wait = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), time);
            writeln!(
                f,
                "{:<8} {mode:<9} {size:>4} {:>10} {:>8} {mean:>10} {:>9} {:>6} {:>7} {:>9} {:>9}",
                queue.name(),
                queue.submitted(),
                batches.map_or(0, Tally::count),
                queue.retries,
                queue.lost,
                queue.faults(),
                wait(queue.wait_ns.map(|(median, _)| median)),
                wait(queue.wait_ns.map(|(_, most)| most)),
            )?;
        }
        if self.queues.iter().any(|queue| !queue.tallies.is_empty()) {
            writeln!(
                f,
                "\n{:<8} {:<17} {:>9} {:>10} {:>12} {:>7} {:>7} {:>8}  sizes submitted",
                "queue",
                "operation",
                "submitted",
                "in batches",
                "bytes",
                "faults",
                "errors",
                "aborted"
            )?;
        }
        for queue in &self.queues {
            for (operation, tally) in &queue.tallies {
                let batch = *operation == u8::from(Opcode::Batch);
                let bytes = if batch { 0 } else { tally.size };
                writeln!(
                    f,
                    "{:<8} {:<17} {:>9} {:>10} {bytes:>12} {:>7} {:>7} {:>8}{}",
                    queue.name(),
                    operation_name(*operation),
                    tally.submitted,
                    tally.members,
                    tally.faults,
                    tally.failed(),
                    tally.given_up,
                    sizes(tally),
                )?;
            }
        }
        for (number, program) in self.unreached.iter().enumerate() {
            let gap = if number == 0 { "\n" } else { "" };
            writeln!(f, "{gap}no portal: {program}")?;
        }
        for (number, advice) in advice::of(self).iter().enumerate() {
            let gap = if number == 0 { "\n" } else { "" };
            writeln!(f, "{gap}advice: {advice}")?;
        }
        if self.queues.iter().any(|queue| !queue.tallies.is_empty()) {
            writeln!(f, "\nfidelity: {} (dray fidelity)", self.fidelity())?;
        }
        Ok(())
    }
}

/// The name of an operation, or its code.
pub(crate) fn operation_name(code: u8) -> String {
    match Opcode::try_from(code) {
        Ok(opcode) => opcode.name().to_owned(),
        Err(_) => format!("{code:#04x}"),
    }
}

/// `4K 92 %, 64K 8 %`: powers of two, the most frequent first, behind a gap.
fn sizes(tally: &Tally) -> String {
    /// More would not fit a line.
    const SHOWN: usize = 4;
    let mut found: Vec<(usize, u64)> = tally.sizes.iter().copied().enumerate().collect();
    found.retain(|(index, count)| *index > 0 && *count > 0);
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown = found.iter().take(SHOWN).map(|(index, count)| {
        let percent = count * 100 / tally.submitted.max(1);
        format!("{} {percent} %", binary(1 << (index - 1)))
    });
    let text = shown.collect::<Vec<_>>().join(", ");
    match found.len() {
        0 => text,
        1..=SHOWN => format!("  {text}"),
        _ => format!("  {text}, ..."),
    }
}

fn binary(size: u64) -> String {
    match size {
        0..1024 => size.to_string(),
        1024..0x10_0000 => format!("{}K", size >> 10),
        0x10_0000..0x4000_0000 => format!("{}M", size >> 20),
        _ => format!("{}G", size >> 30),
    }
}

/// One decimal.
pub(crate) fn ratio(of: u64, to: u64) -> String {
    let tenths = of.saturating_mul(10) / to.max(1);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// A time with its unit.
fn time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{} us", ns / 1000),
        _ => format!("{} ms", ns / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_sizes_come_first() {
        let mut tally = Tally {
            submitted: 8,
            ..Tally::default()
        };
        for (bucket, count) in [(0, 1), (1, 1), (12, 1), (13, 4), (32, 1)] {
            tally.sizes[bucket] = count;
        }
        assert_eq!(sizes(&tally), "  4K 50 %, 1 12 %, 2K 12 %, 2G 12 %");
        tally.sizes[20] = 1;
        assert!(sizes(&tally).ends_with(", ..."));
        assert_eq!(sizes(&Tally::default()), "");
    }

    #[test]
    fn times_have_at_most_four_digits_and_a_unit() {
        assert_eq!(ratio(7, 2), "3.5");
        assert_eq!(ratio(7, 0), "7.0");
        let times = [9_999, 10_000, 9_999_999, 10_000_000].map(time);
        assert_eq!(times, ["9999 ns", "10 us", "9999 us", "10 ms"]);
    }
}
