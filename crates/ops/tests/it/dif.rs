//! Data integrity operations: the fast version against the oracle, with all flags.

use dray_ops::{
    BlockSize, DIF_BYTES, DestinationDifFlags, DifFlags, SourceDifFlags, Tags, UpdateTags, oracle,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Values at which tags wrap, or at which F detection looks, more often than others.
fn tags() -> impl Strategy<Value = Tags> {
    let reference = prop_oneof![any::<u32>(), Just(u32::MAX - 1), Just(u32::MAX)];
    let app_mask = prop_oneof![any::<u16>(), Just(0), Just(u16::MAX)];
    let app = prop_oneof![any::<u16>(), Just(u16::MAX - 1), Just(u16::MAX)];
    (reference, app_mask, app).prop_map(|(reference, app_mask, app)| Tags {
        reference,
        app_mask,
        app,
    })
}

#[derive(Debug)]
struct Case {
    flags: DifFlags,
    source: SourceDifFlags,
    destination: DestinationDifFlags,
    tags: UpdateTags,
    /// Data of all blocks.
    data: Vec<u8>,
    /// Blocks with fields that fit the source tags, except for what was changed afterwards.
    protected: Vec<u8>,
    /// Bytes before the buffers, for alignment.
    skip: usize,
}

/// What is done to one field: some bytes become 0xFF or are flipped.
fn damage() -> impl Strategy<Value = (Index, std::ops::Range<usize>, u8)> {
    let bytes = prop_oneof![
        3 => (0..DIF_BYTES).prop_map(|at| at..at + 1),
        1 => Just(0..8),
        1 => Just(2..4),
        1 => Just(2..8),
        1 => Just(4..8),
    ];
    let flip = prop_oneof![2 => Just(0), 1 => 1..=u8::MAX];
    (any::<Index>(), bytes, flip)
}

fn case() -> impl Strategy<Value = Case> {
    let flags = any::<(u8, u8, u8)>();
    let both = (tags(), tags());
    // Blocks, or bytes of three and more of the blocks in which the fast version works.
    let blocks = prop_oneof![
        8 => (0_usize..14).prop_map(|blocks| (blocks, 0)),
        1 => (40 << 10..70_usize << 10).prop_map(|bytes| (0, bytes)),
    ];
    let content = (blocks, any::<[u8; 32]>(), 0_usize..65);
    (flags, both, content, vec(damage(), 0..3)).prop_map(|(flags, tags, content, damages)| {
        let source = SourceDifFlags::from_bits(flags.1);
        let destination = DestinationDifFlags::from_bits(flags.2);
        let flags = DifFlags::from_bits(flags.0 & 0xf);
        let tags = UpdateTags {
            source: tags.0,
            destination: tags.1,
        };
        let (blocks, seed, skip) = content;
        let block = flags.block_size().bytes();
        let blocks = blocks.0.max(blocks.1 / block);
        // A cheap expansion: every byte depends on the seed and its place.
        let data: Vec<u8> = (0..blocks * block)
            .map(|n| seed[n % 32].wrapping_mul((n / 32) as u8 | 1) ^ (n / 7) as u8)
            .collect();
        let mut protected = vec![0; blocks * (block + DIF_BYTES)];
        let same = DestinationDifFlags::new()
            .with_reference_tag_fixed(source.reference_tag_fixed())
            .with_app_tag_incrementing(source.app_tag_incrementing());
        oracle::dif_insert(&data, &mut protected, flags, same, tags.source).expect("whole blocks");
        for (index, bytes, flip) in damages {
            if blocks == 0 {
                continue;
            }
            let field = index.index(blocks) * (block + DIF_BYTES) + block;
            for byte in &mut protected[field + bytes.start..field + bytes.end] {
                *byte = if flip == 0 { 0xff } else { *byte ^ flip };
            }
        }
        Case {
            flags,
            source,
            destination,
            tags,
            data,
            protected,
            skip,
        }
    })
}

/// `bytes` behind `skip` others.
fn shifted(bytes: &[u8], skip: usize) -> Vec<u8> {
    [&vec![0; skip], bytes].concat()
}

proptest! {
    #[test]
    fn check_agrees(case in case()) {
        let Case { flags, source, tags, protected, skip, .. } = case;
        let src = shifted(&protected, skip);
        prop_assert_eq!(
            dray_ops::dif_check(&src[skip..], flags, source, tags.source),
            oracle::dif_check(&src[skip..], flags, source, tags.source)
        );
    }

    #[test]
    fn insert_and_dix_agree(case in case()) {
        let Case { flags, destination, tags, data, skip, .. } = case;
        let src = shifted(&data, skip);
        let blocks = data.len() / flags.block_size().bytes();
        let mut fast = vec![7; data.len() + blocks * DIF_BYTES];
        let mut slow = fast.clone();
        prop_assert_eq!(
            dray_ops::dif_insert(&src[skip..], &mut fast, flags, destination, tags.destination),
            oracle::dif_insert(&src[skip..], &mut slow, flags, destination, tags.destination)
        );
        prop_assert_eq!(&fast, &slow);

        let fields = blocks * DIF_BYTES;
        let (fast, slow) = (&mut fast[..fields], &mut slow[..fields]);
        prop_assert_eq!(
            dray_ops::dix_generate(&src[skip..], fast, flags, destination, tags.destination),
            oracle::dix_generate(&src[skip..], slow, flags, destination, tags.destination)
        );
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn strip_agrees(case in case()) {
        let Case { flags, source, tags, data, protected, skip, .. } = case;
        let mut fast = vec![7; data.len() + skip];
        let mut slow = fast.clone();
        prop_assert_eq!(
            dray_ops::dif_strip(&protected, &mut fast[skip..], flags, source, tags.source),
            oracle::dif_strip(&protected, &mut slow[skip..], flags, source, tags.source)
        );
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn update_agrees(case in case()) {
        let Case { flags, source, destination, tags, protected, skip, .. } = case;
        let mut fast = vec![7; protected.len() + skip];
        let mut slow = fast.clone();
        let to = &mut fast[skip..];
        let updated = dray_ops::dif_update(&protected, to, flags, source, destination, tags);
        let to = &mut slow[skip..];
        prop_assert_eq!(
            updated,
            oracle::dif_update(&protected, to, flags, source, destination, tags)
        );
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn a_transfer_in_parts_is_the_transfer(case in case(), split: Index) {
        let Case { flags, source, tags, protected, .. } = case;
        let step = flags.block_size().protected_bytes();
        let whole = dray_ops::dif_check(&protected, flags, source, tags.source);
        let at = split.index(protected.len() / step + 1) * step;
        let parts = dray_ops::dif_check(&protected[..at], flags, source, tags.source)
            .and_then(|tags| dray_ops::dif_check(&protected[at..], flags, source, tags));
        prop_assert_eq!(parts.is_ok(), whole.is_ok());
        if let (Ok(parts), Ok(whole)) = (parts, whole) {
            prop_assert_eq!(parts, whole);
        }
    }

    #[test]
    fn sizes_are_refused_alike(
        size in 0_u8..4,
        bytes in prop_oneof![0_usize..1100, 4090_usize..4120],
        room in prop_oneof![0_usize..1100, 4090_usize..4120],
    ) {
        let flags = DifFlags::new().with_block_size(BlockSize::from_bits(size));
        let (source, destination) = (SourceDifFlags::new(), DestinationDifFlags::new());
        let tags = UpdateTags::default();
        let src = vec![0; bytes];
        let (mut fast, mut slow) = (vec![7; room], vec![7; room]);
        prop_assert_eq!(
            dray_ops::dif_strip(&src, &mut fast, flags, source, tags.source),
            oracle::dif_strip(&src, &mut slow, flags, source, tags.source)
        );
        prop_assert_eq!(
            dray_ops::dif_insert(&src, &mut fast, flags, destination, tags.destination),
            oracle::dif_insert(&src, &mut slow, flags, destination, tags.destination)
        );
        prop_assert_eq!(
            dray_ops::dif_update(&src, &mut fast, flags, source, destination, tags),
            oracle::dif_update(&src, &mut slow, flags, source, destination, tags)
        );
        prop_assert_eq!(
            dray_ops::dix_generate(&src, &mut fast, flags, destination, tags.destination),
            oracle::dix_generate(&src, &mut slow, flags, destination, tags.destination)
        );
        prop_assert_eq!(fast, slow);
    }
}
