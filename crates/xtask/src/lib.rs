//! Installing the library for C and C++.

mod install;

pub use install::{Library, install};
