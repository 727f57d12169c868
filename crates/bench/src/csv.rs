//! Results as CSV, in Google Benchmark's columns.

use std::fmt::Write;

use crate::console::TimeUnit;
use crate::number::significant;
use crate::row::{Kind, Row};

const COLUMNS: &str = "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,error_occurred,error_message";

/// The table.
pub fn write(rows: &[Row], unit: TimeUnit) -> String {
    let mut names: Vec<&str> = Vec::new();
    for counter in rows.iter().flat_map(|row| &row.counters) {
        if !names.contains(&counter.name.as_str()) {
            names.push(&counter.name);
        }
    }
    let mut text = COLUMNS.to_owned();
    for name in &names {
        // Writing to a String cannot fail.
        let _ = write!(text, ",{}", quoted(name));
    }
    text.push('\n');
    for row in rows {
        let name = quoted(&row.name());
        if let Kind::Failed(reason) = &row.kind {
            let commas = ",".repeat(names.len());
            let _ = writeln!(text, "{name},,,,,,,,true,{}{commas}", quoted(reason));
            continue;
        }
        let scale = |value: f64| match row.kind {
            Kind::Share(_) => value,
            _ => unit.of_ns(value),
        };
        let (real, cpu) = (
            significant(scale(row.real), 6),
            significant(scale(row.cpu), 6),
        );
        let _ = write!(
            text,
            "{name},{},{real},{cpu},{},,,,,",
            row.iterations,
            unit.name()
        );
        for name in &names {
            let value = row.counters.iter().find(|c| c.name == *name);
            let value = value.map_or(String::new(), |c| significant(c.value, 6));
            let _ = write!(text, ",{value}");
        }
        text.push('\n');
    }
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
