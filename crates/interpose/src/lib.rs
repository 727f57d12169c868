//! What dray's preload libraries share: memory of their own inside a program ([`Heap`], [`Ranges`]), and
//! the start of a program that loads them ([`start`]).

#![cfg(target_os = "linux")]

mod heap;
mod ranges;
mod start;

pub use heap::Heap;
pub use ranges::Ranges;
pub use start::{Ended, start};
