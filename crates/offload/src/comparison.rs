//! A comparison in a lane.

use dray::{Operation, Progress};
use dray_placement::{Cut, Reason};
use dray_spec::Status;

use crate::deadline::Deadline;
use crate::execute::Done;
use crate::lanes::Taken;
use crate::runtime::Runtime;
use crate::settings::Faults;
use crate::transfer::ATTEMPTS;
use crate::work::populate;

/// Compares in a lane: the offset of the first difference, or how far it came and why not further.
///
/// # Safety
/// As memcmp(3).
pub(crate) unsafe fn equal_bytes(
    runtime: &Runtime,
    mut taken: Taken<'_>,
    a: *const u8,
    b: *const u8,
    len: usize,
    done: &mut Done,
) -> Result<Option<usize>, (usize, Reason)> {
    let threshold = runtime.adaptation.threshold();
    let mut at = 0;
    let mut resumed_at = usize::MAX;
    let capabilities = taken.capabilities();
    let cut = Cut::bytes(capabilities.max_transfer_bytes);
    while at < len {
        let part = cut.next((len - at) as u64) as usize;
        if at > 0 && resumed_at == usize::MAX && threshold.reason(part as u64).is_some() {
            return Err((at, Reason::Rest));
        }
        let first = a.wrapping_add(at).expose_provenance() as u64;
        let second = b.wrapping_add(at).expose_provenance() as u64;
        let read = libc::MADV_POPULATE_READ;
        if runtime.populate_first
            && !(populate(a.wrapping_add(at), part, read)
                && populate(b.wrapping_add(at), part, read))
        {
            return Err((at, Reason::PageFault));
        }
        let mut operation = Operation::compare(first, second, part as u32);
        if capabilities.block_on_fault {
            operation = operation.with_block_on_fault();
        }
        // SAFETY: the caller's promise; this call returns when the operation has ended.
        if !unsafe { taken.enqueue(&operation) } {
            return Err((at, Reason::Busy));
        }
        let mut attempts = 0;
        while taken.submit() == Progress::Pending {
            attempts += 1;
            if attempts >= ATTEMPTS {
                taken.cancel_queued();
                return Err((at, Reason::QueueFull));
            }
            runtime.waiting.once(None);
        }
        let mut looks = 0;
        let mut deadline = Deadline::new(runtime.deadline_ns);
        let ended = loop {
            if let Some(ended) = taken.poll() {
                break ended;
            }
            if deadline.has_passed() {
                // The device only reads the operands, and writes its record into the lane's memory.
                taken.retire();
                return Err((at, Reason::Deadline));
            }
            looks += 1;
            runtime.waiting.once(taken.oldest_record());
        };
        done.executor = Some(ended.executor.into());
        let record = &ended.record;
        let completed = (record.bytes_completed as usize).min(part);
        if record.status() == Status::SUCCESS {
            if record.result & 1 == 1 {
                done.device += completed + 1;
                return Ok(Some(at + completed));
            }
            done.device += part;
            at += part;
            resumed_at = usize::MAX;
            if let Some(bytes) = runtime.adaptation.completed(looks) {
                (runtime.set_threshold)(runtime, bytes);
            }
            continue;
        }
        if record.status().code() != Status::PAGE_FAULT.0 {
            return Err((at, Reason::DeviceError));
        }
        done.device += completed;
        at += completed;
        let again = runtime.faults == Faults::Resume && resumed_at == usize::MAX;
        runtime.stats.fault(again);
        if !again {
            return Err((at, Reason::PageFault));
        }
        resumed_at = at;
        populate(
            a.wrapping_add(at),
            part - completed,
            libc::MADV_POPULATE_READ,
        );
        populate(
            b.wrapping_add(at),
            part - completed,
            libc::MADV_POPULATE_READ,
        );
    }
    Ok(None)
}
