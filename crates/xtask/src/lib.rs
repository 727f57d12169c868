//! Installing the library for C and C++, packages, crates, and the recording in README.md.

pub mod abi;
mod cmake;
pub mod crates;
pub mod dist;
pub mod guide;
mod install;
mod install_paths;
mod link;
pub mod recording;
pub mod testing;

pub use install::{DML, DRAY, DTO, INTERFACE, Kind, Library, install};
pub use install_paths::InstallPaths;
pub use link::compiler;
