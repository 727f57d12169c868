//! What no mover executes, with the status that it must have.

use dray::{Capabilities, Operation};
use dray_spec::{Descriptor, Flags, Status};

use super::door::PAGE;

/// Operations on zeroed memory at `base`, 16 pages long.
pub(crate) fn operations(base: u64, capabilities: &Capabilities) -> Vec<(Operation, Status)> {
    let copy_crc = |src, dst| Operation::copy_crc(src, dst, 64, 0);
    let dualcast = |first, second, len| Operation::dualcast(base, first, second, len);
    let mut all = vec![
        (
            Operation::memmove(base, base + 8192, 0),
            Status::TRANSFER_SIZE,
        ),
        (Operation::fill(1, base, 0), Status::TRANSFER_SIZE),
        (Operation::crc(base, 0, 0), Status::TRANSFER_SIZE),
        (copy_crc(base, base + 63), Status::OVERLAP),
        (copy_crc(base + 63, base), Status::OVERLAP),
        (
            dualcast(base + PAGE, base + 2 * PAGE, 4097),
            Status::OVERLAP,
        ),
        (
            dualcast(base + 2 * PAGE, base + 3 * PAGE, 4097),
            Status::OVERLAP,
        ),
        (
            dualcast(base + PAGE, base + 2 * PAGE + 64, 64),
            Status::DUALCAST_ALIGNMENT,
        ),
        // A fence means something in a batch alone (spec 3.9).
        (
            Operation::fill(1, base, 64).with_fence(),
            Status::INVALID_FLAGS,
        ),
    ];
    let fetch = Operation::try_from(Descriptor::translation_fetch(base, PAGE as u32));
    all.extend(
        fetch
            .into_iter()
            .filter(|fetch| !capabilities.supports(fetch))
            .map(|fetch| (fetch, Status::BAD_OPCODE)),
    );
    all
}

/// What a fence in the wrong place leaves in the record.
pub(crate) fn names_the_fence(record: &dray_spec::CompletionRecord) -> bool {
    record.status() != Status::INVALID_FLAGS || record.invalid_flags().contains(Flags::FENCE)
}
