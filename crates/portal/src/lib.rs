//! The preload library of `dray run`: portals of the virtual device in unmodified programs.
//!
//! A program maps a work queue's node and writes descriptors to it by MOVDIR64B or ENQCMD. Here the
//! mapping is a page that nothing may access: the first write traps ([`trap`]), is carried out
//! ([`Submit`]), and the instruction is patched to a jump, so that the next one costs no trap. On
//! processors without them UMONITOR, UMWAIT and TPAUSE are carried out as well.
//!
//! The library `dray_portal` leaves the program around it alone; with the feature `preload` it
//! exports the functions that it interposes, and is to be loaded by `LD_PRELOAD`.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

mod chain;
mod checker;
mod connect;
mod context;
pub mod decode;
mod emulate;
mod give_way;
mod guarded;
pub mod hook;
pub mod mapping;
mod moment;
mod next;
pub mod node;
#[cfg(feature = "preload")]
mod own;
mod patch;
mod place;
mod plain;
mod process;
mod quiet;
mod redirect;
mod registers;
mod remote;
mod scan;
mod scratch;
mod segment;
mod site;
#[cfg(feature = "preload")]
mod start;
mod stub;
mod submit;
pub mod supervised;
mod syscall;
mod table;
pub mod trap;
pub mod tsan;
mod wait;

pub use plain::access_portal;
pub use registers::{Registers, ZF};
pub use submit::{Caller, Portal, Submit, Words};
