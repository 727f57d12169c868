//! A vhost-user device: what messages do to memory and queues, and the socket they come through.

mod apply;
mod connection;
mod device;
mod endpoint;
mod listener;

pub use connection::{Connection, Received};
pub use device::{Backend, ControlStats, Handled};
pub use endpoint::{Endpoint, Event, Role};
pub use listener::Listener;
