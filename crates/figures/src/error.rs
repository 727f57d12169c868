//! What can go wrong with figures.

use std::path::PathBuf;

use dray_device::ConfigError;
use dray_experiment::{FileError, ResultError, StoreError, SweepError, VocabularyError};
use dray_idxd::ProfileError;
use dray_model::Stalled;
use dray_output::OutputError;
use dray_platform::PlatformError;
use dray_print::PrintError;
use dray_report::ReportError;
use thiserror::Error;

/// Anything that stops figures from being made.
#[derive(Debug, Error)]
pub enum FiguresError {
    /// A platform file.
    #[error(transparent)]
    Platform(#[from] PlatformError),
    /// A profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// An experiment file or a reference table.
    #[error(transparent)]
    File(#[from] FileError),
    /// A sweep.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// A name or value of a point.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    /// Results of an interrupted run.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A result that cannot be written down.
    #[error(transparent)]
    Result(#[from] ResultError),
    /// A file that cannot be written.
    #[error(transparent)]
    Write(#[from] OutputError),
    /// A chart or page.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A picture.
    #[error(transparent)]
    Print(#[from] PrintError),
    /// The device refuses its configuration.
    #[error("the device cannot be enabled: {0}")]
    Device(#[from] ConfigError),
    /// The modelled machine came to rest with work left.
    #[error(transparent)]
    Stalled(#[from] Stalled),
    /// The profile has no work queue to submit to.
    #[error(
        "the profile configures no work queue on its first device; use one that does, for example --config 1e1w-d"
    )]
    NoWorkQueue,
    /// A point asks for more than the work queue allows.
    #[error(
        "{what} {value} is above the work queue's limit of {limit}; raise {field} in the profile, or ask for less"
    )]
    Limit {
        /// Parameter.
        what: &'static str,
        /// Value asked for.
        value: u64,
        /// What the queue allows.
        limit: u64,
        /// Profile field that limits it.
        field: &'static str,
    },
    /// Two tenants need more than is there.
    #[error(
        "no {what} is left for a second tenant; use a profile that leaves one, for example --config 1e1w-s"
    )]
    NoSecondTenant {
        /// What is missing.
        what: &'static str,
    },
    /// The machine has no such memory.
    #[error(
        "platform {platform} has no {node} memory; set topology.{field}, or leave the point out"
    )]
    NoNode {
        /// Node asked for.
        node: &'static str,
        /// Platform file.
        platform: String,
        /// Field of the topology.
        field: &'static str,
    },
    /// Two parameters that contradict each other.
    #[error("{first} and {second} do not go together: {reason}; leave one of them out")]
    Contradiction {
        /// One, with its value.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why not.
        reason: &'static str,
    },
    /// Operations ended badly.
    #[error("{operations} operations did not succeed")]
    Failed {
        /// How many.
        operations: u64,
    },
    /// More throughput than the ports or the memory allow.
    #[error(
        "{throughput:.2} GB/s is above the {ceiling:.2} GB/s of the narrowest resource on the way; this is an error of the model"
    )]
    AboveCeiling {
        /// What came out.
        throughput: f64,
        /// What can be at most.
        ceiling: f64,
    },
    /// The trace that is part of the program cannot be read.
    #[error("the trace of migrations cannot be read")]
    Trace {
        /// What is wrong with it.
        source: Box<csv::Error>,
    },
    /// A figure that does not exist.
    #[error("there is no figure '{name}'; {hint}")]
    UnknownFigure {
        /// Name as given.
        name: String,
        /// The name that was meant, or all names.
        hint: String,
    },
    /// A sweep of a parameter that no figure uses.
    #[error("no figure uses {name}, so that there is nothing to sweep")]
    NoFigureUses {
        /// The parameter.
        name: String,
    },
    /// The run was stopped.
    #[error("stopped; what is finished is kept below {}", out.display())]
    Interrupted {
        /// Output directory.
        out: PathBuf,
    },
    /// The caller has stopped what writes no file.
    #[error("stopped")]
    Stopped,
    /// The worker threads cannot be started.
    #[error("the worker threads cannot be started; use fewer, as --jobs 1")]
    Threads {
        /// What the system said.
        source: rayon::ThreadPoolBuildError,
    },
    /// Software that this machine cannot measure.
    #[error(
        "this case cannot be measured here: a copy, fill, compare, CRC or dualcast of local memory, walked in order, can"
    )]
    NotMeasurable,
    /// A device of this machine that cannot be used.
    #[error(transparent)]
    Hardware(#[from] dray::hw::HwError),
    /// A device of this machine that cannot be configured.
    #[error(transparent)]
    Setting(#[from] dray_config::ConfigError),
    /// Measuring failed, and so did putting the device back.
    #[error("{failure}; and {device} is not as it was: {back}")]
    NotPutBack {
        /// What failed.
        failure: Box<FiguresError>,
        /// The devices that were measured on.
        device: String,
        /// Why they are not as they were.
        back: dray_config::ConfigError,
    },
    /// A device of this machine that completes nothing.
    #[error("nothing completed for ten seconds, with {operations} operations in flight")]
    NothingCompletes {
        /// Operations in flight.
        operations: u64,
    },
    /// The file with the samples.
    #[error("{} cannot be written", path.display())]
    Samples {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No memory to measure software on.
    #[error("no memory to measure on; leave --measure-cpu and --device out, or free some")]
    Memory {
        /// What the system said.
        source: std::io::Error,
    },
    /// Something about an experiment's point, with its name.
    #[error("{experiment}, point {point}: {source}")]
    Point {
        /// Experiment or table.
        experiment: String,
        /// Parameters of the point.
        point: String,
        /// What happened.
        source: Box<FiguresError>,
    },
    /// A table of a metric that its points do not give.
    #[error("reference/{table}.toml: its points give no {metric}; check kind and metric")]
    NoMetric {
        /// Table.
        table: String,
        /// Metric.
        metric: &'static str,
    },
    /// A unit or metric of a table that this program does not know.
    #[error("{table}: {field} '{value}' is unknown; {hint}")]
    Table {
        /// Table.
        table: String,
        /// Field.
        field: &'static str,
        /// Value as given.
        value: String,
        /// The word that was meant, or all of them.
        hint: String,
    },
}
