//! Grid, axis lines, tick labels and axis titles.

use crate::Chart;
use crate::labels::{CategoryLabels, turned};
use crate::layout::Layout;
use crate::number;
use crate::scale::Scale;
use crate::svg::{FAINT, GRID, INK, Svg};
use crate::text::{self, Face, Line};

/// Draws what stands behind the data.
pub(crate) fn grid(svg: &mut Svg, layout: &Layout) {
    let frame = &layout.frame;
    for tick in layout.left.ticks() {
        let y = crisp(frame.y(&layout.left, tick.value));
        let colour = if tick.label.is_some() { GRID } else { FAINT };
        line(svg, (frame.left, y), (frame.right, y), colour);
    }
}

/// Draws the axes and everything written along them.
pub(crate) fn draw(svg: &mut Svg, chart: &Chart, layout: &Layout) {
    let frame = &layout.frame;
    let size = layout.style.small;
    axis_numbers(svg, layout, &layout.left, frame.left, -1.0);
    if let Some(scale) = &layout.right {
        axis_numbers(svg, layout, scale, frame.right, 1.0);
        let x = crisp(frame.right);
        line(svg, (x, frame.top), (x, frame.bottom + 0.5), INK);
    }
    let x = crisp(frame.left);
    line(svg, (x, frame.top), (x, frame.bottom + 0.5), INK);
    let base = crisp(frame.y(&layout.left, layout.left.base()));
    line(svg, (frame.left, base), (frame.right, base), INK);

    categories(svg, chart, layout);
    groups(svg, chart, layout);
    let middle = (frame.left + frame.right) / 2.0;
    if !chart.x_label.is_empty() {
        let room = layout.style.width - 2.0 * Layout::EDGE;
        let label = text::shortened(&chart.x_label, layout.style.label, room);
        let half = text::width(&label, layout.style.label, Face::Plain) / 2.0;
        let lowest = Layout::EDGE + half;
        let highest = (layout.style.width - Layout::EDGE - half).max(lowest);
        svg.tag("text")
            .number("x", middle.clamp(lowest, highest))
            .number("y", layout.x_title_y)
            .number("font-size", layout.style.label)
            .word("text-anchor", "middle")
            .word("fill", INK)
            .text(&label);
    }
    let first = Layout::EDGE + layout.style.label * 0.9;
    upright_title(svg, layout, &layout.y_title, first);
    let first = layout.y2_title_x + layout.style.label * 0.9;
    upright_title(svg, layout, &layout.y2_title, first);
    if let Some(badge) = layout.badge {
        let width = layout.badge_width(badge);
        let left = layout.style.width - Layout::EDGE - width;
        svg.tag("rect")
            .number("x", left + 0.5)
            .number("y", Layout::EDGE + 0.5)
            .number("width", width - 1.0)
            .number("height", size * 1.5)
            .number("rx", 3.0)
            .word("fill", "#fff4ec")
            .word("stroke", crate::svg::ALERT)
            .empty();
        svg.tag("text")
            .number("x", left + width / 2.0)
            .number("y", Layout::EDGE + size * 1.13)
            .number("font-size", size)
            .word("text-anchor", "middle")
            .face(Face::Alert)
            .text(badge);
    }
}

/// Numbers beside an axis, on the side to which `direction` points.
fn axis_numbers(svg: &mut Svg, layout: &Layout, scale: &Scale, x: f64, direction: f64) {
    let size = layout.style.small;
    for tick in scale.ticks() {
        let Some(label) = &tick.label else { continue };
        let y = layout.frame.y(scale, tick.value);
        line(svg, (x, crisp(y)), (x + 4.0 * direction, crisp(y)), INK);
        svg.tag("text")
            .number("x", x + 6.0 * direction)
            .number("y", y + size * 0.35)
            .number("font-size", size)
            .word("text-anchor", if direction < 0.0 { "end" } else { "start" })
            .word("fill", INK)
            .text(label);
    }
}

/// Numbers along a horizontal axis to scale.
fn x_numbers(svg: &mut Svg, layout: &Layout, scale: &Scale) {
    let (frame, size) = (&layout.frame, layout.style.small);
    for tick in scale.ticks() {
        let Some(label) = &tick.label else { continue };
        let x = frame.left + scale.place(tick.value) * (frame.right - frame.left);
        let mark = crisp(x);
        line(svg, (mark, frame.bottom), (mark, frame.bottom + 4.0), INK);
        svg.tag("text")
            .number("x", x)
            .number("y", frame.bottom + 6.0 + size * 0.85)
            .number("font-size", size)
            .word("text-anchor", "middle")
            .word("fill", INK)
            .text(label);
    }
}

fn categories(svg: &mut Svg, chart: &Chart, layout: &Layout) {
    if let Some((scale, _)) = &layout.x {
        return x_numbers(svg, layout, scale);
    }
    let size = layout.style.small;
    let top = layout.frame.bottom + 6.0;
    for index in 0..chart.categories.len() {
        let (left, width) = layout.slot(index, chart.categories.len());
        let x = left + width / 2.0;
        match &layout.labels {
            CategoryLabels::Upright(labels) => {
                for (row, label) in labels[index].iter().enumerate() {
                    let y = top + size * (0.85 + 1.2 * row as f64);
                    centred(svg, x, y, size, label);
                }
            }
            // Drawn by the scale itself.
            CategoryLabels::ToScale => {}
            CategoryLabels::Turned { labels, every } => {
                if index.is_multiple_of(*every) {
                    let (x, y) = (x + size * 0.3, top + size * 0.6);
                    svg.tag("text")
                        .number("x", x)
                        .number("y", y)
                        .number("font-size", size)
                        .word("text-anchor", "end")
                        .word("transform", &turned(x, y))
                        .word("fill", INK)
                        .tooltip_after(&labels[index], &chart.categories[index]);
                }
            }
        }
    }
}

/// A line under each run of categories, and the name of the run.
fn groups(svg: &mut Svg, chart: &Chart, layout: &Layout) {
    let size = layout.style.small;
    for group in &layout.groups {
        let (left, width) = layout.slot(group.first, chart.categories.len());
        let right = left + width * group.count as f64;
        let y = crisp(layout.groups_y);
        line(svg, (left + 5.0, y), (right - 5.0, y), "#9aa0a6");
        let label = text::shortened(&group.label, size, right - left - 4.0);
        svg.tag("text")
            .number("x", (left + right) / 2.0)
            .number("y", layout.groups_y + 4.0 + size)
            .number("font-size", size)
            .word("text-anchor", "middle")
            .word("fill", INK)
            .tooltip_after(&label, &group.label);
    }
}

/// An axis title that reads upwards, its first line at `x`.
fn upright_title(svg: &mut Svg, layout: &Layout, lines: &[Line], x: f64) {
    let size = layout.style.label;
    let y = (layout.frame.top + layout.frame.bottom) / 2.0;
    for (row, line) in lines.iter().enumerate() {
        let x = x + row as f64 * size * 1.25;
        let turn = format!(
            "rotate(-90 {} {})",
            number::coordinate(x),
            number::coordinate(y)
        );
        svg.tag("text")
            .number("x", x)
            .number("y", y)
            .number("font-size", size)
            .word("text-anchor", "middle")
            .word("transform", &turn)
            .word("fill", INK)
            .text(&plain(line));
    }
}

fn centred(svg: &mut Svg, x: f64, y: f64, size: f64, line: &Line) {
    svg.tag("text")
        .number("x", x)
        .number("y", y)
        .number("font-size", size)
        .word("text-anchor", "middle")
        .word("fill", INK)
        .text(&plain(line));
}

fn plain(line: &Line) -> String {
    line.iter().map(|span| span.text.as_str()).collect()
}

/// A hairline covers whole pixels only when it stands on half ones.
pub(crate) fn crisp(at: f64) -> f64 {
    at.floor() + 0.5
}

fn line(svg: &mut Svg, from: (f64, f64), to: (f64, f64), colour: &str) {
    svg.tag("line")
        .number("x1", from.0)
        .number("y1", from.1)
        .number("x2", to.0)
        .number("y2", to.1)
        .word("stroke", colour)
        .empty();
}
