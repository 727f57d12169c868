//! The vhost-user protocol without I/O: bytes in, messages out, and what a session has agreed on.

mod decoder;
pub mod features;
mod message;
mod reply;
mod request;
mod session;
mod vring;

pub use decoder::{Decoder, Frame};
pub(crate) use message::is_file;
pub use message::{Message, VringAddress};
pub use reply::{Reply, encode};
pub use request::{Header, Request};
pub use session::{Options, Session};
pub use vring::{Notify, VringConfig};
