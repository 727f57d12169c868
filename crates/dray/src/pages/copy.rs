//! A page list, copied on this process's memory.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use dray_spec::Status;

use super::core::{CoreCopy, Stores};
use super::report::{By, Executed, Failed, Index};
use super::{
    Fallback, PageCopy, PageCounts, PageList, PageListError, PageListOptions, PageListReport,
    PageShare,
};
use crate::{Application, Executor, Mover, Next, Reason};

/// Copies a list of pages: on up to `options.max_channels` of `channels`, or with threads of this
/// process if the list is below the threshold. What a device fails to copy the core finishes, unless
/// a device is required. The counts say who has copied what, and why.
///
/// # Errors
/// An entry that cannot be copied, before anything is. After that, with all copied that could be: a page
/// that cannot be read or written, the deadline, a device that is required and has not copied all.
///
/// # Safety
/// Until the call returns, no source may be written, and no destination accessed otherwise; no entry's
/// destination may overlap another entry's source or destination. With
/// [`check_pages`](PageListOptions::check_pages), and on a device that looks at addresses, pages need not
/// be mapped or writable when the call begins, but those that are must stay so. Without it all sources
/// must be mapped, and all destinations writable.
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
    // SAFETY: the caller's promise is the same.
    let copied = unsafe { copy_pages(channels, entries, options, false) }?;
    copied.error.map_or(Ok(copied.counts), Err)
}

/// As [`copy_page_lists`], with the state of each entry, and statistics by size, executor and reason.
///
/// # Errors
/// An entry that cannot be copied, before anything is. What fails later is in the report.
///
/// # Safety
/// As [`copy_page_lists`].
pub unsafe fn copy_page_lists_with_report<M: Mover>(
    channels: &mut [M],
    entries: &[PageCopy],
    options: &PageListOptions,
) -> Result<PageListReport, PageListError> {
    // SAFETY: the caller's promise is the same.
    let copied = unsafe { copy_pages(channels, entries, options, true) }?;
    let index = Index::new(entries);
    Ok(PageListReport {
        counts: copied.counts,
        statistics: index.statistics(&copied.executed, &copied.failed, copied.rest),
        states: index.states(&copied.failed),
        error: copied.error,
    })
}

/// What a call has done.
struct Copied {
    counts: PageCounts,
    /// Who has copied what; all of it only for a report.
    executed: Vec<Executed>,
    /// Who has copied what is neither there nor failed.
    rest: Option<By>,
    failed: Vec<Failed>,
    error: Option<PageListError>,
}

/// # Safety
/// As [`copy_page_lists`].
unsafe fn copy_pages<M: Mover>(
    channels: &mut [M],
    entries: &[PageCopy],
    options: &PageListOptions,
    with_report: bool,
) -> Result<Copied, PageListError> {
    let list = PageList::new(entries)?;
    let core = CoreCopy {
        checked: options.check_pages,
        deadline: options
            .deadline
            .and_then(|after| Instant::now().checked_add(after)),
        stores: Stores::of_list(list.bytes()),
        failed: Mutex::new(Vec::new()),
    };
    let used = channels.len().min(options.max_channels);
    let by_core = match used {
        0 => Some(Reason::NoDevice),
        _ if options.require_device => None,
        _ => options.core_reason(list.bytes()),
    };
    if let Some(reason) = by_core {
        if options.require_device && !entries.is_empty() {
            return Err(PageListError::NoChannel);
        }
        core.list(&list, options.core_threads);
        let failed = failed_in(&core);
        return Ok(Copied {
            counts: PageCounts {
                below_threshold_bytes: list.bytes() - bytes_of(&failed),
                ..PageCounts::default()
            },
            executed: Vec::new(),
            rest: Some((Executor::Cpu, Some(reason))),
            error: error(&failed, options),
            failed,
        });
    }
    // SAFETY: the caller has promised this, and the shares are done before the call returns.
    let shares = unsafe { by_channels(&mut channels[..used], &list, core.deadline, with_report) };
    let mut counts = PageCounts::default();
    let (mut executed, mut failed) = (Vec::new(), Vec::new());
    let mut first = None;
    for share in &shares {
        counts = counts.and(share.counts());
        executed.extend_from_slice(share.executed());
        for fallback in share.fallbacks() {
            if fallback.bytes == 0 {
                continue;
            }
            first.get_or_insert(fallback.status);
            if options.require_device || fallback.fault.is_some() {
                failed.push(left_over(fallback));
                continue;
            }
            core.run(PageCopy {
                source: fallback.source,
                destination: fallback.destination,
                bytes: fallback.bytes.into(),
            });
            // All but what the core could not copy either, which is in the order of its addresses.
            let by_nobody = failed_in(&core);
            let mut start = fallback.destination;
            let mut take = |end: u64, next: u64| {
                counts.after_failure_bytes += end - start;
                executed.push(Executed {
                    destination: start,
                    bytes: end - start,
                    by: (Executor::Cpu, Some(reason(fallback.status))),
                });
                start = next;
            };
            for failed in &by_nobody {
                take(failed.destination, failed.destination + failed.bytes);
            }
            let end = fallback.destination + u64::from(fallback.bytes);
            take(end, end);
            failed.extend(by_nobody);
        }
    }
    let error = match (error(&failed, options), first) {
        (Some(inaccessible @ PageListError::Inaccessible { .. }), _) => Some(inaccessible),
        (Some(late), _) if is_over(&core) => Some(late),
        (Some(_), Some(status)) => Some(PageListError::NotByDevice {
            bytes: bytes_of(&failed),
            status,
        }),
        (other, _) => other,
    };
    Ok(Copied {
        counts,
        executed,
        rest: None,
        failed,
        error,
    })
}

/// Runs a list's shares on channels until all are done, or the deadline has passed and nothing is in flight.
///
/// # Safety
/// As [`PageList::plan`].
unsafe fn by_channels<M: Mover>(
    channels: &mut [M],
    list: &PageList,
    mut deadline: Option<Instant>,
    with_report: bool,
) -> Vec<PageShare> {
    let used = channels.len();
    // Channels need not be alike: each piece fits all of them.
    let mut common = channels[0].capabilities();
    for channel in &channels[1..] {
        let other = channel.capabilities();
        common.max_transfer_bytes = common.max_transfer_bytes.min(other.max_transfer_bytes);
        common.max_batch = common.max_batch.min(other.max_batch);
    }
    // SAFETY: the caller's promise is the same.
    let mut shares = unsafe { list.plan(used, &common) };
    if with_report {
        shares.iter_mut().for_each(PageShare::keep_executed);
    }
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
            if channel.lost().is_some() {
                // Nothing that it has not accepted ever ends.
                share.stop(channel);
            }
        }
        if deadline.is_some_and(|end| Instant::now() >= end) {
            deadline = None;
            for (share, channel) in shares.iter_mut().zip(&mut *channels) {
                share.stop(channel);
            }
        }
        if waiting && running > 0 {
            std::hint::spin_loop();
        }
    }
    shares
}

fn left_over(fallback: &Fallback) -> Failed {
    let write = fallback.status.is_write_fault();
    Failed {
        destination: fallback.destination,
        bytes: fallback.bytes.into(),
        fault: fallback.fault.map(|address| (address, write)),
    }
}

fn reason(status: Status) -> Reason {
    match status {
        Status::NONE => Reason::NotExecuted,
        fault if fault.code() == Status::PAGE_FAULT.code() => Reason::PageFault,
        _ => Reason::DeviceError,
    }
}

fn bytes_of(failed: &[Failed]) -> u64 {
    failed.iter().map(|failed| failed.bytes).sum()
}

fn failed_in(core: &CoreCopy) -> Vec<Failed> {
    let mut failed = core.failed.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *failed)
}

fn is_over(core: &CoreCopy) -> bool {
    core.deadline.is_some_and(|end| Instant::now() >= end)
}

/// Why not all is copied.
fn error(failed: &[Failed], options: &PageListOptions) -> Option<PageListError> {
    let faults = failed.iter().filter(|failed| failed.fault.is_some());
    let bytes = faults.clone().map(|failed| failed.bytes).sum();
    if let Some((address, write)) = faults.filter_map(|failed| failed.fault).min() {
        return Some(PageListError::Inaccessible {
            address,
            write,
            bytes,
        });
    }
    let bytes = bytes_of(failed);
    (bytes > 0).then_some(PageListError::Deadline {
        after: options.deadline.unwrap_or_default(),
        bytes,
    })
}
