//! What a figure shows, in sentences whose numbers are computed from its results.

use dray_experiment::{Point, Value, format_bytes};

use crate::label;
use crate::run::Figure;
use crate::task::{Backend, reduced};

const THROUGHPUT: &str = "throughput_gbps";

/// One or two sentences on a figure; none where its results lack what they speak of.
pub(crate) fn of(figure: &Figure) -> Vec<String> {
    let sentences = match figure.experiment.id.as_str() {
        "fig2" if figure.experiment.values("wait").len() > 1 => vec![mode_difference(figure)],
        "fig2" => improvement(figure),
        "fig3" => batches(figure),
        "fig4" => queues(figure),
        "fig5" => breakdown(figure),
        "fig6a" | "fig6b" => places(figure),
        "fig7" => engines(figure),
        "modes" => modes(figure),
        _ => Vec::new(),
    };
    sentences.into_iter().flatten().collect()
}

/// What a figure of the reproduction says about the difference of its modes.
fn mode_difference(figure: &Figure) -> Option<String> {
    let (largest, at) = wait_difference(figure)?;
    Some(format!(
        "Polling and UMWAIT differ by at most {} here ({at}).",
        percent(largest)
    ))
}

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

fn improvement(figure: &Figure) -> Vec<Option<String>> {
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

fn batches(figure: &Figure) -> Vec<Option<String>> {
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

fn queues(figure: &Figure) -> Vec<Option<String>> {
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

fn breakdown(figure: &Figure) -> Vec<Option<String>> {
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
        Some(outcome.metric("wait_ns")? / outcome.metric("period_ns")?)
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
        let submit = |how| outcome(how, *size)?.metric("submit_ns");
        Some(format!(
            "To submit takes the core {:.0} ns with MOVDIR64B and {:.0} ns with ENQCMD, which waits for the answer of the device; the whole copy of {} takes {:.0} and {:.0} ns.",
            submit("movdir64b")?,
            submit("enqcmd")?,
            size_text(*size),
            outcome("movdir64b", *size)?.metric("period_ns")?,
            outcome("enqcmd", *size)?.metric("period_ns")?,
        ))
    });
    vec![waits, submits]
}

fn places(figure: &Figure) -> Vec<Option<String>> {
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

fn engines(figure: &Figure) -> Vec<Option<String>> {
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
    let told = |mode: Option<&str>| {
        let what = mode.map(|m| format!("{m}: ")).unwrap_or_default();
        Some(format!(
            "{what}throughput with {last} engines against {first}: {}.",
            gains(mode)?
        ))
    };
    match modes.len() {
        0 | 1 => vec![told(None)],
        _ => modes.iter().map(|m| told(m.text())).collect(),
    }
}

fn modes(figure: &Figure) -> Vec<Option<String>> {
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

fn wait_difference(figure: &Figure) -> Option<(f64, String)> {
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

fn value(figure: &Figure, point: &Point) -> Option<f64> {
    figure
        .outcome(&reduced(point, Backend::Model))?
        .metric(THROUGHPUT)
}

fn integers(figure: &Figure, name: &str) -> Vec<u64> {
    figure
        .experiment
        .values(name)
        .iter()
        .filter_map(Value::integer)
        .collect()
}

fn size_text(bytes: u64) -> String {
    let label = format_bytes(bytes);
    match label.ends_with(|c: char| c.is_ascii_digit()) {
        true => format!("{label} B"),
        false => format!(
            "{} {}iB",
            &label[..label.len() - 1],
            &label[label.len() - 1..]
        ),
    }
}

fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value.abs() {
        v if v < 0.05 => "0 %".to_owned(),
        v if v < 10.0 => format!("{value:.1} %"),
        _ => format!("{value:.0} %"),
    }
}
