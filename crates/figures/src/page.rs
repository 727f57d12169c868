//! The report: facts, figures with what is seen in them, model error, parameters.

use dray_experiment::Figure;
use dray_report::{Cell, Chart, Column, Report, Section, Table};

use crate::accuracy::{beside, misses, overview};
use crate::exercise::measurement;
use crate::phase::Phases;
use crate::published::Published;
use crate::render::{self, Context};
use crate::request::{GENERATOR, Request, Summary};
use crate::{
    CheckedTable, Evidence, FiguresError, Interval, Protocol, counted, findings, interval,
    reference_tables,
};

/// The report and all of its charts.
///
/// # Errors
/// A published table or a chart that is not well-formed.
pub(crate) fn report(
    request: &Request,
    summary: &Summary,
    phases: Phases<'_>,
) -> Result<(Report, Vec<Chart>), FiguresError> {
    let published = Published::new(&reference_tables()?, &request.profile)?;
    let footer = format!(
        "{} · profile {} · {GENERATOR}",
        request.platform.name, request.profile_name
    );
    let context = Context {
        platform: &request.platform,
        guesses: &summary.guesses,
        ends: &summary.ends,
        published: &published,
        footer: &footer,
    };
    let section = |figure: &Figure| {
        let mut section = self::section(request, summary, figure, &context);
        if figure.experiment.id == counted::FIGURE {
            let counts = counted::counts()?;
            section.intro.push(counted::sentence(&counts));
            section.charts.extend(counted::charts(&counts));
        }
        Ok(section)
    };
    let figures = summary.figures.iter().collect();
    let mut sections = phases.each("sections of the report", figures, section)?;
    let charts = sections.iter().flat_map(|section| &section.charts);
    let charts = charts.cloned().collect();
    sections.push(accuracy(request, &summary.checked));
    sections.push(parameters(request));
    let report = Report {
        title: "What this data mover does".to_owned(),
        subtitle: match request.protocol {
            Protocol::Paper => {
                "Every figure of the published DSA characterisation, on a modelled device"
            }
            Protocol::Seed => {
                "The figures of a published reproduction, run as its script runs them, on a modelled device"
            }
        }
        .to_owned(),
        facts: facts(request, summary),
        summary: summary_lines(request, summary),
        sections,
        footer: format!("Written by {GENERATOR}."),
        alone: false,
    };
    Ok((report, charts))
}

fn facts(request: &Request, summary: &Summary) -> Vec<(String, String)> {
    let platform = &request.platform;
    let mut facts = vec![
        (
            "Platform",
            format!(
                "{}: {} ({})",
                platform.name,
                platform.title,
                origin(&platform.origin)
            ),
        ),
        ("Profile", profile(request)),
        (
            "Protocol",
            format!("{}: {}", request.protocol, request.protocol.meaning()),
        ),
        ("Program", GENERATOR.to_owned()),
        (
            "Payload",
            match request.move_bytes {
                true => "bytes moved and checked by the modelled device",
                false => "time modelled, bytes not moved (--move-bytes moves them)",
            }
            .to_owned(),
        ),
    ];
    if !request.set.is_empty() {
        let set: Vec<String> = request
            .set
            .iter()
            .map(|(n, v)| format!("{n}={v}"))
            .collect();
        facts.push(("Changed from the experiment files", set.join(" ")));
    }
    match &summary.machine {
        Some(machine) => facts.push(("Measured here", machine.describe())),
        None => facts.push((
            "Measured here",
            "nothing: all series are modelled (--measure-cpu adds software on this machine)"
                .to_owned(),
        )),
    }
    if let Some(device) = &summary.device {
        facts.push(("Device measured here", device.describe()));
        let lines: Vec<String> = device.not_measured.lines().collect();
        if !lines.is_empty() {
            facts.push(("Not measured", lines.join("; ")));
        }
    }
    let narrowed = summary.narrowed.iter().cloned();
    let left_out: Vec<String> = narrowed.chain(summary.refused.lines()).collect();
    if !left_out.is_empty() {
        facts.push(("Left out", left_out.join("; ")));
    }
    let facts = facts
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text));
    facts.chain(request.asked.iter().cloned()).collect()
}

fn origin(origin: &str) -> String {
    match dray_platform::builtin_names().contains(&origin) {
        true => format!("platforms/{origin}.toml"),
        false => origin.to_owned(),
    }
}

fn profile(request: &Request) -> String {
    let devices = request.profile.devices().unwrap_or_default();
    let Some(device) = devices.first() else {
        return request.profile_name.clone();
    };
    let engines: usize = device.groups.iter().map(|group| group.engines.len()).sum();
    let queues: Vec<String> = device
        .work_queues
        .iter()
        .map(|queue| {
            let mode = match queue.mode {
                dray_device::WorkQueueMode::Dedicated => "dedicated",
                dray_device::WorkQueueMode::Shared => "shared",
            };
            format!("{mode} work queue of {} entries", queue.size)
        })
        .collect();
    let engines = match engines {
        1 => "1 engine".to_owned(),
        n => format!("{n} engines"),
    };
    let mut text = format!("{}: {engines}, {}", request.profile_name, queues.join(", "));
    if devices.len() > 1 || device.work_queues.len() > 1 {
        text.push_str("; the figures submit to the first work queue of the first device");
    }
    text
}

fn summary_lines(request: &Request, summary: &Summary) -> Vec<String> {
    let answer = summary.intervals.iter().find(|i| i.op == "memmove");
    let mut lines: Vec<String> = answer.map(Interval::sentence).into_iter().collect();
    let targets: Vec<&CheckedTable> = summary
        .checked
        .iter()
        .filter(|t| t.target.is_some())
        .collect();
    let met = targets.iter().filter(|t| t.missed().is_empty()).count();
    lines.push(format!(
        "The model has {} parameters; {met} of the {} published tables with a target are met at every point (see Model error).",
        request.platform.list().len(),
        targets.len(),
    ));
    lines.push(
        "A bar here is never a number of the publication: the plotted values of its figures are not available as numbers. The nearest published tables stand below each figure, with their configuration; points are drawn only where the configuration is the same."
            .to_owned(),
    );
    lines
}

fn section(
    request: &Request,
    summary: &Summary,
    figure: &Figure,
    context: &Context<'_>,
) -> Section {
    let experiment = &figure.experiment;
    let mut charts = render::charts(figure, context);
    let mut intro = vec![format!("What was published: {}", experiment.published)];
    let differs = experiment.differs.iter();
    intro.extend(differs.map(|why| format!("What differs from the published picture: {why}")));
    intro.extend(experiment.intro.iter().cloned());
    let seen = findings::of(figure);
    if !seen.is_empty() {
        intro.push(format!("What is seen here: {}", seen.join(" ")));
    }
    if experiment.id == interval::FIGURE && !summary.intervals.is_empty() {
        let sentences: Vec<String> = summary.intervals.iter().map(Interval::sentence).collect();
        intro.push(sentences.join(" "));
    }
    let mut notes = notes(request, figure);
    let left_out = experiment.panels.len() - charts.len();
    if experiment.id == interval::FIGURE {
        charts.extend(interval::chart(&summary.intervals, context.footer));
    }
    if left_out > 0 {
        notes.push(format!(
            "{left_out} of the figure's charts have no point left after --set and are not drawn."
        ));
    }
    if summary.machine.is_some() && experiment.backends.iter().any(|b| b == "cpu") {
        notes.push("The core that was measured is not the core that is modelled: compare modelled bars with modelled bars. Points on other memory than local, and NT fill, are not measured.".to_owned());
    }
    if summary.device.is_some() {
        notes.push("The device of this machine was measured with one thread on local memory; what is divided by a core is divided by the core that was measured beside it.".to_owned());
    }
    if summary
        .device
        .as_ref()
        .is_some_and(|device| device.is_virtual)
    {
        notes.push("The device that was measured is virtual: its series are times of the emulation, not of hardware.".to_owned());
    }
    let tables = experiment.reference.iter();
    let tables: Vec<Table> = tables
        .filter_map(|id| summary.checked.iter().find(|t| t.id == *id))
        .map(beside)
        .collect();
    Section {
        id: experiment.id.clone(),
        title: title(experiment.id.as_str(), &experiment.title),
        intro,
        charts,
        tables,
        notes,
        guess: experiment.guess.clone(),
        guesses: summary.guesses.lines(&request.platform, figure),
    }
}

fn title(id: &str, title: &str) -> String {
    match id.strip_prefix("fig") {
        Some(number) => format!("Figure {number}: {title}"),
        None => title.to_owned(),
    }
}

fn notes(request: &Request, figure: &Figure) -> Vec<String> {
    let id = figure.experiment.id.as_str();
    let mut notes = Vec::new();
    match (request.protocol, id) {
        (Protocol::Paper, id) if !id.starts_with("fig") => {}
        (Protocol::Paper, _) if figure.experiment.reference.is_empty() => notes.push(
            "The plotted values of the publication are not available as numbers, and no published text table of a data mover with this memory is known."
                .to_owned(),
        ),
        (Protocol::Paper, _) => notes.push(
            "The plotted values of the publication are not available as numbers; the tables are the nearest that are, each with its own configuration."
                .to_owned(),
        ),
        (Protocol::Seed, _) => notes.push(
            "The plotted values of the reproduction are not available as numbers. The script passes -c, which gives MOVDIR64B another portal address each time. How much that gains is not published; the model lets as many writes overlap as the parameter portal_lines_in_flight says, a guess."
                .to_owned(),
        ),
    }
    if request.protocol == Protocol::Seed && id == "fig7" {
        notes.extend(anomaly(figure));
    }
    notes
}

/// More engines, lower throughput: what the model says to it, and what it does not know.
fn anomaly(figure: &Figure) -> Vec<String> {
    let Some((loss, at)) = findings::engine_anomaly(figure) else {
        return Vec::new();
    };
    let shown = loss > 0.02;
    let first = match shown {
        true => format!(
            "The model shows lower throughput with more engines too: at most {:.0} % less, at {at}.",
            loss * 100.0
        ),
        false => {
            "The model does not show the lower throughput with more engines. Its cause is unknown."
                .to_owned()
        }
    };
    let candidates = "Candidates, none of them tested: the configuration files for 2 to 4 engines, which are not published, may differ in more than engines (groups, read buffers allowed to each, queue size); engines that share the read buffers of one group may get fewer each; with 128 / b batch descriptors in flight there are few batches to share among engines; completions out of order on several engines cost the polling core more; buffers placed without -S may lie on either socket.";
    vec![first, candidates.to_owned()]
}

fn accuracy(request: &Request, checked: &[CheckedTable]) -> Section {
    let mut notes = vec![format!(
        "Error: model against published, of the points that count. {} parameters in all. dray figures --check prints every point, and with --leave-out the error of each table under parameters that were fitted without it.",
        request.platform.list().len()
    )];
    let foreign: Vec<&str> = checked
        .iter()
        .filter(|t| t.platform != request.platform.name)
        .map(|t| t.platform.as_str())
        .collect();
    if let Some(platform) = foreign.first() {
        notes.push(format!(
            "The tables were measured on machines that {platform} stands for, so these errors are of {platform}, not of {}.",
            request.platform.name
        ));
    }
    for table in checked.iter().filter(|t| !t.overrides.is_empty()) {
        let list: Vec<String> = table
            .overrides
            .iter()
            .map(|(n, v)| format!("{n} = {v}"))
            .collect();
        notes.push(format!(
            "{}: the machine differs in {}.",
            table.id,
            list.join(", ")
        ));
    }
    let missed = misses(checked);
    if !missed.is_empty() {
        notes.push(
            "Where a target is missed, this is the mechanism believed to be missing:".to_owned(),
        );
        notes.extend(missed);
    }
    // Kept tables are well-formed: the check has just read them.
    let evidence = Evidence::kept(&request.platform).ok().flatten();
    notes.push(match &evidence {
        Some(evidence) => {
            let single: Vec<String> = evidence
                .of_one_table()
                .iter()
                .map(|(parameter, table)| format!("{parameter} ({table})"))
                .collect();
            format!(
                "Left out: the parameters were fitted anew, from the middle of their ranges, to all tables but this one, which was then predicted. Parameters that only one of the tables determines stay in the middle of their range when it is left out: {}. All others are shared by at least two tables, or by none.",
                single.join(", ")
            )
        }
        None => "Errors of left-out tables are kept for the built-in platform as it is, not for this one; dray figures --check --leave-out works them out.".to_owned(),
    });
    Section {
        id: "accuracy".to_owned(),
        title: "Model error".to_owned(),
        intro: vec![
            "Every published number that is known as text, beside what the model says for its configuration. One set of physical parameters stands against all tables. It was fitted to them within the parameters' ranges; no table is read when a figure is computed."
                .to_owned(),
        ],
        tables: vec![overview(checked, evidence.as_ref())],
        notes,
        ..Section::default()
    }
}

fn parameters(request: &Request) -> Section {
    let platform = &request.platform;
    let mut table = Table::new(
        format!("Parameters of {}", platform.name),
        vec![
            Column::text("Parameter"),
            Column::number("Value", ""),
            Column::text("Unit"),
            Column::text("Range"),
            Column::text("Guess"),
            Column::text("What it is"),
            Column::text("Source"),
            Column::text("Published tables that it moves"),
        ],
    );
    let plain = |value: f64| Cell::text(value.to_string());
    // Every platform has the parameters of the one that was fitted.
    let fitted = dray_platform::builtin("spr-2s").ok();
    let evidence = fitted.and_then(|platform| Evidence::kept(&platform).ok().flatten());
    let moves = |name: &str| {
        let influences = evidence.iter().flat_map(|e| &e.influences);
        let tables = influences
            .filter(|i| i.parameter == name)
            .flat_map(|i| i.tables.iter().map(String::as_str));
        let tables: Vec<&str> = tables.collect();
        match (tables.is_empty(), measurement(name)) {
            (false, _) => tables.join(", "),
            (true, Some(what)) => format!("none; this would: {what}"),
            (true, None) => "none".to_owned(),
        }
    };
    for p in platform.list() {
        table.push(
            vec![
                Cell::text(p.name),
                plain(p.value),
                Cell::text(p.unit.name()),
                Cell::text(format!("{} to {}", p.range[0], p.range[1])),
                Cell::text(match p.guess {
                    true => "guess",
                    false => "",
                }),
                Cell::text(dray_platform::PlatformFile::help(p.name)),
                Cell::text(&*p.source),
                Cell::text(moves(p.name)),
            ],
            None,
        );
    }
    let guesses = platform.list().iter().filter(|p| p.guess).count();
    Section {
        id: "parameters".to_owned(),
        title: "Parameters of the model".to_owned(),
        intro: vec![format!(
            "{} parameters, {guesses} of them guesses: no published number stands behind these. A series is marked as a guess if one of them, anywhere in its range, moves some of its points by 2 % or more.",
            platform.list().len()
        )],
        tables: vec![table],
        ..Section::default()
    }
}
