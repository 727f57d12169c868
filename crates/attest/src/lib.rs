//! Whether a DSA does what the specification says, found out by its owner: the rows of the table of rules that a work
//! queue can be put to, cases of order, times, and platform parameters fitted to them. One file of it can be set beside
//! that of another machine.

mod compare;
mod error;
mod ground;
mod litmus;
mod machine;
mod points;
mod report;
mod rows;
mod target;
mod wait;

pub use compare::{AttestComparison, Difference, PointDifference};
pub use dray_realtime::Deviation;
pub use error::AttestError;
pub use litmus::Litmus;
pub use machine::{Machine, Queue};
pub use points::{CalibratedParameter, Calibration, PointResult, Points};
pub use report::{Attest, MAX_BYTES, Plan, Source, Step, attest_hardware, attest_virtual};
pub use rows::{LeftOut, Row};
pub use target::Target;
