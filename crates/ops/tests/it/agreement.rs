//! The fast operations against the oracle, on random input.

use dray_ops::{CrcOptions, Pattern, oracle};
use proptest::collection::vec;
use proptest::prelude::*;

/// Lengths around every boundary that the fast versions have, and some above the largest block.
fn data() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => vec(any::<u8>(), 0..300),
        4 => vec(any::<u8>(), 900..1200),
        1 => vec(any::<u8>(), 16_300..16_500),
        1 => large(),
    ]
}

/// Three and more of the largest blocks; every byte depends on the seed and its place.
fn large() -> impl Strategy<Value = Vec<u8>> {
    (any::<[u8; 32]>(), 40 << 10..70_usize << 10).prop_map(|(seed, bytes)| {
        let byte = |n: usize| seed[n % 32].wrapping_mul((n / 32) as u8 | 1) ^ (n / 7) as u8;
        (0..bytes).map(byte).collect()
    })
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        any::<[u8; 8]>().prop_map(Pattern::Eight),
        any::<[u8; 16]>().prop_map(Pattern::Sixteen),
        any::<u8>().prop_map(|byte| Pattern::Eight([byte; 8])),
        any::<u8>().prop_map(|byte| Pattern::Sixteen([byte; 16])),
    ]
}

fn options() -> impl Strategy<Value = CrcOptions> {
    any::<(bool, bool)>().prop_map(|(inversion, data)| CrcOptions {
        bypass_inversion_reflection: inversion,
        bypass_data_reflection: data,
    })
}

proptest! {
    #[test]
    fn fill(mut fast in data(), pattern in pattern(), skip in 0_usize..20) {
        let mut slow = fast.clone();
        let skip = skip.min(fast.len());
        dray_ops::fill(&mut fast[skip..], pattern);
        oracle::fill(&mut slow[skip..], pattern);
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn compare(a in data(), flips in vec((any::<prop::sample::Index>(), 1_u8..), 0..3)) {
        let mut b = a.clone();
        for (place, flip) in flips {
            if let Some(byte) = b.get_mut(place.index(a.len().max(1))) {
                *byte ^= flip;
            }
        }
        prop_assert_eq!(dray_ops::compare(&a, &b), oracle::compare(&a, &b));
        let shorter = &b[..b.len() / 2];
        prop_assert_eq!(dray_ops::compare(&a, shorter), oracle::compare(&a, shorter));
    }

    #[test]
    fn compare_pattern(
        mut src in data(),
        pattern: [u8; 8],
        flips in vec((any::<prop::sample::Index>(), 1_u8..), 0..3),
    ) {
        oracle::fill(&mut src, Pattern::Eight(pattern));
        let length = src.len().max(1);
        for (place, flip) in flips {
            if let Some(byte) = src.get_mut(place.index(length)) {
                *byte ^= flip;
            }
        }
        prop_assert_eq!(
            dray_ops::compare_pattern(&src, pattern),
            oracle::compare_pattern(&src, pattern)
        );
    }

    #[test]
    fn crc32c(seed: u32, data in data(), options in options(), skip in 0_usize..20) {
        let data = &data[skip.min(data.len())..];
        prop_assert_eq!(
            dray_ops::crc32c(seed, data, options),
            oracle::crc32c(seed, data, options)
        );
    }

    #[test]
    fn crc64(seed: u64, data in data(), options in options(), skip in 0_usize..20) {
        let data = &data[skip.min(data.len())..];
        prop_assert_eq!(
            dray_ops::crc64(seed, data, options),
            oracle::crc64(seed, data, options)
        );
    }

    #[test]
    fn crcs_chain(
        seed: u64,
        data in data(),
        options in options(),
        split: prop::sample::Index,
    ) {
        let (first, second) = data.split_at(split.index(data.len() + 1));
        let middle = dray_ops::crc64(seed, first, options);
        prop_assert_eq!(
            dray_ops::crc64(middle, second, options),
            oracle::crc64(seed, &data, options)
        );
        let seed = seed as u32;
        let middle = dray_ops::crc32c(seed, first, options);
        prop_assert_eq!(
            dray_ops::crc32c(middle, second, options),
            oracle::crc32c(seed, &data, options)
        );
    }

    #[test]
    fn copies(seed: u64, src in data(), options in options()) {
        let mut fast = [vec![0; src.len()], vec![0; src.len()]];
        let mut slow = fast.clone();
        let [first, second] = &mut fast;
        dray_ops::dualcast(&src, first, second).unwrap();
        let [first, second] = &mut slow;
        oracle::dualcast(&src, first, second).unwrap();
        prop_assert_eq!(&fast, &slow);
        prop_assert_eq!(&fast[0], &src);

        let mut fast = vec![0; src.len()];
        let mut slow = fast.clone();
        prop_assert_eq!(
            dray_ops::copy_crc(seed as u32, &src, &mut fast, options),
            oracle::copy_crc(seed as u32, &src, &mut slow, options)
        );
        prop_assert_eq!(&fast, &slow);

        fast.fill(0);
        slow.fill(0);
        prop_assert_eq!(
            dray_ops::copy_crc64(seed, &src, &mut fast, options),
            oracle::copy_crc64(seed, &src, &mut slow, options)
        );
        prop_assert_eq!(&fast, &slow);

        let mut fast = vec![0; src.len()];
        prop_assert_eq!(dray_ops::copy(&src, &mut fast), Ok(()));
        prop_assert_eq!(&fast, &src);
    }

    #[test]
    fn lengths_are_refused_alike(src in data(), extra in 1_usize..9, at_second: bool) {
        let equal = || vec![0_u8; src.len()];
        let longer = || vec![0_u8; src.len() + extra];
        let (mut first, mut second) = if at_second {
            (equal(), longer())
        } else {
            (longer(), equal())
        };
        let fast = dray_ops::dualcast(&src, &mut first, &mut second);
        let slow = oracle::dualcast(&src, &mut first, &mut second);
        prop_assert!(fast.is_err());
        prop_assert_eq!(fast, slow);
        prop_assert!(first.iter().chain(&second).all(|byte| *byte == 0));
    }
}
