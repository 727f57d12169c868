//! Lines with markers, and markers alone.

use crate::bars::Cluster;
use crate::layout::Layout;
use crate::number::coordinate;
use crate::paint::Paint;
use crate::picture::tooltip;
use crate::svg::Svg;
use crate::{Chart, SeriesKind};

/// Draws all lines of a chart, then all markers, so that no line crosses one.
pub(crate) fn draw(
    svg: &mut Svg,
    chart: &Chart,
    layout: &Layout,
    cluster: &Cluster,
    paints: &[Paint],
) {
    for (index, series) in chart.series.iter().enumerate() {
        if series.drawn_as() != SeriesKind::Line {
            continue;
        }
        let d = path(&points(chart, layout, cluster, index));
        if d.is_empty() {
            continue;
        }
        // A white casing keeps a line legible on the bars that it crosses.
        stroke(svg, &d, "#ffffff", 4.0, false);
        stroke(svg, &d, &paints[index].colour, 2.0, paints[index].dashed);
    }
    for (index, series) in chart.series.iter().enumerate() {
        if !matches!(series.drawn_as(), SeriesKind::Line | SeriesKind::Points) {
            continue;
        }
        let places = points(chart, layout, cluster, index);
        for (category, (place, value)) in places.iter().zip(&series.values).enumerate() {
            if let (Some((x, y)), Some(value)) = (place, value) {
                let text = tooltip(chart, series, category, *value);
                paints[index].marker(svg, *x, *y, layout.style.marker, &text);
            }
        }
    }
}

/// One place per category, `None` where there is no value.
fn points(
    chart: &Chart,
    layout: &Layout,
    cluster: &Cluster,
    series: usize,
) -> Vec<Option<(f64, f64)>> {
    let row = &chart.series[series];
    let scale = layout.scale(row.axis);
    row.values
        .iter()
        .enumerate()
        .map(|(category, value)| {
            let (left, width) = layout.slot(category, chart.categories.len());
            let centre = match row.drawn_as() {
                SeriesKind::Points => cluster.centre(chart, series),
                _ => width / 2.0,
            };
            value.map(|value| (left + centre, layout.frame.y(scale, value)))
        })
        .collect()
}

/// A path through neighbours; it breaks where a value is missing.
fn path(points: &[Option<(f64, f64)>]) -> String {
    let mut d = String::new();
    for run in points.split(Option::is_none).filter(|run| run.len() > 1) {
        for (index, (x, y)) in run.iter().flatten().enumerate() {
            d.push(if index == 0 { 'M' } else { 'L' });
            d.push_str(&format!("{} {}", coordinate(*x), coordinate(*y)));
        }
    }
    d
}

fn stroke(svg: &mut Svg, d: &str, colour: &str, width: f64, dashed: bool) {
    let tag = svg
        .tag("path")
        .word("d", d)
        .word("fill", "none")
        .word("stroke", colour)
        .number("stroke-width", width)
        .word("stroke-linejoin", "round");
    if dashed {
        tag.word("stroke-dasharray", "6 4").empty();
    } else {
        tag.empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_breaks_at_missing_values() {
        let points = [
            Some((0.0, 1.0)),
            Some((1.0, 2.0)),
            None,
            Some((3.0, 4.0)),
            None,
            Some((5.0, 6.0)),
            Some((6.0, 7.5)),
        ];
        assert_eq!(path(&points), "M0 1L1 2M5 6L6 7.5");
    }
}
