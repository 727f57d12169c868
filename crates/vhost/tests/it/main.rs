//! The back end beside a front end of our own, in one process.

#![allow(missing_docs, unreachable_pub)]

mod attacks;
mod causes;
mod churn;
mod control;
mod driver;
mod engines;
mod guest;
mod hostile;
mod limits;
mod log;
mod memory;
mod paths;
mod socket;
mod threads;
mod xdp;
