use super::*;

const BLOCKS: usize = 3 * BLOCK + 2 * LINE * WORD + WORD;

#[test]
fn equal_sources_leave_the_record_alone() {
    let mut record = [7; 80];
    let created = create_delta(&[1; BLOCKS], &[1; BLOCKS], &mut record);
    assert_eq!(created, Ok(DeltaCreated::Equal));
    assert_eq!(create_delta(&[], &[], &mut record), Ok(DeltaCreated::Equal));
    assert_eq!(record, [7; 80]);
}

#[test]
fn an_entry_is_the_offset_in_words_and_the_word_of_source_2() {
    let src1 = vec![0; DELTA_MAX_BYTES];
    let mut src2 = src1.clone();
    src2[0x1_2345] = 1;
    src2[DELTA_MAX_BYTES - 1] = 2;
    let mut record = [7; 80];
    let created = create_delta(&src1, &src2, &mut record);
    assert_eq!(created, Ok(DeltaCreated::Complete { record_bytes: 20 }));
    assert_eq!(record[..10], [0x68, 0x24, 0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(record[10..20], [0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!(record[20..], [7; 60]);
}

#[test]
fn a_record_is_full_only_when_an_entry_does_not_fit() {
    let src1 = [0; BLOCKS];
    let mut src2 = src1;
    for word in [1, 200, 201, 390] {
        src2[word * WORD] = 1;
    }
    let mut record = [7; 45];
    let overflow = |entries, word| DeltaCreated::Overflow {
        record_bytes: entries * DELTA_ENTRY_BYTES,
        compared_bytes: word * WORD,
    };
    let mut create = |bytes| create_delta(&src1, &src2, &mut record[..bytes]);
    assert_eq!(create(40), Ok(DeltaCreated::Complete { record_bytes: 40 }));
    assert_eq!(create(39), Ok(overflow(3, 390)));
    assert_eq!(create(30), Ok(overflow(3, 390)));
    assert_eq!(create(20), Ok(overflow(2, 201)));
    assert_eq!(create(19), Ok(overflow(1, 200)));
    assert_eq!(create(0), Ok(overflow(0, 1)));
    assert_eq!(record[40..], [7; 5]);
}

#[test]
fn only_whole_entries_are_written() {
    let mut record = [7; 15];
    let created = create_delta(&[0; 16], &[1; 16], &mut record);
    let overflow = DeltaCreated::Overflow {
        record_bytes: 10,
        compared_bytes: 8,
    };
    assert_eq!(created, Ok(overflow));
    assert_eq!(overflow.result(), 2);
    assert_eq!(overflow.record_bytes(), 10);
    assert_eq!(record[10..], [7; 5]);
}

#[test]
fn parts_make_the_record_of_the_whole() {
    let src1: Vec<u8> = vec![0; BLOCKS];
    let src2: Vec<u8> = (0..BLOCKS).map(|n| u8::from(n % 37 == 0)).collect();
    let mut whole = vec![0; 2 * BLOCKS];
    let bytes = create_delta(&src1, &src2, &mut whole)
        .unwrap()
        .record_bytes();
    let mut parts = vec![0; 2 * BLOCKS];
    // No multiple of anything that the comparison does at once.
    const PART: usize = (LINE + 1) * WORD;
    let mut used = 0;
    for start in (0..BLOCKS).step_by(PART) {
        let part = start..BLOCKS.min(start + PART);
        let created = create_delta_at(start, &src1[part.clone()], &src2[part], &mut parts[used..]);
        used += created.unwrap().record_bytes();
    }
    assert_eq!(parts[..used], whole[..bytes]);
    let overflow = DeltaCreated::Overflow {
        record_bytes: 0,
        compared_bytes: 8,
    };
    let sources = ([0; 16], [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        create_delta_at(64, &sources.0, &sources.1, &mut []),
        Ok(overflow)
    );
}

#[test]
fn sources_that_cannot_be_compared_are_refused() {
    let large = vec![0; DELTA_MAX_BYTES];
    let create = |offset, src1, src2| create_delta_at(offset, src1, src2, &mut [0; 80]);
    assert_eq!(
        create(0, &large[..8], &large[..16]),
        Err(DeltaSizeError::Mismatch {
            src1_bytes: 8,
            src2_bytes: 16
        })
    );
    let unaligned = |bytes| Err(DeltaSizeError::Unaligned { bytes });
    assert_eq!(create(0, &large[..9], &large[..9]), unaligned(9));
    assert_eq!(create(4, &large[..8], &large[..8]), unaligned(4));
    let too_large = |bytes| Err(DeltaSizeError::TooLarge { bytes });
    assert_eq!(create(0, &large, &large), Ok(DeltaCreated::Equal));
    assert_eq!(create(8, &large, &large), too_large(DELTA_MAX_BYTES + 8));
    assert_eq!(
        create(usize::MAX - 7, &large, &large),
        too_large(usize::MAX)
    );
}

/// An entry for the word at `offset_bytes`.
fn entry(offset_bytes: usize, byte: u8) -> [u8; DELTA_ENTRY_BYTES] {
    let mut entry = [byte; DELTA_ENTRY_BYTES];
    entry[..2].copy_from_slice(&((offset_bytes / WORD) as u16).to_le_bytes());
    entry
}

#[test]
fn offsets_ascend() {
    for (second, legal) in [(24, true), (8, false), (0, false)] {
        let record = [entry(8, 1), entry(16, 2), entry(second, 3)];
        let mut dst = [0; 32];
        let applied = apply_delta(record.as_flattened(), &mut dst);
        assert_eq!(dst[8..24], [[1; 8], [2; 8]].concat());
        if legal {
            assert_eq!(applied, Ok(()));
            assert_eq!(dst[24..], [3; 8]);
        } else {
            let error = DeltaError::OffsetOrder {
                applied_bytes: 20,
                offset_bytes: second,
            };
            assert_eq!(applied, Err(error));
            assert_eq!(error.applied_bytes(), 20);
            assert_eq!(dst[24..], [0; 8]);
        }
    }
}

/// The functional tests of the Data Mover Library apply a record of zeros.
#[test]
fn an_offset_that_is_there_twice_is_written_twice() {
    let record = [entry(8, 1), entry(16, 2), entry(16, 3), entry(24, 4)];
    let mut dst = [0; 32];
    assert_eq!(apply_delta(record.as_flattened(), &mut dst), Ok(()));
    assert_eq!(dst[8..], [[1; 8], [3; 8], [4; 8]].concat());
    assert_eq!(apply_delta(&[0; 40], &mut dst), Ok(()));
}

#[test]
fn offsets_lie_in_the_transfer() {
    let record = [entry(0, 1), entry(24, 2)];
    for (bytes, legal) in [(32, true), (31, false), (24, false), (8, false)] {
        let mut dst = vec![0; bytes];
        let applied = apply_delta(record.as_flattened(), &mut dst);
        assert_eq!(dst[..8], [1; 8]);
        let error = DeltaError::OffsetRange {
            applied_bytes: 10,
            offset_bytes: 24,
        };
        assert_eq!(applied, if legal { Ok(()) } else { Err(error) });
    }
}

#[test]
fn a_part_of_an_entry_is_ignored() {
    let mut dst = [0; 16];
    let record = [entry(0, 1), entry(8, 2)];
    assert_eq!(apply_delta(&record.as_flattened()[..19], &mut dst), Ok(()));
    assert_eq!(dst, [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
}
