//! Labels along the category axis.

use crate::Chart;
use crate::layout::{EDGE, Frame};
use crate::number;
use crate::style::Style;
use crate::text::{self, Face, Line};

/// Cosine and sine of the 40 degrees by which crowded labels are turned.
const TURN: (f64, f64) = (0.766, 0.643);
/// Widest turned label; longer ones are shortened.
const TURNED_ROOM: f64 = 130.0;

/// Labels of the categories.
#[derive(Debug)]
pub(crate) enum CategoryLabels {
    /// Upright, each in lines that fit its slot.
    Upright(Vec<Vec<Line>>),
    /// Turned, shortened, and only every so many.
    Turned { labels: Vec<String>, every: usize },
    /// The ticks of a scale, in one line.
    ToScale,
}

/// A run of categories under one group label.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) first: usize,
    pub(crate) count: usize,
    pub(crate) label: String,
}

impl CategoryLabels {
    pub(crate) fn height(&self, style: &Style) -> f64 {
        match self {
            Self::Upright(labels) => {
                let lines = labels.iter().map(Vec::len).max().unwrap_or(0);
                lines as f64 * style.small * 1.2
            }
            Self::ToScale => style.small * 1.2,
            Self::Turned { labels, .. } => {
                let widest = widest(labels, style.small);
                widest * TURN.1 + style.small * TURN.0
            }
        }
    }
}

/// Labels stand upright in up to three lines where the words fit their slots, else turned; then the
/// first one may need more room on the left.
pub(crate) fn category_labels(chart: &Chart, style: &Style, frame: &mut Frame) -> CategoryLabels {
    if chart.x_values.is_some() {
        return CategoryLabels::ToScale;
    }
    let size = style.small;
    let slot = (frame.right - frame.left) / chart.categories.len() as f64;
    let fits = |label: &String| {
        label
            .split_whitespace()
            .all(|word| text::width(word, size, Face::Plain) <= slot - 4.0)
    };
    if chart.categories.iter().all(fits) {
        let lines: Vec<Vec<Line>> = chart
            .categories
            .iter()
            .map(|label| text::wrap_plain(label, size, slot - 4.0, Face::Plain))
            .collect();
        if lines.iter().all(|l| l.len() <= 3) {
            return CategoryLabels::Upright(lines);
        }
    }
    let labels: Vec<String> = chart
        .categories
        .iter()
        .map(|label| text::shortened(label, size, TURNED_ROOM))
        .collect();
    let reach = text::width(&labels[0], size, Face::Plain) * TURN.0;
    let lacking = reach + EDGE - (frame.left + slot / 2.0);
    if lacking > 0.0 {
        frame.left = (frame.left + lacking).round();
    }
    let slot = (frame.right - frame.left) / chart.categories.len() as f64;
    let every = (size * 1.15 / slot).ceil().max(1.0) as usize;
    CategoryLabels::Turned { labels, every }
}

fn widest(labels: &[String], size: f64) -> f64 {
    labels
        .iter()
        .map(|l| text::width(l, size, Face::Plain))
        .fold(0.0, f64::max)
}

/// Equal neighbours make one group.
pub(crate) fn groups(chart: &Chart) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, label) in chart.group_labels.iter().flatten().enumerate() {
        match groups.last_mut() {
            Some(group) if group.label == *label => group.count += 1,
            _ => groups.push(Group {
                first: index,
                count: 1,
                label: label.clone(),
            }),
        }
    }
    groups
}

/// The transformation that turns a label around its end.
pub(crate) fn turned(x: f64, y: f64) -> String {
    format!(
        "rotate(-40 {} {})",
        number::coordinate(x),
        number::coordinate(y)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::{Provenance, Series, SeriesKind};

    fn chart(categories: Vec<String>) -> Chart {
        let values = vec![Some(1.0); categories.len()];
        Chart {
            id: "c".into(),
            categories,
            series: vec![Series::new(
                "s",
                Provenance::Modelled,
                SeriesKind::Bars,
                values,
            )],
            ..Chart::default()
        }
    }

    fn on_page(chart: &Chart) -> Layout {
        Layout::new(chart, Style::of(chart.size))
    }

    fn sizes() -> Vec<String> {
        ["256", "1K", "4K", "16K"].map(str::to_owned).to_vec()
    }

    #[test]
    fn labels_are_turned_when_they_do_not_fit() {
        let layout = on_page(&chart(sizes()));
        assert!(matches!(layout.labels, CategoryLabels::Upright(_)));
        let long = vec!["incomprehensibilities".to_owned(); 12];
        let layout = on_page(&chart(long));
        assert!(matches!(
            layout.labels,
            CategoryLabels::Turned { every: 1, .. }
        ));
        let many: Vec<String> = (0..200).map(|n| format!("{n}")).collect();
        let layout = on_page(&chart(many));
        assert!(matches!(
            layout.labels,
            CategoryLabels::Turned { every: 2.., .. }
        ));
    }

    #[test]
    fn equal_adjacent_labels_are_one_group() {
        let mut chart = chart(vec!["x".into(); 4]);
        chart.group_labels = Some(["a", "a", "b", "a"].map(str::to_owned).to_vec());
        let groups: Vec<(usize, usize)> =
            groups(&chart).iter().map(|g| (g.first, g.count)).collect();
        assert_eq!(groups, [(0, 2), (2, 1), (3, 1)]);
    }
}
