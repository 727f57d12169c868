//! The preload library of `dray tier`: page migration inside unmodified programs.
//!
//! `UFFDIO_MOVE` works on the memory of the calling process alone, so the pages of a program are migrated by a process that
//! shares its memory, the agent ([`tasks`]). It must never wait for a page that is out: it uses no memory that is managed. So this
//! library has an allocator ([`dray_interpose::Heap`]) and stacks of its own. What the kernel writes when a thread of
//! the program ends stays where it is ([`threads`]), and the agent has none of the program's rights ([`rights`]).
//!
//! The library leaves the program around it alone; with the feature `preload` it exports the functions
//! that it interposes, and is to be loaded by `LD_PRELOAD`.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

#[cfg(feature = "preload")]
mod agent;
#[cfg(feature = "preload")]
mod fork;
#[cfg(feature = "preload")]
mod give_back;
#[cfg(feature = "preload")]
mod guards;
#[cfg(feature = "preload")]
mod hook;
#[cfg(feature = "preload")]
mod limits;
pub mod own;
#[cfg(feature = "preload")]
mod own_process;
pub mod rights;
pub mod stopped;
pub mod tasks;
pub mod threads;

#[cfg(feature = "preload")]
#[global_allocator]
static HEAP: dray_interpose::Heap = dray_interpose::Heap::new(&own::OWN);
