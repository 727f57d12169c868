//! What became of each entry of a page list, and who has copied how much.

use super::{PageCopy, PageCounts, PageListError};
use crate::{Executor, Reason};

/// Bytes of a large page.
const LARGE_PAGE: u64 = 2 << 20;

/// Sizes of entries that are counted apart.
///
/// ```
/// use dray::CpuMover;
/// use dray::pages::{PageCopy, PageListOptions, PageSize, copy_page_lists_with_report};
///
/// let (source, mut target) = (vec![7_u8; 2 << 20], vec![0_u8; 2 << 20]);
/// let list = [PageCopy {
///     source: source.as_ptr().expose_provenance() as u64,
///     destination: target.as_mut_ptr().expose_provenance() as u64,
///     bytes: 2 << 20,
/// }];
/// let none: &mut [CpuMover] = &mut [];
/// // SAFETY: both buffers are this function's own.
/// let report = unsafe { copy_page_lists_with_report(none, &list, &PageListOptions::default()) }?;
/// assert_eq!(report.statistics[0].size, PageSize::Large);
/// # Ok::<(), dray::pages::PageListError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PageSize {
    /// Below 2 MiB: pages of 4 KiB, and runs of them.
    Base,
    /// 2 MiB or more.
    Large,
}

/// Bytes of one size that one executor copied for one reason.
///
/// ```
/// use dray::CpuMover;
/// use dray::pages::{PageCopy, PageListOptions, PageStatistic, copy_page_lists_with_report};
///
/// let (source, mut target) = (vec![7_u8; 4096], vec![0_u8; 4096]);
/// let list = [PageCopy {
///     source: source.as_ptr().expose_provenance() as u64,
///     destination: target.as_mut_ptr().expose_provenance() as u64,
///     bytes: 4096,
/// }];
/// let none: &mut [CpuMover] = &mut [];
/// // SAFETY: both buffers are this function's own.
/// let report = unsafe { copy_page_lists_with_report(none, &list, &PageListOptions::default()) }?;
/// let PageStatistic { entries, bytes, .. } = report.statistics[0];
/// assert_eq!((entries, bytes), (1, 4096));
/// # Ok::<(), dray::pages::PageListError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageStatistic {
    /// Size of the entries.
    pub size: PageSize,
    /// Who copied.
    pub executor: Executor,
    /// Why the core did; `None`: a device did.
    pub reason: Option<Reason>,
    /// Entries of which it has copied any byte: one that was split counts in several rows.
    pub entries: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What became of an entry.
///
/// ```
/// use dray::CpuMover;
/// use dray::pages::{PageCopy, PageListOptions, PageState, copy_page_lists_with_report};
///
/// let (source, mut target) = (vec![7_u8; 4096], vec![0_u8; 4096]);
/// let list = [PageCopy {
///     source: source.as_ptr().expose_provenance() as u64,
///     destination: target.as_mut_ptr().expose_provenance() as u64,
///     bytes: 4096,
/// }];
/// let none: &mut [CpuMover] = &mut [];
/// // SAFETY: both buffers are this function's own.
/// let report = unsafe { copy_page_lists_with_report(none, &list, &PageListOptions::default()) }?;
/// assert_eq!(report.states, [PageState::Copied]);
/// # Ok::<(), dray::pages::PageListError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageState {
    /// It is copied.
    Copied,
    /// Some of it is not copied.
    NotCopied {
        /// Bytes that are not copied.
        bytes: u64,
        /// The first address that cannot be accessed, and whether it was to be written, if that is why.
        fault: Option<(u64, bool)>,
    },
}

/// How a page list was copied.
///
/// ```
/// use dray::pages::{PageCopy, PageListOptions, PageState, copy_page_lists_with_report};
/// use dray::{CpuMover, Reason};
///
/// let (source, mut target) = (vec![7_u8; 4096], vec![0_u8; 4096]);
/// let list = [PageCopy {
///     source: source.as_ptr().expose_provenance() as u64,
///     destination: target.as_mut_ptr().expose_provenance() as u64,
///     bytes: 4096,
/// }];
/// let none: &mut [CpuMover] = &mut [];
/// // SAFETY: both buffers are this function's own.
/// let report = unsafe { copy_page_lists_with_report(none, &list, &PageListOptions::default()) }?;
/// assert_eq!(report.states, [PageState::Copied]);
/// assert_eq!(report.statistics[0].reason, Some(Reason::NoDevice));
/// assert_eq!((report.statistics[0].bytes, report.error), (4096, None));
/// # Ok::<(), dray::pages::PageListError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageListReport {
    /// Copies and bytes, by who has copied them.
    pub counts: PageCounts,
    /// By size, executor and reason; only what there was.
    pub statistics: Vec<PageStatistic>,
    /// Of each entry, in the order of the list.
    pub states: Vec<PageState>,
    /// Why not all is copied, if so.
    pub error: Option<PageListError>,
}

/// Bytes that were not copied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failed {
    pub(super) destination: u64,
    pub(super) bytes: u64,
    /// An address that cannot be accessed, and whether it was to be written.
    pub(super) fault: Option<(u64, bool)>,
}

/// Who has copied bytes, and why.
pub(super) type By = (Executor, Option<Reason>);

/// Bytes that were copied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Executed {
    pub(super) destination: u64,
    pub(super) bytes: u64,
    pub(super) by: By,
}

/// Entries by destination: those of a list do not overlap.
pub(super) struct Index<'a> {
    entries: &'a [PageCopy],
    /// Numbers of the entries.
    order: Vec<usize>,
}

impl<'a> Index<'a> {
    pub(super) fn new(entries: &'a [PageCopy]) -> Index<'a> {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|n| entries[*n].destination);
        Index { entries, order }
    }

    /// The entries that some bytes at `start` belong to, and how many of them to each.
    fn shares(&self, start: u64, bytes: u64) -> impl Iterator<Item = (usize, u64)> {
        let end = start + bytes;
        let range = |n: usize| {
            let entry = &self.entries[n];
            entry.destination..entry.destination + entry.bytes
        };
        let first = self.order.partition_point(|n| range(*n).end <= start);
        let order = self.order[first..].iter().copied();
        order.map_while(move |n| {
            let range = range(n);
            // Of entries that overlap each other, which breaks the caller's promise, some end before `start`.
            let bytes = end.min(range.end).saturating_sub(start.max(range.start));
            (range.start < end).then_some((n, bytes))
        })
    }

    /// What became of each entry.
    pub(super) fn states(&self, failed: &[Failed]) -> Vec<PageState> {
        let mut states = vec![PageState::Copied; self.entries.len()];
        for failed in failed {
            for (n, bytes) in self.shares(failed.destination, failed.bytes) {
                let (before, fault) = match states[n] {
                    PageState::Copied => (0, None),
                    PageState::NotCopied { bytes, fault } => (bytes, fault),
                };
                states[n] = PageState::NotCopied {
                    bytes: before + bytes,
                    fault: [fault, failed.fault].into_iter().flatten().min(),
                };
            }
        }
        states
    }

    /// Who has copied how much. `rest`: who has copied all that was neither named nor failed.
    pub(super) fn statistics(
        &self,
        executed: &[Executed],
        failed: &[Failed],
        rest: Option<By>,
    ) -> Vec<PageStatistic> {
        let mut left: Vec<u64> = self.entries.iter().map(|entry| entry.bytes).collect();
        for failed in failed {
            for (n, bytes) in self.shares(failed.destination, failed.bytes) {
                left[n] = left[n].saturating_sub(bytes);
            }
        }
        let mut copied: Vec<(usize, By, u64)> = Vec::new();
        for executed in executed {
            for (n, bytes) in self.shares(executed.destination, executed.bytes) {
                left[n] = left[n].saturating_sub(bytes);
                copied.push((n, executed.by, bytes));
            }
        }
        if let Some(by) = rest {
            let left = left.iter().enumerate();
            copied.extend(left.map(|(n, bytes)| (n, by, *bytes)));
        }
        // One executor may have copied an entry in several pieces, with others between them.
        copied.sort_by_key(|(n, ..)| *n);
        let mut rows = Rows(Vec::new());
        let mut of_entry: Vec<(By, u64)> = Vec::new();
        for pieces in copied.chunk_by(|one, next| one.0 == next.0) {
            for (_, by, bytes) in pieces {
                match of_entry.iter_mut().find(|(other, _)| other == by) {
                    Some((_, sum)) => *sum += bytes,
                    None => of_entry.push((*by, *bytes)),
                }
            }
            for (by, bytes) in of_entry.drain(..) {
                rows.add(&self.entries[pieces[0].0], by, bytes);
            }
        }
        rows.0
    }
}

struct Rows(Vec<PageStatistic>);

impl Rows {
    fn add(&mut self, entry: &PageCopy, by: By, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let size = match entry.bytes >= LARGE_PAGE {
            true => PageSize::Large,
            false => PageSize::Base,
        };
        let (executor, reason) = by;
        let is_row = |row: &&mut PageStatistic| {
            (row.size, row.executor, row.reason) == (size, executor, reason)
        };
        match self.0.iter_mut().find(is_row) {
            Some(row) => {
                row.entries += 1;
                row.bytes += bytes;
            }
            None => self.0.push(PageStatistic {
                size,
                executor,
                reason,
                entries: 1,
                bytes,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fault_of_an_entry_is_its_lowest_address() {
        let entries = [PageCopy {
            source: 0x10_0000,
            destination: 0x20_0000,
            bytes: 0x4000,
        }];
        // Two channels meet them in any order.
        let failed = [0x3000, 0x1000].map(|offset| Failed {
            destination: 0x20_0000 + offset,
            bytes: 0x1000,
            fault: Some((0x20_0000 + offset, true)),
        });
        let expected = PageState::NotCopied {
            bytes: 0x2000,
            fault: Some((0x20_1000, true)),
        };
        assert_eq!(Index::new(&entries).states(&failed), [expected]);
    }
}
