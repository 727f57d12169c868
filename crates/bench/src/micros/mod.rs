//! Measurements as dsa_perf_micros makes them: its options, its result line.

mod core;
mod lists;
mod machine;
mod memory;
mod model;
mod options;
mod order;
mod outcome;
mod submission;

pub use core::run_core;
pub use dray_workload::cpu_list;
pub use lists::{CpuQueue, cpu_queues, operand_list};
pub use model::run;
pub use options::{Access, Micros, OPCODES, Submission, not_measured, opcode};
pub(crate) use order::operations;
pub use outcome::Outcome;
