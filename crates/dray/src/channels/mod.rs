//! Several queues and devices as one: large operations striped, small ones gathered, and a choice
//! between core and device that every outcome names.

mod cost;
mod dispatch;
mod engine;
mod error;
mod lost;
mod mover;
mod options;
mod parts_table;
mod reap;
mod requirements;
mod withdraw;

pub use crate::{Outcome, QueueLost, Reason};
pub use cost::{CostModel, Learned};
pub use engine::Channels;
pub use error::ChannelsError;
pub use lost::Excluded;
pub use options::{
    ChannelsOptions, Choice, FullQueuePolicy, LostQueuePolicy, Member, PageFaultPolicy, Require,
    local_node,
};
