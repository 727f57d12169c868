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
}

/// An operation that has ended.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// What the operation was given.
    pub user_data: u64,
    /// Address of the page fault, for status 3.
    pub fault_address: u64,
    /// Bytes done before a fault; offset of a difference.
    pub bytes_completed: u32,
    /// CRC32C, of operations that compute one.
    pub crc32c: u32,
    /// A dray_executor.
    pub executor: u32,
    /// Status of the completion record (Intel DSA specification, 8.2): 1 is success, 0 not executed.
    pub status: u8,
    /// Result of a comparison: 1 if there is a difference.
    pub result: u8,
    /// 0.
    pub reserved: [u8; 2],
}
