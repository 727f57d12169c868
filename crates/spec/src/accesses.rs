//! Which bytes a descriptor reads and writes, by its fields alone.

use core::ops::Range;

use crate::{Descriptor, Flags, Opcode, dif};

/// Bytes of a completion record.
const RECORD: u64 = 32;

/// Ranges that a descriptor accesses; empty ones for what it has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accesses {
    reads: [(u64, u64); 3],
    writes: [(u64, u64); 2],
    /// Its completion record.
    record: (u64, u64),
}

impl Accesses {
    /// Those of a descriptor; of a batch its list and record alone.
    pub fn of(d: &Descriptor) -> Accesses {
        let size = u64::from(d.size);
        let (first, second) = ((d.address1, size), (d.address2, size));
        let mut accesses = Accesses::default();
        let (reads, writes) = (&mut accesses.reads, &mut accesses.writes);
        match d.opcode() {
            Ok(Opcode::Batch) => reads[0] = (d.address1, 64 * size),
            Ok(Opcode::Memmove | Opcode::CopyCrc) => (reads[0], writes[0]) = (first, second),
            Ok(Opcode::Fill) => writes[0] = second,
            Ok(Opcode::Compare) => (reads[0], reads[1]) = (first, second),
            Ok(Opcode::ComparePattern | Opcode::CrcGenerate | Opcode::DifCheck) => reads[0] = first,
            Ok(Opcode::CreateDelta) => {
                (reads[0], reads[1]) = (first, second);
                writes[0] = (d.delta_record(), d.max_delta_size().into());
            }
            Ok(Opcode::ApplyDelta) => {
                reads[0] = (d.address1, d.delta_record_size().into());
                writes[0] = second;
            }
            Ok(Opcode::Dualcast) => {
                (reads[0], writes[0]) = (first, second);
                writes[1] = (d.destination2(), size);
            }
            Ok(
                opcode @ (Opcode::DifInsert
                | Opcode::DifStrip
                | Opcode::DifUpdate
                | Opcode::DixGenerate),
            ) => {
                let (read, written) = dif::block_bytes(opcode, d.dif_flags());
                reads[0] = first;
                writes[0] = (d.address2, size / read as u64 * written as u64);
            }
            // No data of the program, or of an operation between address spaces: its ranges are not all the submitter's.
            _ => {}
        }
        if matches!(d.opcode(), Ok(Opcode::CrcGenerate | Opcode::CopyCrc))
            && d.flags().contains(Flags::CRC_READ_SEED)
        {
            accesses.reads[2] = (d.crc_seed_address(), 8);
        }
        if d.flags().contains(Flags::COMPLETION_ADDRESS_VALID) {
            accesses.record = (d.completion_addr, RECORD);
        }
        accesses
    }

    /// Bytes that one of two writes and the other accesses. Records that are shared are another matter.
    pub fn conflict(&self, other: &Accesses) -> Option<Range<u64>> {
        self.written_by(other).or_else(|| other.written_by(self))
    }

    /// Bytes of data of another one that this one writes. Each member of a batch is compared with all before it: plain loops.
    fn written_by(&self, other: &Accesses) -> Option<Range<u64>> {
        for written in [self.writes[0], self.writes[1], self.record] {
            if written.1 == 0 {
                continue;
            }
            for data in other.reads.iter().chain(&other.writes) {
                if let Some(bytes) = common(written, *data) {
                    return Some(bytes);
                }
            }
        }
        None
    }

    /// Whether one that reads and writes this can run twice, in any order: what it writes it does not read.
    pub fn repeats(&self) -> bool {
        let pairs = self.writes.into_iter();
        let mut pairs = pairs.flat_map(|write| self.reads.map(|read| (read, write)));
        pairs.all(|(read, write)| common(read, write).is_none())
    }

    /// Ranges of data that it reads: address and bytes.
    pub fn read(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        self.reads.into_iter().filter(|range| range.1 > 0)
    }

    /// Ranges of data that it writes: address and bytes.
    pub fn written(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        self.writes.into_iter().filter(|range| range.1 > 0)
    }

    /// Address and bytes of its completion record.
    pub fn record_range(&self) -> Option<(u64, u64)> {
        (self.record.1 > 0).then_some(self.record)
    }

    /// Whether it writes to a range, its record included.
    pub fn writes_to(&self, range: (u64, u64)) -> bool {
        let mut writes = self.written().chain(self.record_range());
        writes.any(|write| common(write, range).is_some())
    }

    /// Of these its record alone.
    #[must_use]
    pub fn of_record(&self) -> Accesses {
        Accesses {
            record: self.record,
            ..Accesses::default()
        }
    }

    /// Address of its completion record.
    pub fn record(&self) -> Option<u64> {
        (self.record.1 > 0).then_some(self.record.0)
    }
}

/// Bytes that two ranges have in common. A range that ends behind the address space ends with it.
#[inline]
fn common(a: (u64, u64), b: (u64, u64)) -> Option<Range<u64>> {
    let end = |(start, len): (u64, u64)| start.saturating_add(len);
    let range = a.0.max(b.0)..end(a).min(end(b));
    (a.1 > 0 && b.1 > 0 && range.start < range.end).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(from: u64, to: u64, len: u32) -> Accesses {
        Accesses::of(&Descriptor::memmove(from, to, len))
    }

    #[test]
    fn a_write_conflicts_with_each_access_and_reads_do_not() {
        let a = copy(0x1000, 0x2000, 0x100);
        assert_eq!(a.conflict(&copy(0x1000, 0x3000, 0x100)), None, "both read");
        assert_eq!(a.conflict(&copy(0x20ff, 0x5000, 1)), Some(0x20ff..0x2100));
        assert_eq!(a.conflict(&copy(0x2100, 0x5000, 1)), None, "neighbours");
        assert_eq!(copy(0x5000, 0x10ff, 9).conflict(&a), Some(0x10ff..0x1100));
        assert_eq!(copy(u64::MAX, u64::MAX, 9).conflict(&a), None);
    }

    #[test]
    fn a_record_conflicts_with_data_and_not_with_a_record() {
        let with = |d: Descriptor| Accesses::of(&d.with_completion(0x4000));
        let copy = with(Descriptor::memmove(0x1000, 0x2000, 64));
        assert_eq!(copy.record(), Some(0x4000));
        assert_eq!(
            copy.conflict(&with(Descriptor::memmove(0x6000, 0x7000, 64))),
            None
        );
        let over = Accesses::of(&Descriptor::fill(0, 0x4010, 4));
        assert_eq!(copy.conflict(&over), Some(0x4010..0x4014));
    }
}
