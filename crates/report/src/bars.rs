//! Bars beside each other and on each other.

use crate::layout::Layout;
use crate::number::significant;
use crate::paint::{Mark, Paint};
use crate::picture::tooltip;
use crate::svg::Svg;
use crate::{Axis, Chart, SeriesKind};

/// Share of a slot that the bars of a category take.
const SHARE: f64 = 0.82;
/// Widest bar, in pixels.
const WIDEST: f64 = 44.0;
/// A bar of value 0 is still seen to be there.
const LEAST: f64 = 0.8;

/// The bars that stand beside each other in each category.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// Each the series of one bar, or all series of one stack.
    columns: Vec<Vec<usize>>,
    /// From one bar to the next.
    pitch: f64,
    slot: f64,
}

impl Cluster {
    pub(crate) fn new(chart: &Chart, layout: &Layout) -> Self {
        let columns = columns(chart);
        let (_, slot) = layout.slot(0, chart.categories.len());
        let share = if columns.len() == 1 { 0.6 } else { SHARE };
        let pitch = (slot * share / columns.len().max(1) as f64).min(WIDEST);
        // Whole pixels give all bars the same width on screen.
        let pitch = if pitch >= 3.0 { pitch.floor() } else { pitch };
        Self {
            columns,
            pitch,
            slot,
        }
    }

    /// Left edge of a bar, from the left edge of its slot.
    fn offset(&self, column: usize) -> f64 {
        let all = self.pitch * self.columns.len() as f64;
        (self.slot - all) / 2.0 + self.pitch * column as f64
    }

    /// Bars leave a gap where they are wide enough for it.
    pub(crate) fn width(&self) -> f64 {
        match self.pitch {
            pitch if pitch >= 6.0 => pitch - 1.0,
            pitch if pitch >= 3.0 => pitch - 0.5,
            pitch => pitch,
        }
    }

    /// Where the points of a series stand, from the left edge of a slot: over the bar of the series
    /// of the same name, else in the middle.
    pub(crate) fn centre(&self, chart: &Chart, series: usize) -> f64 {
        let name = &chart.series[series].name;
        let over = self
            .columns
            .iter()
            .position(|column| column.iter().any(|bar| chart.series[*bar].name == *name));
        match over {
            Some(column) => self.offset(column) + self.width() / 2.0,
            None => self.slot / 2.0,
        }
    }
}

fn columns(chart: &Chart) -> Vec<Vec<usize>> {
    let mut columns: Vec<Vec<usize>> = Vec::new();
    let mut stacks: Vec<(Axis, usize)> = Vec::new();
    for (index, series) in chart.series.iter().enumerate() {
        match series.drawn_as() {
            SeriesKind::Bars => columns.push(vec![index]),
            SeriesKind::Stacked => match stacks.iter().find(|(axis, _)| *axis == series.axis) {
                Some((_, column)) => columns[*column].push(index),
                None => {
                    stacks.push((series.axis, columns.len()));
                    columns.push(vec![index]);
                }
            },
            SeriesKind::Line | SeriesKind::Points => {}
        }
    }
    columns
}

/// Draws all bars of a chart.
pub(crate) fn draw(
    svg: &mut Svg,
    chart: &Chart,
    layout: &Layout,
    cluster: &Cluster,
    paints: &[Paint],
) {
    for (position, column) in cluster.columns.iter().enumerate() {
        let mut reached = vec![0.0; chart.categories.len()];
        for index in column {
            let series = &chart.series[*index];
            let scale = layout.scale(series.axis);
            let paint = &paints[*index];
            let group = svg.tag("g").word("fill", &paint.fill);
            match &paint.edge {
                Some(edge) => group.word("stroke", edge).open(),
                None => group.open(),
            }
            for (category, value) in series.values.iter().enumerate() {
                let Some(value) = *value else { continue };
                let (from, to) = if series.drawn_as() == SeriesKind::Stacked {
                    let from = reached[category];
                    reached[category] += value;
                    (from, reached[category])
                } else {
                    (scale.base(), value)
                };
                let (from, to) = (layout.frame.y(scale, from), layout.frame.y(scale, to));
                let (left, _) = layout.slot(category, chart.categories.len());
                let bar = Bar {
                    x: (left + cluster.offset(position)).round(),
                    y: if (from - to).abs() < LEAST {
                        from - LEAST
                    } else {
                        from.min(to)
                    },
                    width: cluster.width(),
                    height: (from - to).abs().max(LEAST),
                };
                // An edge is drawn half outside.
                let bar = if paint.edge.is_some() {
                    bar.inset(0.5)
                } else {
                    bar
                };
                let mark = Mark {
                    series: *index,
                    category,
                    value: significant(value),
                };
                mark.on(svg.tag("rect"))
                    .number("x", bar.x)
                    .number("y", bar.y)
                    .number("width", bar.width)
                    .number("height", bar.height)
                    .tooltip(&tooltip(chart, series, category, value));
            }
            svg.end("g");
        }
    }
}

struct Bar {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Bar {
    fn inset(self, by: f64) -> Self {
        Self {
            x: self.x + by,
            y: self.y + by,
            width: (self.width - 2.0 * by).max(0.1),
            height: (self.height - 2.0 * by).max(0.1),
        }
    }
}
