//! Page migration between memory tiers, from user space, on a stock kernel (Linux 6.8 or later).
//!
//! [`Engine`] moves the page frames under registered private anonymous memory: the page goes out by
//! `UFFDIO_MOVE`, a [`PageCopier`] copies it to a frame of the other tier, and that frame goes in. A
//! thread that touches the page meanwhile waits. Addresses, mappings and fork semantics stay.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

pub mod adopt;
pub mod back_end;
#[cfg(feature = "command")]
pub mod bench;
pub mod copier;
mod error;
#[cfg(feature = "command")]
pub mod kernel;
pub mod knobs;
#[cfg(feature = "command")]
pub mod launch;
pub mod manager;
pub mod mechanism;
#[cfg(feature = "modelled")]
pub mod modelled;
#[cfg(feature = "command")]
pub mod nodes;
pub mod policy;
#[cfg(feature = "command")]
pub mod prepare;
pub mod session;
pub mod size;
#[cfg(feature = "command")]
pub mod stats;
pub mod sys;
pub mod tracking;
#[cfg(feature = "command")]
mod untiered;
#[cfg(feature = "command")]
pub mod watch;

pub use back_end::BackEnd;
pub use copier::PageCopier;
pub use error::TierError;
pub use manager::{Manager, Memory};
pub use mechanism::{Config, Engine, Order, Outcome, Piece, Release, Report, Tier};
pub use session::Session;
