//! Charts as SVG, tables, and the HTML report.
//!
//! From a picture alone a reader can tell what was modelled, what was measured on this machine and
//! what was published: see [`Provenance`].
//!
//! Charts are drawn by an emitter of their own. The SVG backend of plotters places everything on
//! whole pixels, has no pattern fills, no dashes, and no titles that a screen reader finds, and
//! its coordinates come out of libm, which may differ in a digit between machines.

mod axes;
mod bars;
mod chart;
mod error;
mod labels;
mod layout;
mod legend;
mod lines;
mod looks;
mod number;
mod page;
mod paint;
mod paper;
mod picture;
mod provenance;
mod report;
mod scale;
mod series;
mod style;
mod svg;
mod table;
mod text;
mod whiskers;

pub use chart::{Chart, ChartSize};
pub use error::ReportError;
pub use looks::Looks;
pub use paper::PaperWidth;
pub use provenance::Provenance;
pub use report::{Report, Section};
pub use series::{Axis, Series, SeriesKind};
pub use table::{Align, Cell, Column, RowClass, Table};
