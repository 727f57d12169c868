//! Unmodified DSA programs on the virtual device.
//!
//! [`run`] starts a command in namespaces of its own, where `/sys/bus/dsa`, the PCI devices,
//! `/sys/module/idxd` and `/dev/dsa` are files of this process ([`Session`] says which devices
//! there are, on which kernel). What is read and written there goes through the rules of the idxd
//! driver, onto the registers of virtual devices. Nothing outside the namespaces changes, and
//! nothing is left when they end.

mod child;
mod clients;
mod desk;
mod error;
mod filesystem;
mod iax;
mod init;
mod inodes;
mod launch;
mod machine;
mod mounts;
mod namespace;
mod node;
mod parts;
mod pci;
mod processes;
mod service;
mod session;
mod signals;
mod supervise;
mod tree;

pub use dray_remote::Presence;
pub use error::RunError;
pub use launch::{Ending, run};
pub use parts::parts;
pub use session::{Require, Session};
pub use supervise::Supervise;
