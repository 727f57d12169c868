use super::*;
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
