//! A checked chart as an SVG document.

use crate::bars::{self, Cluster};
use crate::layout::{Layout, Placed};
use crate::paint::{self, Paint};
use crate::style::Style;
use crate::svg::{GRID, Svg};
use crate::{Axis, Chart, Series, axes, legend, lines, number, whiskers};

/// Fonts of about the same width; none of them is needed.
const FONTS: &str = "Helvetica, Arial, 'Liberation Sans', 'Nimbus Sans', 'DejaVu Sans', sans-serif";

/// Where a picture is seen.
#[derive(Debug)]
pub(crate) enum Drawn {
    /// On a page, by its script too.
    OnPage,
    /// In print; the numbers that the names of its series have in all pictures.
    Printed(Vec<usize>),
}

/// Draws a chart that was checked.
pub(crate) fn draw(chart: &Chart, style: Style, drawn: &Drawn) -> String {
    let layout = Layout::new(chart, style);
    let paints = match drawn {
        Drawn::OnPage => Paint::all(chart),
        Drawn::Printed(numbers) => Paint::for_print(chart, numbers),
    };
    let cluster = Cluster::new(chart, &layout);
    let mut svg = Svg::default();
    let plot = plot(chart, &layout);
    let size = (layout.style.width, layout.height);
    let place = match layout.style.points {
        Some(points) => Place::Paper { points },
        None => Place::Page { plot: Some(&plot) },
    };
    open(&mut svg, &chart.id, size, place);
    describe(&mut svg, chart);
    paint::hatches(&mut svg, chart, &paints);
    svg.tag("rect")
        .number("width", layout.style.width)
        .number("height", layout.height)
        .word("fill", "#ffffff")
        .empty();
    write(&mut svg, &layout.head);
    axes::grid(&mut svg, &layout);
    bars::draw(&mut svg, chart, &layout, &cluster, &paints);
    if let Some((value, _)) = &chart.reference_line {
        let y = axes::crisp(layout.frame.y(&layout.left, *value));
        legend::reference_line(&mut svg, layout.frame.left, layout.frame.right, y);
    }
    axes::draw(&mut svg, chart, &layout);
    whiskers::draw(&mut svg, chart, &layout, &cluster);
    lines::draw(&mut svg, chart, &layout, &cluster, &paints);
    let (x, y) = layout.legend_at;
    layout.legend.draw(&mut svg, chart, &paints, x, y);
    if layout.style.points.is_none() {
        svg.tag("line")
            .number("x1", Layout::EDGE)
            .number("x2", layout.style.width - Layout::EDGE)
            .number("y1", layout.rule_y + 0.5)
            .number("y2", layout.rule_y + 0.5)
            .word("stroke", GRID)
            .empty();
    }
    write(&mut svg, &layout.foot);
    svg.end("svg");
    svg.into_string()
}

/// The edges of the plot, left, top, right and bottom, then the middle of each category: for a page's script.
fn plot(chart: &Chart, layout: &Layout) -> String {
    let frame = &layout.frame;
    let edges = [frame.left, frame.top, frame.right, frame.bottom];
    let count = chart.categories.len();
    let middles = (0..count).map(|category| {
        let (left, width) = layout.slot(category, count);
        left + width / 2.0
    });
    let numbers: Vec<String> = edges
        .into_iter()
        .chain(middles)
        .map(number::coordinate)
        .collect();
    numbers.join(" ")
}

/// What a document is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// A page, whose script reads where the plot is.
    Page { plot: Option<&'a str> },
    /// Paper, with so many points to a pixel.
    Paper { points: f64 },
}

/// Opens a document; `id` is the prefix of the ids inside it.
pub(crate) fn open(svg: &mut Svg, id: &str, (width, height): (f64, f64), place: Place<'_>) {
    let size = format!(
        "0 0 {} {}",
        number::coordinate(width),
        number::coordinate(height)
    );
    let tag = svg.tag("svg");
    let tag = match place {
        Place::Page { plot: Some(plot) } => tag.word("data-plot", plot),
        _ => tag,
    };
    let length = |pixels: f64| match place {
        Place::Page { .. } => number::coordinate(pixels),
        Place::Paper { points } => format!("{}pt", number::coordinate(pixels * points)),
    };
    tag.word("xmlns", "http://www.w3.org/2000/svg")
        .word("role", "img")
        .word("aria-labelledby", &format!("{id}--title {id}--desc"))
        .word("viewBox", &size)
        .word("width", &length(width))
        .word("height", &length(height))
        .word("font-family", FONTS)
        .open();
}

/// Writes what a screen reader reads.
fn describe(svg: &mut Svg, chart: &Chart) {
    svg.tag("title")
        .word("id", &format!("{}--title", chart.id))
        .text(&chart.title);
    let mut text = format!("{} by {}.", chart.y_label, chart.x_label);
    if let Some(label) = &chart.y2_label {
        text.push_str(&format!(" Right axis: {label}."));
    }
    text.push_str(" Series:");
    for (index, series) in chart.series.iter().enumerate() {
        let guess = if series.guess { ", guess" } else { "" };
        let end = if index + 1 == chart.series.len() {
            '.'
        } else {
            ';'
        };
        let provenance = series.provenance.label();
        text.push_str(&format!(" {} ({provenance}{guess}){end}", series.name));
    }
    svg.tag("desc")
        .word("id", &format!("{}--desc", chart.id))
        .text(&text);
}

fn write(svg: &mut Svg, lines: &[Placed]) {
    for placed in lines {
        svg.line_of_text(Layout::EDGE, placed.y, placed.size, &placed.line);
    }
}

/// What a pointer resting on a value shows.
pub(crate) fn tooltip(chart: &Chart, series: &Series, category: usize, value: f64) -> String {
    let axis = match series.axis {
        Axis::Left => &chart.y_label,
        Axis::Right => chart.y2_label.as_ref().unwrap_or(&chart.y_label),
    };
    let group = match &chart.group_labels {
        Some(labels) => format!("{}, ", labels[category]),
        None => String::new(),
    };
    let guess = if series.guess { ", guess" } else { "" };
    let span = match series.span(category) {
        Some((low, high)) => format!(
            " ({} to {}, 90 %)",
            number::significant(low),
            number::significant(high)
        ),
        None => String::new(),
    };
    format!(
        "{}, {group}{}: {}{span} · {axis} · {}{guess}",
        series.name,
        chart.categories[category],
        number::significant(value),
        series.provenance.label(),
    )
}
