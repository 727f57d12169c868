//! The virtual DSA: a state machine without I/O, threads or clock.

mod config;

pub use config::{Capabilities, DeviceConfig, GroupConfig, WorkQueueConfig, WorkQueueMode};
