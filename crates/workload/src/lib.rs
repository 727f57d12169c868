//! What figures, bench, micros and advise share: operations and their buffers, closed loops and
//! bursts over any mover, how long they are measured, and placement and timing on this machine.
//!
//! A [`ClosedLoop`] is written once against [`dray::Mover`], as resumable steps: it runs on the
//! modelled device, on the modelled core and on threads.

mod buffers;
mod burst;
mod closed_loop;
mod core_rounds;
mod device_loop;
mod device_threads;
mod gauge;
mod host;
mod in_turn;
mod op;
mod operations;
mod portal_bursts;
mod shape;
mod time;
mod window;

pub use buffers::{Buffers, PATTERN, Ring};
pub use burst::Burst;
pub use closed_loop::{ClosedLoop, Exec, Measured, Plan};
pub use core_rounds::CoreRounds;
pub use device_loop::{DeviceLoop, Rounds};
pub use device_threads::{LoopOnDevice, MeasuredLoop, run_on_devices};
pub use gauge::Gauge;
pub use host::{
    Arena, CAN_PLACE, CacheLevel, Location, Operand, Pages, Percentiles, Placement, Routine,
    Software, available_cpus, cache_bytes, caches, clock_cost, cpu_list, cpuinfo, memory_nodes,
    pin, prepare, text, thread_time,
};
pub use op::Op;
pub use operations::{FlagChange, LargerEach, Operations};
pub use portal_bursts::{MeasuredBursts, PortalBursts};
pub use shape::{Shape, pattern};
pub use window::{Together, common_window};
