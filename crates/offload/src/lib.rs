//! Transparent offload: `memcpy`, `memmove`, `memset` and `memcmp` of unmodified programs, by a data
//! mover.
//!
//! The shared object is loaded by `LD_PRELOAD`. A call below the threshold is a compare and a jump
//! (`entry`); the others go through a lane (`lanes`), which is a mover that one thread has for
//! one call. Nothing on that way takes a lock, allocates or uses thread-local memory: calls come from
//! signal handlers, from allocators, before `main` and after `fork`.
//!
//! Without the feature `preload` this library leaves the program around it alone.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

#[cfg(any(feature = "preload", test))]
mod adapt;
pub mod calls;
#[cfg(feature = "preload")]
mod comparison;
#[cfg(feature = "preload")]
mod deadline;
#[cfg(feature = "preload")]
mod entry;
#[cfg(feature = "preload")]
mod errno;
#[cfg(feature = "preload")]
mod execute;
#[cfg(feature = "preload")]
mod heap;
#[cfg(feature = "preload")]
mod init;
#[cfg(feature = "preload")]
mod lanes;
pub mod launch;
#[cfg(feature = "preload")]
mod live;
#[cfg(feature = "preload")]
mod namespaces;
#[cfg(feature = "preload")]
mod next;
pub mod queues;
#[cfg(feature = "preload")]
mod record;
#[cfg(feature = "preload")]
mod recorder;
#[cfg(feature = "preload")]
mod runtime;
pub mod settings;
#[cfg(any(feature = "preload", test))]
mod site;
pub mod stats;
pub mod survey;
pub mod table;
#[cfg(feature = "preload")]
mod transfer;
#[cfg(feature = "preload")]
mod waiting;
#[cfg(feature = "preload")]
mod work;

#[cfg(feature = "preload")]
#[global_allocator]
static HEAP: heap::Heap = heap::Heap;
