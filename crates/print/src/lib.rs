//! Charts as files: one SVG each for a page; for a paper SVG, PDF and PNG of the width of one column or
//! two.
//!
//! PDF and PNG are made from the SVG by svg2pdf and resvg. Both need a font, and a machine may have
//! none: DejaVu Sans Condensed is built in, which is as wide as the Helvetica that charts are laid out
//! for. A PDF has the outlines of its letters, and needs no font.

mod vector;

use dray_report::{Chart, Looks, PaperWidth, ReportError};

use vector::Fonts;

/// Dots per inch of a PNG for print.
pub const PNG_DPI: f32 = 300.0;

/// How the pictures beside a report are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PictureStyle {
    /// As on the page.
    #[default]
    Page,
    /// For print, of this width.
    Paper(PaperWidth),
}

impl PictureStyle {
    /// The names of all styles.
    pub const NAMES: [&str; 3] = ["page", "paper", "paper-wide"];

    /// The style of a name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "page" => Some(Self::Page),
            "paper" => Some(Self::Paper(PaperWidth::Column)),
            "paper-wide" => Some(Self::Paper(PaperWidth::Page)),
            _ => None,
        }
    }
}

/// Why a picture cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PrintError {
    /// The chart cannot be drawn.
    #[error(transparent)]
    Chart(#[from] ReportError),
    /// The drawing cannot be written in that format.
    #[error("picture {id}: no {format} can be made of it: {reason}")]
    Format {
        /// Id of the picture.
        id: String,
        /// `"PDF"` or `"PNG"`.
        format: &'static str,
        /// What the converter says.
        reason: String,
    },
}

/// Draws the charts of one report.
#[derive(Debug)]
pub struct Printer {
    paper: Option<Paper>,
}

#[derive(Debug)]
struct Paper {
    width: PaperWidth,
    looks: Looks,
    fonts: Fonts,
    /// Ids of the report's charts.
    charts: Vec<String>,
}

impl Printer {
    /// A printer for these charts. `known` are the names of the series of each picture that there could
    /// be, so that a series looks the same whichever of the pictures are drawn.
    pub fn new<'a>(
        style: PictureStyle,
        known: &[Vec<String>],
        charts: impl IntoIterator<Item = &'a Chart>,
    ) -> Self {
        let charts: Vec<&Chart> = charts.into_iter().collect();
        let paper = match style {
            PictureStyle::Page => None,
            PictureStyle::Paper(width) => {
                let mut looks = Looks::default();
                looks.add(known);
                let pictures: Vec<Vec<String>> = charts
                    .iter()
                    .flat_map(|chart| chart.for_print())
                    .map(|picture| picture.series.into_iter().map(|s| s.name).collect())
                    .collect();
                looks.add(&pictures);
                Some(Paper {
                    width,
                    looks,
                    fonts: Fonts::built_in(),
                    charts: charts.iter().map(|chart| chart.id.clone()).collect(),
                })
            }
        };
        Self { paper }
    }

    /// The files of a chart: names and contents. A picture of its right axis is left out where the report has
    /// a chart of that id.
    ///
    /// # Errors
    ///
    /// A chart that cannot be drawn, or that was not among those of [`Printer::new`].
    pub fn files(&self, chart: &Chart) -> Result<Vec<(String, Vec<u8>)>, PrintError> {
        let Some(paper) = &self.paper else {
            let svg = chart.to_svg()?.into_bytes();
            return Ok(vec![(format!("{}.svg", chart.id), svg)]);
        };
        let mut files = Vec::new();
        let own = |picture: &Chart| picture.id == chart.id || !paper.charts.contains(&picture.id);
        for picture in chart.for_print().into_iter().filter(own) {
            let svg = picture.to_print(paper.width, &paper.looks)?;
            let format = |format, reason| PrintError::Format {
                id: picture.id.clone(),
                format,
                reason,
            };
            let drawing = paper.fonts.read(&svg).map_err(|e| format("PDF", e))?;
            let pdf = drawing.to_pdf().map_err(|e| format("PDF", e))?;
            let png = drawing.to_png(PNG_DPI).map_err(|e| format("PNG", e))?;
            files.extend([
                (format!("{}.svg", picture.id), svg.into_bytes()),
                (format!("{}.pdf", picture.id), pdf),
                (format!("{}.png", picture.id), png),
            ]);
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dray_report::{Provenance, Series, SeriesKind};

    fn chart(id: &str, names: &[&str]) -> Chart {
        Chart {
            id: id.into(),
            title: "Throughput by size, µs × 2".into(),
            x_label: "Size (bytes)".into(),
            y_label: "Throughput (GB/s)".into(),
            categories: vec!["256".into(), "4K".into()],
            series: names
                .iter()
                .map(|name| {
                    let values = vec![Some(1.0), Some(30.0)];
                    Series::new(*name, Provenance::Modelled, SeriesKind::Bars, values)
                })
                .collect(),
            ..Chart::default()
        }
    }

    fn file(files: &[(String, Vec<u8>)], name: &str) -> Vec<u8> {
        let found = files.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("no {name}")).1.clone()
    }

    #[test]
    fn a_column_is_as_wide_in_every_format() {
        let chart = chart("f", &["memmove", "fill"]);
        let style = PictureStyle::named("paper").unwrap();
        let files = Printer::new(style, &[], [&chart]).files(&chart).unwrap();
        let svg = String::from_utf8(file(&files, "f.svg")).unwrap();
        assert!(svg.contains("width=\"252pt\""), "{svg}");
        let pdf = file(&files, "f.pdf");
        let text = String::from_utf8_lossy(&pdf);
        assert!(text.contains("/MediaBox [0 0 252 "), "{text}");
        assert!(!text.contains("/Font"), "a printer needs no font");
        // Width and height stand in the header of a PNG: 3.5 inches of 300 dots.
        let png = file(&files, "f.png");
        assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!(png[16..20], 1050u32.to_be_bytes());
    }

    #[test]
    fn text_is_drawn_in_the_png() {
        // The same picture without its words has more white.
        let worded = chart("f", &["memmove"]);
        let mut mute = worded.clone();
        mute.title = ".".into();
        let white = |chart: &Chart| {
            let style = PictureStyle::named("paper").unwrap();
            let files = Printer::new(style, &[], [chart]).files(chart).unwrap();
            let decoded = resvg::tiny_skia::Pixmap::decode_png(&file(&files, "f.png")).unwrap();
            let white = |p: &&resvg::tiny_skia::PremultipliedColorU8| p.red() > 250;
            decoded.pixels().iter().filter(white).count()
        };
        assert!(white(&worded) + 2000 < white(&mute));
    }

    #[test]
    fn a_series_looks_the_same_with_and_without_its_neighbours() {
        let known = [vec!["memmove".to_owned(), "fill".to_owned()]];
        let style = PictureStyle::named("paper-wide").unwrap();
        let svg = |names: &[&str]| {
            let chart = chart("f", names);
            let files = Printer::new(style, &known, [&chart]).files(&chart).unwrap();
            String::from_utf8(file(&files, "f.svg")).unwrap()
        };
        let hue = |svg: &str| svg.contains("#d55e00");
        assert!(!hue(&svg(&["memmove"])));
        assert!(hue(&svg(&["fill"])) && hue(&svg(&["memmove", "fill"])));
    }
}
