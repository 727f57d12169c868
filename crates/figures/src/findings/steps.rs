//! Where time goes, and what far memory costs.

use dray_experiment::{Figure, Value};

use super::{THROUGHPUT, integers, percent, size_text};
use crate::task::{Backend, reduced};
use crate::{Metric, label};

pub(super) fn breakdown(figure: &Figure) -> Vec<Option<String>> {
    let points = figure.experiment.points();
    let outcome = |submit: &str, size: u64| {
        let point = points
            .iter()
            .find(|p| p.text("submit") == Some(submit) && p.integer("size") == Some(size))?;
        figure.outcome(&reduced(point, Backend::Model))
    };
    let sizes = integers(figure, "size");
    let share = |size: u64| {
        let outcome = outcome("movdir64b", size)?;
        Some(outcome.metric(Metric::Wait.name())? / outcome.metric(Metric::Period.name())?)
    };
    let waits = sizes.first().zip(sizes.last()).and_then(|(first, last)| {
        Some(format!(
            "On a dedicated queue, {} of the time is waiting at {} and {} at {}: that is the time a core can have back.",
            percent(share(*first)?),
            size_text(*first),
            percent(share(*last)?),
            size_text(*last),
        ))
    });
    let submits = sizes.first().and_then(|size| {
        let submit = |how| outcome(how, *size)?.metric(Metric::Submit.name());
        Some(format!(
            "To submit takes the core {:.0} ns with MOVDIR64B and {:.0} ns with ENQCMD, which waits for the answer of the device; the whole copy of {} takes {:.0} and {:.0} ns.",
            submit("movdir64b")?,
            submit("enqcmd")?,
            size_text(*size),
            outcome("movdir64b", *size)?.metric(Metric::Period.name())?,
            outcome("enqcmd", *size)?.metric(Metric::Period.name())?,
        ))
    });
    vec![waits, submits]
}

pub(super) fn places(figure: &Figure) -> Vec<Option<String>> {
    let sizes = integers(figure, "size");
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else {
        return Vec::new();
    };
    let depth = figure
        .experiment
        .values("depth")
        .first()
        .and_then(Value::integer);
    let worst = |backend: Backend, size: u64| {
        let points = figure.experiment.points().into_iter().filter(|p| {
            p.integer("size") == Some(size) && (depth.is_none() || p.integer("depth") == depth)
        });
        let found: Vec<(f64, String)> = points
            .filter_map(|p| {
                let run = reduced(&p, backend);
                let nodes = ["src_node".to_owned(), "dst_node".to_owned()];
                let name = label::series(Backend::Model, &nodes, &run, false);
                Some((figure.outcome(&run)?.metric(THROUGHPUT)?, name))
            })
            .collect();
        let home = found.iter().find(|(_, name)| name == "L,L")?.0;
        let (least, name) = found.iter().min_by(|a, b| a.0.total_cmp(&b.0))?.clone();
        Some((1.0 - least / home, name))
    };
    let at = |(loss, name): (f64, String), size: u64| match loss < 0.0005 {
        true => format!("nothing at {}", size_text(size)),
        false => format!("up to {} ({name}) at {}", percent(loss), size_text(size)),
    };
    let part = |backend| {
        let (small, large) = (worst(backend, *first)?, worst(backend, *last)?);
        let (small, large) = (at(small, *first), at(large, *last));
        Some(format!("loses {small} and {large}"))
    };
    vec![part(Backend::Model).map(|device| {
        let core = part(Backend::Cpu).map(|core| format!("; one core {core}"));
        format!(
            "Against L,L the device {device}{}.",
            core.unwrap_or_default()
        )
    })]
}
