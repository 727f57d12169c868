//! What C sees of lists of pages.

use std::ffi::c_void;

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
    /// 1: the core copies without looking at addresses first, which saves two system calls a run: memory that
    /// cannot be accessed then ends the process with a signal, and is no -EFAULT. In Rust this is
    /// `check_pages`, the other way round. Operations that are no page list follow `checked` of the mover's
    /// options, whose default is not to look.
    pub unchecked: u32,
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

const _: () = assert!(size_of::<PageOptions>() == 40 && size_of::<PageStatistics>() == 72);

/// What became of an entry of a list of pages.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PageState {
    /// Bytes of the entry that are not copied; 0: it is copied.
    pub not_copied_bytes: u64,
    /// The first address of the entry that cannot be accessed, if `has_fault`.
    pub fault_address: u64,
    /// 1 if some of it is not copied because an address cannot be accessed.
    pub has_fault: u8,
    /// 1 if that address was to be written, not read.
    pub write_fault: u8,
    /// 0.
    pub reserved: [u8; 6],
}

const _: () = assert!(size_of::<PageState>() == 24);

/// Sizes of entries that are counted apart.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageSize {
    /// Below 2 MiB: pages of 4 KiB, and runs of them.
    Base = 0,
    /// 2 MiB or more.
    Large = 1,
}

/// Why it was this executor that copied bytes of a list of pages.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageReason {
    /// A device: the list is not below the threshold.
    Offloaded = 0,
    /// The core: the list is below the threshold.
    BelowThreshold = 1,
    /// The core: the mover has no device.
    NoDevice = 2,
    /// The core: a device met a page that was not present, again and again.
    PageFault = 3,
    /// The core: the queue has not executed it, for it was lost or full.
    NotExecuted = 4,
    /// The core: the device has failed to copy it.
    DeviceError = 5,
}

/// Bytes of one size that one executor copied for one reason.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PageRow {
    /// A dray_page_size: size of the entries.
    pub page_size: u32,
    /// A dray_executor: who copied.
    pub executor: u32,
    /// A dray_page_reason: why.
    pub reason: u32,
    /// 0.
    pub reserved: u32,
    /// Entries of which it has copied any byte: one that was split counts in several rows.
    pub entries: u64,
    /// Bytes.
    pub bytes: u64,
}

const _: () = assert!(size_of::<PageRow>() == 32);

/// What became of each entry of a list of pages, and who has copied how much. Set `size` to
/// sizeof(dray_page_list_report), and the places to arrays of your own.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PageReport {
    /// sizeof(dray_page_list_report), so that later versions can tell what is there.
    pub size: usize,
    /// A place for the state of each entry, as many as the list has; NULL: none is wanted.
    pub states: *mut PageState,
    /// A place for rows by size, executor and reason; NULL: none are wanted.
    pub rows: *mut PageRow,
    /// Rows that there is a place for; 16 are enough.
    pub max_rows: usize,
    /// Rows that there are, also if there is no place for all. It is written.
    pub row_count: usize,
}

const _: () = assert!(size_of::<PageReport>() == 40);
