//! Which copies a list of pages becomes, and on which channel each is.

use std::time::Duration;

use dray_placement::{Cut, PAGE, Reason, Rest, Threshold, kernel};
use thiserror::Error;

use super::PageShare;
use super::share::Piece;
use crate::Capabilities;

/// Copies of at least so many bytes are split over channels; smaller ones travel in batches.
pub(super) const SPLIT_FROM: u64 = 64 << 10;

/// Bytes of a list at most. No process has as many, and sums that are rounded up to pages do not overflow.
const MAX_BYTES: u64 = i64::MAX as u64;

/// One page, or a run of them, to copy.
///
/// ```
/// let page = dray::pages::PageCopy { source: 0x10_0000, destination: 0x20_0000, bytes: 4096 };
/// assert!(dray::pages::PageList::new(&[page]).is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageCopy {
    /// First address of the source.
    pub source: u64,
    /// First address of the destination.
    pub destination: u64,
    /// Length, at least 1.
    pub bytes: u64,
}

/// How a list is copied.
///
/// ```
/// use dray::pages::PageListOptions;
///
/// let options = PageListOptions { max_channels: 4, ..PageListOptions::default() };
/// assert_eq!((options.core_threads, options.device_threshold_pages), (4, 12));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageListOptions {
    /// Channels at most (`limit_chans` of the published interface). Default 8.
    pub max_channels: usize,
    /// Threads that copy what is below the threshold (`limit_mt_num`). Default 4.
    pub core_threads: usize,
    /// Base pages from which on a device copies (`dsa_copy_threshold`; a page of 2 MiB counts 512).
    /// Default 12.
    pub device_threshold_pages: u64,
    /// Fail where a device does not copy a page, instead of copying it on the core.
    pub require_device: bool,
    /// The core looks at addresses before it copies, as a device does: a page that cannot be read, or
    /// written, is an error, and not a signal. Two system calls a run, or one for each of its pages where a side
    /// has two at most (before Linux 5.14 always); of lists of 2 MiB or more two for each 256 KiB at least, and
    /// for 1024 pages. In C this is `unchecked` of
    /// `dray_page_list_options`, the other way round; operations of channels that are no page list follow
    /// [`check_core`](crate::channels::ChannelsOptions::check_core). Default: true.
    pub check_pages: bool,
    /// Time after which nothing more is begun. The call returns when the copies that a device has accepted
    /// by then have ended: nothing is in flight afterwards. Default: none.
    pub deadline: Option<Duration>,
}

impl PageListOptions {
    /// Why the CPU copies a list of so many bytes, whatever channels there are.
    pub fn core_reason(&self, bytes: u64) -> Option<Reason> {
        Threshold::pages(self.device_threshold_pages).reason(bytes)
    }
}

impl Default for PageListOptions {
    fn default() -> PageListOptions {
        PageListOptions {
            max_channels: kernel::DEFAULT_CHANS as usize,
            core_threads: kernel::DEFAULT_MT_NUM as usize,
            device_threshold_pages: kernel::DEFAULT_THRESHOLD,
            require_device: false,
            check_pages: true,
            deadline: None,
        }
    }
}

/// Why a list cannot be copied.
///
/// ```
/// use dray::pages::{PageCopy, PageList, PageListError};
///
/// let empty = PageCopy { source: 0x1000, destination: 0x2000, bytes: 0 };
/// assert_eq!(PageList::new(&[empty]).err(), Some(PageListError::Empty { entry: 0 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PageListError {
    /// An entry has no bytes.
    #[error("entry {entry} of the page list has no bytes")]
    Empty {
        /// Its index.
        entry: usize,
    },
    /// An entry goes beyond the last address, or the list with it has 2^63 bytes or more.
    #[error(
        "entry {entry} of the page list goes beyond the last address, or the list with it has 2^63 bytes or more"
    )]
    Address {
        /// Its index.
        entry: usize,
    },
    /// An entry's source and destination overlap.
    #[error("source and destination of entry {entry} of the page list overlap")]
    Overlap {
        /// Its index.
        entry: usize,
    },
    /// No channel was given, and a device is required.
    #[error("a device is required to copy the page list, and there is no channel to one")]
    NoChannel,
    /// A page cannot be read, or written. All other pages that could be are copied.
    #[error("{address:#x} cannot be {}: {bytes} bytes of the page list are not copied", done(*write))]
    Inaccessible {
        /// The first such address.
        address: u64,
        /// It was to be written, not read.
        write: bool,
        /// Bytes that are not copied, of all such pages.
        bytes: u64,
    },
    /// The time was over. Nothing is in flight.
    #[error("{bytes} bytes of the page list were not copied within {after:?}")]
    Deadline {
        /// Time that was given.
        after: Duration,
        /// Bytes that are not copied.
        bytes: u64,
    },
    /// A device was required, and did not copy all.
    #[error("{bytes} bytes of the page list were not copied by a device: {status}")]
    NotByDevice {
        /// Bytes that are not copied.
        bytes: u64,
        /// Status of the first copy that failed.
        status: dray_spec::Status,
    },
}

fn done(write: bool) -> &'static str {
    match write {
        true => "written",
        false => "read",
    }
}

/// A list that was checked, its neighbours merged.
///
/// ```
/// use dray::pages::{PageCopy, PageList};
///
/// let large = PageCopy { source: 0, destination: 2 << 20, bytes: 2 << 20 };
/// assert_eq!(PageList::new(&[large])?.base_pages(), 512);
/// # Ok::<(), dray::pages::PageListError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageList {
    runs: Vec<PageCopy>,
    bytes: u64,
}

impl PageList {
    /// Checks the entries, and merges those that follow each other in source and destination.
    ///
    /// # Errors
    /// An entry without bytes, beyond the last address, or with overlapping operands; an entry with which
    /// the list has 2^63 bytes or more.
    ///
    /// ```
    /// use dray::pages::{PageCopy, PageList};
    /// let page = |n: u64| PageCopy { source: n << 12, destination: (n + 512) << 12, bytes: 4096 };
    /// let list = PageList::new(&[page(1), page(2), page(4)])?;
    /// assert_eq!((list.runs().len(), list.bytes()), (2, 3 * 4096));
    /// # Ok::<(), dray::pages::PageListError>(())
    /// ```
    pub fn new(entries: &[PageCopy]) -> Result<PageList, PageListError> {
        let mut runs: Vec<PageCopy> = Vec::with_capacity(entries.len());
        let mut bytes = 0_u64;
        for (entry, copy) in entries.iter().enumerate() {
            if copy.bytes == 0 {
                return Err(PageListError::Empty { entry });
            }
            let end = |start: u64| start.checked_add(copy.bytes);
            let (Some(source_end), Some(destination_end), Some(sum)) = (
                end(copy.source),
                end(copy.destination),
                bytes
                    .checked_add(copy.bytes)
                    .filter(|sum| *sum <= MAX_BYTES),
            ) else {
                return Err(PageListError::Address { entry });
            };
            if copy.source < destination_end && copy.destination < source_end {
                return Err(PageListError::Overlap { entry });
            }
            bytes = sum;
            match runs.last_mut() {
                Some(last) if follows(last, copy) => last.bytes += copy.bytes,
                _ => runs.push(*copy),
            }
        }
        Ok(PageList { runs, bytes })
    }

    /// The merged runs, in the order of the list.
    pub fn runs(&self) -> &[PageCopy] {
        &self.runs
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Base pages that the entries amount to, rounded up.
    pub fn base_pages(&self) -> u64 {
        self.bytes.div_ceil(PAGE)
    }

    /// Shares the copies out to `channels` channels (at least 1) whose movers can do `capabilities`.
    ///
    /// Runs of 64 KiB or more are cut into one piece a channel, of whole base pages, each no larger
    /// than the largest transfer. Smaller ones go in batches, to the channel that has the fewest
    /// bytes.
    ///
    /// # Safety
    /// Until the last share is [done](crate::Next::Done): on movers of this process's memory, all
    /// sources must be mapped and not written, all destinations mapped, writable and not accessed
    /// otherwise, and no entry's destination may overlap another entry.
    pub unsafe fn plan(&self, channels: usize, capabilities: &Capabilities) -> Vec<PageShare> {
        let channels = channels.max(1);
        let limit = Cut::bytes(capabilities.max_transfer_bytes);
        let mut pieces: Vec<Vec<Piece>> = vec![Vec::new(); channels];
        let mut load = vec![0_u64; channels];
        for run in &self.runs {
            let cut = match run.bytes >= SPLIT_FROM {
                true => Cut::equal(run.bytes, channels as u64, 1).within(limit),
                false => limit,
            };
            for piece in Rest::new(run.bytes).pieces(cut) {
                let least = (0..channels).min_by_key(|channel| load[*channel]);
                let channel = least.expect("there is a channel");
                load[channel] += piece.bytes;
                pieces[channel].push(Piece {
                    source: run.source + piece.offset,
                    destination: run.destination + piece.offset,
                    // Within the limit, which is a u32.
                    bytes: piece.bytes as u32,
                });
            }
        }
        let shares = pieces.into_iter();
        shares
            .map(|pieces| PageShare::new(pieces, capabilities.max_batch))
            .collect()
    }
}

/// Whether `next` begins where `last` ends, and the two together still do not overlap.
fn follows(last: &PageCopy, next: &PageCopy) -> bool {
    let bytes = last.bytes + next.bytes;
    last.source + last.bytes == next.source
        && last.destination + last.bytes == next.destination
        && (last.source + bytes <= last.destination || last.destination + bytes <= last.source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_cannot_be_copied_are_refused() {
        let copy = |source, destination, bytes| PageCopy {
            source,
            destination,
            bytes,
        };
        let refused = |copy| PageList::new(&[copy]).map(|_| ());
        assert_eq!(
            refused(copy(0, 1, 0)),
            Err(PageListError::Empty { entry: 0 })
        );
        let overlap = Err(PageListError::Overlap { entry: 0 });
        assert_eq!(refused(copy(0x1000, 0x1fff, 0x1000)), overlap);
        assert_eq!(refused(copy(0x1000, 0x2000, 0x1000)), Ok(()));
        let beyond = Err(PageListError::Address { entry: 0 });
        assert_eq!(refused(copy(u64::MAX, 0, 2)), beyond);
        // Each of the two is possible.
        let half = copy(0, i64::MAX as u64, i64::MAX as u64);
        assert_eq!(refused(half), Ok(()));
        let both = PageList::new(&[half, half]).map(|_| ());
        assert_eq!(both, Err(PageListError::Address { entry: 1 }));
    }

    #[test]
    fn neighbours_do_not_merge_into_an_overlap() {
        // A window that slides: each page is fine, both together are not.
        let entries = [0, 1].map(|n| PageCopy {
            source: 0x1000 + n * 0x1000,
            destination: 0x2000 + n * 0x1000,
            bytes: 0x1000,
        });
        let list = PageList::new(&entries).expect("no entry overlaps itself");
        assert_eq!(list.runs().len(), 2);
    }

    #[test]
    fn a_large_page_is_split_and_every_byte_is_in_one_piece() {
        let entries = [
            PageCopy {
                source: 0x20_0000,
                destination: 0x80_0000,
                bytes: 2 << 20,
            },
            PageCopy {
                source: 0x1000,
                destination: 0x5000,
                bytes: 100,
            },
        ];
        let list = PageList::new(&entries).expect("a list");
        for channels in [1, 2, 3, 8] {
            // SAFETY: no share is run.
            let shares = unsafe { list.plan(channels, &Capabilities::software()) };
            let bytes: u64 = shares.iter().map(PageShare::bytes).sum();
            assert_eq!(bytes, (2 << 20) + 100);
            let most = shares.iter().map(PageShare::bytes).max().expect("a share");
            assert!(most <= (2 << 20) / channels as u64 + 2 * PAGE);
        }
        let small = Capabilities {
            max_transfer_bytes: 1 << 16,
            ..Capabilities::software()
        };
        // SAFETY: no share is run.
        let shares = unsafe { list.plan(1, &small) };
        assert_eq!(shares[0].pieces(), 33);
    }
    #[test]
    fn no_piece_begins_within_a_page_whatever_the_largest_transfer() {
        let run = PageCopy {
            source: 1 << 40,
            destination: 1 << 41,
            bytes: 6 << 30,
        };
        let list = PageList::new(&[run]).expect("a list");
        for (channels, most) in [(1, u64::from(u32::MAX)), (2, 1 << 31), (2, (1 << 20) + 100)] {
            let limits = Capabilities {
                max_transfer_bytes: most,
                ..Capabilities::software()
            };
            // SAFETY: nothing is submitted.
            let mut shares = unsafe { list.plan(channels, &limits) };
            for share in &mut shares {
                // All of it is left over.
                share.stop(&mut crate::CpuMover::new(1));
                let starts = share.fallbacks().iter().map(|piece| piece.source);
                assert!(
                    starts.into_iter().all(|at| at.is_multiple_of(PAGE)),
                    "{most}"
                );
            }
        }
    }
}
