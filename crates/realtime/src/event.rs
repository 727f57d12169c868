//! What a device reports besides completion records.

use dray_device::WorkId;
use dray_ring::Origin;
use dray_spec::{CompletionRecord, Descriptor, Status};

/// Something that happened, reported on the dispatcher's thread: an MSI-X message or an entry of the
/// software error register. The listener must not block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// An interrupt of the MSI-X table. The record that it belongs to can be seen.
    Interrupt {
        /// Entry of the table: for a completion, the handle of the descriptor.
        handle: u16,
    },
    /// An error that no completion record carries (spec 5.8.1).
    SoftwareError {
        /// Status code.
        status: Status,
        /// Work queue of the descriptor, where it is known.
        wq: Option<u16>,
        /// Completion address or fault address, if the status has one.
        address: u64,
    },
    /// An interrupt of the interrupt message storage (spec 9.2.28).
    Message {
        /// Where the message goes.
        address: u64,
        /// What it says.
        data: u32,
    },
    /// A descriptor that an abort has given up has ended (spec 3.15): the device does not touch what
    /// it names any more, and writes no record.
    Abandoned {
        /// Work queue of the descriptor.
        wq: u16,
        /// Its completion address, if it has one.
        completion: Option<u64>,
        /// It is a member of a batch.
        member: bool,
    },
    /// A descriptor has left its ring and waits in the device's queue. This and the two that follow
    /// are reported where [`Options::steps`](crate::Options::steps) asks for them.
    Accepted {
        /// What it is called until it has ended.
        id: WorkId,
        /// Work queue.
        wq: u16,
        /// In whose name it runs; 0 where PASIDs are not in use.
        pasid: u32,
        /// It.
        descriptor: Descriptor,
        /// Where in a program it was submitted, if [`Options::hold`](crate::Options::hold) asks for that.
        origin: Option<Origin>,
    },
    /// An engine has it. A drain that only waits never reaches one.
    Started {
        /// What it is called: a new name for a member of a batch.
        id: WorkId,
        /// The engine.
        engine: u16,
        /// Its batch, for a member.
        batch: Option<WorkId>,
        /// It.
        descriptor: Descriptor,
    },
    /// An adversary has had its data written, all of it, and its record comes later.
    Executed {
        /// What it is called until it has ended.
        id: WorkId,
    },
    /// All that was there has been accepted, and none of it starts before the listener returns, which may block here. Reported
    /// where [`Options::hold`](crate::Options::hold) asks for it.
    Held,
    /// It has ended. Reported before its record can be seen.
    Ended {
        /// What it was called.
        id: WorkId,
        /// What its record says, whether it is written or not; `None` if it was given up.
        record: Option<CompletionRecord>,
    },
}

/// The listener.
pub(crate) type Listener = Box<dyn FnMut(Event) + Send>;
