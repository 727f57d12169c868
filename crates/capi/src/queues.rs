//! Work queues of this machine, before any is opened.

use std::ffi::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;

use dray::hw::{HwError, Paths, QueueInfo};
use dray_device::WorkQueueMode;

use crate::backend::{chain, refused};
use crate::completion::count;
use crate::error::call;
use crate::mover::place;

/// A work queue of this machine.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    /// Its name, such as "wq0.1", which ends with 0.
    pub name: [c_char; 32],
    /// NUMA node of its device; UINT32_MAX: the machine says none.
    pub numa_node: u32,
    /// 1: dedicated, one client at a time has it; 0: shared.
    pub dedicated: u32,
    /// Descriptors that it holds for this process; 0 if programs cannot use it.
    pub entries: u32,
    /// Operations of a batch at most.
    pub max_batch: u32,
    /// Bytes of one descriptor at most; larger operations travel in parts.
    pub max_transfer_bytes: u64,
    /// 1: its device waits for pages that are not present, if it is asked to.
    pub block_on_fault: u32,
    /// 0: this process may open it, unless another one has a dedicated queue; or the code that opening it gives, below 0.
    pub error: i32,
    /// Why not, which ends with 0; "" if it may.
    pub why_not: [c_char; 256],
}

const _: () = assert!(size_of::<Queue>() == 320);

/// Work queues of this machine, by device and number, none of which is opened: how many there are. Writes at most
/// `count` of them to `into`, which may be NULL for 0.
///
/// # Errors
/// -EINVAL: no place. -EIO: the directory of device files cannot be read.
///
/// # Safety
/// `into` must be a place for `count` queues.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_queues(into: *mut Queue, count: usize) -> c_int {
    call(|| {
        if count > 0 {
            place("queues", into, count)?;
        }
        let found = Paths::from_environment()
            .survey()
            .map_err(|error| refused(&error))?;
        for (n, (name, found)) in found.iter().take(count).enumerate() {
            // SAFETY: `n` is below the caller's count.
            let place = unsafe { into.add(n) };
            // SAFETY: a place of the caller's.
            unsafe { place.write(queue(name, found)) };
        }
        Ok(self::count(found.len()))
    })
}

fn queue(name: &str, found: &Result<QueueInfo, HwError>) -> Queue {
    let mut queue = Queue {
        name: [0; 32],
        numa_node: u32::MAX,
        dedicated: 0,
        entries: 0,
        max_batch: 0,
        max_transfer_bytes: 0,
        block_on_fault: 0,
        error: 0,
        why_not: [0; 256],
    };
    text(&mut queue.name, name);
    match found {
        Ok(info) => {
            queue.numa_node = info.numa_node.unwrap_or(u32::MAX);
            queue.dedicated = (info.mode == WorkQueueMode::Dedicated).into();
            queue.entries = info.entries.into();
            queue.max_batch = info.capabilities.max_batch;
            queue.max_transfer_bytes = info.capabilities.max_transfer_bytes;
            queue.block_on_fault = info.capabilities.block_on_fault.into();
            if let Some(error) = forbidden(info) {
                queue.error = -libc::EACCES;
                text(&mut queue.why_not, &error);
            }
        }
        Err(error) => {
            queue.error = refused(error).code();
            text(&mut queue.why_not, &chain(error));
        }
    }
    queue
}

/// Why this user may not open the file of a queue.
fn forbidden(info: &QueueInfo) -> Option<String> {
    let path = std::ffi::CString::new(info.path.as_os_str().as_bytes()).ok()?;
    // SAFETY: a string that ends with 0.
    let denied = unsafe { libc::access(path.as_ptr(), libc::R_OK | libc::W_OK) } != 0;
    denied.then(|| {
        let error = std::io::Error::last_os_error();
        format!("{} cannot be opened: {error}", info.path.display())
    })
}

/// Writes a text that ends with 0, and cuts what is too long.
pub(crate) fn text(into: &mut [c_char], text: &str) {
    // The last byte stays 0.
    let mut most = text.len().min(into.len() - 1);
    while !text.is_char_boundary(most) {
        most -= 1;
    }
    for (place, byte) in into.iter_mut().zip(text[..most].bytes()) {
        *place = byte as c_char;
    }
}
