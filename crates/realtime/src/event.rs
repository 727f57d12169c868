//! What a device tells besides completion records.

use dray_spec::Status;

/// Something that happened, told on the dispatcher's thread: an MSI-X message or an entry of the
/// software error register. Whoever is told must not block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A completion interrupt. The record that it belongs to can be seen.
    Interrupt {
        /// Handle of the descriptor.
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
}

/// Who is told.
pub(crate) type Listener = Box<dyn FnMut(Event) + Send>;
