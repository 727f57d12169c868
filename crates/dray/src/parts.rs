//! Operations in parts: a range of one as an operation of its own, what is left of one, and what
//! the records of the parts say together.

use dray_ops::{DestinationDifFlags, SourceDifFlags, Tags};
use dray_placement::{Cut, Piece, Rest};
use dray_spec::{CompletionRecord, Descriptor, DifTags, Flags, Opcode, Status};

use crate::Operation;

/// Bytes of which every part but the last must be a multiple; `None`: there are no parts of it.
#[inline]
pub(crate) fn granule(operation: &Operation) -> Option<u32> {
    let d = operation.descriptor();
    Some(match operation.opcode() {
        Opcode::Memmove
        | Opcode::Compare
        | Opcode::Dualcast
        | Opcode::CrcGenerate
        | Opcode::CopyCrc
        | Opcode::CacheFlush => 1,
        Opcode::Fill => 16,
        Opcode::ComparePattern => 8,
        opcode @ (Opcode::DifCheck
        | Opcode::DifInsert
        | Opcode::DifStrip
        | Opcode::DifUpdate
        | Opcode::DixGenerate) => block_bytes(opcode, d).0 as u32,
        _ => return None,
    })
}

/// Bytes of one block of a DIF operation in its source and in its destination.
#[inline]
fn block_bytes(opcode: Opcode, d: &Descriptor) -> (usize, usize) {
    dray_spec::dif::block_bytes(opcode, d.dif_flags())
}

/// Whether a queue whose largest transfer has `most` bytes executes it in parts, if it must.
#[inline]
pub(crate) fn has_parts(operation: &Operation, most: u64) -> bool {
    granule(operation).is_some_and(|granule| Cut::up_to(most, granule).is_some())
}

/// What is left of an operation of which `done` bytes are done.
#[inline]
pub(crate) fn rest(operation: &Operation, done: u32) -> Rest {
    let len = operation.len().into();
    let mut rest = match is_backward(operation) {
        true => Rest::backward(len),
        false => Rest::new(len),
    };
    rest.advance(done.into());
    rest
}

/// The next part of what is left of an operation, of at most `most` bytes; `None`: it has no such part.
#[inline]
pub(crate) fn next_part(operation: &Operation, rest: Rest, most: u64) -> Option<Piece> {
    match Cut::up_to(most, granule(operation)?) {
        Some(cut) => Some(rest.next(cut)),
        None => (rest.left() <= most).then(|| rest.next(Cut::WHOLE)),
    }
}

/// Whether parts of it can be executed at the same time, in any order.
pub(crate) fn is_parallel(operation: &Operation) -> bool {
    let d = operation.descriptor();
    match operation.opcode() {
        Opcode::Memmove => !overlaps(d),
        // Results are combined, which the unusual forms are not.
        Opcode::CrcGenerate | Opcode::CopyCrc => !d.flags().intersects(
            Flags::CRC_64
                .union(Flags::CRC_READ_SEED)
                .union(Flags::CRC_BYPASS_INVERSION)
                .union(Flags::CRC_BYPASS_DATA_REFLECTION),
        ),
        // A bad block ends the operation: nothing behind it is written.
        Opcode::DifStrip | Opcode::DifUpdate => false,
        _ => granule(operation).is_some(),
    }
}

/// Whether it can be begun again after some of it was done: it leaves its sources as they are.
pub(crate) fn can_repeat(operation: &Operation) -> bool {
    !is_overlapping_move(operation)
}

/// Whether it is a move onto itself, which a device may not have (GENCAP, spec 9.2.2).
pub(crate) fn is_overlapping_move(operation: &Operation) -> bool {
    operation.opcode() == Opcode::Memmove && overlaps(operation.descriptor())
}

/// Whether its parts must be executed from the last to the first.
#[inline]
pub(crate) fn is_backward(operation: &Operation) -> bool {
    let d = operation.descriptor();
    operation.opcode() == Opcode::Memmove && overlaps(d) && d.address2 > d.address1
}

fn overlaps(d: &Descriptor) -> bool {
    d.address1.abs_diff(d.address2) < u64::from(d.size)
}

/// The bytes `offset .. offset + len` of an operation, as an operation. `before` is the record of
/// the bytes before it, whose CRC it goes on with; `None`: it begins with a seed of 0.
///
/// It does not check its result: see [`finish`].
pub(crate) fn part(
    operation: &Operation,
    offset: u32,
    len: u32,
    before: Option<&CompletionRecord>,
) -> Operation {
    let mut d = *operation.descriptor();
    let distance = u64::from(offset);
    let opcode = operation.opcode();
    d.size = len;
    if matches!(opcode, Opcode::Compare | Opcode::ComparePattern) {
        d.flags_opcode &= !Flags::CHECK_RESULT.bits();
        d.operation[0] = 0;
    }
    if offset > 0 {
        match opcode {
            Opcode::Fill => {
                rotate(&mut d, (offset % 16) as usize);
                d.address2 = d.address2.wrapping_add(distance);
            }
            Opcode::ComparePattern => {
                d.address1 = d.address1.wrapping_add(distance);
                d.address2 = d.address2.rotate_right(offset % 8 * 8);
            }
            Opcode::CacheFlush => d.address2 = d.address2.wrapping_add(distance),
            Opcode::Dualcast => {
                d.address1 = d.address1.wrapping_add(distance);
                d.address2 = d.address2.wrapping_add(distance);
                let second = d.destination2().wrapping_add(distance);
                d.operation[..8].copy_from_slice(&second.to_le_bytes());
            }
            Opcode::CrcGenerate | Opcode::CopyCrc => {
                d.address1 = d.address1.wrapping_add(distance);
                if opcode == Opcode::CopyCrc {
                    d.address2 = d.address2.wrapping_add(distance);
                }
                go_on_with_crc(&mut d, before);
            }
            Opcode::DifCheck
            | Opcode::DifInsert
            | Opcode::DifStrip
            | Opcode::DifUpdate
            | Opcode::DixGenerate => advance_dif(&mut d, opcode, offset),
            _ => {
                d.address1 = d.address1.wrapping_add(distance);
                d.address2 = d.address2.wrapping_add(distance);
            }
        }
    }
    Operation::of_valid(d, operation.user_data())
}

/// A pattern that begins `by` bytes later.
fn rotate(d: &mut Descriptor, by: usize) {
    if d.flags().contains(Flags::FILL_PATTERN_16) {
        let mut both = [0; 16];
        both[..8].copy_from_slice(&d.address1.to_le_bytes());
        both[8..].copy_from_slice(&d.operation[..8]);
        both.rotate_left(by);
        let (low, high) = both.split_at(8);
        let mut first = [0; 8];
        first.copy_from_slice(low);
        d.address1 = u64::from_le_bytes(first);
        d.operation[..8].copy_from_slice(high);
    } else {
        d.address1 = d.address1.rotate_right((by % 8 * 8) as u32);
    }
}

fn go_on_with_crc(d: &mut Descriptor, before: Option<&CompletionRecord>) {
    let flags = d.flags();
    let seed = match before {
        None => 0,
        Some(record) if flags.contains(Flags::CRC_64) => record.crc64(),
        Some(record) => u64::from(record.crc32()),
    };
    d.flags_opcode &= !Flags::CRC_READ_SEED.bits();
    d.operation[..16].fill(0);
    d.operation[..8].copy_from_slice(&seed.to_le_bytes());
}

fn advance_dif(d: &mut Descriptor, opcode: Opcode, offset: u32) {
    let (read, written) = block_bytes(opcode, d);
    let blocks = offset as usize / read;
    d.address1 = d.address1.wrapping_add((blocks * read) as u64);
    d.address2 = d.address2.wrapping_add((blocks * written) as u64);
    if matches!(
        opcode,
        Opcode::DifCheck | Opcode::DifStrip | Opcode::DifUpdate
    ) {
        let flags = SourceDifFlags::from_bits(d.source_dif_flags());
        let tags = flags.advance(tags(d.source_tags()), blocks);
        put_tags(&mut d.operation[8..16], tags);
    }
    if matches!(
        opcode,
        Opcode::DifInsert | Opcode::DifUpdate | Opcode::DixGenerate
    ) {
        let flags = DestinationDifFlags::from_bits(d.destination_dif_flags());
        let tags = flags.advance(tags(d.destination_tags()), blocks);
        put_tags(&mut d.operation[16..24], tags);
    }
}

fn tags(tags: DifTags) -> Tags {
    Tags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    }
}

fn put_tags(into: &mut [u8], tags: Tags) {
    into[..4].copy_from_slice(&tags.reference.to_le_bytes());
    into[4..6].copy_from_slice(&tags.app_mask.to_le_bytes());
    into[6..8].copy_from_slice(&tags.app.to_le_bytes());
}

/// Whether a part that ended so lets the next one start: it succeeded, and found no difference.
#[inline]
pub(crate) fn goes_on(operation: &Operation, record: &CompletionRecord) -> bool {
    let found = record.result != 0
        && matches!(operation.opcode(), Opcode::Compare | Opcode::ComparePattern);
    record.status() == Status::SUCCESS && !found
}

fn is_fault(record: &CompletionRecord) -> bool {
    record.status().code() == Status::PAGE_FAULT.code()
}

/// Bytes that a part of `len` bytes has done before it met a page fault. What has no parts begins again: a delta
/// record is made, or applied, anew.
pub(crate) fn done_at_fault(operation: &Operation, record: &CompletionRecord, len: u32) -> u32 {
    // The bytes of a move that goes backward count from its end, with a result of 1 (spec 8.3.4).
    let counts = granule(operation).is_some() && (record.result != 0 || !is_backward(operation));
    match counts {
        true => record.bytes_completed.min(len),
        false => 0,
    }
}

/// The record of an operation whose last part ended with `record`, `before` bytes of the others
/// being done.
pub(crate) fn finish(
    operation: &Operation,
    before: u32,
    mut record: CompletionRecord,
) -> CompletionRecord {
    let d = operation.descriptor();
    if is_backward(operation) && before > 0 && is_fault(&record) {
        // What is before counts from the end. Of the rest only what went on backward does: a rest that no longer
        // overlaps goes forward.
        let own = match record.result & 1 {
            1 => record.bytes_completed,
            _ => 0,
        };
        record.bytes_completed = before.saturating_add(own);
        record.result = 1;
    } else if !goes_on(operation, &record) {
        record.bytes_completed = record.bytes_completed.saturating_add(before);
    }
    let compares = matches!(operation.opcode(), Opcode::Compare | Opcode::ComparePattern);
    if compares
        && record.status() == Status::SUCCESS
        && d.flags().contains(Flags::CHECK_RESULT)
        && record.result != d.expected_result() & 1
    {
        record.status = Status::SUCCESS_PREDICATE.0;
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(operation: Operation, offset: u32) -> Descriptor {
        *part(&operation, offset, 8, None).descriptor()
    }

    #[test]
    fn patterns_turn_with_the_offset() {
        let fill = Operation::fill(0x0807_0605_0403_0201, 0x1000, 64);
        let d = descriptor(fill, 3);
        assert_eq!((d.address1, d.address2), (0x0302_0108_0706_0504, 0x1003));
        let compare = Operation::compare_pattern(0x1000, 0x0807_0605_0403_0201, 64);
        let d = descriptor(compare, 9);
        assert_eq!((d.address1, d.address2), (0x1009, 0x0108_0706_0504_0302));
    }

    #[test]
    fn a_pattern_of_16_bytes_turns_over_both_halves() {
        let pattern = 0x100f_0e0d_0c0b_0a09_0807_0605_0403_0201_u128;
        let fill = Operation::try_from(Descriptor::fill_16(pattern, 0x1000, 64)).expect("a fill");
        let d = descriptor(fill, 17);
        assert_eq!(d.address1, 0x0908_0706_0504_0302);
        assert_eq!(d.pattern_high(), 0x0110_0f0e_0d0c_0b0a);
    }

    #[test]
    fn only_overlapping_moves_upwards_go_backward() {
        assert!(is_backward(&Operation::memmove(0x1000, 0x1800, 0x1000)));
        assert!(!is_backward(&Operation::memmove(0x1800, 0x1000, 0x1000)));
        assert!(!is_backward(&Operation::memmove(0x1000, 0x2000, 0x1000)));
        assert!(!is_parallel(&Operation::memmove(0x1800, 0x1000, 0x1000)));
    }

    fn first_part(operation: &Operation, most: u64) -> Option<u64> {
        next_part(operation, rest(operation, 0), most).map(|piece| piece.bytes)
    }

    #[test]
    fn parts_are_whole_pages_or_whole_blocks() {
        let copy = Operation::memmove(0, 0x10_0000, 1 << 20);
        assert_eq!(first_part(&copy, 10_000), Some(8192));
        assert_eq!(first_part(&copy, 100), Some(100));
        let delta = Operation::create_delta(0, 0x1000, 64, 0x2000, 80);
        assert_eq!(first_part(&delta, 1 << 20), None);
        let flags = dray_ops::DifFlags::from_bits(0);
        let check = Operation::dif_check(
            0,
            5200,
            flags,
            (SourceDifFlags::from_bits(0), DifTags::default()),
        );
        assert_eq!(first_part(&check, 1100), Some(1040));
        assert_eq!(first_part(&check, 519), None);
    }

    #[test]
    fn a_rest_below_a_granule_is_a_part() {
        // A pattern of 16 bytes, resumed after a page fault by a queue of 8 bytes.
        let fill = Operation::fill(0, 0x1000, 8);
        let piece = Piece {
            offset: 3,
            bytes: 5,
        };
        assert!(!has_parts(&fill, 8));
        assert_eq!(next_part(&fill, rest(&fill, 3), 8), Some(piece));
    }
}
