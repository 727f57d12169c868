//! Operations on an inaccessible page: the fault is reported, and nothing else is written.

use dray::{Capabilities, Operation};
use dray_spec::{CompletionRecord, Status};

use super::door::PAGE;

/// Pages of the memory that is there.
pub(crate) const PAGES: u64 = 8;

/// Operations on memory of [`PAGES`] pages at `base` and on the page at `forbidden`, each with the bytes
/// that it may have done before its fault.
pub(crate) fn operations(
    base: u64,
    forbidden: u64,
    capabilities: &Capabilities,
) -> Vec<(Operation, u32)> {
    let page = |n: u64| base + n * PAGE;
    let len = PAGE as u32;
    let mut all = vec![
        (Operation::memmove(forbidden, page(1), len), 0),
        (Operation::memmove(page(0), forbidden, len), 0),
        (Operation::fill(1, forbidden, len), 0),
        (Operation::compare(page(0), forbidden, len), 0),
        (Operation::compare_pattern(forbidden, 0, len), 0),
        (Operation::crc(forbidden, len, 0), 0),
        (Operation::copy_crc(forbidden, page(2), len, 0), 0),
        (Operation::copy_crc(page(0), forbidden, len, 0), 0),
        (Operation::dualcast(forbidden, page(3), page(4), len), 0),
        (Operation::memmove(forbidden + 100, page(5) + 7, 64), 0),
    ];
    // The page behind the memory is the forbidden one: what lies before it may have been done.
    if forbidden == page(PAGES) {
        all.push((
            Operation::memmove(page(PAGES - 1), page(6) - 100, 2 * len - 100),
            len,
        ));
        all.push((Operation::crc(page(PAGES - 1), 2 * len, 0), len));
    }
    all.retain(|(operation, _)| capabilities.supports(operation));
    all
}

/// What is wrong with the record of such an operation, if anything is.
pub(crate) fn wrong(record: &CompletionRecord, forbidden: u64, most: u32) -> Option<&'static str> {
    if record.status().code() != Status::PAGE_FAULT.code() {
        return Some("no page fault");
    }
    if record.fault_address & !(PAGE - 1) != forbidden {
        return Some("another page");
    }
    (record.bytes_completed > most).then_some("more bytes than there are before the page")
}
