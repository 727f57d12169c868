//! Machines to test on, memory to work on, and applications that keep a mover busy.

pub(crate) mod busy;
pub(crate) mod ground;
pub(crate) mod machine;
pub(crate) mod once;

use dray::Operation;
use dray_spec::Descriptor;

/// The operation of a raw descriptor.
pub(crate) fn operation(descriptor: Descriptor) -> Operation {
    Operation::try_from(descriptor).expect("an operation")
}
