//! What a device tells besides completion records.

use dray_spec::Status;

/// Something that happened, told on the dispatcher's thread: an MSI-X message or an entry of the
/// software error register. Whoever is told must not block.
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
}

/// Who is told.
pub(crate) type Listener = Box<dyn FnMut(Event) + Send>;
