//! Lists of pages, copied in one call.

use std::ffi::c_int;
use std::slice;
use std::time::Duration;

use dray::pages::{
    PageCopy, PageCounts, PageListError, PageListOptions, PageListReport, copy_page_lists,
    copy_page_lists_with_report,
};
use dray::{CpuMover, Mover as _};

use crate::error::{Refusal, call};
use crate::handle::{Kind, Mover, Open, using, with};
use crate::page_results::Results;
use crate::page_types::{Page, PageOptions, PageReport, PageStatistics};
use crate::structure::{sized, word};

/// Threads of one call at most.
const MOST_THREADS: u32 = 64;

/// Copies a list of pages, and returns when all is copied: 0. Neighbours are merged, small copies travel in
/// batches, large ones are split over the work queues of the mover; a short list, and all of it where the
/// mover has no device, is copied by threads. `options` NULL: the defaults. `statistics` NULL: none; they are
/// written whether the call fails or not, and count what was copied until then.
///
/// # Errors
/// -EINVAL: an entry that cannot be copied, and nothing was; a field of the options. -EBUSY: operations of
/// the mover are in flight, or a batch has begun. -ENODEV: a device is required, and the mover has none.
/// -EIO: a device was required, and did not copy all. -EFAULT: a page cannot be read or written; all others
/// are copied (on a virtual device that does not look at addresses that is a signal: see `checked`).
/// -ETIMEDOUT: the time was over; the copies that a device had accepted were waited for, however long they
/// took, and nothing is in flight.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open) or
/// [`dray_open_channels`](crate::dray_open_channels); `pages` must point to `count` entries; `options` and
/// `statistics` to as many bytes as their sizes say. Sources must not be written, and destinations not be
/// accessed otherwise, until the call returns; no destination may overlap another entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_copy_page_list(
    mover: *mut Mover,
    pages: *const Page,
    count: usize,
    options: *const PageOptions,
    statistics: *mut PageStatistics,
) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { copy_list(mover, pages, count, options, statistics, None) }
}

/// As [`dray_copy_page_list`], with the state of each entry, and who has copied how much, by size of the
/// entries, executor and reason. Both are written whether the call fails or not: entries that an error has
/// kept from being begun are not copied. `statistics` NULL: none.
///
/// # Errors
/// As [`dray_copy_page_list`]; -EINVAL: a place of the report that is not aligned.
///
/// # Safety
/// As [`dray_copy_page_list`]; `report` must point to as many bytes as its size says, its `states` be NULL or
/// a place for `count` states, its `rows` NULL or one for `max_rows`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_copy_page_list_with_report(
    mover: *mut Mover,
    pages: *const Page,
    count: usize,
    options: *const PageOptions,
    statistics: *mut PageStatistics,
    report: *mut PageReport,
) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { copy_list(mover, pages, count, options, statistics, Some(report)) }
}

/// # Safety
/// As [`dray_copy_page_list_with_report`].
unsafe fn copy_list(
    mover: *mut Mover,
    pages: *const Page,
    count: usize,
    options: *const PageOptions,
    statistics: *mut PageStatistics,
    report: Option<*mut PageReport>,
) -> c_int {
    // Results are written before anything can fail but what tells where they are.
    let mut prepared = None;
    let refused = call(|| {
        // SAFETY: the caller's promise is the same.
        let results = unsafe { Results::at(statistics, report) }?;
        // SAFETY: the caller's promise is the same.
        let pages = unsafe { slice_of(pages, count) }?;
        // SAFETY: the caller's promise is the same.
        unsafe { results.write_not_begun(pages) };
        prepared = Some((results, pages));
        Ok(0)
    });
    let Some((results, pages)) = prepared else {
        return refused;
    };
    let work = |open: &mut Open| {
        // SAFETY: so many bytes are readable, by the caller's promise; any bytes are options.
        let options = unsafe { read(options) }?;
        let list = entries(pages)?;
        if with!(&open.kind, m => m.in_flight()) > 0 || open.in_batch {
            let message =
                "operations of the mover are in flight, or a batch has begun: wait for them first";
            return Err(Refusal::new(libc::EBUSY, message));
        }
        let promised = Promised {
            list: &list,
            options: &options,
            detailed: results.are_wanted(),
        };
        let copied = promised.copy(&mut open.kind)?;
        let error = copied.report.error;
        let counts = &copied.report.counts;
        let made = made(&list, counts, copied.has_device, &options);
        // SAFETY: the caller's promise is the same.
        unsafe { results.write(made, &copied.report) };
        error.map_or(Ok(0), |error| Err(self::refused(error)))
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// # Safety
/// `options` must be NULL or point to as many bytes as its size says.
unsafe fn read(options: *const PageOptions) -> Result<PageListOptions, Refusal> {
    let default = PageListOptions::default();
    if options.is_null() {
        return Ok(default);
    }
    // SAFETY: so many bytes are readable, by the caller's promise; any bytes are options.
    let options = unsafe { sized("dray_page_list_options", options, &[]) }?;
    let flag = |name: &str, value| {
        let name = format!("dray_page_list_options.{name}");
        word(&name, value, &[false, true])
    };
    let require_device = flag("require_device", options.require_device)?;
    let unchecked = flag("unchecked", options.unchecked)?;
    if options.limit_mt_num > MOST_THREADS {
        return Err(Refusal::new(
            libc::EINVAL,
            format_args!(
                "dray_page_list_options.limit_mt_num is {}: 1 to {MOST_THREADS} are possible",
                options.limit_mt_num
            ),
        ));
    }
    let or = |value: u32, default: usize| if value == 0 { default } else { value as usize };
    Ok(PageListOptions {
        max_channels: or(options.limit_chans, default.max_channels),
        core_threads: or(options.limit_mt_num, default.core_threads),
        device_threshold_pages: match options.dsa_copy_threshold {
            0 => default.device_threshold_pages,
            pages => pages,
        },
        require_device,
        check_pages: !unchecked,
        deadline: (options.timeout_ns > 0).then_some(Duration::from_nanos(options.timeout_ns)),
    })
}

/// # Safety
/// `pages` must point to `count` entries, which stay as they are for `'a`.
unsafe fn slice_of<'a>(pages: *const Page, count: usize) -> Result<&'a [Page], Refusal> {
    if count == 0 {
        return Ok(&[]);
    }
    let most = isize::MAX as usize / size_of::<Page>();
    if pages.is_null() || !pages.is_aligned() || count > most {
        return Err(Refusal::new(
            libc::EINVAL,
            format_args!("the page list is NULL, not aligned, or has more than {most} entries"),
        ));
    }
    // SAFETY: by the caller's promise.
    Ok(unsafe { slice::from_raw_parts(pages, count) })
}

fn entries(pages: &[Page]) -> Result<Vec<PageCopy>, Refusal> {
    let null = pages
        .iter()
        .position(|page| page.source.is_null() || page.destination.is_null());
    if let Some(entry) = null {
        return Err(Refusal::new(
            libc::EINVAL,
            format_args!("entry {entry} of the page list has a NULL pointer"),
        ));
    }
    let copy = |page: &Page| PageCopy {
        source: page.source.expose_provenance() as u64,
        destination: page.destination.expose_provenance() as u64,
        bytes: page.bytes,
    };
    Ok(pages.iter().map(copy).collect())
}

/// A list that was copied, as far as it could be.
struct Copied {
    report: PageListReport,
    /// The mover has a device.
    has_device: bool,
}

/// A list whose caller has made the promise of [`dray_copy_page_list`].
struct Promised<'a> {
    list: &'a [PageCopy],
    options: &'a PageListOptions,
    /// States and rows are wanted.
    detailed: bool,
}

impl Promised<'_> {
    /// Copies it on the devices behind a mover.
    fn copy(&self, kind: &mut Kind) -> Result<Copied, Refusal> {
        let busy = || {
            let message = "operations of the mover are in flight: wait for them first";
            Refusal::new(libc::EBUSY, message)
        };
        match kind {
            Kind::Virtual(mover) => self.copy_on(slice::from_mut(mover)),
            Kind::Hardware(channels) | Kind::HardwareChannels(channels) => {
                self.copy_on(&mut channels.idle_movers().ok_or_else(busy)?)
            }
            Kind::VirtualChannels(channels) => {
                self.copy_on(&mut channels.idle_movers().ok_or_else(busy)?)
            }
            // Threads copy faster than one core that is asked by descriptors.
            Kind::Cpu(_) | Kind::CpuChannels(_) => self.copy_on::<CpuMover>(&mut []),
        }
    }

    fn copy_on<M: dray::Mover>(&self, movers: &mut [M]) -> Result<Copied, Refusal> {
        let has_device = !movers.is_empty();
        let report = match self.detailed {
            // SAFETY: the caller has promised this of the list.
            true => unsafe { copy_page_lists_with_report(movers, self.list, self.options) },
            false => {
                // SAFETY: as above.
                let counts = unsafe { copy_page_lists(movers, self.list, self.options) };
                counts.map(|counts| PageListReport {
                    counts,
                    statistics: Vec::new(),
                    states: Vec::new(),
                    error: None,
                })
            }
        };
        let report = report.map_err(refused)?;
        Ok(Copied { report, has_device })
    }
}

fn refused(error: PageListError) -> Refusal {
    let code = match error {
        PageListError::Empty { .. }
        | PageListError::Address { .. }
        | PageListError::Overlap { .. } => libc::EINVAL,
        PageListError::NoChannel => libc::ENODEV,
        PageListError::Inaccessible { .. } => libc::EFAULT,
        PageListError::Deadline { .. } => libc::ETIMEDOUT,
        _ => libc::EIO,
    };
    Refusal::of(code, &error)
}

fn made(
    list: &[PageCopy],
    counts: &PageCounts,
    has_device: bool,
    options: &PageListOptions,
) -> PageStatistics {
    let bytes: u64 = list.iter().map(|page| page.bytes).sum();
    let is_short = options.core_reason(bytes).is_some();
    let by_threads = counts.below_threshold_bytes;
    let (below_threshold_bytes, no_device_bytes) = match has_device || is_short {
        true => (by_threads, 0),
        false => (0, by_threads),
    };
    PageStatistics {
        size: size_of::<PageStatistics>(),
        bytes,
        device_bytes: counts.device_bytes,
        below_threshold_bytes,
        no_device_bytes,
        after_failure_bytes: counts.after_failure_bytes,
        descriptors: counts.descriptors,
        in_batches: counts.in_batches,
        page_faults: counts.page_faults,
    }
}
