//! Create and apply delta record (spec 8.3.8, 8.3.9).

use dray_ops::{
    DELTA_ENTRY_BYTES, DeltaCreated, DeltaCursor, DeltaEntry, DeltaError, create_delta_at,
};
use dray_spec::{CompletionRecord, Flags, Status};

use super::{CHUNK, Run, success};
use crate::extent::{Extent, destination, source, source2};
use crate::{DescriptorResult, Memory};

/// Entries that one chunk can give.
const CHUNK_ENTRIES: usize = CHUNK / 8;

/// Entries of a record that are read at a time.
const READ_ENTRIES: usize = 256;

impl<M: Memory> Run<'_, M> {
    pub(super) fn create_delta(&mut self) -> DescriptorResult {
        let d = self.d;
        let (a, b, to) = (d.address1, d.address2, d.delta_record());
        let sources = self.extent(&[source(a), source2(b)]);
        let entry = DELTA_ENTRY_BYTES as u64;
        // What is behind the last whole entry is not used.
        let max = u64::from(d.max_delta_size()) / entry * entry;
        let place = Extent::of(self.memory, &[destination(to)], max);
        let room = place.bytes / entry * entry;
        let (mut left, mut right) = ([0; CHUNK], [0; CHUNK]);
        let mut entries = [0; CHUNK_ENTRIES * DELTA_ENTRY_BYTES];
        let (mut offset, mut used) = (0, 0);
        // Words are compared whole.
        let words = sources.bytes & !7;
        while self.moved && offset < words {
            let n = (words - offset).min(CHUNK as u64) as usize;
            self.memory.read(a + offset, &mut left[..n]);
            self.memory.read(b + offset, &mut right[..n]);
            let free = entries.len().min((room - used) as usize);
            let into = &mut entries[..free];
            let created = create_delta_at(offset as usize, &left[..n], &right[..n], into);
            let Ok(created) = created else {
                // A size that passed no check.
                return DescriptorResult::status(Status::ADDRESS_ALIGNMENT);
            };
            let written = created.record_bytes();
            if written > 0 {
                self.memory.write(to + used, &entries[..written]);
                used += written as u64;
            }
            if let DeltaCreated::Overflow { compared_bytes, .. } = created {
                let compared = offset + compared_bytes as u64;
                return match place.is_faulted() {
                    true => self.end(&place.after(compared), partial(used)),
                    false => self.created(2, used, compared),
                };
            }
            offset += n as u64;
        }
        match sources.is_faulted() {
            true => self.end(&sources.after(words), partial(used)),
            false => self.created(u8::from(used > 0), used, 0),
        }
    }

    /// A record is complete, or full.
    fn created(&self, result: u8, used: u64, compared: u64) -> DescriptorResult {
        let mut record = success();
        record.result = result;
        record.bytes_completed = compared as u32;
        record.set_delta_record_size(used as u32);
        let as_expected = self.d.expected_result_mask() >> result & 1 == 1;
        if self.d.flags().contains(Flags::CHECK_RESULT) && !as_expected {
            record.status = Status::SUCCESS_PREDICATE.0;
        }
        DescriptorResult::of(record)
    }

    pub(super) fn apply_delta(&mut self) -> DescriptorResult {
        let d = self.d;
        let (from, to, size) = (d.address1, d.address2, u64::from(d.size));
        let entry = DELTA_ENTRY_BYTES as u64;
        let record_bytes = u64::from(d.delta_record_size()) / entry * entry;
        let record = Extent::of(self.memory, &[source(from)], record_bytes);
        let whole = Extent::of(self.memory, &[destination(to)], size);
        let readable = record.bytes / entry * entry;
        let mut cursor = DeltaCursor::new(d.size as usize);
        let mut entries = [[0; DELTA_ENTRY_BYTES]; READ_ENTRIES];
        let mut offset = 0;
        while self.moved && offset < readable {
            let count = ((readable - offset) / entry).min(READ_ENTRIES as u64) as usize;
            let entries = &mut entries[..count];
            self.memory.read(from + offset, entries.as_flattened_mut());
            for entry in entries {
                let applied = cursor.applied_bytes() as u64;
                let DeltaEntry { offset_bytes, data } = match cursor.next(*entry) {
                    Ok(entry) => entry,
                    Err(error) => return refused(error),
                };
                if whole.is_faulted() {
                    let word = Extent::part(self.memory, destination(to), offset_bytes as u64, 8);
                    if word.is_faulted() {
                        return self.end(&word.after(applied), success());
                    }
                }
                self.memory.write(to + offset_bytes as u64, &data);
            }
            offset += count as u64 * entry;
        }
        if record.is_faulted() {
            return self.end(&record.after(readable), success());
        }
        DescriptorResult::status(Status::SUCCESS)
    }
}

/// What was recorded before a page fault.
fn partial(used: u64) -> CompletionRecord {
    let mut record = success();
    record.result = u8::from(used > 0);
    record.set_delta_record_size(used as u32);
    record
}

fn refused(error: DeltaError) -> DescriptorResult {
    let mut outcome = DescriptorResult::status(match error {
        DeltaError::OffsetOrder { .. } => Status::DELTA_OFFSET_ORDER,
        DeltaError::OffsetRange { .. } => Status::DELTA_OFFSET_RANGE,
    });
    outcome.record.bytes_completed = error.applied_bytes() as u32;
    outcome
}
