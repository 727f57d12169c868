//! Setting devices up, on a machine or on a directory that looks like one.
//!
//! A [`Tree`] is a `/sys`: the real one, a directory of the same shape, or the
//! [`Driver`](dray_idxd::driver::Driver) that decides as the kernel would. [`survey`] reads one into
//! a profile. A [`Plan`] is the list of writes that brings it to another one: each was tried on a
//! model of the machine first. [`apply`] makes them all, or none.

mod apply;
mod directory;
mod error;
mod fit;
mod list;
mod model;
mod plan;
mod render;
mod setup;
mod survey;
mod temporary;
mod tree;
mod undo;
mod wanted;

pub use apply::apply;
pub use directory::{Directory, session_state, sysfs_root};
pub use error::{ConfigError, Refused};
pub use fit::{check, findings, fit};
pub use list::{Listing, listed, saved};
pub use model::{Assumed, hardware, model};
pub use plan::{AttributeWrite, Plan};
pub use render::{refresh, render};
pub use setup::Setup;
pub use survey::survey;
pub use temporary::{TemporaryConfig, free_devices};
pub use tree::{Tree, TreeError};
pub use undo::Journal;
pub use wanted::{Change, change, load};
