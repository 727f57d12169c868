//! The library as it is installed: programs in C and C++ are compiled by pkg-config's word, and run.

mod bad_input;
mod examples;
mod header;
mod install;
mod opened;
mod options;
mod random_calls;
mod readme;
mod symbols;
mod toolchain;
