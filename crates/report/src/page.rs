//! The report as one HTML page.

use minijinja::{Environment, Value, context};
use serde::Serialize;

use crate::legend::sample;
use crate::paint::{self, Paint};
use crate::picture;
use crate::svg::Svg;
use crate::{
    Align, Cell, Chart, ChartSize, Column, Provenance, Report, ReportError, RowClass, Section,
    Series, SeriesKind, Table,
};

/// Its suffix turns escaping on.
const NAME: &str = "page.html";
/// No id of a chart or a section starts so.
const OWN_ID: &str = "_read";

/// Renders a report that was checked.
pub(crate) fn render(report: &Report) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_template(NAME, include_str!("page.html"))?;
    let sections = report
        .sections
        .iter()
        .map(section)
        .collect::<Result<Vec<_>, _>>()?;
    let charts = || report.sections.iter().flat_map(|section| &section.charts);
    let counted = charts().any(|chart| chart.kinds_shown().contains(&Provenance::Counted));
    // Few reports have counts of a guest; the others need not explain them.
    let kinds: Vec<Kind> = Provenance::ALL
        .into_iter()
        .filter(|kind| counted || *kind != Provenance::Counted)
        .map(kind)
        .collect();
    let page = environment.get_template(NAME)?.render(context! {
        title => report.title,
        subtitle => report.subtitle,
        facts => report.facts,
        summary => report.summary,
        sections,
        kinds,
        footer => report.footer,
        alone => report.alone,
        css => Value::from_safe_string(include_str!("page.css").to_owned()),
        script => Value::from_safe_string(include_str!("page.js").to_owned()),
    })?;
    Ok(page)
}

#[derive(Serialize)]
struct SectionView<'a> {
    id: &'a str,
    title: &'a str,
    intro: &'a [String],
    charts: Vec<ChartView<'a>>,
    tables: Vec<TableView<'a>>,
    notes: &'a [String],
    guess: Option<&'a str>,
    guesses: &'a [String],
}

#[derive(Serialize)]
struct ChartView<'a> {
    id: &'a str,
    title: &'a str,
    half: bool,
    svg: Value,
}

#[derive(Serialize)]
struct TableView<'a> {
    title: &'a str,
    columns: Vec<ColumnView<'a>>,
    rows: Vec<RowView>,
    marked: bool,
    notes: &'a [String],
}

#[derive(Serialize)]
struct ColumnView<'a> {
    name: &'a str,
    unit: Option<&'a str>,
    class: &'static str,
}

#[derive(Serialize)]
struct RowView {
    class: &'static str,
    mark: &'static str,
    word: &'static str,
    cells: Vec<CellView>,
}

#[derive(Serialize)]
struct CellView {
    text: String,
    class: &'static str,
}

#[derive(Serialize)]
struct Kind {
    label: &'static str,
    meaning: &'static str,
    svg: Value,
}

fn section(section: &Section) -> Result<SectionView<'_>, ReportError> {
    Ok(SectionView {
        id: &section.id,
        title: &section.title,
        intro: &section.intro,
        charts: section.charts.iter().map(chart).collect::<Result<_, _>>()?,
        tables: section.tables.iter().map(table).collect(),
        notes: &section.notes,
        guess: section.guess.as_deref(),
        guesses: &section.guesses,
    })
}

fn chart(chart: &Chart) -> Result<ChartView<'_>, ReportError> {
    Ok(ChartView {
        id: &chart.id,
        title: &chart.title,
        half: chart.size == ChartSize::Half,
        svg: Value::from_safe_string(chart.to_svg()?),
    })
}

fn table(table: &Table) -> TableView<'_> {
    let class = |index: usize| table.row_classes.get(index).copied().flatten();
    TableView {
        title: &table.title,
        columns: table.columns.iter().map(column).collect(),
        rows: table
            .rows
            .iter()
            .enumerate()
            .map(|(index, cells)| row(&table.columns, cells, class(index)))
            .collect(),
        marked: table.row_classes.iter().any(Option::is_some),
        notes: &table.notes,
    }
}

fn column(column: &Column) -> ColumnView<'_> {
    ColumnView {
        name: &column.name,
        unit: column.unit.as_deref(),
        class: edge(column.align),
    }
}

/// A class has a sign and a word of its own, so that colour is not its only mark.
fn row(columns: &[Column], cells: &[Cell], class: Option<RowClass>) -> RowView {
    let (class, mark, word) = match class {
        Some(RowClass::Good) => ("good", "✓", "good"),
        Some(RowClass::Warn) => ("warn", "!", "warning"),
        Some(RowClass::Bad) => ("bad", "✗", "bad"),
        None => ("", "", ""),
    };
    RowView {
        class,
        mark,
        word,
        cells: cells
            .iter()
            .zip(columns)
            .map(|(cell, column)| CellView {
                text: cell.shown(),
                class: edge(column.align),
            })
            .collect(),
    }
}

fn edge(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Right => "n",
    }
}

/// The samples of the box "How to read", drawn by the code that draws the charts.
fn kind(provenance: Provenance) -> Kind {
    let meaning = match provenance {
        Provenance::Modelled => {
            "solid fill, solid line: computed by the model of the platform named above; the same on every machine"
        }
        Provenance::Measured => {
            "hatched fill, dashed line: measured on the machine that wrote this report"
        }
        Provenance::Counted => {
            "bars and markers without fill: counted by a kernel in a guest; numbers of events, and no times"
        }
        Provenance::Published => {
            "open markers with a black edge, never bars and never joined: taken from a publication"
        }
    };
    let id = format!("{OWN_ID}-{}", provenance as u8);
    let series = |kind| Series::new(provenance.label(), provenance, kind, Vec::new());
    let kinds = match provenance {
        Provenance::Published => vec![SeriesKind::Points; 2],
        _ => vec![SeriesKind::Bars, SeriesKind::Line],
    };
    let chart = Chart {
        id: id.clone(),
        series: kinds.into_iter().map(|k| series(k).family(0)).collect(),
        ..Chart::default()
    };
    let paints = Paint::all(&chart);
    let mut svg = Svg::default();
    picture::open(
        &mut svg,
        &id,
        (72.0, 18.0),
        picture::Place::Page { plot: None },
    );
    svg.tag("title")
        .word("id", &format!("{id}--title"))
        .text(provenance.label());
    svg.tag("desc")
        .word("id", &format!("{id}--desc"))
        .text(meaning);
    paint::hatches(&mut svg, &chart, &paints);
    for (index, (series, paint)) in chart.series.iter().zip(&paints).enumerate() {
        sample(&mut svg, series, paint, 2.0 + 38.0 * index as f64, 9.0);
    }
    svg.end("svg");
    Kind {
        label: provenance.label(),
        meaning,
        svg: Value::from_safe_string(svg.into_string()),
    }
}
