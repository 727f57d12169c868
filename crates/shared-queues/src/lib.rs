//! Descriptors of the caller's making to the shared work queues of this machine, or to the calling core: what the
//! interfaces of other libraries (`dml.h`, `dto.h`) stand on.
//!
//! The queues are looked for once in the life of a process, at the first submission. A child by fork(2) has none. A dedicated
//! queue is not used: it loses what it has no room for, without a word, where several threads submit.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};

use dray::hw::{Paths, RawPortal};
use dray_device::{AllAccessible, Payload, ProcessMemory, Submission, WorkQueueMode};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

/// Why nothing was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no shared work queue, or none of the node.
    NoQueue,
    /// There are some, and this process can open none.
    Unopened,
    /// None has room.
    Full,
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

#[derive(Debug)]
struct Queue {
    node: Option<u32>,
    limits: Limits,
    portal: Mutex<RawPortal>,
}

/// The work queues of this process; those of the process that forked it are not its own.
#[derive(Debug)]
struct Queues {
    process: u32,
    found: usize,
    opened: Vec<Queue>,
}

fn queues() -> Result<&'static [Queue], Refusal> {
    static QUEUES: OnceLock<Queues> = OnceLock::new();
    let queues = QUEUES.get_or_init(|| {
        let all = Paths::from_environment().discover().unwrap_or_default();
        let shared = all
            .iter()
            .filter(|queue| queue.mode == WorkQueueMode::Shared);
        let opened = shared.clone().filter_map(|info| {
            let portal = RawPortal::open(info, None).ok()?;
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
            found: shared.clone().count(),
            opened: opened.collect(),
        }
    });
    match (
        queues.process == std::process::id(),
        queues.opened.is_empty(),
    ) {
        (true, false) => Ok(&queues.opened),
        (true, true) if queues.found > 0 => Err(Refusal::Unopened),
        _ => Err(Refusal::NoQueue),
    }
}

/// What can be submitted whichever queue takes it; `None` without a queue.
pub fn limits() -> Option<Limits> {
    let all = queues().ok()?.iter().map(|queue| queue.limits);
    all.reduce(|a, b| Limits {
        bytes: a.bytes.min(b.bytes),
        batch: a.batch.min(b.batch),
        cache_control: a.cache_control && b.cache_control,
    })
}

/// Submits to a queue of this NUMA node, or of any.
///
/// # Errors
/// There is no queue, or none had room.
///
/// # Safety
/// As [`RawPortal::submit`].
pub unsafe fn submit(d: &Descriptor, node: Option<u32>) -> Result<(), Refusal> {
    let of_node = |queue: &&Queue| match (node, queue.node) {
        (Some(wanted), Some(its)) => wanted == its,
        _ => true,
    };
    let mut refusal = Refusal::NoQueue;
    for queue in queues()?.iter().filter(of_node) {
        // A thread that panicked in a submission has left nothing half done.
        let mut portal = queue.portal.lock().unwrap_or_else(|held| held.into_inner());
        // SAFETY: the caller's promise is the same.
        let submitted = unsafe { portal.submit(d) };
        if matches!(submitted, Ok(Submission::Accepted)) {
            return Ok(());
        }
        // No room, or its device was disabled meanwhile: perhaps another has.
        refusal = Refusal::Full;
    }
    Err(refusal)
}

/// The status byte of a record that a device may write meanwhile; 0 until then.
///
/// # Safety
/// The record is valid.
pub unsafe fn status(record: *const CompletionRecord) -> u8 {
    // SAFETY: the first byte is the status, and all accesses while a device may write it are atomic.
    let byte = unsafe { AtomicU8::from_ptr(record.cast_mut().cast()) };
    byte.load(Ordering::Acquire)
}

/// Carries a descriptor out on this core, a batch with its tasks: how it ends. The records of tasks are written, its own is
/// not.
///
/// # Safety
/// What the descriptor names is valid for what it does. The records of a batch's tasks are 0, but of those that a device
/// has carried out.
pub unsafe fn execute(d: &Descriptor) -> CompletionRecord {
    match d.opcode() {
        // SAFETY: the caller's promise is the same.
        Ok(Opcode::Batch) => unsafe { execute_batch(d) },
        // SAFETY: the caller's promise is the same.
        _ => unsafe { execute_one(d) },
    }
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

/// Carries out the tasks that no device has, and finishes those that met a page fault.
///
/// # Safety
/// As [`execute`]; the list is valid.
unsafe fn execute_batch(d: &Descriptor) -> CompletionRecord {
    let list: *const Descriptor = std::ptr::with_exposed_provenance(d.address1 as usize);
    let (mut failed, mut done) = (false, 0);
    for index in 0..d.size as usize {
        // SAFETY: the list has so many descriptors.
        let task = unsafe { list.wrapping_add(index).read() };
        let to: *mut CompletionRecord =
            std::ptr::with_exposed_provenance_mut(task.completion_addr as usize);
        // SAFETY: each task has its record, and the device is through with the batch.
        let before = unsafe { to.read() };
        let record = match before.status().code() {
            // What is behind a fence is not begun once a task before it has failed (spec 3.8).
            0 if failed && task.flags().contains(Flags::FENCE) => break,
            // A batch in a batch is refused (spec 3.8).
            0 if task.opcode() == Ok(Opcode::Batch) => {
                CompletionRecord::with_status(Status::BAD_OPCODE)
            }
            // SAFETY: the caller's promise is the same for each task.
            0 => unsafe { execute_one(&task) },
            // SAFETY: as above.
            code if code == Status::PAGE_FAULT.code() => unsafe { finish(&task, &before) },
            _ => before,
        };
        failed |= record.status() != Status::SUCCESS;
        done += 1;
        // SAFETY: as above.
        unsafe { to.write(record) };
    }
    let mut record = CompletionRecord::with_status(match failed {
        true => Status::BATCH_FAIL,
        false => Status::SUCCESS,
    });
    record.bytes_completed = done;
    record
}

/// Goes on with a descriptor that a device ended at a page fault, or did not carry out, on this core: how it ends.
///
/// # Safety
/// As [`execute`].
pub unsafe fn finish(d: &Descriptor, faulted: &CompletionRecord) -> CompletionRecord {
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
    match rest.size {
        0 if d.opcode() == Ok(Opcode::Memmove) => CompletionRecord::with_status(Status::SUCCESS),
        // SAFETY: the caller's promise is the same for a part.
        _ => unsafe { execute(&rest) },
    }
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
                let d = Descriptor::memmove(base + from as u64, base + to as u64, 300);
                // SAFETY: both ranges lie in `bytes`.
                let answer = unsafe { finish(&d, &record) };
                assert_eq!(bytes, expected, "{from} to {to}, {done} done");
                assert_eq!(answer.status(), Status::SUCCESS);
            }
        }
    }

    /// Fills of a byte each, with what a device has left of them: what there is afterwards.
    fn batch(left: [(u8, Flags); 4]) -> ([u8; 4], [u8; 4], CompletionRecord) {
        let (mut bytes, mut records) = ([0u8; 4], [CompletionRecord::default(); 4]);
        let base = bytes.as_mut_ptr().expose_provenance() as u64;
        let record = records.as_mut_ptr().expose_provenance() as u64;
        let mut tasks = [Descriptor::default(); 4];
        for (index, (status, flags)) in left.into_iter().enumerate() {
            let at = index as u64;
            tasks[index] = Descriptor::fill(0x0101_0101_0101_0101 * (at + 1), base + at, 1)
                .with_flags(flags)
                .with_completion(record + 32 * at);
            // SAFETY: the records are ours.
            unsafe {
                std::ptr::with_exposed_provenance_mut::<CompletionRecord>(
                    (record + 32 * at) as usize,
                )
                .write(CompletionRecord::with_status(Status(status)));
            }
        }
        let d = Descriptor::batch(tasks.as_ptr().expose_provenance() as u64, 4);
        // SAFETY: everything that the batch names is ours.
        let answer = unsafe { execute(&d) };
        (bytes, records.map(|record| record.status), answer)
    }

    #[test]
    fn tasks_that_a_device_has_left_are_done_and_what_is_behind_a_failed_fence_is_not() {
        let (plain, fence) = (Flags::EMPTY, Flags::FENCE);
        let (bytes, statuses, answer) = batch([(0, plain), (0, fence), (0, plain), (0, fence)]);
        assert_eq!((bytes, statuses), ([1, 2, 3, 4], [1; 4]));
        assert_eq!(
            (answer.status(), answer.bytes_completed),
            (Status::SUCCESS, 4)
        );
        // The second had a page fault, the first is done and is not done again.
        let fault = Status::PAGE_FAULT.with_write_fault().0;
        let (bytes, statuses, answer) = batch([(1, plain), (fault, plain), (0, fence), (0, plain)]);
        assert_eq!((bytes, statuses), ([0, 2, 3, 4], [1; 4]));
        assert_eq!(answer.status(), Status::SUCCESS);
        // The first has failed for good.
        let overlap = Status::OVERLAP.0;
        let (bytes, statuses, answer) =
            batch([(overlap, plain), (0, plain), (0, fence), (0, plain)]);
        assert_eq!((bytes, statuses), ([0, 2, 0, 0], [overlap, 1, 0, 0]));
        assert_eq!(
            (answer.status(), answer.bytes_completed),
            (Status::BATCH_FAIL, 2)
        );
    }
}
