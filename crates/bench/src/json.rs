//! Results as JSON, in Google Benchmark's schema.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::console::TimeUnit;
use crate::context::Context;
use crate::row::{Row, RowKind};

#[derive(Serialize)]
struct Document<'a> {
    context: &'a Context,
    benchmarks: Vec<Line>,
}

/// Fields in the peer's order.
#[derive(Serialize)]
struct Line {
    name: String,
    family_index: usize,
    per_family_instance_index: usize,
    run_name: String,
    run_type: &'static str,
    repetitions: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    repetition_index: Option<u32>,
    threads: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate_name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate_unit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_occurred: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
    iterations: u64,
    real_time: f64,
    cpu_time: f64,
    time_unit: &'static str,
    #[serde(flatten)]
    counters: Map<String, Value>,
}

/// The document.
///
/// # Errors
/// None that a result can cause; those of the serializer.
pub fn write(context: &Context, rows: &[Row], unit: TimeUnit) -> serde_json::Result<String> {
    let document = Document {
        context,
        benchmarks: rows.iter().map(|row| line(row, unit)).collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

fn line(row: &Row, unit: TimeUnit) -> Line {
    let counters = row.counters.iter();
    let (aggregate_name, aggregate_unit) = match row.kind {
        RowKind::Aggregate(name) => (Some(name), Some("time")),
        RowKind::Share(name) => (Some(name), Some("percentage")),
        _ => (None, None),
    };
    let (repetition_index, error_message) = match &row.kind {
        RowKind::Iteration(index) => (Some(*index), None),
        RowKind::Failed(reason) => (Some(0), Some(reason.clone())),
        _ => (None, None),
    };
    let scale = |value| match row.kind {
        RowKind::Share(_) => value,
        _ => unit.of_ns(value),
    };
    Line {
        name: row.name(),
        family_index: row.family,
        per_family_instance_index: row.instance,
        run_name: row.case.to_string(),
        run_type: if row.is_aggregate() {
            "aggregate"
        } else {
            "iteration"
        },
        repetitions: row.repetitions,
        repetition_index,
        threads: row.case.threads,
        aggregate_name,
        aggregate_unit,
        error_occurred: error_message.as_ref().map(|_| true),
        error_message,
        iterations: row.iterations,
        real_time: scale(row.real),
        cpu_time: scale(row.cpu),
        time_unit: unit.name(),
        counters: counters.map(|c| (c.name.clone(), json!(c.value))).collect(),
    }
}
