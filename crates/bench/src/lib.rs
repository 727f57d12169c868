//! Benchmarks under the names that users of DML's benchmark framework and of dsa_perf_micros know.

mod buffers;
mod case;
mod catalog;
pub mod compare;
mod console;
mod context;
mod csv;
mod error;
mod gauge;
mod json;
pub mod micros;
mod modelled;
mod number;
pub mod real;
mod rounds;
mod row;
mod select;
mod shape;
mod timing;

pub use case::{Api, Case, Exec, Location, OPS, Op, Output, Path, Timer, parse_block_size};
pub use catalog::Axes;
pub use console::{Layout, TimeUnit};
pub use context::Context;
pub use csv::write as write_csv;
pub use error::BenchError;
pub use gauge::Gauge;
pub use json::write as write_json;
pub use modelled::{MinTime, Modelled};
pub use rounds::FlagChange;
pub use row::{Kind, Position, Row, failed, positions, rows};
pub use select::select;
pub use timing::{Counter, Timing};
