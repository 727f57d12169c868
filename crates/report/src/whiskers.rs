//! Intervals of values.

use crate::bars::Cluster;
use crate::layout::Layout;
use crate::svg::{INK, Svg};
use crate::{Chart, SeriesKind};

/// Half the length of the bar at each end, at most.
const HALF: f64 = 3.0;

/// Draws the interval of each value that has one, over the bars and below the markers.
pub(crate) fn draw(svg: &mut Svg, chart: &Chart, layout: &Layout, cluster: &Cluster) {
    for (index, series) in chart.series.iter().enumerate() {
        let scale = layout.scale(series.axis);
        let half = match series.drawn_as() {
            SeriesKind::Bars => (cluster.width() / 2.0).min(HALF),
            _ => HALF,
        };
        for category in 0..series.spans.len() {
            let (Some(_), Some((low, high))) = (series.values[category], series.span(category))
            else {
                continue;
            };
            let (left, width) = layout.slot(category, chart.categories.len());
            let x = left
                + match series.drawn_as() {
                    SeriesKind::Line => width / 2.0,
                    _ => cluster.centre(chart, index),
                };
            let (low, high) = (layout.frame.y(scale, low), layout.frame.y(scale, high));
            let d = [
                ("M", x - half, low),
                ("L", x + half, low),
                ("M", x, low),
                ("L", x, high),
                ("M", x - half, high),
                ("L", x + half, high),
            ];
            let d: String = d
                .iter()
                .map(|(letter, x, y)| {
                    let c = crate::number::coordinate;
                    format!("{letter}{} {}", c(*x), c(*y))
                })
                .collect();
            svg.tag("path")
                .word("data-s", &index.to_string())
                .word("d", &d)
                .word("fill", "none")
                .word("stroke", INK)
                .number("stroke-width", 0.9)
                .empty();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Chart, Provenance, Series, SeriesKind};

    fn chart(spans: Vec<Option<(f64, f64)>>, log_y: bool) -> Chart {
        let values = vec![Some(2.0), Some(4.0)];
        let mut series = Series::new("s", Provenance::Modelled, SeriesKind::Bars, values);
        series.spans = spans;
        Chart {
            id: "c".into(),
            categories: vec!["a".into(), "b".into()],
            log_y,
            series: vec![series],
            ..Chart::default()
        }
    }

    #[test]
    fn an_interval_is_drawn_told_and_within_the_axis() {
        let without = chart(Vec::new(), false).to_svg().unwrap();
        let with = chart(vec![None, Some((3.0, 19.0))], false)
            .to_svg()
            .unwrap();
        assert!(!without.contains("90 %"));
        assert!(with.contains("4.000 (3.000 to 19.00, 90 %)"), "{with}");
        assert!(with.contains("whiskers: 90 % interval"));
        assert!(
            with.contains(">20<"),
            "the axis holds the upper end: {with}"
        );
        assert!(!without.contains(">20<"));
    }

    #[test]
    fn an_interval_that_no_axis_shows_is_an_error() {
        let of = |spans, log| {
            chart(spans, log)
                .to_svg()
                .map_err(|error| error.to_string())
        };
        assert!(
            of(vec![Some((1.0, 2.0))], false)
                .unwrap_err()
                .contains("1 values")
        );
        assert!(of(vec![None, Some((0.0, 9.0))], true).is_err());
        assert!(of(vec![None, Some((1.0, f64::NAN))], false).is_err());
    }
}
