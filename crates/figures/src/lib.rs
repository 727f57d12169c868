//! Every figure of the published DSA characterisation, and how far the model is from what others
//! measured.

mod burst;
mod check;
mod error;
mod fault;
mod metrics;
mod model;
mod stream;
mod workload;

pub use check::{CheckedPoint, CheckedTable, check, reference_tables};
pub use error::FiguresError;
pub use metrics::Metrics;
pub use model::Model;
pub use workload::{Op, VOCABULARY, What, Workload};
