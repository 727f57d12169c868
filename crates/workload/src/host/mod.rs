//! Workloads on this machine: memory, placement, pinning, the clock, percentiles.

mod arena;
mod cache;
mod machine;
mod percentiles;
mod placement;
mod software;
mod timing;

pub use arena::{Arena, Pages};
pub use cache::CAN_PLACE;
pub use machine::{
    CacheLevel, available_cpus, cache_bytes, caches, cpu_list, cpuinfo, memory_nodes, pin, text,
};
pub use percentiles::Percentiles;
pub use placement::{Location, Operand, Placement};
pub use software::{Routine, Software, prepare};
pub use timing::{clock_cost, thread_time};
