//! By whatever instructions CRCs and guards are computed, they are the same.

use std::sync::{Mutex, PoisonError};

use dray_ops::{
    BlockSize, CrcOptions, DestinationDifFlags, DifFlags, Multiplication, SourceDifFlags, Tags,
    copy_crc, crc32c, dif_check, dif_insert, dif_strip, multiply_at_most, oracle,
};

/// What `work` gives by each kind of multiplication that this processor has, one kind at a time.
fn by_each<T>(mut work: impl FnMut(Multiplication) -> T) -> Vec<T> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let results = Multiplication::ALL.map(|most| {
        multiply_at_most(most);
        work(most)
    });
    results.into()
}

/// What every kind of processor must give, of data of so many bytes.
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

/// A field that is wrong, or that says that its block is not to be checked, at each place in turn.
#[test]
fn one_odd_field_is_found_by_every_kind_of_multiplication() {
    let (blocks, tags) = (13, Tags::default());
    let not_checked = SourceDifFlags::new().with_app_tag_f_detect(true);
    for size in [BlockSize::Bytes512, BlockSize::Bytes520] {
        let flags = DifFlags::new().with_block_size(size);
        let step = size.protected_bytes();
        let data: Vec<u8> = (0..blocks * size.bytes()).map(|n| (n / 3) as u8).collect();
        let mut good = vec![0; blocks * step];
        let made = dif_insert(&data, &mut good, flags, DestinationDifFlags::new(), tags);
        assert!(made.is_ok(), "{made:?}");
        for odd in 0..blocks {
            for (at, byte) in [(0, 0x11), (step - 8, 0x11), (step - 6, 0xff)] {
                let mut src = good.clone();
                src[odd * step + at] ^= byte;
                if byte == 0xff {
                    src[odd * step + at..][..2].fill(byte);
                }
                let mut expected = vec![7; data.len()];
                let strip = oracle::dif_strip(&src, &mut expected, flags, not_checked, tags);
                assert_eq!(strip.is_ok(), byte == 0xff, "{odd}, {at}");
                by_each(|most| {
                    let mut stripped = vec![7; data.len()];
                    let result = dif_strip(&src, &mut stripped, flags, not_checked, tags);
                    let checked = dif_check(&src, flags, not_checked, tags);
                    assert_eq!(
                        (&result, &checked),
                        (&strip, &strip),
                        "{odd}, {at}, {most:?}"
                    );
                    assert!(stripped == expected, "{odd}, {at}, {most:?}");
                });
            }
        }
    }
}

#[test]
fn every_kind_of_multiplication_gives_the_same() {
    let data: Vec<u8> = (0..40_000_u32).map(|n| ((n * n) >> 5) as u8).collect();
    // Blocks of every number, groups and what is left of them, at odd addresses.
    let lengths = (0..24)
        .map(|blocks| blocks * 520 + 3)
        .chain([4096, 16_384, 20_000, 39_000]);
    for bytes in lengths {
        let data = &data[bytes % 61..][..bytes];
        let all = by_each(|_| results(data));
        assert!(all.iter().all(|one| *one == all[0]), "{bytes}");
    }
}
