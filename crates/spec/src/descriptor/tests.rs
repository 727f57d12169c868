use super::*;
use crate::DifTags;
use std::format;
use std::vec::Vec;

/// Bytes of the descriptor that are not 0, with their places.
fn nonzero(descriptor: &Descriptor) -> Vec<(usize, u8)> {
    let bytes = descriptor.as_bytes().iter().copied().enumerate();
    bytes.filter(|&(_, byte)| byte != 0).collect()
}

#[test]
fn fields_lie_where_struct_dsa_hw_desc_has_them() {
    // linux/idxd.h, struct dsa_hw_desc (Linux 6.1 uapi): pasid:20, rsvd:11, priv:1 at 0;
    // flags:24 at 4; opcode:8 at 7; completion_addr 8; src_addr 16; dst_addr 24; xfer_size 32;
    // int_handle 36; rsvd1 38; operation-specific bytes 40.
    let descriptor = Descriptor {
        pasid_priv: 0x0000_0001,
        flags_opcode: 0x0000_0002,
        completion_addr: 3,
        address1: 4,
        address2: 5,
        size: 6,
        interrupt_handle: 7,
        reserved: 8,
        operation: [0; 24],
    };
    let expected = [
        (0, 1),
        (4, 2),
        (8, 3),
        (16, 4),
        (24, 5),
        (32, 6),
        (36, 7),
        (38, 8),
    ];
    assert_eq!(nonzero(&descriptor), expected);
    let operation = Descriptor {
        operation: [9; 24],
        ..Descriptor::default()
    };
    assert_eq!(
        nonzero(&operation),
        (40..64).map(|at| (at, 9)).collect::<Vec<_>>()
    );
}

#[test]
fn operation_fields_lie_where_struct_dsa_hw_desc_has_them() {
    // Same struct: dest2 40, crc_seed 40, seed_addr 48, delta_addr 40, max_delta_size 48,
    // expected_res_mask 56, delta_rec_size 40, expected_res 40.
    let bytes: Vec<u8> = (0..64).collect();
    let descriptor = Descriptor::read_from_bytes(&bytes).unwrap();
    assert_eq!(descriptor.destination2(), 0x2f2e_2d2c_2b2a_2928);
    assert_eq!(descriptor.pattern_high(), 0x2f2e_2d2c_2b2a_2928);
    assert_eq!(descriptor.delta_record(), 0x2f2e_2d2c_2b2a_2928);
    assert_eq!(descriptor.crc_seed(), 0x2b2a_2928);
    assert_eq!(descriptor.crc64_seed(), 0x2f2e_2d2c_2b2a_2928);
    assert_eq!(descriptor.delta_record_size(), 0x2b2a_2928);
    assert_eq!(descriptor.crc_seed_address(), 0x3736_3534_3332_3130);
    assert_eq!(descriptor.max_delta_size(), 0x3332_3130);
    assert_eq!(descriptor.region_stride(), 0x3332_3130);
    assert_eq!(descriptor.expected_result(), 0x28);
    assert_eq!(descriptor.expected_result_mask(), 0x38);
    // The same struct again: src_dif_flags 40, dest_dif_flags 41, dif_flags 42; for check
    // chk_ref_tag_seed 48, chk_app_tag_mask 52, chk_app_tag_seed 54; for insert ins_* from 56.
    assert_eq!(descriptor.source_dif_flags(), 0x28);
    assert_eq!(descriptor.destination_dif_flags(), 0x29);
    assert_eq!(descriptor.dif_flags(), 0x2a);
    let source = DifTags {
        reference: 0x3332_3130,
        app_mask: 0x3534,
        app: 0x3736,
    };
    let destination = DifTags {
        reference: 0x3b3a_3938,
        app_mask: 0x3d3c,
        app: 0x3f3e,
    };
    assert_eq!(descriptor.source_tags(), source);
    assert_eq!(descriptor.destination_tags(), destination);
    // Version 2, which the header does not have: the tables of spec 8.3.
    assert_eq!(descriptor.region_size(), 0x2322_2120);
    assert_eq!(descriptor.source_handle(), 0x3d3c);
    assert_eq!(descriptor.destination_handle(), 0x3f3e);
    assert_eq!(descriptor.window_flags().into_bits(), 0x3d);
    assert!(descriptor.window_flags().has_reserved());
    assert_eq!(descriptor.window_size(), 0x1f1e_1d1c_1b1a_1918);
}

#[test]
fn constructors_write_the_bytes_of_the_operation() {
    let cases: [(Descriptor, &[(usize, u8)]); 14] = [
        (Descriptor::noop(), &[]),
        (Descriptor::batch(0x40, 16), &[(7, 1), (16, 0x40), (32, 16)]),
        (Descriptor::drain(), &[(7, 2)]),
        (
            Descriptor::memmove(1, 2, 3),
            &[(7, 3), (16, 1), (24, 2), (32, 3)],
        ),
        (
            Descriptor::fill(1, 2, 3),
            &[(7, 4), (16, 1), (24, 2), (32, 3)],
        ),
        (
            Descriptor::fill_16(1 | 9 << 64, 2, 3),
            &[(6, 4), (7, 4), (16, 1), (24, 2), (32, 3), (40, 9)],
        ),
        (
            Descriptor::compare(1, 2, 3),
            &[(7, 5), (16, 1), (24, 2), (32, 3)],
        ),
        (
            Descriptor::compare_pattern(1, 2, 3),
            &[(7, 6), (16, 1), (24, 2), (32, 3)],
        ),
        (
            Descriptor::create_delta(1, 2, 3, 4, 80),
            &[(7, 7), (16, 1), (24, 2), (32, 3), (40, 4), (48, 80)],
        ),
        (
            Descriptor::apply_delta(1, 2, 3, 4),
            &[(7, 8), (16, 1), (24, 2), (32, 3), (40, 4)],
        ),
        (
            Descriptor::dualcast(1, 2, 4, 3),
            &[(7, 9), (16, 1), (24, 2), (32, 3), (40, 4)],
        ),
        (
            Descriptor::crc(1, 2, 3),
            &[(7, 0x10), (16, 1), (32, 2), (40, 3)],
        ),
        (
            Descriptor::copy_crc(1, 2, 3, 4),
            &[(7, 0x11), (16, 1), (24, 2), (32, 3), (40, 4)],
        ),
        (
            Descriptor::cache_flush(1, 2),
            &[(7, 0x20), (24, 1), (32, 2)],
        ),
    ];
    for (descriptor, expected) in cases {
        assert_eq!(nonzero(&descriptor), expected, "{descriptor:?}");
    }
}

/// A byte of a descriptor, behind its place.
type Byte = (usize, u8);

/// Tags of which each field has a value of its own, from `first` on.
fn tags(first: u8) -> DifTags {
    DifTags {
        reference: first.into(),
        app_mask: u16::from(first) + 1,
        app: u16::from(first) + 2,
    }
}

#[test]
fn constructors_of_data_integrity_write_the_bytes_of_the_operation() {
    let source = [(48, 10), (52, 11), (54, 12)];
    let destination = [(56, 20), (60, 21), (62, 22)];
    let (a, b) = (tags(10), tags(20));
    let cases: [(Descriptor, &[Byte], Vec<Byte>); 5] = [
        (
            Descriptor::dif_check(1, 2, 6, 4, a),
            &[(7, 0x12), (16, 1), (32, 2), (40, 4), (42, 6)],
            source.into(),
        ),
        (
            Descriptor::dif_insert(1, 2, 3, 6, 5, b),
            &[(7, 0x13), (16, 1), (24, 2), (32, 3), (41, 5), (42, 6)],
            destination.into(),
        ),
        (
            Descriptor::dif_strip(1, 2, 3, 6, 4, a),
            &[(7, 0x14), (16, 1), (24, 2), (32, 3), (40, 4), (42, 6)],
            source.into(),
        ),
        (
            Descriptor::dif_update(1, 2, 3, 6, (4, a), (5, b)),
            &[
                (7, 0x15),
                (16, 1),
                (24, 2),
                (32, 3),
                (40, 4),
                (41, 5),
                (42, 6),
            ],
            [source, destination].concat(),
        ),
        (
            Descriptor::dix_generate(1, 2, 3, 6, 5, b),
            &[(7, 0x17), (16, 1), (24, 2), (32, 3), (41, 5), (42, 6)],
            destination.into(),
        ),
    ];
    for (descriptor, common, tags) in cases {
        let expected = [common, &tags].concat();
        assert_eq!(nonzero(&descriptor), expected, "{descriptor:?}");
    }
}

#[test]
fn constructors_of_version_2_write_the_bytes_of_the_operation() {
    let window = WindowFlags::new().with_write(true).with_window_enable(true);
    let cases: [(Descriptor, &[(usize, u8)]); 11] = [
        (
            Descriptor::crc64(1, 2, 3 | 4 << 32),
            &[(6, 8), (7, 0x10), (16, 1), (32, 2), (40, 3), (44, 4)],
        ),
        (
            Descriptor::copy_crc64(1, 2, 3, 4).with_crc_seed_address(5),
            &[(6, 9), (7, 0x11), (16, 1), (24, 2), (32, 3), (48, 5)],
        ),
        (
            Descriptor::translation_fetch(1, 2),
            &[(7, 0x0a), (16, 1), (32, 2)],
        ),
        (
            Descriptor::translation_fetch(1, 2).with_region_stride(0x1000),
            &[(6, 1), (7, 0x0a), (16, 1), (32, 2), (49, 0x10)],
        ),
        (
            Descriptor::drain().with_readback1(1).with_readback2(2),
            &[(6, 3), (7, 2), (16, 1), (24, 2)],
        ),
        (
            Descriptor::update_window(1, 2, window, 3),
            &[(7, 0x21), (16, 1), (24, 2), (61, 6), (62, 3)],
        ),
        (
            Descriptor::inter_domain_copy(1, 2, 3)
                .with_source_handle(4)
                .with_destination_handle(5),
            &[
                (6, 3),
                (7, 0x23),
                (16, 1),
                (24, 2),
                (32, 3),
                (60, 4),
                (62, 5),
            ],
        ),
        (
            Descriptor::inter_domain_fill(1, 2, 3).with_destination_handle(5),
            &[(6, 2), (7, 0x24), (16, 1), (24, 2), (32, 3), (62, 5)],
        ),
        (
            Descriptor::inter_domain_fill_16(1 | 9 << 64, 2, 3),
            &[(6, 4), (7, 0x24), (16, 1), (24, 2), (32, 3), (40, 9)],
        ),
        (
            Descriptor::inter_domain_compare(1, 2, 3),
            &[(7, 0x25), (16, 1), (24, 2), (32, 3)],
        ),
        (
            Descriptor::inter_domain_compare_pattern(1, 2, 3),
            &[(7, 0x26), (16, 1), (24, 2), (32, 3)],
        ),
    ];
    for (descriptor, expected) in cases {
        assert_eq!(nonzero(&descriptor), expected, "{descriptor:?}");
    }
}

/// What a constructor sets lies outside of what the rules reserve.
#[test]
fn constructors_and_reserved_bytes_agree() {
    let all = u64::MAX;
    let tags = DifTags::from_bits(all);
    let descriptors = [
        Descriptor::crc(all, u32::MAX, u32::MAX),
        Descriptor::crc64(all, u32::MAX, all),
        Descriptor::copy_crc64(all, all, u32::MAX, all).with_crc_seed_address(all),
        Descriptor::translation_fetch(all, u32::MAX).with_region_stride(u32::MAX),
        Descriptor::drain().with_readback1(all).with_readback2(all),
        Descriptor::create_delta(all, all, u32::MAX, all, u32::MAX).with_expected_result_mask(7),
        Descriptor::apply_delta(all, all, u32::MAX, u32::MAX),
        Descriptor::cache_flush(all, u32::MAX),
        Descriptor::dif_check(all, u32::MAX, 0xff, 0xff, tags),
        Descriptor::dif_insert(all, all, u32::MAX, 0xff, 0xff, tags),
        Descriptor::dif_strip(all, all, u32::MAX, 0xff, 0xff, tags),
        Descriptor::dif_update(all, all, u32::MAX, 0xff, (0xff, tags), (0xff, tags)),
        Descriptor::dix_generate(all, all, u32::MAX, 0xff, 0xff, tags),
        Descriptor::update_window(all, all, WindowFlags::from_bits(0xff), u16::MAX),
        Descriptor::inter_domain_copy(all, all, u32::MAX)
            .with_source_handle(u16::MAX)
            .with_destination_handle(u16::MAX),
        Descriptor::inter_domain_fill_16(u128::MAX, all, u32::MAX)
            .with_destination_handle(u16::MAX),
        Descriptor::inter_domain_compare(all, all, u32::MAX)
            .with_expected_result(1)
            .with_source_handle(u16::MAX)
            .with_destination_handle(u16::MAX),
        Descriptor::inter_domain_compare_pattern(all, all, u32::MAX).with_source_handle(u16::MAX),
    ];
    for descriptor in descriptors {
        let opcode = descriptor.opcode().unwrap();
        let flags = descriptor.flags();
        assert!(crate::invalid_flags(opcode, flags).is_empty(), "{opcode}");
        let reserved = crate::reserved_bytes(opcode, flags);
        let set = nonzero(&descriptor).into_iter();
        let broken: Vec<_> = set.filter(|(at, _)| reserved >> at & 1 == 1).collect();
        assert_eq!(broken, [], "{opcode}");
    }
}

#[test]
fn options_touch_only_their_fields() {
    let plain = Descriptor::compare(0x1000, 0x2000, 64);
    let full = plain
        .with_completion(0x3000)
        .with_pasid(0xfff0_0007)
        .with_privileged()
        .with_expected_result(1)
        .with_interrupt(5)
        .with_flags(Flags::FENCE);
    assert_eq!(full.opcode(), Ok(Opcode::Compare));
    assert_eq!(full.pasid(), 7);
    assert!(full.privileged());
    assert_eq!(full.pasid_priv, 0x8000_0007);
    assert_eq!(full.completion_addr, 0x3000);
    assert_eq!(full.interrupt_handle, 5);
    assert_eq!(full.expected_result(), 1);
    assert_eq!(full.flags().bits(), 0x9d);
    assert_eq!(
        (full.address1, full.address2, full.size),
        (0x1000, 0x2000, 64)
    );
    assert_eq!(full.with_pasid(9).pasid_priv, 0x8000_0009);
}

#[test]
fn an_unknown_opcode_is_kept_and_reported() {
    let descriptor = Descriptor {
        flags_opcode: 0xff00_0000,
        ..Descriptor::default()
    };
    assert_eq!(descriptor.opcode_byte(), 0xff);
    assert_eq!(descriptor.opcode(), Err(UnknownOpcode(0xff)));
    assert!(descriptor.flags().is_empty());
    assert!(format!("{descriptor:?}").contains("opcode: 0xff"));
}
