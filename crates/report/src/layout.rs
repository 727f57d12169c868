//! Where everything in a chart stands.

use crate::labels::{CategoryLabels, Group, category_labels, groups};
use crate::legend::{GUESS, Legend};
use crate::scale::Scale;
use crate::style::Style;
use crate::text::{self, Face, Line};
use crate::{Axis, Chart, Provenance, SeriesKind};

/// Room at the edges.
pub(crate) const EDGE: f64 = 8.0;
/// Gap between a tick label and the axis.
pub(crate) const TICK: f64 = 6.0;
/// The rectangle in which values are drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Frame {
    /// Height of a value of a scale.
    pub(crate) fn y(&self, scale: &Scale, value: f64) -> f64 {
        self.bottom - scale.place(value) * (self.bottom - self.top)
    }
}

/// A line of text and its baseline.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) y: f64,
    pub(crate) size: f64,
    pub(crate) line: Line,
}

/// Where everything in a chart stands.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) style: Style,
    pub(crate) frame: Frame,
    pub(crate) left: Scale,
    pub(crate) right: Option<Scale>,
    /// Where categories stand to scale.
    pub(crate) x: Option<(Scale, Vec<f64>)>,
    pub(crate) head: Vec<Placed>,
    pub(crate) badge: Option<&'static str>,
    pub(crate) y_title: Vec<Line>,
    pub(crate) y2_title: Vec<Line>,
    pub(crate) y2_title_x: f64,
    pub(crate) labels: CategoryLabels,
    pub(crate) groups: Vec<Group>,
    pub(crate) groups_y: f64,
    pub(crate) x_title_y: f64,
    pub(crate) legend: Legend,
    pub(crate) legend_at: (f64, f64),
    pub(crate) rule_y: f64,
    pub(crate) foot: Vec<Placed>,
    pub(crate) height: f64,
}

impl Layout {
    pub(crate) const EDGE: f64 = EDGE;

    pub(crate) fn new(chart: &Chart, style: Style) -> Self {
        let line = style.label * 1.25;
        let whole = style.width - 2.0 * EDGE;
        let left = left_scale(chart, &style);
        let right = chart
            .series
            .iter()
            .any(|s| s.axis == Axis::Right)
            .then(|| Scale::linear(extremes(chart, Axis::Right), style.steps));

        // Head.
        let badge = match style.points {
            Some(_) => None,
            None => badge(chart),
        };
        let badge_width = badge.map_or(0.0, |b| badge_width(b, &style) + 12.0);
        let title = text::wrap_plain(&chart.title, style.title, whole - badge_width, Face::Bold);
        let mut y = EDGE;
        let head = place(&mut y, title, style.title);
        if badge.is_some() {
            y = y.max(EDGE + style.small * 1.5);
        }

        // The plot, from its four margins.
        let top = (y + 14.0).round();
        let bottom = top + style.plot_height;
        let room = style.plot_height;
        let y_title = axis_title(&chart.y_label, style.label, room);
        let y2_label = match &right {
            Some(_) => chart.y2_label.as_deref().unwrap_or_default(),
            None => "",
        };
        let y2_title = axis_title(y2_label, style.label, room);
        let legend = Legend::new(chart, &style, whole, style.plot_height + 4.0 * line);
        let legend_room = if legend.beside {
            legend.width() + 20.0
        } else {
            0.0
        };
        let before =
            EDGE + y_title.len() as f64 * line + 4.0 + tick_width(&left, style.small) + TICK;
        let after = match &right {
            Some(scale) => {
                TICK + tick_width(scale, style.small) + 6.0 + y2_title.len() as f64 * line
            }
            None => 4.0,
        };
        let mut frame = Frame {
            left: before.round(),
            right: (style.width - EDGE - legend_room - after).round(),
            top,
            bottom,
        };
        let labels = category_labels(chart, &style, &mut frame);
        let y2_title_x = frame.right + after - y2_title.len() as f64 * line;

        // Below the plot.
        let mut y = bottom + TICK + labels.height(&style);
        let groups = groups(chart);
        let groups_y = y + 4.0;
        if !groups.is_empty() {
            y = groups_y + 6.0 + line;
        }
        let x_title_y = y + line;
        if !chart.x_label.is_empty() {
            y = x_title_y;
        }
        let legend_at = if legend.beside {
            y = y.max(top + legend.height());
            (style.width - EDGE - legend.width(), top - 3.0)
        } else {
            let at = (EDGE, y + 14.0);
            y = at.1 + legend.height();
            at
        };
        let mut foot = Vec::new();
        if !chart.notes.is_empty() {
            y += 8.0;
        }
        for note in &chart.notes {
            let lines = text::wrap_plain(note, style.small, whole, Face::Plain);
            y += 2.0;
            foot.extend(place(&mut y, lines, style.small));
        }
        let rule_y = (y + 12.0).round();
        y = rule_y + 4.0;
        let lines = text::wrap_plain(&foot_text(chart, &style), style.foot, whole, Face::Quiet);
        foot.extend(place(&mut y, lines, style.foot));
        let x = x_scale(chart, &style);
        Self {
            height: (y + EDGE).ceil(),
            style,
            frame,
            left,
            right,
            x,
            head,
            badge,
            y_title,
            y2_title,
            y2_title_x,
            labels,
            groups,
            groups_y,
            x_title_y,
            legend,
            legend_at,
            rule_y,
            foot,
        }
    }

    /// The scale of an axis.
    pub(crate) fn scale(&self, axis: Axis) -> &Scale {
        match axis {
            Axis::Left => &self.left,
            Axis::Right => self.right.as_ref().unwrap_or(&self.left),
        }
    }

    /// Left edge and width of the slot of a category.
    pub(crate) fn slot(&self, category: usize, of: usize) -> (f64, f64) {
        let whole = self.frame.right - self.frame.left;
        let width = whole / of.max(1) as f64;
        if let Some((scale, values)) = &self.x
            && let Some(value) = values.get(category)
        {
            return (
                self.frame.left + scale.place(*value) * whole - width / 2.0,
                width,
            );
        }
        (self.frame.left + category as f64 * width, width)
    }

    /// Width of the badge with its border.
    pub(crate) fn badge_width(&self, badge: &str) -> f64 {
        badge_width(badge, &self.style)
    }
}

/// Sets lines below `y` and moves it on.
fn place(y: &mut f64, lines: Vec<Line>, size: f64) -> Vec<Placed> {
    lines
        .into_iter()
        .map(|line| {
            *y += size * 1.28;
            Placed {
                y: *y - size * 0.22,
                size,
                line,
            }
        })
        .collect()
}

/// An axis title in at most two lines.
fn axis_title(label: &str, size: f64, room: f64) -> Vec<Line> {
    let mut lines = text::wrap_plain(label, size, room, Face::Plain);
    if lines.len() > 2 {
        lines.truncate(2);
        if let Some(span) = lines[1].last_mut() {
            span.text.push('…');
        }
    }
    lines
}

/// The scale along the categories, where these are numbers.
fn x_scale(chart: &Chart, style: &Style) -> Option<(Scale, Vec<f64>)> {
    let values = chart.x_values.clone()?;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let scale = match least > 0.0 && most > 100.0 * least {
        true => Scale::logarithmic(values.iter().copied()),
        false => Scale::linear(values.iter().copied(), style.steps),
    };
    Some((scale, values))
}

fn left_scale(chart: &Chart, style: &Style) -> Scale {
    let reference = chart.reference_line.iter().map(|(value, _)| *value);
    let values = extremes(chart, Axis::Left).into_iter().chain(reference);
    if chart.log_y {
        Scale::logarithmic(values)
    } else {
        Scale::linear(values, style.steps)
    }
}

/// The values that an axis must hold: single ones, and the sums of stacks.
fn extremes(chart: &Chart, axis: Axis) -> Vec<f64> {
    let of_axis = || chart.series.iter().filter(|s| s.axis == axis);
    let single = of_axis()
        .filter(|s| s.drawn_as() != SeriesKind::Stacked)
        .flat_map(|s| s.values.iter().flatten().copied().chain(s.span_ends()));
    let sums = (0..chart.categories.len()).map(|category| {
        of_axis()
            .filter(|s| s.drawn_as() == SeriesKind::Stacked)
            .filter_map(|s| s.values.get(category).copied().flatten())
            .sum::<f64>()
    });
    // A sum of 0 is no value: a logarithmic axis has no place for it.
    single.chain(sums.filter(|sum| *sum != 0.0)).collect()
}

fn tick_width(scale: &Scale, size: f64) -> f64 {
    scale
        .ticks()
        .iter()
        .filter_map(|t| t.label.as_deref())
        .map(|label| text::width(label, size, Face::Plain))
        .fold(0.0, f64::max)
}

fn badge(chart: &Chart) -> Option<&'static str> {
    match (chart.has_guess(), chart.is_all_guessed()) {
        (false, _) => None,
        (true, true) => Some("guess"),
        (true, false) => Some("guess in part"),
    }
}

fn badge_width(badge: &str, style: &Style) -> f64 {
    text::width(badge, style.small, Face::Alert) + 12.0
}

/// The line at the foot: what the caller says, and which kinds of data are shown.
fn foot_text(chart: &Chart, style: &Style) -> String {
    let shown = chart.kinds_shown();
    let label = |kind: &Provenance| match style.points {
        // The legend of a picture for print does not repeat the kind.
        Some(_) if shown.len() > 1 => kind.on_paper(),
        _ => kind.label(),
    };
    let kinds: Vec<&str> = shown.iter().map(label).collect();
    let mut text = String::new();
    if !chart.footer.is_empty() {
        text.push_str(&chart.footer);
        text.push_str(" · ");
    }
    let printed = style.points.is_some();
    if !printed {
        text.push_str("data: ");
    }
    text.push_str(&kinds.join(", "));
    if chart.series.iter().any(|s| s.span_ends().next().is_some()) {
        text.push_str(" · whiskers: 90 % interval");
    }
    if chart.has_guess() {
        text.push_str(" · ");
        if !chart.is_all_guessed() {
            text.push_str(GUESS);
            text.push(' ');
        }
        text.push_str(match printed {
            true => "guess",
            false => "rests on a guess",
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChartSize, Series, number};
    use proptest::prelude::*;

    fn chart(series: usize, categories: Vec<String>) -> Chart {
        let values = vec![Some(1.0); categories.len()];
        Chart {
            id: "c".into(),
            title: "Title".into(),
            x_label: "x".into(),
            y_label: "y (GB/s)".into(),
            categories,
            series: (0..series)
                .map(|n| {
                    let name = format!("series {n}");
                    Series::new(name, Provenance::Modelled, SeriesKind::Bars, values.clone())
                })
                .collect(),
            ..Chart::default()
        }
    }

    fn on_page(chart: &Chart) -> Layout {
        Layout::new(chart, Style::of(chart.size))
    }

    fn sizes() -> Vec<String> {
        ["256", "1K", "4K", "16K", "64K", "256K", "1M"]
            .map(str::to_owned)
            .to_vec()
    }

    #[test]
    fn a_legend_stands_beside_a_full_chart_and_below_a_half_one() {
        let mut chart = chart(8, sizes());
        let layout = on_page(&chart);
        assert!(layout.legend.beside && layout.legend_at.0 > layout.frame.right);
        chart.size = ChartSize::Half;
        let layout = on_page(&chart);
        assert!(!layout.legend.beside && layout.legend_at.1 > layout.x_title_y);
    }

    #[test]
    fn a_legend_that_is_too_long_is_placed_below() {
        let layout = on_page(&chart(40, sizes()));
        assert!(!layout.legend.beside && layout.legend_at.1 > layout.x_title_y);
        assert!(layout.height > layout.legend_at.1 + layout.legend.height());
    }

    #[test]
    fn the_axis_reaches_the_sum_of_a_stack() {
        let mut chart = chart(3, sizes());
        for series in &mut chart.series {
            series.kind = SeriesKind::Stacked;
        }
        let layout = on_page(&chart);
        let top = layout.left.ticks().last().map(|t| t.value);
        assert_eq!(top, Some(3.0));
    }

    proptest! {
        #[test]
        fn the_plot_always_has_an_area(
            title in "\\PC{0,200}",
            label in "\\PC{0,200}",
            names in prop::collection::vec("\\PC{0,80}", 1..30),
            categories in prop::collection::vec("\\PC{0,60}", 1..60),
            scale in -290i32..290,
            half: bool,
            right: bool,
        ) {
            let value = number::scaled(3, scale);
            let mut chart = chart(0, categories);
            chart.title = title;
            chart.y_label = label.clone();
            chart.y2_label = Some(label);
            chart.size = if half { ChartSize::Half } else { ChartSize::Full };
            chart.series = names
                .into_iter()
                .map(|name| {
                    let values = vec![Some(value); chart.categories.len()];
                    Series::new(name, Provenance::Measured, SeriesKind::Line, values)
                })
                .collect();
            if right {
                chart.series[0].axis = Axis::Right;
            }
            let layout = on_page(&chart);
            let frame = layout.frame;
            prop_assert!(frame.right - frame.left >= layout.style.width * 0.35, "{frame:?}");
            prop_assert!(frame.right <= layout.style.width - EDGE);
            prop_assert!(layout.height >= layout.rule_y);
            for placed in layout.head.iter().chain(&layout.foot) {
                prop_assert!(placed.y < layout.height);
            }
        }
    }
}
