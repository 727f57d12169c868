//! Who copies packets: channels over movers.

mod channel;
mod engine;
mod mover;

pub use channel::{Channel, Channels};
pub(crate) use channel::{Finished, Keep};
pub use engine::{Copy, CopyEngine, Done};
pub use mover::{CpuCopier, VirtualCopier};
