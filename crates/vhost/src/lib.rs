//! A vhost-user network back end whose packet copies a data mover makes.

pub mod backend;
pub mod copy;
mod error;
pub mod forward;
pub mod memory;
pub mod net;
pub mod port;
pub mod protocol;
pub mod queue;
pub mod ring;

pub use backend::Backend;
pub use error::VhostError;
pub use queue::Queue;
