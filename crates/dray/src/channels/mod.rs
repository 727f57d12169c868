//! Several queues and devices as one: large operations striped, small ones gathered, and a choice
//! between core and device that every outcome names.

mod cost;
mod dispatch;
mod engine;
mod error;
mod mover;
mod options;
mod outcome;
mod parts_table;
mod reap;
mod requirements;

pub use cost::{CostModel, Learned};
pub use engine::Channels;
pub use error::ChannelsError;
pub use options::{
    ChannelsOptions, Choice, FullQueuePolicy, Member, PageFaultPolicy, Require, local_node,
};
pub use outcome::{CoreReason, Outcome};
