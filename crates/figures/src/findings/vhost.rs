//! What the figures of a virtual switch show, beside what is published in words.

use dray_experiment::{Figure, Point};

use super::{integers, percent};
use crate::Metric;
use crate::task::{Backend, reduced};

/// Share of the core's cycles that copying takes at the largest size, as published in words.
const COPY_SHARE: f64 = 0.59;
/// How much faster packets above [`SMALL`] are with the device, as published in words.
const FASTER: (f64, f64) = (1.14, 2.29);
/// Bytes up to which packets are slower with the device, as published in words.
const SMALL: u64 = 256;
/// Rates that differ by less are called constant.
const CONSTANT: f64 = 0.05;

fn metric(figure: &Figure, point: &Point, metric: Metric) -> Option<f64> {
    let outcome = figure.outcome(&reduced(point, Backend::Model))?;
    outcome.metric(metric.name())
}

/// The rates of one copier by size of packet.
fn rates(figure: &Figure, copier: &str) -> Vec<(u64, f64)> {
    let points = figure.experiment.points().into_iter();
    points
        .filter(|p| p.text("copier") == Some(copier))
        .filter_map(|p| Some((p.integer("size")?, metric(figure, &p, Metric::PacketRate)?)))
        .collect()
}

/// Where the core's time goes and what the device changes, each beside the publication.
pub(super) fn switch(figure: &Figure) -> Vec<Option<String>> {
    vec![
        copy_share(figure),
        faster(figure),
        bound(figure),
        constant(figure),
    ]
}

fn copy_share(figure: &Figure) -> Option<String> {
    let largest = integers(figure, "size").into_iter().max()?;
    let points = figure.experiment.points();
    let point = points
        .iter()
        .find(|p| p.text("copier") == Some("core") && p.integer("size") == Some(largest))?;
    let share = metric(figure, point, Metric::Copy)? / metric(figure, point, Metric::Period)?;
    Some(format!(
        "A core that copies itself spends {} of its time on it at {largest} B; published are {}.",
        percent(share),
        percent(COPY_SHARE)
    ))
}

/// How the published share and the published gain go together: a core that is rid of copying is faster by the
/// rest of its time at most, unless the rest takes less, too.
fn bound(figure: &Figure) -> Option<String> {
    let largest = integers(figure, "size").into_iter().max()?;
    let points = figure.experiment.points();
    let of = |copier: &str, name: Metric| {
        let point = points
            .iter()
            .find(|p| p.text("copier") == Some(copier) && p.integer("size") == Some(largest))?;
        metric(figure, point, name)
    };
    let period = of("core", Metric::Period)?;
    let other = |copier| Some(of(copier, Metric::Forward)? + of(copier, Metric::Ring)?);
    let rest = 1.0 - COPY_SHARE;
    Some(format!(
        "Published share and rate leave the device little: without {} of its time a core is {:.2} times as fast at most, and at {} times all that the device costs would be {} of a packet's time. Here it is {}, and the rest of the core's work takes {} of a packet's time less than beside copies of its own, which drive rings and buffers out of its first-level cache.",
        percent(COPY_SHARE),
        1.0 / rest,
        FASTER.1,
        percent(1.0 / FASTER.1 - rest),
        percent(of("dsa", Metric::Offload)? / period),
        percent((other("core")? - other("dsa")?) / period),
    ))
}

fn faster(figure: &Figure) -> Option<String> {
    let core = rates(figure, "core");
    let gains: Vec<(u64, f64)> = rates(figure, "dsa")
        .into_iter()
        .filter_map(|(size, rate)| {
            let other = core.iter().find(|(known, _)| *known == size)?.1;
            Some((size, rate / other))
        })
        .collect();
    let above = gains.iter().filter(|(size, _)| *size > SMALL).map(|g| g.1);
    let (least, most) = above.fold((f64::INFINITY, 0.0f64), |(least, most), gain| {
        (least.min(gain), most.max(gain))
    });
    let from = gains.iter().find(|(_, gain)| *gain > 1.0);
    let from = match from {
        Some((size, _)) => format!("the device is ahead from {size} B on"),
        None => "the device is ahead at no size".to_owned(),
    };
    let inside = |gain: f64| (FASTER.0..=FASTER.1).contains(&gain);
    let verdict = match (inside(least) && inside(most), least < FASTER.0) {
        (true, _) => "",
        (false, true) => {
            " Where it is less, the core's copy costs less here, or its work beside it more; both are guesses."
        }
        (false, false) => {
            " Where it is more, the core's copy costs more here, or its work beside it less; both are guesses."
        }
    };
    (most > 0.0).then(|| {
        format!(
            "Above {SMALL} B the rate with the device is {least:.2} to {most:.2} times that of the core, and {from}; published are {} to {} times, and slower up to {SMALL} B.{verdict}",
            FASTER.0, FASTER.1
        )
    })
}

fn constant(figure: &Figure) -> Option<String> {
    let rates = rates(figure, "dsa");
    let least = rates.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = rates.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(match most.1 / least.1 - 1.0 < CONSTANT {
        true => format!(
            "With the device the rate is {:.2} to {:.2} Mpps at all sizes: constant, as published.",
            least.1, most.1
        ),
        false => format!(
            "With the device the rate is {:.2} Mpps at {} B and {:.2} Mpps at {} B; published is a constant one.",
            least.1, least.0, most.1, most.0
        ),
    })
}
