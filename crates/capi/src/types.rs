//! What C sees.

use std::ffi::c_char;

/// Who is to execute operations.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// A work queue of this machine; fails without one.
    Hardware = 0,
    /// A virtual device on threads of this process.
    Virtual = 1,
    /// The calling core.
    Cpu = 2,
    /// A work queue of this machine if there is one that is free, the calling core if not: every
    /// completion says which.
    Any = 3,
}

/// Who has executed an operation.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// A device of this machine.
    Hardware = 0,
    /// The virtual device of this process.
    Virtual = 1,
    /// A core.
    Cpu = 2,
}

/// What a thread does while it waits.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Looks again at once.
    Spin = 0,
    /// A PAUSE between looks.
    Pause = 1,
    /// UMWAIT; -ENOTSUP where the processor has none.
    Umwait = 2,
    /// Lets other threads run between looks.
    Yield = 3,
}

/// How a mover is opened. Set `size` to sizeof(dray_options), all else to 0 or what you want.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// sizeof(dray_options), so that later versions can tell what is there.
    pub size: usize,
    /// A dray_backend.
    pub backend: u32,
    /// Operations that can be enqueued or in flight at once; 0: 128.
    pub slots: u32,
    /// Name of a work queue, such as "wq0.1"; NULL: the first that is free.
    pub queue: *const c_char,
    /// 1: a core or a virtual device looks at addresses first. Memory that it cannot access then ends an
    /// operation with a page fault (status 3), as on hardware, and not the process with a signal. Costs
    /// a system call for each operand.
    pub checked: u32,
    /// 0.
    pub reserved: u32,
}

/// Tags of a data integrity field.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tags {
    /// Reference tag.
    pub reference: u32,
    /// Bits of the application tag that are forced to 0.
    pub app_mask: u16,
    /// Application tag.
    pub app: u16,
}

/// How data integrity fields are checked and made. Set `size` to sizeof(dray_dif), all else to 0 or what
/// you want.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Dif {
    /// sizeof(dray_dif), so that later versions can tell what is there.
    pub size: usize,
    /// Bytes of a block without its field: 512, 520, 4096 or 4104.
    pub block_bytes: u32,
    /// Bits 7:0 of the DIF flags but for the block size (Intel DSA specification, 8.3.17).
    pub flags: u8,
    /// Source DIF flags: what is checked.
    pub source_flags: u8,
    /// Destination DIF flags: what is made.
    pub destination_flags: u8,
    /// 0.
    pub reserved: u8,
    /// Of the first block that is read.
    pub source: Tags,
    /// Of the first block that is written.
    pub destination: Tags,
}

/// An operation that has ended.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// What the operation was given.
    pub user_data: u64,
    /// Address of the page fault, for status 3.
    pub fault_address: u64,
    /// CRC, of operations that compute one; CRC32C in the lower half.
    pub crc: u64,
    /// Bytes done before a fault; offset of a difference.
    pub bytes_completed: u32,
    /// Bytes of the delta record that was made.
    pub delta_bytes: u32,
    /// Tags of the block after the last that was checked.
    pub source: Tags,
    /// Tags of the block after the last that was made.
    pub destination: Tags,
    /// A dray_executor.
    pub executor: u32,
    /// Status of the completion record (Intel DSA specification, 8.2): 1 is success, 0 not executed.
    pub status: u8,
    /// Result of a comparison or a delta: 1 if there is a difference, 2 if the record is full; for status
    /// 9 which integrity checks failed.
    pub result: u8,
    /// 1 if the fault of status 3 was a write.
    pub write_fault: u8,
    /// 0.
    pub reserved: [u8; 9],
}

const _: () = assert!(size_of::<Completion>() == 64);

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
    /// The device waits for pages: every queue must allow it.
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

/// Why the core executed an operation, or a part of it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreReason {
    /// It did not.
    None = 0,
    /// It was to execute all that it can.
    Chosen = 1,
    /// The operation is below the threshold.
    BelowThreshold = 2,
    /// The cost model takes the core for faster.
    Faster = 3,
    /// The cost model tries out whether the core is faster by now.
    Tried = 4,
    /// No channel leads to a device with this operation.
    NoDevice = 5,
    /// Every queue was full.
    QueueFull = 6,
    /// A device met a page that was not present.
    PageFault = 7,
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
    /// Queues of the virtual device, 1 to 8.
    pub virtual_queues: u32,
    /// Operations that can be enqueued or in flight at once; 0: 256.
    pub slots: u32,
    /// A dray_require.
    pub require: u32,
    /// A dray_page_fault.
    pub page_fault: u32,
    /// Page faults of one operation's part after which the device goes on, at most; 0: 64.
    pub page_faults: u32,
    /// A dray_full_queue.
    pub full_queue: u32,
    /// Bytes of the smallest operation for a device, the core executes others; 0: all are for a device;
    /// UINT32_MAX: none.
    pub device_from_bytes: u32,
    /// Bytes of the smallest stripe; 0: 64 KiB.
    pub stripe_bytes: u32,
    /// Queues that an operation is striped over at most; 0: 8.
    pub max_stripes: u32,
    /// Operations below so many bytes are gathered into batches; 0: 16 KiB; 1: none.
    pub gather_below_bytes: u32,
    /// Operations that are gathered into one batch at most; 0: 32.
    pub max_gathered: u32,
}

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
    /// Queues that it was striped over; 0 if no device had any of it.
    pub stripes: u32,
    /// Page faults after which the device went on.
    pub resumed_faults: u32,
    /// A dray_core_reason.
    pub core_reason: u32,
    /// 1 if it travelled in a batch with others that were enqueued singly.
    pub gathered: u8,
    /// 1 if every queue was full, and the operation was not to wait.
    pub queue_was_full: u8,
    /// 0.
    pub reserved: [u8; 2],
}

const _: () = assert!(size_of::<Outcome>() == 96);
