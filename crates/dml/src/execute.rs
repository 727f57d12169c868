//! Who carries a descriptor out: a work queue of the machine, or the calling core.

use std::sync::{Mutex, OnceLock};

use dray::hw::{Paths, RawPortal};
use dray_device::{AllAccessible, Payload, ProcessMemory, Submission, WorkQueueMode};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use crate::job::ANY_NODE;
use crate::status;

/// A shared work queue.
#[derive(Debug)]
struct Queue {
    node: Option<u32>,
    limits: Limits,
    portal: Mutex<RawPortal>,
}

/// What every work queue of this process takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one operation.
    pub bytes: u64,
    /// Operations of a batch.
    pub batch: u32,
    /// Writes may be directed to the cache.
    pub cache_control: bool,
}

/// The work queues of this process; those of the process that forked it are not its own.
#[derive(Debug)]
struct Queues {
    process: u32,
    all: Vec<Queue>,
}

/// The shared work queues that can be opened, nearest to the core that asks first. A dedicated one loses what it has
/// no room for, without a word, where several jobs are submitted at once.
fn queues() -> &'static [Queue] {
    static QUEUES: OnceLock<Queues> = OnceLock::new();
    let queues = QUEUES.get_or_init(|| {
        let paths = Paths::from_environment();
        let shared = paths.discover().unwrap_or_default().into_iter();
        let shared = shared.filter(|queue| queue.mode == WorkQueueMode::Shared);
        let opened = shared.filter_map(|info| {
            let portal = RawPortal::open(&info, None).ok()?;
            Some(Queue {
                node: info.numa_node,
                limits: Limits {
                    bytes: info.capabilities.max_transfer_bytes,
                    batch: info.capabilities.max_batch,
                    cache_control: info.capabilities.general.cache_control_memory(),
                },
                portal: Mutex::new(portal),
            })
        });
        Queues {
            process: std::process::id(),
            all: opened.collect(),
        }
    });
    match queues.process == std::process::id() {
        true => &queues.all,
        false => &[],
    }
}

/// What can be submitted whichever queue takes it; `None` without a queue.
pub fn limits() -> Option<Limits> {
    let all = queues().iter().map(|queue| queue.limits);
    all.reduce(|a, b| Limits {
        bytes: a.bytes.min(b.bytes),
        batch: a.batch.min(b.batch),
        cache_control: a.cache_control && b.cache_control,
    })
}

/// Submits to a queue of this node, or of any.
///
/// # Errors
/// The `dml_status_t`: there is no queue, or none had room.
///
/// # Safety
/// As [`RawPortal::submit`].
pub unsafe fn submit(d: &Descriptor, node: u32) -> Result<(), u32> {
    let all = queues();
    if all.is_empty() {
        return Err(status::LIBACCEL_NOT_FOUND);
    }
    let of_node = |queue: &&Queue| node == ANY_NODE || queue.node.is_none_or(|its| its == node);
    for queue in all.iter().filter(of_node) {
        // A thread that panicked in a submission has left nothing half done.
        let mut portal = queue.portal.lock().unwrap_or_else(|held| held.into_inner());
        // SAFETY: the caller's promise is the same.
        let submitted = unsafe { portal.submit(d) };
        if matches!(submitted, Ok(Submission::Accepted)) {
            return Ok(());
        }
        // No room, or its device was disabled meanwhile: perhaps another has.
    }
    Err(status::WORK_QUEUES_NOT_AVAILABLE)
}

/// Carries a descriptor out on this core, a batch with all its tasks, and writes its record.
///
/// # Safety
/// What the descriptor names is valid for what it does, and its record, too.
pub unsafe fn execute(d: &Descriptor) {
    let record = match d.opcode() {
        // SAFETY: the caller's promise is the same.
        Ok(Opcode::Batch) => unsafe { execute_batch(d) },
        // SAFETY: the caller's promise is the same.
        _ => unsafe { execute_one(d) },
    };
    // SAFETY: the record is valid, and nobody else writes it.
    unsafe { write(d, record) };
}

/// # Safety
/// As [`execute`].
unsafe fn execute_one(d: &Descriptor) -> CompletionRecord {
    let d = Descriptor {
        // The core is behind everything that it has done before, and touches pages itself.
        flags_opcode: d.flags_opcode & !(Flags::FENCE | Flags::BLOCK_ON_FAULT).bits(),
        ..*d
    };
    if d.opcode() == Ok(Opcode::Drain) {
        // The core has nothing in flight.
        return CompletionRecord::with_status(Status::SUCCESS);
    }
    let opcode = match dray_device::check_software(&d) {
        Ok(opcode) => opcode,
        Err(refused) => return refused.outcome().record,
    };
    // SAFETY: the caller vouches for the addresses.
    let mut memory = unsafe { ProcessMemory::new(AllAccessible) };
    dray_device::execute(opcode, &d, &mut memory, Payload::Moved).record
}

/// # Safety
/// As [`execute`]; the list is valid.
unsafe fn execute_batch(d: &Descriptor) -> CompletionRecord {
    let list: *const Descriptor = std::ptr::with_exposed_provenance(d.address1 as usize);
    let mut status = Status::SUCCESS;
    for index in 0..d.size as usize {
        // SAFETY: the list has so many descriptors.
        let task = unsafe { list.wrapping_add(index).read() };
        let record = match task.opcode() {
            // A batch in a batch is refused (spec 3.8).
            Ok(Opcode::Batch) => CompletionRecord::with_status(Status::BAD_OPCODE),
            // SAFETY: the caller's promise is the same for each task.
            _ => unsafe { execute_one(&task) },
        };
        if record.status() != Status::SUCCESS {
            status = Status::BATCH_FAIL;
        }
        // SAFETY: each task has its record.
        unsafe { write(&task, record) };
    }
    let mut record = CompletionRecord::with_status(status);
    record.bytes_completed = d.size;
    record
}

/// # Safety
/// The descriptor's record is valid, if it has one.
unsafe fn write(d: &Descriptor, record: CompletionRecord) {
    let to: *mut CompletionRecord =
        std::ptr::with_exposed_provenance_mut(d.completion_addr as usize);
    if d.flags().contains(Flags::COMPLETION_ADDRESS_VALID) && !to.is_null() {
        // SAFETY: the caller vouches for it.
        unsafe { to.write(record) };
    }
}

/// Goes on with a descriptor that a device ended at a page fault, on this core, and writes its record.
///
/// # Safety
/// As [`execute`].
pub unsafe fn finish(d: &Descriptor, faulted: &CompletionRecord) {
    let done = faulted.bytes_completed.min(d.size);
    let rest = match d.opcode() {
        // It began at the end where the record says so, and has not read again what it wrote (spec 8.3.2).
        Ok(Opcode::Memmove) if faulted.result != 0 => Descriptor {
            size: d.size - done,
            ..*d
        },
        Ok(Opcode::Memmove) => Descriptor {
            address1: d.address1 + u64::from(done),
            address2: d.address2 + u64::from(done),
            size: d.size - done,
            ..*d
        },
        // The others read nothing that they write, so that all of it can be done again.
        _ => *d,
    };
    let record = match rest.size {
        0 => CompletionRecord::with_status(Status::SUCCESS),
        // SAFETY: the caller's promise is the same for a part.
        _ => unsafe { execute_one(&rest) },
    };
    // SAFETY: as above.
    unsafe { write(d, record) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An overlapping move that a device ended after some bytes, in either direction.
    #[test]
    fn a_move_that_faulted_is_finished_in_its_direction() {
        for (from, to) in [(0, 100), (100, 0)] {
            for done in [0, 1, 299, 300] {
                let mut bytes: Vec<u8> = (0..400_u32).map(|n| (n * 7) as u8).collect();
                let mut expected = bytes.clone();
                expected.copy_within(from..from + 300, to);
                let backwards = to > from;
                // What the device has moved.
                let part = match backwards {
                    true => from + 300 - done..from + 300,
                    false => from..from + done,
                };
                let at = if backwards { to + 300 - done } else { to };
                bytes.copy_within(part, at);
                let base = bytes.as_mut_ptr().expose_provenance() as u64;
                let mut record = CompletionRecord::with_status(Status::PAGE_FAULT);
                record.bytes_completed = done as u32;
                record.result = backwards.into();
                let mut answer = CompletionRecord::default();
                let d = Descriptor::memmove(base + from as u64, base + to as u64, 300)
                    .with_completion((&raw mut answer).expose_provenance() as u64);
                // SAFETY: both ranges lie in `bytes`, and the record is ours.
                unsafe { finish(&d, &record) };
                assert_eq!(bytes, expected, "{from} to {to}, {done} done");
                assert_eq!(answer.status(), Status::SUCCESS);
            }
        }
    }
}
