//! Intel DSA formats: descriptors, completion records, capabilities. Bytes and names only.
//!
//! "Spec" in this crate is the Intel Data Streaming Accelerator Architecture Specification, order
//! number 341204-006US, revision 3.0. Section and table numbers are its own. What exists in
//! architecture version 1 is cross-checked in the tests with the kernel's `linux/idxd.h`.

#![no_std]

#[cfg(test)]
extern crate std;

mod accesses;
pub mod capability;
pub mod completion;
pub mod descriptor;
pub mod dif;
pub mod fault;
pub mod flags;
pub mod opcode;
pub mod portal;
pub mod registers;
pub mod rules;
pub mod status;

pub use accesses::Accesses;
pub use capability::{EngineCap, GenCap, GroupCap, OpCap, ParseOpCapError, WqCap};
pub use completion::CompletionRecord;
pub use descriptor::{Descriptor, WindowFlags};
pub use dif::DifTags;
pub use fault::{FaultInfo, FaultOperand};
pub use flags::Flags;
pub use opcode::{Opcode, UnknownOpcode, UnknownOpcodeName};
pub use portal::{Portal, Submission, WorkQueueMode};
pub use rules::{RequiredFlags, allowed_flags, invalid_flags, required_flags, reserved_bytes};
pub use status::Status;

// The formats are little-endian and the structs are read in place.
const _: () = assert!(cfg!(target_endian = "little"));
