//! The installed library: programs in C and C++ are compiled with the flags from pkg-config, and run.

mod abi;
mod bad_input;
mod cmake;
mod examples;
mod header;
mod install;
mod leaks;
mod opened;
mod options;
mod random_calls;
mod readme;
mod toolchain;
