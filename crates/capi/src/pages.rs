//! Lists of pages, copied in one call.

use std::ffi::{c_int, c_void};
use std::slice;
use std::time::Duration;

use dray::CpuMover;
use dray::pages::{PageCopy, PageCounts, PageListError, PageListOptions, copy_page_lists};

use crate::error::Refusal;
use crate::handle::{Kind, Mover, Open, using};
use crate::structure::{reserved, sized, word};

/// Threads of one call at most.
const MOST_THREADS: u32 = 64;
/// Bytes of a base page.
const BASE_PAGE: u64 = 4096;

/// One page, or a run of them, to copy.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// First byte of the source.
    pub source: *const c_void,
    /// First byte of the destination.
    pub destination: *mut c_void,
    /// Bytes, at least 1.
    pub bytes: u64,
}

/// How a list of pages is copied. Set `size` to sizeof(dray_page_list_options), all else to 0 or what you
/// want.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PageOptions {
    /// sizeof(dray_page_list_options), so that later versions can tell what is there.
    pub size: usize,
    /// Work queues of the mover that copy at most; 0: 8.
    pub limit_chans: u32,
    /// Threads that copy what no device does, the calling one included, 1 to 64; 0: 4.
    pub limit_mt_num: u32,
    /// Base pages from which on a device copies; a page of 2 MiB counts 512. 0: 12; 1: a device copies all.
    pub dsa_copy_threshold: u64,
    /// 1: what a device does not copy is an error, and the core copies nothing.
    pub require_device: u32,
    /// 0.
    pub reserved: u32,
    /// Nanoseconds after which nothing more is begun; 0: no limit.
    pub timeout_ns: u64,
}

/// Who has copied what of a list of pages. Set `size` to sizeof(dray_page_list_statistics).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PageStatistics {
    /// sizeof(dray_page_list_statistics), so that later versions can tell what is there.
    pub size: usize,
    /// Bytes of the list.
    pub bytes: u64,
    /// Bytes that devices have copied.
    pub device_bytes: u64,
    /// Bytes that the core has copied: the list was below the threshold.
    pub below_threshold_bytes: u64,
    /// Bytes that the core has copied: the mover has no device.
    pub no_device_bytes: u64,
    /// Bytes that the core has copied: a device had failed to.
    pub after_failure_bytes: u64,
    /// Descriptors that devices have completed with success.
    pub descriptors: u64,
    /// Those of them that travelled in batches.
    pub in_batches: u64,
    /// Page faults after which the core made the page present, and the device went on.
    pub page_faults: u64,
}

/// Copies a list of pages, and returns when all is copied: 0. Neighbours are merged, small copies travel in
/// batches, large ones are split over the work queues of the mover; a short list, and all of it where the
/// mover has no device, is copied by threads. `options` NULL: the defaults. `statistics` NULL: none.
///
/// # Errors
/// -EINVAL: an entry that cannot be copied, and nothing was; a field of the options. -EBUSY: operations of
/// the mover are in flight, or a batch has begun. -ENODEV: a device is required, and the mover has none.
/// -EIO: a device was required, and did not copy all. -EFAULT: a page cannot be read or written; all others
/// are copied (on a virtual device of the process that is a signal). -ETIMEDOUT: the time was over; nothing is in flight.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open) or
/// [`dray_open_channels`](crate::dray_open_channels); `pages` must point to `count` entries; `options` and
/// `statistics` to as many bytes as their sizes say. Sources must be readable and not written, destinations
/// writable and not accessed otherwise, until the call returns; no destination may overlap another entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_copy_page_list(
    mover: *mut Mover,
    pages: *const Page,
    count: usize,
    options: *const PageOptions,
    statistics: *mut PageStatistics,
) -> c_int {
    let work = |open: &mut Open| {
        // SAFETY: so many bytes are readable, by the caller's promise; any bytes are options.
        let options = unsafe { read(options) }?;
        let asked = match statistics.is_null() {
            true => None,
            // SAFETY: so many bytes are readable, by the caller's promise; any bytes are statistics.
            false => Some(unsafe { sized("dray_page_list_statistics", statistics, &[]) }?),
        };
        // SAFETY: the caller's promise is the same.
        let list = unsafe { entries(pages, count) }?;
        if open.in_flight > 0 || open.in_batch {
            let message =
                "operations of the mover are in flight, or a batch has begun: wait for them first";
            return Err(Refusal::new(libc::EBUSY, message));
        }
        // SAFETY: the caller's promise is the same.
        let (counts, has_device) = unsafe { copy(&mut open.kind, &list, &options) }?;
        if let Some(asked) = asked {
            let made = made(&list, &counts, has_device, &options, asked.size);
            // SAFETY: `size` bytes, of which this version has all.
            unsafe { statistics.write(made) };
        }
        Ok(0)
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
    reserved("dray_page_list_options.reserved", options.reserved)?;
    let require = options.require_device;
    let require_device = word(
        "dray_page_list_options.require_device",
        require,
        &[false, true],
    )?;
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
        deadline: (options.timeout_ns > 0).then_some(Duration::from_nanos(options.timeout_ns)),
        ..default
    })
}

/// # Safety
/// `pages` must point to `count` entries.
unsafe fn entries(pages: *const Page, count: usize) -> Result<Vec<PageCopy>, Refusal> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let most = isize::MAX as usize / size_of::<Page>();
    if pages.is_null() || !pages.is_aligned() || count > most {
        return Err(Refusal::new(
            libc::EINVAL,
            format_args!("the page list is NULL, not aligned, or has more than {most} entries"),
        ));
    }
    // SAFETY: by the caller's promise.
    let pages = unsafe { slice::from_raw_parts(pages, count) };
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

/// Copies a list on the devices behind a mover: what they have done, and whether there are any.
///
/// # Safety
/// As [`dray_copy_page_list`].
unsafe fn copy(
    kind: &mut Kind,
    list: &[PageCopy],
    options: &PageListOptions,
) -> Result<(PageCounts, bool), Refusal> {
    let busy = || {
        let message = "operations of the mover are in flight: wait for them first";
        Refusal::new(libc::EBUSY, message)
    };
    let mut none: [CpuMover; 0] = [];
    let (counts, devices) = match kind {
        Kind::Hardware(mover) => {
            // SAFETY: the caller's promise is the same.
            (
                unsafe { copy_page_lists(slice::from_mut(mover), list, options) },
                1,
            )
        }
        Kind::Virtual(mover) => {
            // SAFETY: the caller's promise is the same.
            (
                unsafe { copy_page_lists(slice::from_mut(mover), list, options) },
                1,
            )
        }
        Kind::HardwareChannels(channels) => {
            let mut movers = channels.idle_movers().ok_or_else(busy)?;
            // SAFETY: the caller's promise is the same.
            (
                unsafe { copy_page_lists(&mut movers, list, options) },
                movers.len(),
            )
        }
        Kind::VirtualChannels(channels) => {
            let mut movers = channels.idle_movers().ok_or_else(busy)?;
            // SAFETY: the caller's promise is the same.
            (
                unsafe { copy_page_lists(&mut movers, list, options) },
                movers.len(),
            )
        }
        // Threads copy faster than one core that is asked by descriptors.
        Kind::Cpu(_) | Kind::CpuChannels(_) => {
            // SAFETY: the caller's promise is the same.
            (unsafe { copy_page_lists(&mut none, list, options) }, 0)
        }
    };
    Ok((counts.map_err(refused)?, devices > 0))
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
    size: usize,
) -> PageStatistics {
    let bytes: u64 = list.iter().map(|page| page.bytes).sum();
    let is_short = bytes.div_ceil(BASE_PAGE) < options.device_threshold_pages;
    let by_threads = counts.below_threshold_bytes;
    let (below_threshold_bytes, no_device_bytes) = match has_device || is_short {
        true => (by_threads, 0),
        false => (0, by_threads),
    };
    PageStatistics {
        size,
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
