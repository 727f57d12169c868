//! Installing the library for C and C++.

mod install;
mod link;
mod place;

pub use install::{Library, install};
pub use link::compiler;
pub use place::Place;
