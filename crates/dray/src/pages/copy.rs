//! A page list, copied on this process's memory.

use std::ptr::{self, with_exposed_provenance, with_exposed_provenance_mut};
use std::thread;

use super::plan::BASE_PAGE;
use super::{PageCopy, PageCounts, PageList, PageListError, PageListOptions};
use crate::{Application, Mover, Next};

/// Copies a list of pages: on up to `options.max_channels` of `channels`, or with threads of this
/// process if the list is below the threshold. What a device fails to copy the core finishes, unless
/// a device is required. The counts say who has copied what, and why.
///
/// # Errors
/// An entry that cannot be copied, before anything is; a device that is required and has not copied
/// all.
///
/// # Safety
/// Until the call returns, all sources must be mapped and not written, all destinations mapped,
/// writable and not accessed otherwise; no entry's destination may overlap another entry's source or
/// destination.
///
/// ```
/// use dray::CpuMover;
/// use dray::pages::{PageCopy, PageListOptions, copy_page_lists};
///
/// let source = vec![7_u8; 64 << 10];
/// let mut target = vec![0_u8; 64 << 10];
/// let list = [PageCopy {
///     source: source.as_ptr().expose_provenance() as u64,
///     destination: target.as_mut_ptr().expose_provenance() as u64,
///     bytes: 64 << 10,
/// }];
/// let mut channels = [CpuMover::new(64)];
/// // SAFETY: both buffers are this function's own.
/// let counts = unsafe { copy_page_lists(&mut channels, &list, &PageListOptions::default()) }?;
/// assert_eq!(counts.device_bytes, 64 << 10);
/// assert_eq!(source, target);
/// # Ok::<(), dray::pages::PageListError>(())
/// ```
pub unsafe fn copy_page_lists<M: Mover>(
    channels: &mut [M],
    entries: &[PageCopy],
    options: &PageListOptions,
) -> Result<PageCounts, PageListError> {
    let list = PageList::new(entries)?;
    let used = channels.len().min(options.max_channels);
    let by_device =
        used > 0 && (options.require_device || list.base_pages() >= options.device_threshold_pages);
    if !by_device {
        if options.require_device && !entries.is_empty() {
            return Err(PageListError::NoChannel);
        }
        copy_with_threads(&list, options.core_threads);
        return Ok(PageCounts {
            below_threshold_bytes: list.bytes(),
            ..PageCounts::default()
        });
    }
    // Channels need not be alike: each piece fits all of them.
    let mut common = channels[0].capabilities();
    for channel in &channels[1..used] {
        let other = channel.capabilities();
        common.max_transfer_bytes = common.max_transfer_bytes.min(other.max_transfer_bytes);
        common.max_batch = common.max_batch.min(other.max_batch);
    }
    // SAFETY: the caller has promised this, and the shares are done before the call returns.
    let mut shares = unsafe { list.plan(used, &common) };
    let mut running = used;
    let mut done = vec![false; used];
    while running > 0 {
        let mut waiting = true;
        for ((share, channel), done) in shares.iter_mut().zip(&mut *channels).zip(&mut done) {
            if *done {
                continue;
            }
            match share.step(channel) {
                Next::Done => {
                    *done = true;
                    running -= 1;
                    waiting = false;
                }
                Next::Again => waiting = false,
                Next::Wait => {}
            }
        }
        if waiting && running > 0 {
            std::hint::spin_loop();
        }
    }
    let mut counts = PageCounts::default();
    let mut left = 0;
    let mut first = None;
    for share in &shares {
        counts = counts.and(share.counts());
        for fallback in share.fallbacks() {
            first.get_or_insert(fallback.status);
            left += u64::from(fallback.bytes);
            if !options.require_device {
                // SAFETY: a part of an entry, for which the caller has promised this.
                unsafe { copy(fallback.source, fallback.destination, fallback.bytes.into()) };
                counts.after_failure_bytes += u64::from(fallback.bytes);
            }
        }
    }
    match first {
        Some(status) if options.require_device => Err(PageListError::NotByDevice {
            bytes: left,
            status,
        }),
        _ => Ok(counts),
    }
}

/// Copies a list with up to `threads` threads, the calling one among them.
fn copy_with_threads(list: &PageList, threads: usize) {
    let threads = threads.clamp(1, list.base_pages().clamp(1, 64) as usize);
    if threads == 1 {
        list.runs().iter().for_each(copy_run);
        return;
    }
    // Equal parts of the bytes, each of whole pages.
    let part = list.bytes().div_ceil(threads as u64);
    let part = part.next_multiple_of(BASE_PAGE);
    thread::scope(|scope| {
        for n in 1..threads as u64 {
            scope.spawn(move || copy_part(list, n * part, part));
        }
        copy_part(list, 0, part);
    });
}

/// Copies the bytes `from .. from + bytes` of a list, counted through its runs.
fn copy_part(list: &PageList, from: u64, bytes: u64) {
    let end = from.saturating_add(bytes);
    let mut position = 0;
    for run in list.runs() {
        let (start, stop) = (position.max(from), (position + run.bytes).min(end));
        if start < stop {
            copy_run(&PageCopy {
                source: run.source + (start - position),
                destination: run.destination + (start - position),
                bytes: stop - start,
            });
        }
        position += run.bytes;
    }
}

fn copy_run(run: &PageCopy) {
    // SAFETY: a part of an entry, for which the caller of `copy_page_lists` has promised this.
    unsafe { copy(run.source, run.destination, run.bytes) };
}

/// # Safety
/// The source must be readable, the destination writable, and the two must not overlap.
unsafe fn copy(source: u64, destination: u64, bytes: u64) {
    let from: *const u8 = with_exposed_provenance(source as usize);
    let to: *mut u8 = with_exposed_provenance_mut(destination as usize);
    // SAFETY: the caller's promise is the same.
    unsafe { ptr::copy_nonoverlapping(from, to, bytes as usize) };
}
