//! Memory of other processes, for a virtual DSA that many share.
//!
//! A descriptor's PASID says in whose address space it runs. [`Spaces`] knows which process that is,
//! and [`RemoteMemory`] lets the engines of a [`RealtimeDevice`](dray_realtime::RealtimeDevice) work
//! on its memory with `process_vm_readv` and `process_vm_writev`. What a device would find with its
//! translation is found in `/proc/PID/maps` (permissions) and `/proc/PID/pagemap` (presence).
//!
//! Nothing of ours runs in the process, and nothing that it does can harm the device: it may unmap,
//! protect and exit at any moment, which is a page fault at worst.

mod error;
mod look;
mod maps;
mod memory;
mod pagemap;
mod process;
mod query;
mod spaces;
mod threads;
mod transfer;
mod windows;

pub use error::SpaceError;
pub use look::PageState;
pub use memory::{Presence, RemoteMemory};
pub use spaces::Spaces;
pub use threads::living_thread;
