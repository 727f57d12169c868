//! Packets: buffers of this process, the virtio-net header, checksums and segmentation.

mod checksum;
mod header;
mod offload;
mod packet;
mod parse;
mod pool;
mod rarp;

pub(crate) use header::LEGACY_HEADER_BYTES;
pub use header::{HEADER_BYTES, Header};
pub use offload::Adapter;
pub(crate) use offload::{is_taken, is_valid};
pub use packet::{MAX_PACKET_BYTES, Metadata, Packet};
pub use pool::Pool;
pub use rarp::rarp;

/// The internet checksum of bytes (RFC 1071).
pub fn internet_checksum(bytes: &[u8]) -> u16 {
    checksum::finish(checksum::sum(bytes))
}
