//! Installing the library for C and C++.

mod install;
mod install_paths;
mod link;

pub use install::{Library, install};
pub use install_paths::InstallPaths;
pub use link::compiler;
