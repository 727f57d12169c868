//! Offload memory operations to a data mover, and say who executed them.
//!
//! [`Mover`] is the one interface: poll-mode, non-blocking, without allocation. Applications are
//! written once against it, as [`Application`]s whose steps a driver calls: a thread in real time
//! ([`drive`]), the event queue in modelled time (crate `dray-model`). Behind it are [`CpuMover`]
//! (the calling core), `hw::HwMover` (a device of this machine; feature `hw`) and
//! `virt::VirtualMover` (the virtual device in real time; feature `virtual`). Each completion names its [`Executor`]; nothing falls back silently.

mod capabilities;
mod channel;
pub mod channels;
mod checked;
mod cpu;
mod drive;
mod home;
#[cfg(feature = "hw")]
pub mod hw;
mod idle;
mod mover;
mod operation;
mod outcome;
pub mod pages;
mod parts;
mod populate;
#[cfg(any(feature = "virtual", feature = "hw"))]
mod queue;
mod result;
#[cfg(any(feature = "virtual", feature = "hw"))]
mod slots;
mod stalled_faults;
pub mod task;
mod timestamp;
#[cfg(feature = "virtual")]
pub mod virt;
mod wait;

pub use capabilities::Capabilities;
pub use channel::{
    Buffer, Buffers, Channel, ChannelBatch, ChannelError, Completed, NotSubmitted, PageBuffer,
    Rejected, Request,
};
pub use checked::Checked;
pub use cpu::CpuMover;
pub use dray_placement::Reason;
pub use drive::{Application, Next, drive};
pub use home::Home;
#[doc(hidden)]
pub use home::wiped_on_fork;
pub use mover::{BatchError, Completion, Executor, Full, Mover, Progress, Ticket};
pub use operation::{NotAnOperation, Operation};
pub use outcome::{Outcome, QueueLost};
pub use result::{Failure, Output};
pub use timestamp::Timestamp;
pub use wait::{WaitError, WaitPolicy, wait};
