//! The mechanism: which memory is managed, and how page frames under it are exchanged.

mod batch;
mod blocks;
mod children;
mod copy_phase;
mod due;
mod engine;
mod events;
mod flight;
mod frames;
mod hints;
mod knee;
mod manage;
mod outcome;
mod report;
mod state;
mod steps;
mod windows;

pub(crate) use blocks::Blocks;
pub use blocks::{BLOCK, BLOCK_PAGES, Block, block_of};
#[cfg(feature = "command")]
pub(crate) use engine::refused;
pub use engine::{Config, Engine, Opened, Order, Piece, Ranges, Release, Tier};
pub(crate) use hints::HUGE_HINTS;
pub use knee::{Knee, measure as measure_knee};
pub use manage::{Quiet, Stops};
pub use outcome::{OUTCOMES, Outcome, Outcomes};
pub use report::Report;
pub use windows::{BASE_SLOTS, HUGE_SLOTS};
