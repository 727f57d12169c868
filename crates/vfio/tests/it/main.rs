//! The door through its socket: with a client of these tests, and with that of the crate `vfio_user`.

mod client;
mod conformance;
mod device;
mod hostile;
mod idxd;
mod peer;
mod random;
