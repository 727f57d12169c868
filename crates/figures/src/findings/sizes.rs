//! What sizes, batches and queues give.

use dray_experiment::{Figure, Value};

use super::modes::mode_difference;
use super::{THROUGHPUT, integers, size_text, value};
use crate::label;
use crate::task::{Backend, reduced};

pub(super) fn improvement(figure: &Figure) -> Vec<Option<String>> {
    let experiment = &figure.experiment;
    let sizes = integers(figure, "size");
    let modes = experiment.values("mode");
    let ratio = |op: &Value, mode: &Value, size: u64| {
        let point = experiment.points().into_iter().find(|p| {
            p.get("op") == Some(op)
                && p.get("mode") == Some(mode)
                && p.integer("size") == Some(size)
        })?;
        let device = value(figure, &point)?;
        let core = figure
            .outcome(&reduced(&point, Backend::Cpu))?
            .metric(THROUGHPUT)?;
        Some(device / core)
    };
    let ops = experiment.values("op");
    let sentence = |mode: &Value| {
        let mut parts: Vec<(Option<u64>, Vec<String>)> = Vec::new();
        for op in &ops {
            let from = sizes
                .iter()
                .copied()
                .find(|size| ratio(op, mode, *size).is_some_and(|r| r > 1.0));
            let name = label::operation(&op.to_string()).to_owned();
            match parts.iter_mut().find(|(known, _)| *known == from) {
                Some((_, names)) => names.push(name),
                None => parts.push((from, vec![name])),
            }
        }
        parts.sort_by_key(|(from, _)| from.unwrap_or(u64::MAX));
        let parts: Vec<String> = parts
            .into_iter()
            .map(|(from, names)| match from {
                Some(from) => format!("from {} for {}", size_text(from), names.join(", ")),
                None => format!("at no size for {}", names.join(", ")),
            })
            .collect();
        let best = ops
            .iter()
            .flat_map(|op| sizes.iter().map(move |s| (op, *s)));
        let best = best.filter_map(|(op, s)| Some((ratio(op, mode, s)?, op, s)));
        let (most, op, size) = best.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(format!(
            "{mode}: of the sizes run, the device is faster than the core {}; at most it is {most:.1} times as fast ({}, {}).",
            parts.join("; "),
            label::operation(&op.to_string()),
            size_text(size),
        ))
    };
    modes.iter().map(sentence).collect()
}

pub(super) fn batches(figure: &Figure) -> Vec<Option<String>> {
    if figure.experiment.values("wait").len() > 1 {
        return vec![mode_difference(figure)];
    }
    let points = figure.experiment.points();
    let of = |mode: &str, batch: u64| {
        let chosen = points
            .iter()
            .filter(|p| p.text("mode") == Some(mode) && p.integer("batch") == Some(batch));
        let mut list: Vec<(u64, f64)> = chosen
            .filter_map(|p| Some((p.integer("size")?, value(figure, p)?)))
            .collect();
        list.sort_by_key(|(size, _)| *size);
        list
    };
    let most = points
        .iter()
        .filter_map(|p| value(figure, p))
        .fold(0.0, f64::max);
    let reaches = |mode: &str, batch: u64| {
        let list = of(mode, batch);
        list.iter()
            .find(|(_, v)| *v >= 0.9 * most)
            .map(|(size, _)| *size)
    };
    let text = |mode, batch| match reaches(mode, batch) {
        Some(size) => format!("from {}", size_text(size)),
        None => "at no size".to_owned(),
    };
    let list = integers(figure, "batch");
    let (Some(first), Some(last)) = (list.first().copied(), list.last().copied()) else {
        return Vec::new();
    };
    if of("sync", first).is_empty() || of("async", first).is_empty() {
        return Vec::new();
    }
    let smallest = of("sync", first).first().copied();
    let batched = of("sync", last).first().copied();
    let gain = smallest.zip(batched).map(|((size, a), (_, b))| {
        format!(
            " At {} a batch of {last} makes sync {:.1} times as fast.",
            size_text(size),
            b / a
        )
    });
    vec![Some(format!(
        "The most is {most:.1} GB/s. Nine tenths of it are reached without batches {} when the queue is kept full and {} with one copy outstanding; with one batch of {last} outstanding, {}.{}",
        text("async", first),
        text("sync", first),
        text("sync", last),
        gain.unwrap_or_default(),
    ))]
}

pub(super) fn queues(figure: &Figure) -> Vec<Option<String>> {
    let points = figure.experiment.points();
    let sizes = integers(figure, "size");
    let entries = integers(figure, "wq_size");
    let Some(largest) = entries.iter().copied().max() else {
        return Vec::new();
    };
    let at = |size: u64, wq: u64| {
        let point = points
            .iter()
            .find(|p| p.integer("size") == Some(size) && p.integer("wq_size") == Some(wq))?;
        value(figure, point)
    };
    let mut parts: Vec<(u64, Vec<String>)> = Vec::new();
    for size in sizes {
        let Some(full) = at(size, largest) else {
            continue;
        };
        let enough = entries
            .iter()
            .copied()
            .find(|wq| at(size, *wq).is_some_and(|v| v >= 0.9 * full));
        let Some(enough) = enough else { continue };
        match parts.iter_mut().find(|(known, _)| *known == enough) {
            Some((_, names)) => names.push(size_text(size)),
            None => parts.push((enough, vec![size_text(size)])),
        }
    }
    if parts.is_empty() {
        return Vec::new();
    }
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(entries, sizes)| match entries {
            1 => format!("1 entry for {}", sizes.join(", ")),
            _ => format!("{entries} entries for {}", sizes.join(", ")),
        })
        .collect();
    vec![Some(format!(
        "To reach nine tenths of what {largest} entries give, it takes {}.",
        parts.join("; ")
    ))]
}
