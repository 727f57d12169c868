//! What is asked of a run, and all that it gave.

use std::path::PathBuf;

use dray_experiment::Figure;
use dray_idxd::Profile;
use dray_platform::PlatformFile;
use dray_print::PictureStyle;

use crate::device::{DeviceRequest, MeasuredDevice};
use crate::guess::GuessIndex;
use crate::measured::Machine;
use crate::{CheckedTable, Ends, Interval, Protocol, RefusedPoints};

/// Program and version, as it stands in every file that is written.
pub const GENERATOR: &str = concat!("dray ", env!("CARGO_PKG_VERSION"));

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Request {
    /// The machine.
    pub platform: PlatformFile,
    /// The device's configuration.
    pub profile: Profile,
    /// What to call it.
    pub profile_name: String,
    /// Figures by name; empty: all.
    pub only: Vec<String>,
    /// Parameters and the values that they get instead, in the notation of sweeps.
    pub set: Vec<(String, String)>,
    /// How the experiments are understood.
    pub protocol: Protocol,
    /// Also measure software on a core of this machine.
    pub measure_cpu: bool,
    /// Also measure a DSA of this machine, and the core beside it.
    pub device: Option<DeviceRequest>,
    /// Move payload bytes and check them, not only their time.
    pub move_bytes: bool,
    /// Also work out the 90 % interval of each modelled value.
    pub intervals: bool,
    /// How the pictures beside the report are drawn.
    pub pictures: PictureStyle,
    /// Facts about the run itself, for the head of the report: names and texts.
    pub asked: Vec<(String, String)>,
    /// Output directory.
    pub out: PathBuf,
    /// Threads; 0: one per core.
    pub jobs: usize,
}

/// All that a run gave.
#[derive(Debug)]
pub struct Summary {
    /// The figures, in their order.
    pub figures: Vec<Figure>,
    /// The guesses behind the figures.
    pub guesses: GuessIndex,
    /// The figures at the ends of the parameters' ranges, if intervals are drawn.
    pub ends: Ends,
    /// What is to be said of the break-even figure: between which sizes it lies.
    pub intervals: Vec<Interval>,
    /// The model beside the published numbers.
    pub checked: Vec<CheckedTable>,
    /// This machine, if it was measured.
    pub machine: Option<Machine>,
    /// The DSA of this machine, if one was measured.
    pub device: Option<MeasuredDevice>,
    /// Points that the profile or the platform cannot have.
    pub refused: RefusedPoints,
    /// Figures that a sweep left out, a line for each parameter.
    pub narrowed: Vec<String>,
    /// Points known from an interrupted run.
    pub resumed: usize,
    /// Files written.
    pub files: Vec<PathBuf>,
}

impl Summary {
    /// Whether a figure was run.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.figures.iter().any(|f| f.experiment.id == id)
    }
}
