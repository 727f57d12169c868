//! Jobs over a fabric, decided online: which starts when, and at which pace.

mod classes;
mod job;
mod metrics;
mod order;
mod policy;
mod run;

pub use job::Job;
pub use metrics::Metrics;
pub use policy::Policy;
pub use run::{Planned, Schedule, Segment, schedule};
