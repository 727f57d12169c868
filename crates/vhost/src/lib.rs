//! A vhost-user network back end whose packet copies a data mover makes.

mod error;
pub mod memory;
pub mod protocol;

pub use error::VhostError;
