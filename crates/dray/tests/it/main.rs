//! Movers of this process.

mod aborts;
mod channel;
mod channels;
mod machine;
mod pages;
mod task;
