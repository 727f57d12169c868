//! Completions, as C sees them.

use std::ffi::c_int;

use dray::channels::{CoreReason as Reason, Outcome};
use dray_spec::{DifTags, Status};

use crate::types::{Completion, CoreReason, Executor, Tags};

/// A completion as C sees it.
pub(crate) fn seen(completion: &dray::Completion) -> Completion {
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
        executor: match completion.executor {
            dray::Executor::Hardware => Executor::Hardware as u32,
            dray::Executor::Cpu => Executor::Cpu as u32,
            _ => Executor::Virtual as u32,
        },
        status: record.status().code(),
        result: record.result,
        write_fault: record.status().is_write_fault().into(),
        core_reason: CoreReason::None as u8,
        queue_was_full: 0,
        reserved: [0; 7],
    }
}

/// The same, of an operation of channels.
pub(crate) fn seen_outcome(outcome: &Outcome) -> Completion {
    Completion {
        core_reason: reason(outcome) as u8,
        queue_was_full: outcome.queue_was_full.into(),
        ..seen(&outcome.completion)
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
