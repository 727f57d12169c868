//! What engines and ways to wait change.

use dray_experiment::{Figure, Point};

use super::{integers, percent, size_text, value};
use crate::label;
use crate::task::Backend;

/// Whether more engines ever gave less in this figure, and by how much.
pub(crate) fn engine_anomaly(figure: &Figure) -> Option<(f64, String)> {
    let points = figure.experiment.points();
    let counts = integers(figure, "engines");
    let first = *counts.first()?;
    let worst = points.iter().filter_map(|point| {
        let base = value(figure, &point.with("engines", first))?;
        let this = value(figure, point)?;
        Some((1.0 - this / base, point))
    });
    let (loss, point) = worst.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((loss, point.to_string()))
}

pub(super) fn engines(figure: &Figure) -> Vec<Option<String>> {
    let counts = integers(figure, "engines");
    let (Some(first), Some(last)) = (counts.first(), counts.last()) else {
        return Vec::new();
    };
    if first == last {
        return Vec::new();
    }
    let gains = |mode: Option<&str>| {
        let points = figure.experiment.points().into_iter().filter(|p| {
            p.integer("engines") == Some(*last) && (mode.is_none() || p.text("mode") == mode)
        });
        let list: Vec<String> = points
            .filter_map(|p| {
                let gain = value(figure, &p)? / value(figure, &p.with("engines", *first))?;
                let names = ["size".to_owned(), "batch".to_owned()];
                Some(format!(
                    "{gain:.2} ({})",
                    label::series(Backend::Model, &names, &p, false)
                ))
            })
            .collect();
        (!list.is_empty()).then(|| list.join("; "))
    };
    let modes = figure.experiment.values("mode");
    let text = |mode: Option<&str>| {
        let what = mode.map(|m| format!("{m}: ")).unwrap_or_default();
        Some(format!(
            "{what}throughput with {last} engines against {first}: {}.",
            gains(mode)?
        ))
    };
    match modes.len() {
        0 | 1 => vec![text(None)],
        _ => modes.iter().map(|m| text(m.text())).collect(),
    }
}

pub(super) fn modes(figure: &Figure) -> Vec<Option<String>> {
    let points = figure.experiment.points();
    let at = |depth: u64| {
        let chosen: Vec<&Point> = points
            .iter()
            .filter(|p| p.integer("depth") == Some(depth))
            .collect();
        let pairs = chosen
            .iter()
            .filter(|p| p.text("wait") == Some("poll"))
            .filter_map(|p| {
                let (a, b) = (value(figure, p)?, value(figure, &p.with("wait", "umwait"))?);
                Some(((a / b - 1.0).abs(), a))
            });
        pairs
            .map(|(difference, _)| difference)
            .max_by(f64::total_cmp)
    };
    let depth_gain = |point: &Point| {
        let deep = value(figure, &point.with("depth", 128u64))?;
        Some(deep / value(figure, point)?)
    };
    let gains = points
        .iter()
        .filter(|p| p.integer("depth") == Some(1) && p.text("wait") == Some("poll"));
    let most = gains
        .filter_map(|p| Some((depth_gain(p)?, p)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let first = at(128).map(|difference| {
        format!(
            "With 128 outstanding, the script's sync and async differ by at most {} of the throughput over all sizes.",
            percent(difference)
        )
    });
    let second = most.and_then(|(gain, point)| {
        Some(format!(
            "What the paper compares is the depth: 128 outstanding give up to {gain:.1} times the throughput of one ({}). The way to wait alone makes up to {} with one outstanding.",
            size_text(point.integer("size")?),
            percent(at(1)?)
        ))
    });
    vec![first, second]
}

/// What a figure of the reproduction says about the difference of its modes.
pub(super) fn mode_difference(figure: &Figure) -> Option<String> {
    let (largest, at) = wait_difference(figure)?;
    Some(format!(
        "Polling and UMWAIT differ by at most {} here ({at}).",
        percent(largest)
    ))
}

pub(super) fn wait_difference(figure: &Figure) -> Option<(f64, String)> {
    let points = figure.experiment.points();
    let pairs = points
        .iter()
        .filter(|p| p.text("wait") == Some("poll"))
        .filter_map(|p| {
            let (a, b) = (value(figure, p)?, value(figure, &p.with("wait", "umwait"))?);
            Some(((a / b - 1.0).abs(), p))
        });
    let (largest, point) = pairs.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let names = ["size".to_owned(), "batch".to_owned()];
    Some((largest, label::series(Backend::Model, &names, point, false)))
}
