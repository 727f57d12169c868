//! Unmodified DSA programs on the virtual device.
//!
//! [`run`] starts a command in namespaces of its own, where `/sys/bus/dsa`, the PCI devices,
//! `/sys/module/idxd` and `/dev/dsa` are files of this process ([`Session`] says which devices
//! there are, on which kernel). What is read and written there goes through the rules of the idxd
//! driver, onto the registers of virtual devices. Nothing outside the namespaces changes, and
//! nothing is left when they end.

#[macro_use(eprintln)]
extern crate dray_output;

mod admission;
mod advice;
mod child;
mod clients;
mod cpu;
mod descriptor_table;
mod error;
mod fault_injection;
mod filesystem;
mod iax;
mod init;
mod inodes;
mod launch;
mod machine;
mod module;
mod mounts;
mod namespace;
mod node;
mod openers;
mod panics;
mod parts;
mod pci;
mod pollers;
mod probe;
mod processes;
mod recorder;
mod redirect;
mod registers;
mod requests;
mod sanitize;
mod serial_executor;
mod service;
mod session;
mod signals;
mod sites;
mod stats;
mod supervise;
mod thread_sanitizer;
mod trace;
mod tree;
mod uevent;

pub use dray_realtime::{Chaos, Deviation, Kind, Kinds};
pub use dray_remote::Presence;
pub use error::RunError;
pub use fault_injection::{InjectedPanic, InjectedThread};
pub use launch::{Ended, Ending, run};
pub use openers::Unreached;
pub use parts::{notes, parts};
pub use probe::can_be_private;
pub use recorder::Recording;
pub use requests::RequestFile;
pub use sanitize::{Class, Finding, Findings, Sanitize, SuppressionError, Suppressions};
pub use session::{Require, Session};
pub use sites::{Frame, Site};
pub use stats::{Queue, Stats, Tally};
pub use supervise::{Supervise, can_fault_cpuid};
pub use trace::{TraceFormat, Traced, trace_format};
