use super::*;

const TAGS: Tags = Tags {
    reference: 0x0102_0304,
    app_mask: 0x00f0,
    app: 0x0506,
};

/// Three blocks of zeros with the fields that `TAGS` give, each with guard 0.
fn protected() -> Vec<u8> {
    let mut dst = vec![1; 3 * 520];
    let destination = DestinationDifFlags::new();
    dif_insert(&[0; 3 * 512], &mut dst, DifFlags::new(), destination, TAGS).unwrap();
    dst
}

fn check(src: &[u8], source: SourceDifFlags) -> Result<Tags, DifError> {
    dif_check(src, DifFlags::new(), source, TAGS)
}

fn bad(status: u8, blocks: usize) -> Result<Tags, DifError> {
    Err(DifError::Block(BadBlock {
        status,
        bytes_completed: blocks * 520,
        tags: SourceDifFlags::new().advance(TAGS, blocks),
    }))
}

#[test]
fn inserted_fields_are_guard_app_reference_in_big_endian() {
    let blocks = protected();
    assert_eq!(blocks[..512], [0; 512]);
    assert_eq!(blocks[512..520], [0, 0, 5, 6, 1, 2, 3, 4]);
    assert_eq!(blocks[1032..1040], [0, 0, 5, 6, 1, 2, 3, 5]);
    assert_eq!(blocks[1552..], [0, 0, 5, 6, 1, 2, 3, 6]);
    let next = Tags {
        reference: 0x0102_0307,
        ..TAGS
    };
    assert_eq!(check(&blocks, SourceDifFlags::new()), Ok(next));
}

#[test]
fn tags_are_fixed_or_increment_apart() {
    let mut fields = [0; 24];
    let destination = DestinationDifFlags::new()
        .with_reference_tag_fixed(true)
        .with_app_tag_incrementing(true);
    let tags = Tags {
        reference: 9,
        app_mask: 0xff00,
        app: 0x01ff,
    };
    let flags = DifFlags::new().with_invert_crc_seed(true);
    let next = dix_generate(&[0; 3 * 512], &mut fields, flags, destination, tags).unwrap();
    // The mask comes after the increment (spec appendix B), so that the carry is lost.
    assert_eq!(fields[..8], [0x72, 0xbb, 0, 0xff, 0, 0, 0, 9]);
    assert_eq!(fields[8..16], [0x72, 0xbb, 0, 0, 0, 0, 0, 9]);
    assert_eq!(fields[16..], [0x72, 0xbb, 0, 1, 0, 0, 0, 9]);
    assert_eq!(
        next,
        Tags {
            app: 0x0202,
            ..tags
        }
    );
}

#[test]
fn each_mismatch_has_its_bit_unless_its_check_is_off() {
    let off = SourceDifFlags::new();
    let cases = [
        (0, DifStatus::GUARD, off.with_guard_check_disable(true)),
        (512, DifStatus::GUARD, off.with_guard_check_disable(true)),
        (
            517,
            DifStatus::REFERENCE_TAG,
            off.with_reference_tag_check_disable(true),
        ),
    ];
    for (at, status, disabled) in cases {
        let mut blocks = protected();
        blocks[520 + at] ^= 1;
        assert_eq!(check(&blocks, off), bad(status, 1), "byte {at}");
        assert!(check(&blocks, disabled).is_ok(), "byte {at}");
    }
    let mut blocks = protected();
    blocks[520 + 514] ^= 1;
    assert_eq!(check(&blocks, off), bad(DifStatus::APP_TAG, 1));
    let no_app_check = Tags {
        app_mask: 0xffff,
        ..TAGS
    };
    assert!(dif_check(&blocks, DifFlags::new(), off, no_app_check).is_ok());
    blocks[1039] ^= 1;
    blocks[520] ^= 1;
    assert_eq!(check(&blocks, off), bad(0x07, 1));
}

#[test]
fn bits_under_the_mask_must_be_0_in_the_source() {
    let mut blocks = protected();
    blocks[1040 + 515] |= 0x10;
    let expected = bad(DifStatus::APP_TAG, 2);
    assert_eq!(check(&blocks, SourceDifFlags::new()), expected);
}

#[test]
fn f_detection_skips_all_checks_of_the_block() {
    let none = SourceDifFlags::new();
    let app = none.with_app_tag_f_detect(true);
    let both = none.with_app_and_reference_tag_f_detect(true);
    let all = none.with_all_f_detect(true);
    // Bytes of the field that are 0xFF, and which detection finds that.
    let cases = [
        (514..516, [true, false, false]),
        (514..520, [true, true, false]),
        (512..520, [true, true, true]),
        (516..520, [false, false, false]),
    ];
    for (bytes, detected) in cases {
        let mut blocks = protected();
        blocks[520 + bytes.start..520 + bytes.end].fill(0xff);
        blocks[600] ^= 1;
        assert!(check(&blocks, none).is_err());
        for (source, detected) in [app, both, all].into_iter().zip(detected) {
            assert_eq!(
                check(&blocks, source).is_ok(),
                detected,
                "{bytes:?} {source:?}"
            );
        }
    }
}

#[test]
fn a_field_of_ones_can_be_an_error_of_its_own() {
    let mut blocks = protected();
    blocks[520 + 512..1040].fill(0xff);
    let all = SourceDifFlags::new().with_all_f_detect(true);
    assert!(check(&blocks, all).is_ok());
    let error = all.with_all_f_detect_error(true);
    assert_eq!(check(&blocks, error), bad(DifStatus::ALL_F, 1));
    let with_app = error.with_app_tag_f_detect(true);
    assert_eq!(check(&blocks, with_app), bad(DifStatus::ALL_F, 1));
    let ignored = SourceDifFlags::new()
        .with_all_f_detect_error(true)
        .with_app_tag_f_detect(true);
    assert!(check(&blocks, ignored).is_ok());
}

#[test]
fn strip_and_update_write_the_blocks_before_a_bad_one() {
    let mut blocks = protected();
    blocks[520] ^= 1;
    let (flags, source) = (DifFlags::new(), SourceDifFlags::new());
    let mut stripped = [7; 3 * 512];
    let result = dif_strip(&blocks, &mut stripped, flags, source, TAGS);
    assert_eq!(result, bad(DifStatus::GUARD, 1));
    assert_eq!(stripped[..512], [0; 512]);
    assert_eq!(stripped[512..], [7; 2 * 512]);

    let mut updated = [7; 3 * 520];
    let tags = UpdateTags {
        source: TAGS,
        destination: Tags::default(),
    };
    let destination = DestinationDifFlags::new().with_app_tag_pass_through(true);
    let result = dif_update(&blocks, &mut updated, flags, source, destination, tags);
    assert_eq!(result.map(|tags| tags.source), bad(DifStatus::GUARD, 1));
    assert_eq!(updated[512..520], [0, 0, 5, 6, 0, 0, 0, 0]);
    assert_eq!(updated[520..], [7; 2 * 520]);
}

#[test]
fn an_update_passes_through_what_its_flags_say() {
    let mut block = protected()[..520].to_vec();
    block[512..514].fill(0xaa);
    let source = SourceDifFlags::new().with_guard_check_disable(true);
    let tags = UpdateTags {
        source: TAGS,
        destination: Tags {
            reference: 0x1111_1111,
            app_mask: 0,
            app: 0x2222,
        },
    };
    let none = DestinationDifFlags::new();
    let cases = [
        (none, [0, 0, 0x22, 0x22, 0x11, 0x11, 0x11, 0x11]),
        (
            none.with_guard_pass_through(true),
            [0xaa, 0xaa, 0x22, 0x22, 0x11, 0x11, 0x11, 0x11],
        ),
        (
            none.with_app_tag_pass_through(true),
            [0, 0, 5, 6, 0x11, 0x11, 0x11, 0x11],
        ),
        (
            none.with_reference_tag_pass_through(true),
            [0, 0, 0x22, 0x22, 1, 2, 3, 4],
        ),
    ];
    for (destination, field) in cases {
        let mut dst = [7; 520];
        let next = dif_update(&block, &mut dst, DifFlags::new(), source, destination, tags);
        assert_eq!(dst[512..], field, "{destination:?}");
        let next = next.unwrap();
        assert_eq!(next.source.reference, TAGS.reference + 1);
        assert_eq!(next.destination.reference, 0x1111_1112);
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused_and_write_nothing() {
    let flags = DifFlags::new();
    let (source, destination) = (SourceDifFlags::new(), DestinationDifFlags::new());
    let part = |bytes, block_bytes| DifSizeError::Source { bytes, block_bytes };
    let room = |bytes, needed_bytes| DifSizeError::Destination {
        bytes,
        needed_bytes,
    };
    let mut dst = [7; 520];
    let insert = dif_insert(&[0; 513], &mut dst, flags, destination, TAGS);
    assert_eq!(insert, Err(part(513, 512)));
    let insert = dif_insert(&[0; 512], &mut dst[..519], flags, destination, TAGS);
    assert_eq!(insert, Err(room(519, 520)));
    let check = dif_check(&[0; 512], flags, source, TAGS);
    assert_eq!(check, Err(part(512, 520).into()));
    let strip = dif_strip(&[0; 520], &mut dst, flags, source, TAGS);
    assert_eq!(strip, Err(room(520, 512).into()));
    let tags = UpdateTags::default();
    let update = dif_update(&[0; 1040], &mut dst, flags, source, destination, tags);
    assert_eq!(update, Err(room(520, 1040).into()));
    let dix = dix_generate(&[0; 512], &mut dst, flags, destination, TAGS);
    assert_eq!(dix, Err(room(520, 8)));
    assert_eq!(dst, [7; 520]);
}
