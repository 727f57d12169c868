//! Packets: buffers of this process, the virtio-net header, checksums and segmentation.

mod checksum;
mod header;
mod offload;
mod packet;
mod parse;
mod pool;
mod rarp;

pub use header::{HEADER_BYTES, Header};
pub use offload::{Adapted, adapt};
pub use packet::{MAX_PACKET_BYTES, Packet};
pub use pool::Pool;
pub use rarp::rarp;
