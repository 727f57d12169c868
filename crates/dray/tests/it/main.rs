//! Movers of this process.

mod aborts;
mod channel;
mod channels;
mod gate;
mod lost;
mod machine;
mod memory;
mod never;
mod outcomes;
mod pages;
mod policies;
mod silent;
mod task;
mod waiting;
