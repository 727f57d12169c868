//! Create and apply delta record (spec 8.3.8, 8.3.9).

use dray_ops::{
    DELTA_ENTRY_BYTES, DeltaCreated, DeltaCursor, DeltaEntry, DeltaError, DeltaSizeError,
    apply_delta, create_delta, create_delta_at,
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
    #[inline]
    pub(super) fn create_delta(&mut self) -> DescriptorResult {
        let d = self.d;
        let (a, b, to) = (d.address1, d.address2, d.delta_record());
        let sources = self.extent(&[source(a), source2(b)]);
        let entry = DELTA_ENTRY_BYTES as u64;
        // What is behind the last whole entry is not used.
        let max = u64::from(d.max_delta_size()) / entry * entry;
        let place = Extent::of(self.memory, &[destination(to)], max);
        let room = place.bytes / entry * entry;
        // Words are compared whole.
        let words = sources.bytes & !7;
        let created = match self.moved {
            false => Ok(DeltaCreated::Equal),
            true => match self
                .memory
                .in_place_into([(a, words), (b, words)], (to, room))
            {
                Some(([left, right], record)) => create_delta(left, right, record),
                None => self.delta_by_chunks(words, room),
            },
        };
        let Ok(created) = created else {
            // A size that passed no check.
            return DescriptorResult::status(Status::ADDRESS_ALIGNMENT);
        };
        let used = created.record_bytes() as u64;
        if let DeltaCreated::Overflow { compared_bytes, .. } = created {
            let compared = compared_bytes as u64;
            return match place.is_faulted() {
                true => self.end(&place.after(compared), partial(used)),
                false => self.created(2, used, compared),
            };
        }
        match sources.is_faulted() {
            true => self.end(&sources.after(words), partial(used)),
            false => self.created(created.result(), used, 0),
        }
    }

    /// As [`create_delta`], of `bytes` of both sources into a record with `room`.
    #[inline(never)]
    fn delta_by_chunks(&mut self, bytes: u64, room: u64) -> Result<DeltaCreated, DeltaSizeError> {
        let (a, b, to) = (self.d.address1, self.d.address2, self.d.delta_record());
        let (mut left, mut right) = ([0; CHUNK], [0; CHUNK]);
        let mut entries = [0; CHUNK_ENTRIES * DELTA_ENTRY_BYTES];
        let (mut offset, mut used) = (0, 0);
        while offset < bytes {
            let n = (bytes - offset).min(CHUNK as u64) as usize;
            self.memory.read(a + offset, &mut left[..n]);
            self.memory.read(b + offset, &mut right[..n]);
            let free = entries.len().min((room - used) as usize);
            let into = &mut entries[..free];
            let created = create_delta_at(offset as usize, &left[..n], &right[..n], into)?;
            let written = created.record_bytes();
            if written > 0 {
                self.memory.write(to + used, &entries[..written]);
                used += written as u64;
            }
            if let DeltaCreated::Overflow { compared_bytes, .. } = created {
                return Ok(DeltaCreated::Overflow {
                    record_bytes: used as usize,
                    compared_bytes: offset as usize + compared_bytes,
                });
            }
            offset += n as u64;
        }
        Ok(match used {
            0 => DeltaCreated::Equal,
            _ => DeltaCreated::Complete {
                record_bytes: used as usize,
            },
        })
    }

    /// A record is complete, or full.
    #[inline]
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

    #[inline]
    pub(super) fn apply_delta(&mut self) -> DescriptorResult {
        let d = self.d;
        let (from, to, size) = (d.address1, d.address2, u64::from(d.size));
        let entry = DELTA_ENTRY_BYTES as u64;
        let record_bytes = u64::from(d.delta_record_size()) / entry * entry;
        let record = Extent::of(self.memory, &[source(from)], record_bytes);
        let whole = Extent::of(self.memory, &[destination(to)], size);
        let readable = record.bytes / entry * entry;
        if self.moved {
            let in_place = match whole.is_faulted() {
                true => None,
                false => self.memory.in_place_into([(from, readable)], (to, size)),
            };
            let applied = match in_place {
                Some(([record], bytes)) => apply_delta(record, bytes).map_err(refused),
                None => self.apply_entries(readable, whole.is_faulted()),
            };
            if let Err(ended) = applied {
                return ended;
            }
        }
        if record.is_faulted() {
            return self.end(&record.after(readable), success());
        }
        DescriptorResult::status(Status::SUCCESS)
    }

    /// Applies the entries in the first `readable` bytes of the record, up to one that breaks a rule or, of a
    /// destination that is not there as a whole, whose word is not there. The error is how that ends.
    #[inline(never)]
    fn apply_entries(&mut self, readable: u64, in_part: bool) -> Result<(), DescriptorResult> {
        let (from, to) = (self.d.address1, self.d.address2);
        let entry = DELTA_ENTRY_BYTES as u64;
        let mut cursor = DeltaCursor::new(self.d.size as usize);
        let mut entries = [[0; DELTA_ENTRY_BYTES]; READ_ENTRIES];
        let mut offset = 0;
        while offset < readable {
            let count = ((readable - offset) / entry).min(READ_ENTRIES as u64) as usize;
            let entries = &mut entries[..count];
            self.memory.read(from + offset, entries.as_flattened_mut());
            for entry in entries {
                let applied = cursor.applied_bytes() as u64;
                let DeltaEntry { offset_bytes, data } = cursor.next(*entry).map_err(refused)?;
                if in_part {
                    let word = Extent::part(self.memory, destination(to), offset_bytes as u64, 8);
                    if word.is_faulted() {
                        return Err(self.end(&word.after(applied), success()));
                    }
                }
                self.memory.write(to + offset_bytes as u64, &data);
            }
            offset += count as u64 * entry;
        }
        Ok(())
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
