//! Completions, as C sees them.

use std::ffi::c_int;

use dray_spec::{DifTags, Status};

use crate::error::Refusal;
use crate::types::{Completion, Executor, Tags};

/// Completions through a small buffer.
///
/// # Safety
/// `into` must be a place for `count` completions.
pub(crate) unsafe fn take(
    into: *mut Completion,
    count: usize,
    fill: impl FnOnce(&mut [dray::Completion]) -> Result<usize, Refusal>,
) -> Result<c_int, Refusal> {
    if into.is_null() || count == 0 {
        return Err(Refusal::new(libc::EINVAL, "no place for completions"));
    }
    let mut look = [dray::Completion::default(); 64];
    let most = count.min(look.len());
    let found = fill(&mut look[..most])?;
    for (n, completion) in look[..found].iter().enumerate() {
        // SAFETY: `n` is below the caller's count.
        let place = unsafe { into.add(n) };
        // SAFETY: a place of the caller's.
        unsafe { place.write(seen(completion)) };
    }
    Ok(self::count(found))
}

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
        reserved: [0; 9],
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
