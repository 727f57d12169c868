//! Offload memory operations to a data mover, and say who executed them.
//!
//! | task | what serves |
//! |---|---|
//! | buffers by value, one thread, safe | [`Channel`] |
//! | buffers by value, any threads, futures on any runtime | [`task::channel`] |
//! | memory that you vouch for, any threads, handles in your storage, waits that sleep, a descriptor for epoll | [`task::share`] |
//! | lists of segments on both sides | [`task::Work::on`] |
//! | memory that you vouch for, one thread, least cost | [`Mover`] |
//! | the core executes | [`CpuMover`] |
//! | one work queue of this machine | `hw::open`, which gives an `hw::HwMover` |
//! | all work queues of this machine, stripes, the core where there is none | `hw::open_all` with [`channels::Channels`] |
//! | a device without hardware, for tests | `virt::VirtualDevice` |
//! | lists of 4 KiB and 2 MiB pages | [`pages::copy_page_lists`] |
//!
//! ```
//! use dray::channels::{Channels, ChannelsOptions};
//! use dray::{Channel, Output, WaitPolicy, hw};
//!
//! let queues = hw::open_all(hw::HwOptions::default()).unwrap_or_default();
//! let mut channel = Channel::new(Channels::new(queues, ChannelsOptions::default())?);
//! channel.copy(vec![7; 4096], vec![0; 4096]).map_err(|refused| refused.error)?;
//! let done = channel.wait(WaitPolicy::Yield, None)?;
//! assert_eq!((done.result, done.buffers.source), (Ok(Output::Done), done.buffers.destination));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
