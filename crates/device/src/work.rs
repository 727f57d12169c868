//! What the device hands to its engines.

use dray_spec::Opcode;

use crate::{Rejection, WorkId};

/// Something for an engine to do. [`Device::start`](crate::Device::start) makes it the
/// [`Task`](crate::Task) that has all that is needed for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// To report its end.
    pub id: WorkId,
    /// What to do with it.
    pub kind: WorkKind,
}

/// What an engine does with a descriptor, for runners that ask before they start it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// Execute it.
    Execute(Opcode),
    /// Read `count` descriptors at `address`, or what of them can be read.
    FetchList {
        /// 64-byte aligned address of the list.
        address: u64,
        /// Number of descriptors.
        count: u32,
    },
    /// Touch nothing: it ends with the rejection's outcome.
    Reject(Rejection),
}

/// The next member of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// May start.
    Work(Work),
    /// A fence waits for members that have started: ask again after one of them is done.
    Fenced,
    /// All have started, or the batch has ended.
    None,
}
