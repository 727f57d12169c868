//! Completions, as C sees them.

use std::ffi::c_int;

use dray::Reason;
use dray::channels::Outcome;
use dray_spec::{DifTags, Status};

use crate::channel_types::QueueLostReason;
use crate::error::Refusal;
use crate::handle::Kind;
use crate::types::{Completion, CoreReason, Executor, Tags};

/// What C is given of an operation that has ended.
pub(crate) trait FromOutcome {
    /// `reason` is why the core executes all that a mover of one queue is given.
    fn of(outcome: &Outcome, reason: CoreReason) -> Self;

    /// Whether the mover gives it.
    fn check(kind: &Kind) -> Result<(), Refusal>;
}

impl FromOutcome for Completion {
    fn of(outcome: &Outcome, reason: CoreReason) -> Completion {
        let completion = &outcome.completion;
        let record = &completion.record;
        Completion {
            user_data: completion.user_data,
            fault_address: record.fault_address,
            bytes_completed: record.bytes_completed,
            crc: match record.status() {
                Status::SUCCESS => record.crc64(),
                _ => 0,
            },
            delta_bytes: record.delta_record_size(),
            source: tags(record.source_tags()),
            destination: tags(record.destination_tags()),
            executor: executor(completion.executor) as u32,
            status: record.status().code(),
            result: record.result,
            write_fault: record.status().is_write_fault().into(),
            core_reason: match (self::reason(outcome), reason) {
                (CoreReason::None, _) => CoreReason::None,
                (of_operation, CoreReason::None) => of_operation,
                (_, of_mover) => of_mover,
            } as u8,
            queue_was_full: outcome.queue_was_full.into(),
            queue_lost: lost(outcome.queue_lost).0 as u8,
            withdrawn: outcome.withdrawn.into(),
            reserved: 0,
            retries: outcome.retries,
        }
    }

    fn check(_: &Kind) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Who has executed something.
pub(crate) fn executor(executor: dray::Executor) -> Executor {
    match executor {
        dray::Executor::Hardware => Executor::Hardware,
        dray::Executor::Cpu => Executor::Cpu,
        _ => Executor::Virtual,
    }
}

/// Why a queue is lost, and the kernel's errno.
pub(crate) fn lost(lost: Option<dray::QueueLost>) -> (QueueLostReason, i32) {
    match lost {
        None => (QueueLostReason::None, 0),
        Some(dray::QueueLost::Disabled) => (QueueLostReason::Disabled, 0),
        Some(dray::QueueLost::DeviceEnded) => (QueueLostReason::DeviceEnded, 0),
        Some(dray::QueueLost::Refused { errno }) => (QueueLostReason::Refused, errno),
        Some(_) => (QueueLostReason::Other, 0),
    }
}

/// Why the core has executed any of it.
pub(crate) fn reason(outcome: &Outcome) -> CoreReason {
    match outcome.core_reason {
        None => CoreReason::None,
        Some(Reason::Chosen) => CoreReason::Chosen,
        Some(Reason::BelowThreshold) => CoreReason::BelowThreshold,
        Some(Reason::Faster) => CoreReason::Faster,
        Some(Reason::Tried) => CoreReason::Tried,
        Some(Reason::NoDevice) => CoreReason::NoDevice,
        Some(Reason::QueueFull) => CoreReason::QueueFull,
        Some(Reason::PageFault) => CoreReason::PageFault,
        Some(Reason::QueueLost) => CoreReason::QueueLost,
        Some(other) => {
            debug_assert!(false, "movers and channels give no {other:?}");
            CoreReason::Chosen
        }
    }
}

fn tags(tags: DifTags) -> Tags {
    Tags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    }
}

/// A number for C.
pub(crate) fn count(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}
