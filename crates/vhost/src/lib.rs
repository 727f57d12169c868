//! A vhost-user network back end whose packet copies a data mover makes.
//!
//! Virtual machines (QEMU's `vhost-user` netdev) and containers (DPDK's `net_virtio_user`) connect
//! through a socket and share their memory; packets move between their rings and this process's
//! buffers. Who copies is the caller's choice, for each queue:
//!
//! - the calling core, within the call: [`Queue::enqueue`] and [`Queue::dequeue`];
//! - a data mover, behind a [`copy::Channel`]: [`Queue::enqueue_submit`], [`Queue::enqueue_poll`]
//!   and [`Queue::try_dequeue`]. A burst is one submission. Copies end in any order, packets leave
//!   in ring order. Any number of queues share any number of channels.
//!
//! From the bottom up:
//!
//! - [`affinity`]: cores that threads run on;
//! - [`protocol`]: messages and what a session has agreed on, without I/O;
//! - [`memory`]: the front end's regions: mapped, translated, guarded against truncated files;
//! - [`ring`]: split and packed virtqueues (virtio 1.3, 2.7 and 2.8);
//! - [`net`]: packets, virtio-net headers, checksums, segmentation;
//! - [`copy`]: channels over movers;
//! - [`queue`]: packets between ring and buffers, and the reorder array between them;
//! - [`backend`]: the device of one front end ([`Backend`]) and its socket
//!   ([`backend::Endpoint`]);
//! - [`port`] and [`forward`]: the switch of `dray vhost`.
//!
//! A front end is not trusted. Whatever it writes to its memory or its socket, this process reads
//! and writes nothing outside the regions that it has shared, and goes on serving the others.
//!
//! `examples/echo.rs` is a whole back end in a few dozen lines.

pub mod affinity;
pub mod backend;
pub mod copy;
mod error;
pub mod forward;
pub mod memory;
pub mod net;
mod notify;
pub mod port;
pub mod protocol;
pub mod queue;
pub mod ring;

pub use backend::Backend;
pub use error::VhostError;
pub use queue::Queue;
