//! The report: sections of charts and tables under one head.

use std::collections::BTreeSet;

use crate::{Chart, ReportError, Table, chart::check_id, page};

/// One part of the report, usually one figure.
///
/// A section that has charts links to `ID.csv` and `ID.json` beside the report, and each chart to
/// the SVG file of its own id, unless the report is alone.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Anchor in the page and name of the data files.
    pub id: String,
    /// Heading.
    pub title: String,
    /// Paragraphs before the charts.
    pub intro: Vec<String>,
    /// The charts; neighbours of half size stand two in a row.
    pub charts: Vec<Chart>,
    /// The tables, after the charts.
    pub tables: Vec<Table>,
    /// Sentences at the end.
    pub notes: Vec<String>,
    /// What in this section is a guess, if anything is.
    pub guess: Option<String>,
    /// The guessed parameters behind it, one each: folded away.
    pub guesses: Vec<String>,
}

/// One self-contained page: no external resource, whole without its script, fit for paper.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// Heading of the page.
    pub title: String,
    /// The line below it.
    pub subtitle: String,
    /// Platform, profile, version, date and whatever else a reader must know first.
    pub facts: Vec<(String, String)>,
    /// What was found, one sentence or paragraph each.
    pub summary: Vec<String>,
    /// The parts.
    pub sections: Vec<Section>,
    /// The last line.
    pub footer: String,
    /// Whether there are no files beside the page: it then links to none.
    pub alone: bool,
}

impl Report {
    /// The report as one HTML page.
    ///
    /// # Errors
    ///
    /// Whatever keeps a chart or a table from being drawn, and two charts or sections of one id.
    pub fn to_html(&self) -> Result<String, ReportError> {
        self.check()?;
        page::render(self)
    }

    fn check(&self) -> Result<(), ReportError> {
        let mut sections = BTreeSet::new();
        let mut charts = BTreeSet::new();
        for section in &self.sections {
            check_id(&section.id)?;
            unique(&mut sections, &section.id, "sections")?;
            for chart in &section.charts {
                unique(&mut charts, &chart.id, "charts")?;
            }
            for table in &section.tables {
                table.check()?;
            }
        }
        Ok(())
    }
}

fn unique<'a>(
    seen: &mut BTreeSet<&'a str>,
    id: &'a str,
    what: &'static str,
) -> Result<(), ReportError> {
    if seen.insert(id) {
        Ok(())
    } else {
        Err(ReportError::DuplicateId {
            id: id.to_owned(),
            what,
        })
    }
}
