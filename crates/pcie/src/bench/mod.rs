//! The benchmark: experiments as files, its checks, and its report.

mod check;
mod experiment;
mod fields;
mod page;
mod pcie_model;
mod run;

pub use check::{
    Check, CheckRow, PublishedFlow, TABLE_2, Tolerance, Verdict, check_all, parameters,
};
pub use dray_pcie_sim::{Completion, Device, DeviceMemory, Handle, Session};
pub use experiment::{FabricExperiment, built_in_experiments, built_in_text};
pub use page::{FabricReport, ReportPart, report};
pub use run::{FabricOutcome, run_experiment, trace_experiment};
