//! A device to test, memory with holes, and somebody who runs the one on the other.

pub(crate) mod desk;
pub(crate) mod memory;
pub(crate) mod profile;
pub(crate) mod runner;
