//! What the experiments beyond the publication show.

use dray_experiment::{Figure, Point};

use super::{integers, percent, size_text, value};
use crate::Metric;
use crate::task::{Backend, reduced};

/// How much slower threads on the other socket submit, as published in words.
const SLOWER: (f64, f64) = (2.0, 6.0);
/// Order of a folio from which the device has the lower latency, as published in words.
const FROM_ORDER: u32 = 3;
/// How much faster 2 MiB pages are copied over up to 8 channels, as published in words.
const HUGE_PAGES: (f64, f64) = (3.0, 14.0);
/// Times of one copy of 2 MiB in microseconds, as published in words.
pub(crate) const TWO_MIB_US: (f64, f64) = (17.0, 68.0);
/// How much faster lists of 4 KiB pages are copied in batches, as published in words.
const BATCHES: (f64, f64) = (1.5, 4.0);

fn metric(figure: &Figure, point: &Point, backend: Backend, metric: Metric) -> Option<f64> {
    let outcome = figure.outcome(&reduced(point, backend))?;
    outcome.metric(metric.name())
}

fn points_with(figure: &Figure, name: &str, text: &str) -> Vec<Point> {
    let points = figure.experiment.points().into_iter();
    points.filter(|p| p.text(name) == Some(text)).collect()
}

/// What more submitting cores give.
pub(super) fn cores(figure: &Figure) -> Vec<Option<String>> {
    let sentence = |(node, words): (&str, &str)| {
        let points = points_with(figure, "core_node", node);
        let rate = |p: &Point| metric(figure, p, Backend::Model, Metric::Rate);
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
        .chain([published_of_cores(figure)])
        .collect()
}

/// What is published in words of many cores, beside the model.
fn published_of_cores(figure: &Figure) -> Option<String> {
    let rates = |node| -> Vec<(u64, f64)> {
        let points = points_with(figure, "core_node", node).into_iter();
        let found = points.filter_map(|p| {
            let rate = metric(figure, &p, Backend::Model, Metric::Rate)?;
            Some((p.integer("cores")?, rate))
        });
        found.collect()
    };
    let (near, far) = (rates("local"), rates("remote"));
    let slower = near.iter().filter_map(|(cores, rate)| {
        let other = far.iter().find(|(known, _)| known == cores)?.1;
        Some((rate / other, *cores))
    });
    let slower: Vec<(f64, u64)> = slower.collect();
    let (first, last) = (slower.first()?, slower.last()?);
    let most = near.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let end = near.last()?.1;
    let inside = |ratio: f64| (SLOWER.0..=SLOWER.1).contains(&ratio);
    let verdict = match slower.iter().all(|(ratio, _)| inside(*ratio)) && end < 0.99 * most {
        true => "as published",
        false => {
            "not as published: a mechanism is missing, by which cores that wait for the portal slow each other down"
        }
    };
    Some(format!(
        "Published in words: threads on the other socket are {} to {} times slower, and past the most there is the rate declines. Here they are {:.2} times slower with {}, {:.2} times with {}, and the rate is {} below the most at the end: {verdict}.",
        SLOWER.0,
        SLOWER.1,
        first.0,
        many(first.1),
        last.0,
        many(last.1),
        percent(1.0 - end / most),
    ))
}

fn many(cores: u64) -> String {
    match cores {
        1 => "1 core".to_owned(),
        n => format!("{n} cores"),
    }
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
        let of = |backend| metric(figure, p, backend, Metric::List);
        of(Backend::Model)
            .zip(of(Backend::Cpu))
            .is_some_and(|(device, core)| device < core)
    };
    let from = points.iter().find(faster).and_then(|p| p.integer("pages"));
    vec![from.map(|pages| {
        let order = pages.ilog2();
        let beside = match order.abs_diff(FROM_ORDER) {
            0 => "as here".to_owned(),
            1 => format!("one order away from {order}"),
            n => format!("{n} orders away from {order}"),
        };
        format!(
            "The device is faster from order {order} on ({}); published is order {FROM_ORDER} on, {beside}.",
            size_text(pages * 4096)
        )
    })]
}

/// From which order on the device copies what a kernel copied faster than one core.
pub(super) fn in_kernel(figure: &Figure) -> Vec<Option<String>> {
    let sentence = |devices: u64| -> Option<String> {
        let points = figure.experiment.points().into_iter();
        let by = |system: &str| -> Vec<(u64, f64)> {
            let points = points.clone().filter(|p| {
                p.integer("devices") == Some(devices) && p.text("system") == Some(system)
            });
            points
                .filter_map(|p| {
                    Some((
                        p.integer("order")?,
                        metric(figure, &p, Backend::Model, Metric::List)?,
                    ))
                })
                .collect()
        };
        let core = by("core");
        let device = by("every-list");
        let (order, _) = device
            .iter()
            .find(|(order, ns)| core.iter().any(|(same, core)| same == order && ns < core))?;
        let devices = match devices {
            1 => "One device is".to_owned(),
            n => format!("{n} devices are"),
        };
        Some(format!(
            "{devices} faster than one core from order {order} on; published is order {FROM_ORDER}."
        ))
    };
    integers(figure, "devices")
        .into_iter()
        .map(sentence)
        .collect()
}

/// How long 2 MiB take at best on the fewest and on the most devices, beside the two published times.
pub(super) fn channels(figure: &Figure) -> Vec<Option<String>> {
    let devices = integers(figure, "devices");
    let best = |devices: u64| -> Option<f64> {
        let points = figure.experiment.points().into_iter();
        points
            .filter(|p| p.integer("devices") == Some(devices))
            .filter_map(|p| metric(figure, &p, Backend::Model, Metric::List))
            .min_by(f64::total_cmp)
    };
    let sentence = || {
        let (few, many) = (*devices.iter().min()?, *devices.iter().max()?);
        let us = |ns: f64| ns / 1000.0;
        Some(format!(
            "At best 2 MiB take {:.1} µs on {few} and {:.1} µs on {many} of the devices. Published are {:.0} µs and {:.0} µs for one and the same copy, by how its pages were allocated and used before; their cause is not known, and nothing here is set to give them.",
            us(best(few)?),
            us(best(many)?),
            TWO_MIB_US.0,
            TWO_MIB_US.1,
        ))
    };
    vec![sentence()]
}

/// How much faster the longest lists are, beside what is published.
pub(super) fn lists(figure: &Figure) -> Vec<Option<String>> {
    let longest = integers(figure, "pages").into_iter().max();
    let gains = |layout: &str| -> Vec<(u64, f64)> {
        let points = points_with(figure, "layout", layout).into_iter();
        let longest = points.filter(|p| p.integer("pages") == longest);
        let found = longest.filter_map(|p| {
            let of = |backend| metric(figure, &p, backend, Metric::List);
            Some((
                p.integer("devices")?,
                of(Backend::Cpu)? / of(Backend::Model)?,
            ))
        });
        found.collect()
    };
    let sentence = |(layout, published): (&str, Option<(f64, f64)>)| {
        let gains = gains(layout);
        let listed: Vec<String> = gains
            .iter()
            .map(|(devices, gain)| format!("{gain:.1} with {devices}"))
            .collect();
        let beside = published.map(|range| beside(range, &gains));
        (!gains.is_empty()).then(|| {
            format!(
                "{} pages, {layout}, times as fast as one core, by devices: {}.{}",
                longest.unwrap_or_default(),
                listed.join(", "),
                beside.unwrap_or_default()
            )
        })
    };
    [
        ("contiguous", Some(HUGE_PAGES)),
        ("scattered", Some(BATCHES)),
        ("mixed", None),
    ]
    .into_iter()
    .map(sentence)
    .collect()
}

/// Gains beside a published range: how far the least and the most of them are off.
fn beside(published: (f64, f64), gains: &[(u64, f64)]) -> String {
    let least = gains.iter().map(|g| g.1).fold(f64::INFINITY, f64::min);
    let most = gains.iter().map(|g| g.1).fold(0.0, f64::max);
    let off = |ours: f64, theirs: f64| format!("{:+.0} %", 100.0 * (ours / theirs - 1.0));
    let why = match most > 1.1 * published.1 {
        true => {
            "; the kernel's work on each page is not modelled, and its channels may share devices"
        }
        false => "",
    };
    format!(
        " Published in words, for up to 8 channels: {} to {}; the least here is {} off, the most {}{why}.",
        published.0,
        published.1,
        off(least, published.0),
        off(most, published.1),
    )
}

/// What a small copy waits beside the largest ones.
pub(super) fn overtaking(figure: &Figure) -> Vec<Option<String>> {
    let largest = integers(figure, "neighbour_size").into_iter().max();
    let waits = |sharing: &str| {
        let points = points_with(figure, "sharing", sharing);
        let at = |size| {
            let point = points
                .iter()
                .find(|p| p.integer("neighbour_size") == size)?;
            metric(figure, point, Backend::Model, Metric::Latency)
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
        let latency = |p: &Point| metric(figure, p, Backend::Model, Metric::Latency);
        Some(format!(
            "At {} UMWAIT gives {:.0} % of the core's time back and takes {:.0} ns longer than polling.",
            size_text(size),
            metric(figure, point, Backend::Model, Metric::FreeShare)?,
            latency(point)? - latency(&polling)?
        ))
    };
    let ends = [sizes.iter().min(), sizes.iter().max()];
    ends.into_iter()
        .map(|size| size.and_then(|size| sentence(*size)))
        .collect()
}
