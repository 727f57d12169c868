//! The door through its socket: a client of our own, and one that we did not write.

mod client;
mod conformance;
mod device;
mod hostile;
mod idxd;
mod peer;
mod random;
