//! A chart as pictures for print: what a page shows in one, and a paper in two.

use crate::picture::{self, Drawn};
use crate::style::Style;
use crate::{Axis, Chart, Looks, ReportError, Series, SeriesKind};

/// How wide a picture for print is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaperWidth {
    /// One column of two: 3.5 inches.
    Column,
    /// Both columns: 7.16 inches.
    Page,
}

impl PaperWidth {
    /// In points, 72 to an inch.
    pub fn points(self) -> f64 {
        match self {
            Self::Column => 252.0,
            Self::Page => 516.0,
        }
    }
}

impl Chart {
    /// The pictures that show it in print.
    ///
    /// A logarithmic axis has no bars, whose length would mean nothing: lines over numbers, markers
    /// over names. The series of the right axis have a picture of their own, `ID-NAME`, logarithmic
    /// if their values are above 0, with the names that they have without the axis's.
    pub fn for_print(&self) -> Vec<Chart> {
        let (right, left): (Vec<Series>, Vec<Series>) = self
            .series
            .iter()
            .cloned()
            .partition(|series| series.axis == Axis::Right);
        let mut pictures = Vec::new();
        if !left.is_empty() {
            pictures.push(Chart {
                series: left,
                y2_label: None,
                ..self.clone()
            });
        }
        if let Some(label) = self.y2_label.as_ref().filter(|_| !right.is_empty()) {
            pictures.push(self.of_right_axis(label, right));
        }
        for picture in &mut pictures {
            picture.without_bars_on_log();
        }
        pictures
    }

    fn of_right_axis(&self, label: &str, series: Vec<Series>) -> Chart {
        let name = label.split(" (").next().unwrap_or(label);
        let prefix = format!("{}, ", name.to_lowercase());
        let word: String = name
            .to_lowercase()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let above = |value: &f64| *value > 0.0;
        Chart {
            id: format!("{}-{word}", self.id),
            title: format!("{name}: {}", self.title),
            y_label: label.to_owned(),
            y2_label: None,
            log_y: series
                .iter()
                .flat_map(|s| s.values.iter().flatten())
                .all(above),
            reference_line: None,
            series: series
                .into_iter()
                .map(|mut series| {
                    if let Some(own) = series.name.strip_prefix(&prefix) {
                        series.name = own.to_owned();
                    }
                    series.axis = Axis::Left;
                    series
                })
                .collect(),
            ..self.clone()
        }
    }

    fn without_bars_on_log(&mut self) {
        if !self.log_y {
            return;
        }
        let is_number = |label: &String| label.starts_with(|c: char| c.is_ascii_digit());
        let kind = match self.categories.iter().all(is_number) {
            true => SeriesKind::Line,
            false => SeriesKind::Points,
        };
        for series in &mut self.series {
            if series.kind == SeriesKind::Bars {
                series.kind = kind;
            }
        }
    }

    /// A picture for print as an SVG document, as wide as it is to be printed.
    ///
    /// # Errors
    ///
    /// As [`Chart::to_svg`], and a series whose name has no look.
    pub fn to_print(&self, width: PaperWidth, looks: &Looks) -> Result<String, ReportError> {
        self.check()?;
        let number = |series: &Series| {
            looks
                .number(&series.name)
                .ok_or_else(|| ReportError::NoLook {
                    chart: self.id.clone(),
                    series: series.name.clone(),
                })
        };
        let numbers: Result<Vec<usize>, _> = self.series.iter().map(number).collect();
        Ok(picture::draw(
            self,
            Style::paper(width),
            &Drawn::Printed(numbers?),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Provenance;

    fn series(name: &str, kind: SeriesKind) -> Series {
        Series::new(
            name,
            Provenance::Modelled,
            kind,
            vec![Some(1.0), Some(300.0)],
        )
    }

    fn chart() -> Chart {
        Chart {
            id: "f".into(),
            title: "Copies by size".into(),
            y_label: "Throughput (GB/s)".into(),
            y2_label: Some("Latency (µs)".into()),
            categories: vec!["256".into(), "4K".into()],
            log_y: true,
            series: vec![
                series("batch 1", SeriesKind::Bars),
                series("latency, batch 1", SeriesKind::Line).right(),
            ],
            ..Chart::default()
        }
    }

    #[test]
    fn the_right_axis_has_a_picture_of_its_own_with_the_same_names() {
        let pictures = chart().for_print();
        let ids: Vec<&str> = pictures.iter().map(|p| p.id.as_str()).collect();
        assert_eq!(ids, ["f", "f-latency"]);
        assert_eq!(pictures[1].title, "Latency: Copies by size");
        assert_eq!(pictures[1].series[0].name, "batch 1");
        assert!(pictures[1].log_y && pictures[1].y2_label.is_none());
    }

    #[test]
    fn a_logarithmic_axis_has_no_bars() {
        let kind = |chart: &Chart| chart.for_print()[0].series[0].kind;
        assert_eq!(kind(&chart()), SeriesKind::Line);
        let mut named = chart();
        named.categories = vec!["fill".into(), "compare".into()];
        assert_eq!(kind(&named), SeriesKind::Points);
        let mut linear = chart();
        linear.log_y = false;
        assert_eq!(kind(&linear), SeriesKind::Bars);
    }

    #[test]
    fn a_series_without_a_look_is_an_error() {
        let picture = &chart().for_print()[0];
        let mut looks = Looks::default();
        let error = picture.to_print(PaperWidth::Column, &looks).unwrap_err();
        assert!(error.to_string().contains("batch 1"), "{error}");
        looks.add(&[vec!["batch 1".to_owned()]]);
        let svg = picture.to_print(PaperWidth::Column, &looks).unwrap();
        assert!(svg.contains("width=\"252pt\""), "{svg}");
    }
}
