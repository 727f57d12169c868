//! Processors with and without VPCLMULQDQ compute the same.

use dray_ops::{
    BlockSize, CrcOptions, DestinationDifFlags, DifFlags, SourceDifFlags, Tags, copy_crc, crc32c,
    dif_check, dif_insert, dif_strip, leave_out_vpclmulqdq, oracle,
};

/// What both kinds of processors must give, of data of so many bytes.
fn results(data: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    for seed in [0, 0x1234_5678] {
        let crc = crc32c(seed, data, CrcOptions::default());
        assert_eq!(crc, oracle::crc32c(seed, data, CrcOptions::default()));
        let mut copy = vec![0; data.len()];
        let copied = copy_crc(seed, data, &mut copy, CrcOptions::default());
        assert_eq!(copied, Ok(crc));
        assert!(copy == data);
        all.extend(crc.to_le_bytes());
    }
    for size in BlockSize::ALL {
        let flags = DifFlags::new().with_block_size(size);
        let blocks = data.len() / size.bytes();
        let data = &data[..blocks * size.bytes()];
        let mut protected = vec![0; blocks * size.protected_bytes()];
        let tags = Tags::default();
        let made = dif_insert(
            data,
            &mut protected,
            flags,
            DestinationDifFlags::new(),
            tags,
        );
        assert!(made.is_ok(), "{made:?}");
        let checked = dif_check(&protected, flags, SourceDifFlags::new(), tags);
        assert!(checked.is_ok(), "{checked:?}");
        let mut stripped = vec![0; data.len()];
        let checked = dif_strip(
            &protected,
            &mut stripped,
            flags,
            SourceDifFlags::new(),
            tags,
        );
        assert!(checked.is_ok() && stripped == data, "{checked:?}");
        all.extend(protected);
    }
    all
}

#[test]
fn processors_with_and_without_vpclmulqdq_agree() {
    let data: Vec<u8> = (0..40_000_u32).map(|n| ((n * n) >> 5) as u8).collect();
    // Blocks of every number, groups and what is left of them, at odd addresses.
    let lengths = (0..24)
        .map(|blocks| blocks * 520 + 3)
        .chain([4096, 16_384, 20_000, 39_000]);
    for bytes in lengths {
        let data = &data[bytes % 61..][..bytes];
        leave_out_vpclmulqdq(false);
        let wide = results(data);
        leave_out_vpclmulqdq(true);
        let narrow = results(data);
        leave_out_vpclmulqdq(false);
        assert!(wide == narrow, "{bytes}");
    }
}
