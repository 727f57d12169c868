//! What C sees of several queues as one mover.

use std::ffi::c_char;

use crate::types::Completion;

/// Who must execute all operations of channels: else they fail.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Require {
    /// Any executor: what no device does, the core does.
    Any = 0,
    /// A device, of hardware or virtual.
    Device = 1,
    /// A device of this machine.
    Hardware = 2,
}

/// What becomes of an operation that met a page that was not present.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageFault {
    /// The core makes the page present, and the device goes on from there.
    TouchAndResume = 0,
    /// The core does the rest.
    FinishOnCore = 1,
    /// The device waits for pages: every work queue must allow it (block_on_fault in sysfs), or opening is
    /// -EINVAL. A core waits anyway.
    BlockOnFault = 2,
    /// The operation ends with the fault.
    Return = 3,
}

/// What becomes of an operation when every queue that could take it is full.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullQueue {
    /// It waits until one is not.
    Wait = 0,
    /// The core executes it.
    Core = 1,
    /// It ends with status 0, and its outcome says that the queue was full.
    Error = 2,
}

/// What becomes of the operations of a queue that is disabled or reset, or whose device ends.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostQueue {
    /// Another queue executes them; the core, if there is none and it may.
    Other = 0,
    /// The core executes them.
    Core = 1,
    /// They end with status 0, and `queue_lost` says why.
    Error = 2,
}

/// Why a queue executes nothing more.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLostReason {
    /// It does execute.
    None = 0,
    /// It was disabled, or it or its device was reset, since it was opened.
    Disabled = 1,
    /// Its device has ended, or has failed.
    DeviceEnded = 2,
    /// The kernel refuses descriptors.
    Refused = 3,
    /// Another reason, which this version has no number for.
    Other = 4,
}

/// A queue that gets nothing more.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ExcludedQueue {
    /// Its name, such as "wq0.1", which ends with 0; "" on a virtual device.
    pub name: [c_char; 32],
    /// Its number among the queues that were opened, from 0, in the order of dray_note.
    pub number: u32,
    /// A dray_queue_lost_reason.
    pub reason: u32,
    /// For DRAY_QUEUE_LOST_REASON_REFUSED the errno of the kernel; 0 if it has written only a part.
    pub error: i32,
    /// 0.
    pub reserved: u32,
}

const _: () = assert!(size_of::<ExcludedQueue>() == 48);

/// Who executes an operation, as far as that is free.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A device from `device_from_bytes` on, the core below.
    Threshold = 0,
    /// A device, whenever one has the operation.
    Device = 1,
    /// The core, whenever it has the operation.
    Core = 2,
    /// Whom the cost model takes for faster, by size, operations in flight and batch.
    CostModel = 3,
    /// The same, from what operations have taken so far: one of 64 of a size goes to the other.
    Learned = 4,
}

/// What an operation costs on the core and on a device, in nanoseconds of 0 and more. Set `size` to
/// sizeof(dray_cost_model).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CostModel {
    /// sizeof(dray_cost_model), so that later versions can tell what is there.
    pub size: usize,
    /// The core: an operation of no bytes.
    pub core_call_ns: f64,
    /// The core: a KiB, not in its caches.
    pub core_kib_ns: f64,
    /// The core: preparing and submitting a descriptor.
    pub submit_ns: f64,
    /// The core: preparing one more operation of a batch.
    pub batched_ns: f64,
    /// The device: from submission to completion, without the bytes.
    pub device_latency_ns: f64,
    /// The device: a KiB.
    pub device_kib_ns: f64,
}

/// How several queues are opened as one mover. Set `size` to sizeof(dray_channels_options), all else to 0
/// or what you want.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ChannelsOptions {
    /// sizeof(dray_channels_options), so that later versions can tell what is there.
    pub size: usize,
    /// A dray_backend: all work queues of this machine that are free, or those of a virtual device; ANY:
    /// none is needed.
    pub backend: u32,
    /// Queues of the virtual device, 1 to 8; 0: 1. Other backends do not look at it.
    pub virtual_queues: u32,
    /// Operations that can be enqueued or in flight at once, 1 to 1048576; 0: 256. This times `max_stripes`, or times
    /// the queues that were opened if those are fewer, is at most 1048576, too.
    pub slots: u32,
    /// A dray_require.
    pub require: u32,
    /// A dray_page_fault.
    pub page_fault: u32,
    /// Times that a page is made present without a byte done between them, at most; 0: 64. None is
    /// DRAY_PAGE_FAULT_RETURN of `page_fault`.
    pub page_faults: u32,
    /// A dray_full_queue.
    pub full_queue: u32,
    /// Bytes of the smallest operation for a device, the core executes others; 0: all are for a device;
    /// UINT32_MAX: none.
    pub device_from_bytes: u32,
    /// Bytes of the smallest stripe; 0: 64 KiB.
    pub stripe_bytes: u32,
    /// Queues that an operation is striped over at most, 1 to 1024; 0: 8.
    pub max_stripes: u32,
    /// Operations below so many bytes are gathered into batches; 0: 16 KiB; 1: none (in Rust, 0).
    pub gather_below_bytes: u32,
    /// Operations that are gathered into one batch at most; 0: 32.
    pub max_gathered: u32,
    /// A dray_choice.
    pub choice: u32,
    /// A dray_numa.
    pub numa: u32,
    /// NUMA node, if `numa` is not DRAY_NUMA_THREAD.
    pub numa_node: u32,
    /// 0.
    pub reserved: u32,
    /// What the cost model of DRAY_CHOICE_COST_MODEL starts from; NULL: published times of a
    /// 4th-generation Xeon.
    pub cost: *const CostModel,
    /// 1: the core and a virtual device look at addresses first, as with `checked` of dray_options; in Rust,
    /// `check_core` is the core's part of it. Page lists look unless `unchecked` of dray_page_list_options is 1.
    pub checked: u32,
    /// A dray_lost_queue_policy.
    pub lost_queue: u32,
    /// A queue of another node gets an operation when every local one has so many bytes more in flight; 0:
    /// 256 KiB.
    pub remote_bytes: u64,
}

const _: () = assert!(size_of::<ChannelsOptions>() == 96);

/// An operation of channels that has ended, and who did what of it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// How it ended. Its executor is the core if that has executed any of it, or else the device.
    pub completion: Completion,
    /// Bytes that devices have done.
    pub device_bytes: u64,
    /// Bytes that the core has done.
    pub core_bytes: u64,
    /// Stripes of it that queues have accepted; 0 if no device had any of it.
    pub stripes: u32,
    /// Page faults after which the device went on.
    pub resumed_faults: u32,
    /// A dray_core_reason.
    pub core_reason: u32,
    /// 1 if it travelled in a batch with others that were enqueued singly.
    pub gathered: u8,
    /// 1 if every queue was full, and the operation was not to wait.
    pub queue_was_full: u8,
    /// Times that it, or a part of it, went to another executor because its queue was lost; 255: 255 or more.
    pub moved: u8,
    /// 0.
    pub reserved: u8,
}

const _: () = assert!(size_of::<Outcome>() == 96);
