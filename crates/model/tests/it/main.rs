//! Movers side by side: this core, the virtual device, the modelled device and core.

mod common;
mod company;
mod conformance;
mod exact;
mod operations;
mod timing;
