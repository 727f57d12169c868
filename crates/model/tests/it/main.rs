//! Movers side by side: this core, the virtual device, the modelled device and core.

mod common;
mod conformance;
mod exact;
mod operations;
mod run_ahead;
mod sharing;
mod timing;
