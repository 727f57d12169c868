//! Experiments as data: files, sweeps, points, results, resume, and reference tables.
//!
//! An [`Experiment`] is read from a TOML file and checked against a [`Vocabulary`] that the caller
//! names. It expands to [`Point`]s. A [`Run`] executes them in parallel and gives [`Outcome`]s; a
//! [`Store`] remembers what is done while it goes on. [`write_csv`] and [`write_json`] export the
//! outcomes, and a [`ReferenceTable`] holds published numbers to set beside them.
//!
//! Nothing here knows what a parameter means.
//!
//! ```
//! use dray_experiment::{Experiment, Kind, Parameter, Vocabulary};
//!
//! const VOCABULARY: Vocabulary = Vocabulary::new(&[Parameter {
//!     name: "size",
//!     kind: Kind::Bytes { min: 1, max: 1 << 31 },
//!     help: "bytes of one operation",
//! }])
//! .with_backends(&["model", "cpu"]);
//!
//! let text = r#"
//!     id = "sizes"
//!     title = "Throughput by size"
//!     published = "nothing"
//!     backends = ["model"]
//!     [sweep]
//!     size = "256..1M*4"
//! "#;
//! let experiment = Experiment::parse(text, "sizes.toml", &VOCABULARY)?;
//! assert_eq!(experiment.points().len(), 7);
//! assert_eq!(experiment.points()[1].integer("size"), Some(1024));
//! # Ok::<(), dray_experiment::FileError>(())
//! ```

mod error;
mod fields;
mod file;
mod location;
mod panel;
mod point;
mod provenance;
mod reference;
mod result;
mod run;
mod store;
mod sweep;
mod value;
mod vocabulary;

pub use error::FileError;
pub use file::{Experiment, MAX_POINTS};
pub use panel::{AxisUnit, Filter, Overlay, Panel, PanelKind};
pub use point::Point;
pub use provenance::Provenance;
pub use reference::{ReferencePoint, ReferenceTable, Target};
pub use result::{
    Header, Outcome, ResultError, SCHEMA, csv_table, read_json, write_csv, write_json,
};
pub use run::{Figure, MetricList, Progress, Run, Task, figures, thread_pool};
pub use store::{Store, StoreError};
pub use sweep::{MAX_VALUES, Sweep, SweepError};
pub use value::{SizeError, Value, format_bytes, parse_bytes};
pub use vocabulary::{BACKEND, Kind, Parameter, Vocabulary, VocabularyError};
