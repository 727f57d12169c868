//! Who copies packets: channels over movers.

mod channel;
mod engine;
mod mover;
mod open;

pub(crate) use channel::Keep;
pub use channel::{Channel, Channels};
pub use engine::{Copy, CopyEngine, Done};
pub use mover::MoverCopier;
pub use open::{open_cpu, open_hw, open_virtual};
