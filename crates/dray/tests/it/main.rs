//! Movers of this process.

mod aborts;
mod machine;
mod pages;
