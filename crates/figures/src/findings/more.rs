//! What the experiments beyond the publication show.

use dray_experiment::Point;

use super::{integers, size_text, value};
use crate::run::Figure;
use crate::task::{Backend, reduced};

fn metric(figure: &Figure, point: &Point, backend: Backend, name: &str) -> Option<f64> {
    figure.outcome(&reduced(point, backend))?.metric(name)
}

fn points_with(figure: &Figure, name: &str, text: &str) -> Vec<Point> {
    let points = figure.experiment.points().into_iter();
    points.filter(|p| p.text(name) == Some(text)).collect()
}

/// What more submitting cores give.
pub(super) fn cores(figure: &Figure) -> Vec<Option<String>> {
    let sentence = |(node, words): (&str, &str)| {
        let points = points_with(figure, "core_node", node);
        let rate = |p: &Point| metric(figure, p, Backend::Model, "rate_mops");
        let most = points.iter().filter_map(rate).fold(0.0, f64::max);
        let enough = points
            .iter()
            .find(|p| rate(p).is_some_and(|r| r >= 0.9 * most))?;
        Some(format!(
            "From {words}, one core submits {:.1} million descriptors a second, and {} cores reach nine tenths of the most there is, {most:.1} million.",
            rate(points.first()?)?,
            enough.integer("cores")?,
        ))
    };
    [("local", "its own socket"), ("remote", "the other socket")]
        .into_iter()
        .map(sentence)
        .collect()
}

/// From how many devices on more devices give nothing.
pub(super) fn devices(figure: &Figure) -> Vec<Option<String>> {
    let size = integers(figure, "size").into_iter().max();
    let points = figure.experiment.points().into_iter();
    let points: Vec<Point> = points.filter(|p| p.integer("size") == size).collect();
    let most = points
        .iter()
        .filter_map(|p| value(figure, p))
        .fold(0.0, f64::max);
    let enough = points
        .iter()
        .find(|p| value(figure, p).is_some_and(|v| v >= 0.97 * most));
    vec![enough.zip(size).and_then(|(point, size)| {
        Some(format!(
            "At {}, {} devices reach what the memory of one socket gives ({most:.0} GB/s copied); more add nothing.",
            size_text(size),
            point.integer("devices")?
        ))
    })]
}

/// From which order on the device is faster.
pub(super) fn orders(figure: &Figure) -> Vec<Option<String>> {
    let points = points_with(figure, "submit", "movdir64b");
    let faster = |p: &&Point| {
        let of = |backend| metric(figure, p, backend, "list_ns");
        of(Backend::Model)
            .zip(of(Backend::Cpu))
            .is_some_and(|(device, core)| device < core)
    };
    let from = points.iter().find(faster).and_then(|p| p.integer("pages"));
    vec![from.map(|pages| {
        format!(
            "The device is faster from order {} on ({}).",
            pages.ilog2(),
            size_text(pages * 4096)
        )
    })]
}

/// How much faster the longest lists are.
pub(super) fn lists(figure: &Figure) -> Vec<Option<String>> {
    let longest = integers(figure, "pages").into_iter().max();
    let points = figure.experiment.points().into_iter();
    let gains = points.filter(|p| p.integer("pages") == longest);
    let gains: Vec<String> = gains
        .filter_map(|p| {
            let of = |backend| metric(figure, &p, backend, "list_ns");
            let gain = of(Backend::Cpu)? / of(Backend::Model)?;
            let (layout, devices) = (p.text("layout")?, p.integer("devices")?);
            let devices = match devices {
                1 => "1 device".to_owned(),
                n => format!("{n} devices"),
            };
            Some(format!("{gain:.1} ({layout}, {devices})"))
        })
        .collect();
    vec![longest.filter(|_| !gains.is_empty()).map(|pages| {
        format!(
            "{pages} pages, times as fast as one core: {}.",
            gains.join("; ")
        )
    })]
}

/// What a small copy waits beside the largest ones.
pub(super) fn overtaking(figure: &Figure) -> Vec<Option<String>> {
    let largest = integers(figure, "beside_size").into_iter().max();
    let waits = |sharing: &str| {
        let points = points_with(figure, "sharing", sharing);
        let at = |size| {
            let point = points.iter().find(|p| p.integer("beside_size") == size)?;
            metric(figure, point, Backend::Model, "latency_ns")
        };
        Some(at(largest)? / at(Some(0))?)
    };
    vec![largest.and_then(|size| {
        Some(format!(
            "Beside copies of {}, the small copy takes {:.0} times its time alone in one queue, {:.0} times behind one engine, and {:.1} times with an engine of its own.",
            size_text(size),
            waits("queue")?,
            waits("engine")?,
            waits("device")?
        ))
    })]
}

/// What UMWAIT gives and takes.
pub(super) fn waits(figure: &Figure) -> Vec<Option<String>> {
    let sizes = integers(figure, "size");
    let sentence = |size: u64| {
        let points = points_with(figure, "wait", "umwait");
        let point = points.iter().find(|p| p.integer("size") == Some(size))?;
        let polling = point.with("wait", "poll");
        let latency = |p: &Point| metric(figure, p, Backend::Model, "latency_ns");
        Some(format!(
            "At {} UMWAIT gives {:.0} % of the core's time back and takes {:.0} ns longer than polling.",
            size_text(size),
            metric(figure, point, Backend::Model, "free_share")?,
            latency(point)? - latency(&polling)?
        ))
    };
    let ends = [sizes.iter().min(), sizes.iter().max()];
    ends.into_iter()
        .map(|size| size.and_then(|size| sentence(*size)))
        .collect()
}
