//! The virtual DSA as a PCI function over vfio-user.
//!
//! A [`Server`] waits on a unix socket for one client after the other (QEMU's `vfio-user-pci`, or any
//! other). For each it makes a [`Door`]: configuration space, BARs, MSI-X, the client's memory, and
//! behind them the same device in real time as everywhere. A door does no socket I/O: messages go in,
//! replies come out.
//!
//! Protocol: the vfio-user specification 0.9, in libvfio-user and in QEMU's documentation.

mod assembly;
mod config_space;
mod connection;
mod counts;
mod dma;
mod door;
mod error;
mod guest_memory;
mod inject;
mod interrupts;
mod pasid;
mod protocol;
mod runner;
mod server;

pub use config_space::Identity;
pub use counts::{Counts, QueueCounts};
pub use door::{Door, Options};
pub use dray_realtime::{Chaos, ChaosError, Deviation, DeviationError};
pub use error::VfioError;
pub use inject::{BadInjection, Injection};
pub use protocol::{COMMANDS, HEADER_BYTES, Header};
pub use server::{Report, Server, Stopper};
