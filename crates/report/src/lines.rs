//! Lines with markers, and markers alone.

use crate::bars::Cluster;
use crate::layout::Layout;
use crate::number::{coordinate, significant};
use crate::paint::{Dash, Mark, Paint};
use crate::picture::tooltip;
use crate::svg::Svg;
use crate::{Chart, Provenance, SeriesKind};

/// Draws all lines and markers of a chart.
///
/// Published markers lie below the lines and are larger than the markers on them, so that a
/// computed value that meets its published one shows as a dot in a ring.
pub(crate) fn draw(
    svg: &mut Svg,
    chart: &Chart,
    layout: &Layout,
    cluster: &Cluster,
    paints: &[Paint],
) {
    let lines: Vec<(usize, String)> = chart
        .series
        .iter()
        .zip(paints)
        .enumerate()
        .filter(|(_, (series, _))| series.drawn_as() == SeriesKind::Line)
        .map(|(index, _)| (index, path(&points(chart, layout, cluster, index))))
        .filter(|(_, d)| !d.is_empty())
        .collect();
    // A white casing keeps a line legible on the bars that it crosses; all casings come first,
    // lest one hides a neighbouring line.
    for (index, d) in &lines {
        stroke(svg, *index, d, "#ffffff", 4.0, None);
    }
    markers(svg, chart, layout, cluster, paints, true);
    for (index, d) in &lines {
        let paint = &paints[*index];
        stroke(svg, *index, d, &paint.colour, 2.0, paint.dash);
    }
    markers(svg, chart, layout, cluster, paints, false);
    beyond(svg, chart, layout, paints);
}

/// Marks at the upper edge, side by side, for values that lie beyond it.
fn beyond(svg: &mut Svg, chart: &Chart, layout: &Layout, paints: &[Paint]) {
    const STEP: f64 = 8.0;
    for (category, name) in chart.categories.iter().enumerate() {
        let here: Vec<usize> = (0..chart.series.len())
            .filter(|series| chart.series[*series].beyond.contains(&category))
            .collect();
        let (left, width) = layout.slot(category, chart.categories.len());
        let first = left + width / 2.0 - STEP * (here.len() as f64 - 1.0) / 2.0;
        for (place, series) in here.into_iter().enumerate() {
            let text = format!("{}, {name}: beyond the axis", chart.series[series].name);
            let at = (first + STEP * place as f64, layout.frame.top);
            let mark = Mark {
                series,
                category,
                value: "beyond the axis".to_owned(),
            };
            paints[series].marker(svg, at, layout.style.marker, &text, Some(&mark));
        }
    }
}

/// Draws the markers of the published series, or of the others.
fn markers(
    svg: &mut Svg,
    chart: &Chart,
    layout: &Layout,
    cluster: &Cluster,
    paints: &[Paint],
    published: bool,
) {
    let radius = layout.style.marker * if published { 1.3 } else { 0.9 };
    for (index, series) in chart.series.iter().enumerate() {
        let has_markers = matches!(series.drawn_as(), SeriesKind::Line | SeriesKind::Points);
        if !has_markers || (series.provenance == Provenance::Published) != published {
            continue;
        }
        let places = points(chart, layout, cluster, index);
        for (category, (place, value)) in places.iter().zip(&series.values).enumerate() {
            if let (Some(place), Some(value)) = (place, value) {
                let text = tooltip(chart, series, category, *value);
                let mark = Mark {
                    series: index,
                    category,
                    value: significant(*value),
                };
                paints[index].marker(svg, *place, radius, &text, Some(&mark));
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

fn stroke(svg: &mut Svg, series: usize, d: &str, colour: &str, width: f64, dash: Option<Dash>) {
    let tag = svg
        .tag("path")
        .word("data-s", &series.to_string())
        .word("d", d)
        .word("fill", "none")
        .word("stroke", colour)
        .number("stroke-width", width)
        .word("stroke-linejoin", "round");
    match dash {
        Some(dash) => tag.word("stroke-dasharray", dash.in_plot()).empty(),
        None => tag.empty(),
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
