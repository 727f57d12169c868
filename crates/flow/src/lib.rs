//! What each flow gets on a shared fabric.
//!
//! A [`Network`] is a set of directed edges with a capacity each. A [`Flow`] takes a path of edges
//! and has a demand: the bandwidth that it reaches alone. An [`Estimator`] says what every flow gets
//! when all of them run: [`Ecr`], [`MaxMin`] or [`Ingress`]. [`schedule`] decides online which [`Job`] starts when, and
//! at which pace.
//!
//! Nothing here does I/O or reads a clock. Capacities, demands and rates are in one unit of the
//! caller's choice (bytes a second, GB/s, GiB/s).

mod compensated;
mod divide;
mod ecr;
mod error;
mod estimate;
mod filling;
mod flows;
mod incidence;
mod ingress;
mod level;
mod maxmin;
mod network;
mod port;
mod schedule;

pub use divide::DivideByN;
pub use ecr::Ecr;
pub use error::FlowError;
pub use estimate::{Estimate, Estimator, Limit};
pub use flows::{Flow, FlowId, Flows, Packets};
pub use ingress::Ingress;
pub use maxmin::MaxMin;
pub use network::{Edge, EdgeId, Network};
pub use port::{Arbiter, Queues};
pub use schedule::{Job, Metrics, Planned, Policy, Schedule, Segment, schedule};
