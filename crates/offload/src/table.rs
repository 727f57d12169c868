//! The histogram as text.

use std::fmt::Write;

use dray_placement::Reason;

use crate::calls::Call;
use crate::stats::{Count, Executor, Snapshot};

/// The histogram, and why the core executed what it did.
pub fn render(snapshot: &Snapshot) -> String {
    let mut text = summary(snapshot);
    text.push('\n');
    let device: Vec<Executor> = Executor::ALL
        .into_iter()
        .filter(|e| *e != Executor::Core)
        .filter(|e| snapshot.executors.contains(e) || snapshot.by(*e).calls > 0)
        .collect();
    let executors: Vec<Executor> = device.into_iter().chain([Executor::Core]).collect();
    let mut rows = vec![head(&executors)];
    for call in Call::ALL {
        rows.extend(call_rows(snapshot, call, &executors));
    }
    if rows.len() > 1 {
        text.push_str(&aligned(&rows));
    }
    let small: Vec<String> = Call::ALL
        .iter()
        .zip(snapshot.small)
        .filter(|(_, count)| count.calls > 0)
        .map(|(call, count)| format!("{} {} ({})", call.name(), count.calls, size(count.bytes)))
        .collect();
    if !small.is_empty() {
        let _ = writeln!(text, "below the threshold: {}", small.join(", "));
    }
    let used: Vec<&(Reason, Count)> = snapshot
        .reasons
        .iter()
        .filter(|(_, count)| count.calls > 0)
        .collect();
    if !used.is_empty() {
        let mut rows = vec![
            ["why the core", "times", "bytes"]
                .map(str::to_owned)
                .to_vec(),
        ];
        rows.extend(used.iter().map(|(reason, count)| {
            vec![
                reason.name().to_owned(),
                count.calls.to_string(),
                size(count.bytes),
            ]
        }));
        text.push('\n');
        text.push_str(&aligned(&rows));
    }
    if snapshot.faults > 0 {
        let _ = writeln!(
            text,
            "page faults of the device: {}, after {} of which it went on",
            snapshot.faults, snapshot.resumed
        );
    }
    text
}

/// Who executed how much, in one line.
pub fn summary(snapshot: &Snapshot) -> String {
    let names: Vec<&str> = snapshot.executors.iter().map(|e| e.name()).collect();
    let names = match names.is_empty() {
        true => "no program has loaded the library".to_owned(),
        false => format!("executors: {}", names.join(", ")),
    };
    let (all, offloaded) = (snapshot.eligible_bytes(), snapshot.offloaded_bytes());
    let percent = match all {
        0 => 0.0,
        all => 100.0 * offloaded as f64 / all as f64,
    };
    format!(
        "{names}; {} of {} in calls of {} and more ({percent:.1} %) by a device",
        size(offloaded),
        size(all),
        size(snapshot.min_bytes)
    )
}

fn head(executors: &[Executor]) -> Vec<String> {
    let mut head = vec!["call".to_owned(), "bytes from".to_owned()];
    for what in ["calls", "bytes", "mean"] {
        head.extend(executors.iter().map(|e| format!("{what} {}", e.name())));
    }
    head
}

fn call_rows(snapshot: &Snapshot, call: Call, executors: &[Executor]) -> Vec<Vec<String>> {
    let mut sizes: Vec<u64> = snapshot
        .rows
        .iter()
        .filter(|row| row.call == call)
        .map(|row| row.from_bytes)
        .collect();
    sizes.dedup();
    let row = |from: u64| {
        let count = |executor: &Executor| {
            let found = snapshot.rows.iter().find(|row| {
                row.call == call && row.from_bytes == from && row.executor == *executor
            });
            found.map_or(Count::default(), |row| row.count)
        };
        let counts: Vec<Count> = executors.iter().map(count).collect();
        let mut cells = vec![call.name().to_owned(), size(from)];
        cells.extend(counts.iter().map(|count| count.calls.to_string()));
        cells.extend(counts.iter().map(|count| size(count.bytes)));
        cells.extend(counts.iter().map(|count| match count.calls {
            0 => "-".to_owned(),
            calls => format!("{:.1} us", count.ns as f64 / calls as f64 / 1e3),
        }));
        cells
    };
    sizes.into_iter().map(row).collect()
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(line, "{cell:width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A number of bytes for people.
pub fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    match value.fract() == 0.0 {
        true => format!("{value:.0} {}", units[unit]),
        false => format!("{value:.1} {}", units[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Stats;

    #[test]
    fn the_histogram_names_call_size_executor_and_reason() {
        let stats = Stats::anonymous().expect("memory");
        stats.opened(Executor::Virtual);
        stats.adapted(0, 65536);
        stats.call(Call::Memcpy, 1 << 20, Executor::Virtual, 1 << 20, 12_345);
        stats.call(Call::Memset, 70_000, Executor::Virtual, 0, 2_000);
        stats.reason(Reason::Busy, 70_000);
        let expected = "\
executors: virtual; 1 MiB of 1.1 MiB in calls of 64 KiB and more (93.7 %) by a device
call    bytes from  calls virtual  calls core  bytes virtual  bytes core  mean virtual  mean core
memcpy       1 MiB              1           0          1 MiB         0 B       12.3 us          -
memset      64 KiB              0           1            0 B    68.4 KiB             -     2.0 us

why the core  times     bytes
lanes busy        1  68.4 KiB
";
        assert_eq!(render(&stats.snapshot()), expected);
    }

    #[test]
    fn sizes_are_printed_with_binary_units() {
        let text = [0, 1023, 1024, 1536, 1 << 40].map(size);
        assert_eq!(text, ["0 B", "1023 B", "1 KiB", "1.5 KiB", "1 TiB"]);
    }
}
