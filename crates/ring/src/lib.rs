//! What the programs that submit descriptors and the device's process share.
//!
//! A [`SharedRegion`] is one block of memory: a [`Doorbell`], and for each work queue a [`Ring`] that
//! many threads and processes write and one [`Reader`] reads. The ring answers as the portal of the
//! queue does (accepted, retry, lost), from what it holds alone. Another process maps the region
//! through an [`Attachment`] and writes to [`RemotePortal`]s.

mod attachment;
mod block;
mod completion_bell;
mod doorbell;
mod gate;
mod memory_calls;
mod origin;
mod reader;
mod ring;
mod ring_view;
mod shared_region;
mod sync;
mod tag;

pub use attachment::{
    AttachError, Attachment, RegionLayout, RemotePortal, SharedRegionFile, answer,
};
pub use completion_bell::CompletionBell;
pub use doorbell::Doorbell;
pub use gate::{Gate, WriteKind};
pub use memory_calls::{CALL_STACK, MemoryCall, NotedCall};
pub use origin::{Moment, Origin};
pub use reader::Reader;
pub use ring::{Offer, Ring, Words, WrongKind};
pub use shared_region::SharedRegion;
pub use sync::Futex;
pub use tag::CLIENTS;
