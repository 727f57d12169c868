//! The back end that is the kernel: move_pages(2), from outside of the programs.
//!
//! Nothing is loaded into a program, and none of its pages is ever out: what ends this process ends no other.

mod call;
mod copies;
mod idle;
mod members;
mod pages;
mod process;
mod remote;
mod shared;
mod tracking;

pub use members::Members;
pub use pages::{KernelBackEnd, Moved};
pub use remote::{Remote, Rights, check};

use crate::TierError;

fn failed(pid: i32) -> impl FnOnce(std::io::Error) -> TierError {
    move |source| TierError::Process { pid, source }
}
