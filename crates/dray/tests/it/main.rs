//! Movers of this process.

mod aborts;
mod channel;
mod channels;
mod machine;
mod never;
mod pages;
mod policies;
mod task;
mod waiting;
