//! A chart: what it shows, and whether it can be drawn.

use crate::picture::{self, Drawn};
use crate::style::Style;
use crate::{Axis, Provenance, ReportError, Series, SeriesKind};

/// How much room a chart takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChartSize {
    /// The full width of the page.
    #[default]
    Full,
    /// Half of it: a panel, two in a row.
    Half,
}

/// A chart over categories, with one or two value axes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chart {
    /// Name of the SVG file and prefix of every id inside it.
    pub id: String,
    /// What it shows, in one line.
    pub title: String,
    /// Label of the category axis, with unit.
    pub x_label: String,
    /// Label of the left axis, with unit.
    pub y_label: String,
    /// Label of the right axis, with unit; needed when a series is on it.
    pub y2_label: Option<String>,
    /// Labels along the category axis.
    pub categories: Vec<String>,
    /// What the categories are as numbers, not negative; they then stand to scale, on a linear axis
    /// or, over more than two decades, on a logarithmic one.
    pub x_values: Option<Vec<f64>>,
    /// Second row of labels, one per category; equal neighbours are drawn as one group.
    pub group_labels: Option<Vec<String>>,
    /// Whether the left axis is logarithmic; bars then start at its lower end.
    pub log_y: bool,
    /// A line across the plot at a value of the left axis, and its name in the legend.
    pub reference_line: Option<(f64, String)>,
    /// The numbers.
    pub series: Vec<Series>,
    /// Sentences below the plot.
    pub notes: Vec<String>,
    /// Platform, profile and program version; the kinds of data shown are added to it.
    pub footer: String,
    /// How much room it takes.
    pub size: ChartSize,
}

/// Beyond it, a rounded axis could leave the range of f64.
const LARGEST: f64 = 1e300;

impl Chart {
    /// The chart as an SVG document; the same chart gives the same bytes on every machine.
    ///
    /// # Errors
    ///
    /// A chart with nothing in it, a series that does not fit its categories, a value that its
    /// axis cannot show: each names the chart and the series.
    pub fn to_svg(&self) -> Result<String, ReportError> {
        self.check()?;
        Ok(picture::draw(self, Style::of(self.size), &Drawn::OnPage))
    }

    /// Whether everything in it can be drawn.
    pub(crate) fn check(&self) -> Result<(), ReportError> {
        check_id(&self.id)?;
        let empty = |missing| ReportError::EmptyChart {
            chart: self.id.clone(),
            missing,
        };
        if self.categories.is_empty() {
            return Err(empty("categories"));
        }
        if self.series.is_empty() {
            return Err(empty("series"));
        }
        if let Some(labels) = &self.group_labels
            && labels.len() != self.categories.len()
        {
            return Err(ReportError::GroupLabels {
                chart: self.id.clone(),
                labels: labels.len(),
                categories: self.categories.len(),
            });
        }
        if let Some(values) = &self.x_values {
            self.check_x_values(values)?;
        }
        for series in &self.series {
            self.check_series(series)?;
        }
        if self
            .series
            .iter()
            .all(|s| s.values.iter().all(Option::is_none))
        {
            return Err(empty("values"));
        }
        match &self.reference_line {
            Some((value, label)) => self.check_value(label, "reference line", Axis::Left, *value),
            None => Ok(()),
        }
    }

    fn check_x_values(&self, values: &[f64]) -> Result<(), ReportError> {
        if values.len() != self.categories.len() {
            return Err(ReportError::XValues {
                chart: self.id.clone(),
                values: values.len(),
                categories: self.categories.len(),
            });
        }
        for (category, value) in self.categories.iter().zip(values) {
            if !(0.0..=LARGEST).contains(value) {
                return Err(ReportError::BadValue {
                    chart: self.id.clone(),
                    series: "place along the axis".to_owned(),
                    category: category.clone(),
                    value: *value,
                });
            }
        }
        Ok(())
    }

    fn check_series(&self, series: &Series) -> Result<(), ReportError> {
        let chart = || self.id.clone();
        let name = || series.name.clone();
        if series.values.len() != self.categories.len() {
            return Err(ReportError::SeriesLength {
                chart: chart(),
                series: name(),
                values: series.values.len(),
                categories: self.categories.len(),
            });
        }
        if series.axis == Axis::Right && self.y2_label.is_none() {
            return Err(ReportError::NoRightAxis {
                chart: chart(),
                series: name(),
            });
        }
        if !series.spans.is_empty() && series.spans.len() != self.categories.len() {
            return Err(ReportError::SeriesLength {
                chart: chart(),
                series: name(),
                values: series.spans.len(),
                categories: self.categories.len(),
            });
        }
        let stacked = series.drawn_as() == SeriesKind::Stacked;
        if stacked && self.log_y && series.axis == Axis::Left {
            return Err(ReportError::StackOnLog {
                chart: chart(),
                series: name(),
            });
        }
        for (index, category) in self.categories.iter().enumerate() {
            for end in series
                .span(index)
                .into_iter()
                .flat_map(|(low, high)| [low, high])
            {
                self.check_value(&series.name, category, series.axis, end)?;
            }
        }
        for (category, value) in self.categories.iter().zip(&series.values) {
            let Some(value) = *value else { continue };
            self.check_value(&series.name, category, series.axis, value)?;
            if stacked && value < 0.0 {
                return Err(ReportError::NegativeStack {
                    chart: chart(),
                    series: name(),
                    category: category.clone(),
                    value,
                });
            }
        }
        Ok(())
    }

    fn check_value(
        &self,
        series: &str,
        category: &str,
        axis: Axis,
        value: f64,
    ) -> Result<(), ReportError> {
        if !value.is_finite() || value.abs() > LARGEST {
            return Err(ReportError::BadValue {
                chart: self.id.clone(),
                series: series.to_owned(),
                category: category.to_owned(),
                value,
            });
        }
        if self.log_y && axis == Axis::Left && value <= 0.0 {
            return Err(ReportError::NotPositive {
                chart: self.id.clone(),
                series: series.to_owned(),
                category: category.to_owned(),
                value,
            });
        }
        Ok(())
    }

    /// The kinds of data that it shows, in the order in which they are listed.
    pub(crate) fn kinds_shown(&self) -> Vec<Provenance> {
        Provenance::ALL
            .into_iter()
            .filter(|kind| self.series.iter().any(|s| s.provenance == *kind))
            .collect()
    }

    /// Whether any of its series rests on a guessed parameter.
    pub(crate) fn has_guess(&self) -> bool {
        self.series.iter().any(|s| s.guess)
    }

    /// Whether all that was not published does.
    pub(crate) fn is_all_guessed(&self) -> bool {
        let published = |s: &Series| s.provenance == Provenance::Published;
        self.has_guess() && self.series.iter().all(|s| s.guess || published(s))
    }
}

/// An id is a file name, an anchor and part of a reference `url(#id)`.
pub(crate) fn check_id(id: &str) -> Result<(), ReportError> {
    let starts = id.starts_with(|c: char| c.is_ascii_alphanumeric());
    let holds = id
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    if starts && holds {
        Ok(())
    } else {
        Err(ReportError::BadId { id: id.to_owned() })
    }
}
