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
    let gains = |mode: Option<&str>| -> Vec<Gain> {
        let points = figure.experiment.points().into_iter().filter(|p| {
            p.integer("engines") == Some(*last) && (mode.is_none() || p.text("mode") == mode)
        });
        let gain = |p: Point| {
            Some(Gain {
                size: p.integer("size")?,
                batch: p.integer("batch")?,
                times: value(figure, &p)? / value(figure, &p.with("engines", *first))?,
            })
        };
        points.filter_map(gain).collect()
    };
    let modes = figure.experiment.values("mode");
    let text = |mode: Option<&str>| {
        let what = mode.map(|m| format!("{m}: ")).unwrap_or_default();
        let seen = Gain::seen(&gains(mode))?;
        Some(format!("{what}{last} engines against {first} {seen}."))
    };
    match modes.len() {
        0 | 1 => vec![text(None)],
        _ => modes.iter().map(|m| text(m.text())).collect(),
    }
}

/// How many times as fast more engines are.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Gain {
    size: u64,
    batch: u64,
    times: f64,
}

impl Gain {
    /// More than this is a gain that a reader sees in the picture.
    const SEEN: f64 = 1.05;

    /// From which batch on there is a gain, and the most at each size; `None` without points.
    fn seen(all: &[Gain]) -> Option<String> {
        let times = || all.iter().map(|gain| gain.times);
        let most = times().max_by(f64::total_cmp)?;
        let least = times().min_by(f64::total_cmp)?;
        if most < Self::SEEN {
            return Some(match least > 1.0 / Self::SEEN {
                true => "change nothing".to_owned(),
                false => format!("give {least:.2} to {most:.2} times the throughput"),
            });
        }
        let seen = || all.iter().filter(|gain| gain.times >= Self::SEEN);
        let batch = seen().map(|gain| gain.batch).min()?;
        let mut sizes: Vec<u64> = seen().map(|gain| gain.size).collect();
        sizes.dedup();
        let each: Vec<String> = sizes
            .into_iter()
            .filter_map(|size| {
                let own = seen().filter(|gain| gain.size == size);
                let best = own.map(|gain| gain.times).max_by(f64::total_cmp)?;
                Some(format!("{best:.2} times at {}", size_text(size)))
            })
            .collect();
        Some(format!(
            "pay from batch {batch} on: up to {}",
            each.join(", ")
        ))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(size: u64, batch: u64, times: f64) -> Gain {
        Gain { size, batch, times }
    }

    #[test]
    fn gains_are_told_from_where_they_begin() {
        let none = [gain(256, 1, 1.0), gain(256, 4, 1.02)];
        assert_eq!(Gain::seen(&none).unwrap(), "change nothing");
        let some = [
            gain(256, 1, 1.0),
            gain(256, 4, 1.39),
            gain(256, 16, 2.95),
            gain(1024, 4, 1.6),
        ];
        assert_eq!(
            Gain::seen(&some).unwrap(),
            "pay from batch 4 on: up to 2.95 times at 256 B, 1.60 times at 1 KiB"
        );
        let less = [gain(256, 1, 0.8), gain(256, 4, 1.0)];
        assert_eq!(
            Gain::seen(&less).unwrap(),
            "give 0.80 to 1.00 times the throughput"
        );
        assert_eq!(Gain::seen(&[]), None);
    }
}
