//! Every figure of the published DSA characterisation, and how far the model is from what others
//! measured.

mod accuracy;
mod advice;
mod break_even;
mod calibrate;
mod catalog;
mod ceiling;
mod check;
mod concurrent;
mod counted;
mod coverage;
mod device;
mod error;
#[cfg(test)]
mod every_value;
mod evidence;
mod exercise;
mod export;
mod fault;
mod findings;
mod guess;
mod hint;
mod hues;
mod interval;
mod known;
mod label;
mod list;
mod measured;
mod mechanism;
mod metric;
mod migration;
mod model;
mod output;
mod overlap;
mod page;
mod phase;
mod point_counts;
mod published;
mod published_unit;
mod recover;
mod refused;
mod render;
mod request;
mod run;
mod sensitivity;
mod setup;
mod span;
mod task;
mod tenants;
mod tiers;
mod used;
mod vhost;
mod vocabulary;
mod workload;

pub use accuracy::{check_csv, check_json, error_unit};
pub use advice::{Advice, Guesses, RangeEffect, Turn};
pub use break_even::{BreakEven, Comparison, Verdict};
pub use calibrate::{Influence, LeftOut, fit, influences, leave_out};
pub use catalog::{Protocol, Selection, experiments, select};
pub use check::{CheckedPoint, CheckedTable, check, reference_tables};
pub use coverage::{Coverage, ResultClass, coverage, interval_90};
pub use device::{
    DeviceRequest, MeasuredDevice, NotMeasured, QueuePoint, configured_queue, measure_points,
    queue_points,
};
pub use dray_experiment::{Figure, Progress};
pub use dray_workload::Op;
pub use error::FiguresError;
pub use evidence::{Evidence, LeftOutError};
pub use exercise::measurement;
pub use export::{header, with_guesses};
pub use guess::GuessIndex;
pub use interval::Interval;
pub use known::KnownRuns;
pub use list::{Layout, List};
pub use measured::{Machine, MeasuredCore, measured_core};
pub use mechanism::missing_mechanism;
pub use metric::{Metric, Metrics};
pub use model::Model;
pub use recover::{
    Observation, PARAMETER_POINTS, Recovered, RecoveredParameter, RecoveredSum, recover,
};
pub use refused::RefusedPoints;
pub use request::{GENERATOR, Request, Summary};
pub use run::{accuracy, run};
pub use span::Ends;
pub use task::Backend;
pub use tenants::{Neighbour, Sharing, Tenants};
pub use used::Used;
pub use vocabulary::VOCABULARY;
pub use workload::{What, Workload};
