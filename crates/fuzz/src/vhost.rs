//! A vhost-user front end that means no good: its messages, and its rings.

mod front_end;
mod messages;
mod rings;

pub use messages::vhost_messages;
pub use rings::{vhost_packed, vhost_split};
