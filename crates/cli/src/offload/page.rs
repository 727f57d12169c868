//! What a survey says, as a page with charts.

use dray_figures::GENERATOR;
use dray_offload::calls::Call;
use dray_offload::table::size;
use dray_report::{
    Cell, Chart, ChartSize, Column, Provenance, Report, ReportError, Section, Series, SeriesKind,
    Table,
};

use super::summary::{aligned, percent, sentences, time};
use super::survey::SurveyResult;
use super::verdict::verdict;
use crate::asked;

/// SiteNames in the chart and in the table.
const IN_CHART: usize = 8;
const IN_TABLE: usize = 40;
/// The ways to use the device.
const LABELS: [&str; 3] = ["polling", "UMWAIT", "asynchronous"];
/// Below both charts of core time.
const LEFT_ON_CORE: &str = "What costs core time to offload is left on the core: 0.";
const RANGES: &str = "Guesses leave a range to each value: see the table.";

pub(super) fn html(found: &SurveyResult) -> Result<String, ReportError> {
    let facts = [
        ("Program", found.command.clone()),
        ("Platform", found.platform.clone()),
        ("Configuration", found.config.clone()),
    ];
    let mut sections = vec![by_size(found)];
    if found.sites.iter().any(|site| site.bytes > 0) {
        sections.push(by_place(found));
    }
    let report = Report {
        title: "Would a DSA help this program?".to_owned(),
        subtitle: format!("Survey of {}", found.command),
        facts: facts
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .chain(asked::facts())
            .collect(),
        summary: [verdict(found), sentences(found)].concat(),
        sections,
        footer: GENERATOR.to_owned(),
        alone: true,
    };
    report.to_html()
}

/// Sizes of all calls, smallest first.
fn all_sizes(found: &SurveyResult) -> Vec<u64> {
    let mut sizes: Vec<u64> = found.sizes.keys().map(|(_, from)| *from).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.is_empty() {
        sizes.push(1);
    }
    sizes
}

fn by_size(found: &SurveyResult) -> Section {
    let sizes = all_sizes(found);
    let of = |call: Call, from: u64| found.sizes.get(&(call as usize, from));
    let footer = format!("{}, {}; {GENERATOR}", found.platform, found.config);
    let counted = |name: &str, unit: &str, value: fn(&super::survey::BySize) -> f64| {
        let series = Call::ALL.map(|call| {
            let values = sizes.iter().map(|from| of(call, *from).map(value));
            let kind = SeriesKind::Stacked;
            Series::new(call.name(), Provenance::Measured, kind, values.collect())
        });
        Chart {
            id: format!("survey-{name}"),
            title: format!("{name} by size of the call"),
            x_label: "Bytes of a call, from".to_owned(),
            y_label: format!("{name}{unit}"),
            categories: sizes.iter().map(|from| size(*from)).collect(),
            series: series
                .into_iter()
                .filter(|series| series.values.iter().any(Option::is_some))
                .collect(),
            footer: footer.clone(),
            size: ChartSize::Half,
            ..Chart::default()
        }
    };
    let savings = (0..LABELS.len()).map(|way| {
        let values = sizes.iter().map(|from| {
            let each = Call::ALL.iter().filter_map(|call| {
                let by = of(*call, *from)?;
                let saved = by.times?.saved()[way].value.max(0.0);
                Some(saved * by.calls as f64 / 1e6)
            });
            let each: Vec<f64> = each.collect();
            (!each.is_empty()).then(|| each.iter().sum())
        });
        let kind = SeriesKind::Bars;
        let series = Series::new(LABELS[way], Provenance::Modelled, kind, values.collect());
        match found.guesses.is_empty() {
            true => series,
            false => series.guessed(),
        }
    });
    let savings: Vec<Series> = savings.collect();
    let looked_at = savings
        .iter()
        .any(|series| series.values.iter().any(Option::is_some));
    let mut charts = Vec::new();
    if found.calls() > 0 {
        charts.push(counted("Calls", "", |by| by.calls as f64));
        charts.push(counted("Bytes", ", MiB", |by| by.bytes as f64 / 1048576.0));
    }
    if looked_at {
        charts.push(Chart {
            id: "survey-saved".to_owned(),
            title: "Core time that the device would save".to_owned(),
            x_label: "Bytes of a call, from".to_owned(),
            y_label: "Core time saved, ms".to_owned(),
            categories: sizes.iter().map(|from| size(*from)).collect(),
            series: savings,
            notes: notes(found),
            footer,
            ..Chart::default()
        });
    }
    let mut table = Table::new(
        "Calls by size, and one call of each, modelled",
        vec![
            Column::text("Call"),
            Column::text("Bytes from"),
            Column::number("Calls", ""),
            Column::text("Bytes"),
            Column::text("Buffers seen before"),
            Column::text("On the core"),
            Column::text("Latency on the device"),
            Column::text("Saved, polling"),
            Column::text("Saved, UMWAIT"),
            Column::text("Saved, asynchronous"),
        ],
    );
    for ((call, from), by) in &found.sizes {
        let mut cells = vec![
            Cell::text(Call::ALL[*call].name()),
            Cell::text(size(*from)),
            Cell::number(by.calls as f64, 0),
            Cell::text(size(by.bytes)),
            Cell::text(percent(by.seen, by.calls)),
        ];
        match by.times {
            None => cells.extend([const { Cell::Empty }; 5]),
            Some(times) => cells.extend(
                [times.core, times.latency]
                    .into_iter()
                    .chain(times.saved())
                    .map(|ns| Cell::text(time(ns))),
            ),
        }
        table.push(cells, None);
    }
    Section {
        id: "sizes".to_owned(),
        title: "By size".to_owned(),
        charts,
        tables: vec![table],
        guess: (!found.guesses.is_empty()).then(|| found.guesses.join(", ")),
        ..Section::default()
    }
}

fn notes(found: &SurveyResult) -> Vec<String> {
    let ranges = (!found.guesses.is_empty()).then_some(RANGES);
    let notes = [LEFT_ON_CORE].into_iter().chain(ranges);
    notes.map(str::to_owned).collect()
}

fn by_place(found: &SurveyResult) -> Section {
    let first = || found.sites.iter().take(IN_CHART);
    let savings = (0..LABELS.len()).map(|way| {
        let values = first().map(|site| Some(site.saved_ns[way].value / 1e6));
        let kind = SeriesKind::Bars;
        let series = Series::new(LABELS[way], Provenance::Modelled, kind, values.collect());
        match found.guesses.is_empty() {
            true => series,
            false => series.guessed(),
        }
    });
    let chart = Chart {
        id: "survey-sites".to_owned(),
        title: "Core time that the device would save, by call site".to_owned(),
        x_label: "CallSite, by its number in the table".to_owned(),
        y_label: "Core time saved, ms".to_owned(),
        categories: (1..=first().count()).map(|n| n.to_string()).collect(),
        series: savings.collect(),
        notes: notes(found),
        footer: format!("{}, {}; {GENERATOR}", found.platform, found.config),
        ..Chart::default()
    };
    let mut table = Table::new(
        "SiteNames that call, those first that save most",
        vec![
            Column::number("", ""),
            Column::text("CallSite"),
            Column::text("Call"),
            Column::number("Calls", ""),
            Column::text("Bytes"),
            Column::text("Buffers seen before"),
            Column::text("At a cache line"),
            Column::number("Since the call before", "ns"),
            Column::text("Saved, polling"),
            Column::text("Saved, UMWAIT"),
            Column::text("Saved, asynchronous"),
        ],
    );
    for (index, site) in found.sites.iter().take(IN_TABLE).enumerate() {
        let mut cells = vec![
            Cell::number((index + 1) as f64, 0),
            Cell::text(site.name.clone()),
            Cell::text(site.call.name()),
            Cell::number(site.calls as f64, 0),
            Cell::text(size(site.bytes)),
            Cell::text(percent(site.seen, site.calls)),
            Cell::text(aligned(site)),
            Cell::number(site.gap_ns, 0),
        ];
        cells.extend(site.saved_ns.map(|ns| Cell::text(time(ns))));
        table.push(cells, None);
    }
    Section {
        id: "sites".to_owned(),
        title: "By call site".to_owned(),
        charts: vec![chart],
        tables: vec![table],
        notes: vec!["The time since the call before is a median, to a power of two.".to_owned()],
        ..Section::default()
    }
}
