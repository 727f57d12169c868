//! Movers of this process.

mod aborts;
mod channel;
mod machine;
mod pages;
