//! What the device hands to its engines.

use dray_spec::Opcode;

use crate::{Rejection, WorkId};

/// Something for an engine to do. The descriptor stays where it is:
/// [`Device::descriptor`](crate::Device::descriptor).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// To read its descriptor, and to say what became of it.
    pub id: WorkId,
    /// What to do with it.
    pub kind: WorkKind,
}

/// What an engine does with a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// Carry it out, then [`Device::done`](crate::Device::done).
    Execute(Opcode),
    /// Look its address spaces up with [`Device::domains`](crate::Device::domains), carry it out with
    /// [`execute_between`](crate::execute_between), then [`Device::done`](crate::Device::done).
    ExecuteBetween(Opcode),
    /// Read `count` descriptors at `address`, or what of them can be read, then
    /// [`Device::list_fetched`](crate::Device::list_fetched) or its like.
    FetchList {
        /// 64-byte aligned address of the list.
        address: u64,
        /// Number of descriptors.
        count: u32,
    },
    /// Touch nothing; [`Device::done`](crate::Device::done) with the rejection's outcome.
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
