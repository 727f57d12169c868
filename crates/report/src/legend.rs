//! The legend: a sample, the name and the word for the provenance of each series.

use crate::paint::Paint;
use crate::style::Style;
use crate::svg::{INK, Svg};
use crate::text::{self, Face, Line, Span};
use crate::{Axis, Chart, Series, SeriesKind};

/// Room for a sample and the gap after it.
const SAMPLE: f64 = 36.0;
/// Length of the sample of a line, with room for two dashes beside the marker.
const LINE: f64 = 28.0;
/// Widest text of an entry when the legend stands beside the plot.
const BESIDE: f64 = 202.0;
/// Gap between columns.
const GAP: f64 = 18.0;

/// What an entry explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Series(usize),
    Reference,
}

#[derive(Debug)]
struct Entry {
    subject: Subject,
    lines: Vec<Line>,
}

/// The legend of a chart, in one or more columns.
#[derive(Debug)]
pub(crate) struct Legend {
    columns: Vec<Vec<Entry>>,
    column_width: f64,
    size: f64,
    /// Whether it stands on the right of the plot, not below it.
    pub(crate) beside: bool,
}

impl Legend {
    /// The legend of a chart: beside the plot where it fits `height`, else below it in columns that
    /// fit `width`.
    pub(crate) fn new(chart: &Chart, style: &Style, width: f64, height: f64) -> Self {
        if style.beside {
            let mut entries = entries(chart, style, BESIDE);
            stacks_downwards(&mut entries, chart);
            let legend = Self::of(vec![entries], style, true);
            if legend.height() <= height {
                return legend;
            }
        }
        let mut entries = entries(chart, style, width - SAMPLE);
        // The reference line is apart from the series, so that it does not split a family.
        let reference = entries.pop_if(|e| e.subject == Subject::Reference);
        let column_width = widest(&entries, style.small) + SAMPLE;
        let fitting = ((width + GAP) / (column_width + GAP)).floor().max(1.0) as usize;
        let rows = entries.len().div_ceil(fitting);
        let mut columns: Vec<Vec<Entry>> = Vec::new();
        for entry in entries {
            match columns.last_mut() {
                Some(column) if column.len() < rows => column.push(entry),
                _ => columns.push(vec![entry]),
            }
        }
        if let Some(entry) = reference {
            let fits = widest(std::slice::from_ref(&entry), style.small) + SAMPLE <= column_width;
            let free = columns.len() < fitting;
            match columns.last_mut() {
                Some(column) if fits && column.len() < rows => column.push(entry),
                _ if fits && free => columns.push(vec![entry]),
                // A row of its own below the columns, as wide as its text.
                _ => columns[0].push(entry),
            }
        }
        Self::of(columns, style, false)
    }

    fn of(columns: Vec<Vec<Entry>>, style: &Style, beside: bool) -> Self {
        let column_width = columns
            .iter()
            .flatten()
            .filter(|e| beside || e.subject != Subject::Reference)
            .map(|e| widest(std::slice::from_ref(e), style.small))
            .fold(0.0, f64::max)
            + SAMPLE;
        Self {
            columns,
            column_width,
            size: style.small,
            beside,
        }
    }

    pub(crate) fn width(&self) -> f64 {
        let columns = self.columns.len() as f64;
        columns * self.column_width + (columns - 1.0) * GAP
    }

    pub(crate) fn height(&self) -> f64 {
        self.columns
            .iter()
            .map(|c| c.iter().map(|e| self.entry_height(e)).sum())
            .fold(0.0, f64::max)
    }

    fn entry_height(&self, entry: &Entry) -> f64 {
        entry.lines.len() as f64 * self.line_height() + 4.0
    }

    fn line_height(&self) -> f64 {
        self.size * 1.25
    }

    /// Draws it with its upper left corner at `x`, `y`.
    pub(crate) fn draw(&self, svg: &mut Svg, chart: &Chart, paints: &[Paint], x: f64, y: f64) {
        for (index, column) in self.columns.iter().enumerate() {
            let left = x + index as f64 * (self.column_width + GAP);
            let mut top = y;
            for entry in column {
                let middle = top + self.line_height() / 2.0;
                match entry.subject {
                    Subject::Series(index) => {
                        let series = &chart.series[index];
                        svg.tag("g")
                            .word("data-l", &index.to_string())
                            .word("data-n", &series.name)
                            .open();
                        sample(svg, series, &paints[index], left, middle);
                    }
                    Subject::Reference => reference_line(svg, left, left + LINE, middle),
                }
                for (row, line) in entry.lines.iter().enumerate() {
                    let base = middle + row as f64 * self.line_height() + self.size * 0.36;
                    svg.line_of_text(left + SAMPLE, base, self.size, line);
                }
                if let Subject::Series(_) = entry.subject {
                    svg.end("g");
                }
                top += self.entry_height(entry);
            }
        }
    }
}

/// A line across the plot, or its sample; a white casing keeps it legible on dark bars.
pub(crate) fn reference_line(svg: &mut Svg, from: f64, to: f64, y: f64) {
    for (colour, width, opacity) in [("#ffffff", 3.0, 0.55), (INK, 1.2, 1.0)] {
        svg.tag("line")
            .number("x1", from)
            .number("x2", to)
            .number("y1", y)
            .number("y2", y)
            .word("stroke", colour)
            .number("stroke-width", width)
            .number("stroke-opacity", opacity)
            .empty();
    }
}

/// A sample of a series, as long as a line around the height `y`.
pub(crate) fn sample(svg: &mut Svg, series: &Series, paint: &Paint, x: f64, y: f64) {
    match series.drawn_as() {
        SeriesKind::Bars | SeriesKind::Stacked => {
            let tag = svg
                .tag("rect")
                .number("x", x + 2.5)
                .number("y", y - 5.5)
                .number("width", 23.0)
                .number("height", 11.0)
                .word("fill", &paint.fill);
            match &paint.edge {
                Some(edge) => tag.word("stroke", edge).empty(),
                None => tag.empty(),
            }
        }
        SeriesKind::Line => {
            let tag = svg
                .tag("line")
                .number("x1", x)
                .number("x2", x + LINE)
                .number("y1", y)
                .number("y2", y)
                .word("stroke", &paint.colour)
                .number("stroke-width", 2.0);
            match paint.dash {
                Some(dash) => tag.word("stroke-dasharray", dash.in_legend()).empty(),
                None => tag.empty(),
            }
            paint.marker(svg, (x + LINE / 2.0, y), 3.6, &series.name, None);
        }
        SeriesKind::Points => paint.marker(svg, (x + LINE / 2.0, y), 4.8, &series.name, None),
    }
}

fn entries(chart: &Chart, style: &Style, room: f64) -> Vec<Entry> {
    let mut entries: Vec<Entry> = chart
        .series
        .iter()
        .enumerate()
        .filter(|(_, series)| style.points.is_none() || !is_repeated(chart, series))
        .map(|(index, series)| Entry {
            subject: Subject::Series(index),
            lines: text::wrap(&words(chart, series, style), style.small, room),
        })
        .collect();
    if let Some((_, label)) = &chart.reference_line {
        let lines = text::wrap_plain(label, style.small, room, Face::Plain);
        entries.push(Entry {
            subject: Subject::Reference,
            lines,
        });
    }
    entries
}

/// The mark of a series that rests on a guess, where others do not. The line at the foot says what it means.
pub(crate) const GUESS: &str = "†";

/// Whether another series of the chart has its name and its marker: on paper its kind stands at the
/// foot.
fn is_repeated(chart: &Chart, series: &Series) -> bool {
    let first = chart.series.iter().find(|other| other.name == series.name);
    first.is_some_and(|first| first.provenance != series.provenance)
}

/// The name, then what is not the same for all series: that stands at the foot.
fn words(chart: &Chart, series: &Series, style: &Style) -> Vec<Span> {
    let mut words = vec![Span::new(series.name.as_str(), Face::Plain)];
    let mut more = Vec::new();
    if style.points.is_none() && chart.kinds_shown().len() > 1 {
        more.push(series.provenance.label());
    }
    if series.axis == Axis::Right {
        more.push("right axis");
    }
    if !more.is_empty() {
        words.push(Span::new(more.join(", "), Face::Quiet));
    }
    if series.guess && !chart.is_all_guessed() {
        words.push(Span::new(GUESS, Face::Alert));
    }
    words
}

fn widest(entries: &[Entry], size: f64) -> f64 {
    entries
        .iter()
        .flat_map(|e| &e.lines)
        .map(|line| text::line_width(line, size))
        .fold(0.0, f64::max)
}

/// In a list from top to bottom the parts of a stack stand as they do in the bar.
fn stacks_downwards(entries: &mut [Entry], chart: &Chart) {
    let stacked = |entry: &Entry| match entry.subject {
        Subject::Series(index) => chart.series[index].drawn_as() == SeriesKind::Stacked,
        Subject::Reference => false,
    };
    for run in entries.chunk_by_mut(|a, b| stacked(a) && stacked(b)) {
        run.reverse();
    }
}
