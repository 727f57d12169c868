//! Page faults that an operation takes without getting on, and when to stop resolving them.

use dray_placement::PAGE;
use dray_spec::{Flags, Opcode};

use crate::Operation;

/// Page faults of an operation since it last made progress.
///
/// A fault behind bytes that were completed since the last one is progress: a copy into memory that was never
/// touched takes one a page. Only faults without progress count.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StalledFaults {
    /// The page of the last one.
    page: u64,
    /// At this page, one after the other.
    at_page: u32,
    /// At any page.
    total: u32,
}

impl StalledFaults {
    /// Counts a fault at `address`. `has_progress`: bytes were completed since the last one. Whether the
    /// operation is to go on: the same page was resolved less than `most` times without progress, and all
    /// `pages` that the operation accesses together less than `most` times more than there are.
    pub(crate) fn goes_on(
        &mut self,
        address: u64,
        has_progress: bool,
        most: u32,
        pages: u32,
    ) -> bool {
        let page = address / PAGE;
        if has_progress {
            *self = StalledFaults::default();
        }
        if self.page != page {
            self.page = page;
            self.at_page = 0;
        }
        let goes_on = self.at_page < most && self.total < most.saturating_add(pages);
        if goes_on {
            self.at_page += 1;
            self.total += 1;
        }
        goes_on
    }
}

/// Base pages that an operation accesses, at most.
pub(crate) fn pages(operation: &Operation) -> u32 {
    let operands = operand_bytes(operation).into_iter();
    let operands = operands.filter(|bytes| *bytes > 0);
    // One more than its bytes fill, for an operand that begins within a page, and one for its last.
    let pages: u64 = operands.map(|bytes| bytes / PAGE + 2).sum();
    u32::try_from(pages).unwrap_or(u32::MAX)
}

/// Bytes of each operand of an operation, at most; 0 for one that it does not have.
fn operand_bytes(operation: &Operation) -> [u64; 3] {
    let d = operation.descriptor();
    let len = u64::from(d.size);
    let seed = match d.flags().contains(Flags::CRC_READ_SEED) {
        true => 8,
        false => 0,
    };
    match operation.opcode() {
        Opcode::Fill | Opcode::CacheFlush | Opcode::ComparePattern => [len, 0, 0],
        Opcode::Memmove | Opcode::Compare => [len, len, 0],
        Opcode::Dualcast => [len; 3],
        Opcode::CreateDelta => [len, len, d.max_delta_size().into()],
        Opcode::ApplyDelta => [d.delta_record_size().into(), len, 0],
        Opcode::CrcGenerate => [len, seed, 0],
        Opcode::CopyCrc => [len, len, seed],
        opcode @ (Opcode::DifCheck
        | Opcode::DifInsert
        | Opcode::DifStrip
        | Opcode::DifUpdate
        | Opcode::DixGenerate) => {
            let (read, written) = dray_spec::dif::block_bytes(opcode, d.dif_flags());
            [len, len.div_ceil(read as u64) * written as u64, 0]
        }
        _ => [0; 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_with_progress_are_not_counted() {
        let mut faults = StalledFaults::default();
        assert!((0..1000).all(|n| faults.goes_on(n * PAGE, true, 1, 1)));
        assert!((0..1000).all(|_| faults.goes_on(0, true, 1, 1)));
        assert!(!faults.goes_on(0, true, 0, 1), "none is resolved");
    }

    #[test]
    fn the_same_page_again_and_again_ends_it() {
        let mut faults = StalledFaults::default();
        let resolved = (0..9).filter(|n| faults.goes_on(PAGE + n, false, 3, 100));
        assert_eq!(resolved.count(), 3);
        // Bytes were completed meanwhile.
        assert!(faults.goes_on(PAGE, true, 3, 100));
    }

    #[test]
    fn pages_that_take_turns_end_it_too() {
        let mut faults = StalledFaults::default();
        let turns = (0..1000).filter(|n| faults.goes_on(n % 2 * PAGE, false, 3, 100));
        assert_eq!(turns.count(), 103);
    }

    #[test]
    fn all_pages_of_an_operation_can_fault_once() {
        let copy = Operation::memmove(0x10_0fff, 0x20_0001, 8192);
        // Each operand lies on three.
        assert!(pages(&copy) >= 6);
        let mut faults = StalledFaults::default();
        assert!((1..=pages(&copy).into()).all(|n| faults.goes_on(
            n * PAGE,
            false,
            1,
            pages(&copy)
        )));
        assert_eq!(pages(&Operation::noop()), 0);
    }
}
