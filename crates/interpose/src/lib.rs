//! What dray's preload libraries share: memory of their own inside a program ([`Heap`], [`Ranges`]),
//! the start of a program that loads them ([`start`]), messages without a heap ([`Line`]), and which programs
//! cannot load them ([`program`]).

#![cfg(target_os = "linux")]

mod heap;
mod line;
mod preload_path;
pub mod program;
mod ranges;
mod start;

pub use heap::Heap;
pub use line::Line;
pub use preload_path::{for_glibc, plain};
pub use ranges::Ranges;
pub use start::{Ended, start};
