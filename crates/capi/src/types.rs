//! What C sees of a mover with one queue.

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
    /// Polls again at once.
    Spin = 0,
    /// A PAUSE between polls.
    Pause = 1,
    /// UMWAIT; -ENOTSUP where the processor has none.
    Umwait = 2,
    /// Lets other threads run between polls.
    Yield = 3,
}

/// Which work queues are taken, by the NUMA nodes of their devices.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numa {
    /// All; those of the calling thread's node first.
    Thread = 0,
    /// All; those of `numa_node` first.
    First = 1,
    /// Those of `numa_node` alone.
    Only = 2,
}

/// Flags of one operation, for [`dray_next_flags`](crate::dray_next_flags): bits of the descriptor (Intel
/// DSA specification, 8.1.3).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// The device waits for pages that are not present, if its queue allows it.
    BlockOnFault = 1 << 1,
    /// Writes go to the cache instead of memory.
    CacheControl = 1 << 8,
    /// Writes are not reordered.
    StrictOrdering = 1 << 13,
    /// The destination is read back before the operation ends.
    DestinationReadback = 1 << 14,
    /// CRC: seed and result are neither inverted nor reflected, most significant bit first. For the register of
    /// the instruction CRC32 see dray_crc32c.
    CrcBypassInversion = 1 << 17,
    /// CRC: data bytes enter with bit 7 first.
    CrcBypassDataReflection = 1 << 18,
}

/// How a mover is opened. Set `size` to sizeof(dray_options), all else to 0 or what you want.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// sizeof(dray_options), so that later versions can tell what is there.
    pub size: usize,
    /// A dray_backend.
    pub backend: u32,
    /// Operations that can be enqueued or in flight at once, 1 to 1048576; 0: 128.
    pub slots: u32,
    /// Name of a work queue, such as "wq0.1"; NULL: the first that is free.
    pub queue: *const c_char,
    /// 1: a core or a virtual device looks at addresses first. Memory that it cannot access then ends an
    /// operation with a page fault (status 3) after the bytes before it, as on hardware, and not the process
    /// with a signal. Costs a system call for each operand, or for each of its pages if there are two; before
    /// Linux 5.14 for each of its pages.
    pub checked: u32,
    /// A dray_numa: which work queue is the first.
    pub numa: u32,
    /// NUMA node, if `numa` is not DRAY_NUMA_THREAD.
    pub numa_node: u32,
    /// A dray_page_fault but DRAY_PAGE_FAULT_FINISH_ON_CORE: what becomes of an operation whose device meets a
    /// page that is not present.
    pub page_fault: u32,
}

const _: () = assert!(size_of::<Options>() == 40);

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
    /// A dray_core_reason: why the core executed it, or a part of it.
    pub core_reason: u8,
    /// 1 if every queue was full, and the operation was not to wait.
    pub queue_was_full: u8,
    /// A dray_queue_lost_reason: why its queue has not executed it, and nothing else has either (status 0).
    pub queue_lost: u8,
    /// 1 if dray_withdraw took it, or a part of it, back: status 0.
    pub withdrawn: u8,
    /// 0.
    pub reserved: u8,
    /// Submissions of its descriptors that a queue without room did not accept.
    pub retries: u32,
}

const _: () = assert!(size_of::<Completion>() == 64);

/// Why the core executed an operation, or a part of it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CoreReason {
    /// It did not.
    #[default]
    None = 0,
    /// It was to execute all that it can.
    Chosen = 1,
    /// The operation is below the threshold.
    BelowThreshold = 2,
    /// The cost model takes the core for faster.
    Faster = 3,
    /// The cost model tries out whether the core is faster by now.
    Tried = 4,
    /// No work queue was opened, or none leads to a device with this operation.
    NoDevice = 5,
    /// Every queue was full.
    QueueFull = 6,
    /// A device met a page that was not present.
    PageFault = 7,
    /// The queues that could have executed it were disabled or reset, or are gone with their device.
    QueueLost = 8,
}

impl CoreReason {
    /// By its number.
    pub(crate) fn of(number: u8) -> CoreReason {
        use CoreReason::{
            BelowThreshold, Chosen, Faster, NoDevice, None, PageFault, QueueFull, QueueLost, Tried,
        };
        let all = [
            None,
            Chosen,
            BelowThreshold,
            Faster,
            Tried,
            NoDevice,
            QueueFull,
            PageFault,
            QueueLost,
        ];
        all.get(usize::from(number)).copied().unwrap_or_default()
    }
}
