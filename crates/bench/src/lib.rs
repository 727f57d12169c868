//! Benchmarks under the names that users of DML's benchmark framework and of dsa_perf_micros know.

mod case;
mod catalog;
pub mod compare;
mod console;
mod context;
mod csv;
mod error;
mod json;
pub mod micros;
mod modelled;
mod number;
pub mod real;
mod resume;
mod row;
mod select;
mod timing;

pub use case::{Api, Case, OPS, Output, Path, Timer, parse_block_size};
pub use catalog::Axes;
pub use console::{Layout, TimeUnit};
pub use context::Context;
pub use csv::write as write_csv;
pub use dray_workload::{Exec, FlagChange, Gauge, Location, Op, memory_nodes};
pub use error::BenchError;
pub use json::write as write_json;
pub use modelled::{MinTime, Modelled};
pub use resume::{COMMAND, Finished, UNFINISHED};
pub use row::{Position, Row, RowKind, failed, positions, rows};
pub use select::select;
pub use timing::{Counter, Timing};
