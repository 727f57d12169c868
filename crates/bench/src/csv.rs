//! Results as CSV, in Google Benchmark's columns.

use dray_experiment::csv_table;

use crate::console::TimeUnit;
use crate::number::significant;
use crate::row::{Row, RowKind};

const COLUMNS: [&str; 10] = [
    "name",
    "iterations",
    "real_time",
    "cpu_time",
    "time_unit",
    "bytes_per_second",
    "items_per_second",
    "label",
    "error_occurred",
    "error_message",
];

/// The table.
pub fn write(rows: &[Row], unit: TimeUnit) -> String {
    let mut names: Vec<&str> = Vec::new();
    for counter in rows.iter().flat_map(|row| &row.counters) {
        if !names.contains(&counter.name.as_str()) {
            names.push(&counter.name);
        }
    }
    let head: Vec<&str> = COLUMNS.into_iter().chain(names.iter().copied()).collect();
    csv_table(&head, rows.iter().map(|row| cells(row, &names, unit)))
}

fn cells(row: &Row, names: &[&str], unit: TimeUnit) -> Vec<String> {
    let mut cells = vec![String::new(); COLUMNS.len()];
    cells[0] = row.name();
    if let RowKind::Failed(reason) = &row.kind {
        cells[8] = "true".to_owned();
        cells[9] = reason.clone();
    } else {
        let scale = |value: f64| match row.kind {
            RowKind::Share(_) => value,
            _ => unit.of_ns(value),
        };
        cells[1] = row.iterations.to_string();
        cells[2] = significant(scale(row.real), 6);
        cells[3] = significant(scale(row.cpu), 6);
        cells[4] = unit.name().to_owned();
    }
    cells.extend(names.iter().map(|name| {
        let counter = row.counters.iter().find(|c| c.name == *name);
        counter.map_or(String::new(), |c| significant(c.value, 6))
    }));
    cells
}
