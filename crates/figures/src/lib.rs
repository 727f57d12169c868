//! Every figure of the published DSA characterisation, and how far the model is from what others
//! measured.

mod accuracy;
mod burst;
mod calibrate;
mod catalog;
mod check;
mod error;
mod evidence;
mod fault;
mod findings;
mod guess;
mod hint;
mod label;
mod measured;
mod mechanism;
mod metrics;
mod model;
mod near;
mod output;
mod page;
mod published;
mod render;
mod run;
mod stream;
mod task;
mod workload;

pub use accuracy::{check_csv, check_json, error_unit};
pub use calibrate::{Influence, LeftOut, fit, influences, leave_out};
pub use catalog::{Protocol, experiments, select};
pub use check::{CheckedPoint, CheckedTable, check, reference_tables};
pub use error::FiguresError;
pub use evidence::{Evidence, LeftOutError};
pub use measured::Machine;
pub use mechanism::missing_mechanism;
pub use metrics::Metrics;
pub use model::Model;
pub use output::header;
pub use run::{Figure, GENERATOR, Progress, Request, Summary, accuracy, run};
pub use task::Backend;
pub use workload::{Op, VOCABULARY, What, Workload};
