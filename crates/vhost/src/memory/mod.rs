//! The front end's memory: mapped, translated, and guarded against files that shrink.

mod copy;
mod guard;
mod log;
mod map;
mod mapping;
mod shared;
mod unmap;

pub(crate) use copy::{copy, read, write};
pub use log::DirtyLog;
pub(crate) use map::Hint;
pub use map::{MemoryMap, RegionInfo};
pub use mapping::Mapping;
pub use shared::faults;
pub(crate) use shared::{Shared, prefetch, prefetch_write};
