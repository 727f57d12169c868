//! Delta records: the fast version against the oracle, and there and back.

use dray_ops::{DELTA_ENTRY_BYTES, DeltaCreated, oracle};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Two sources of the same length, from equal over sparse differences to all different.
fn sources() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let words = prop_oneof![
        8 => 0_usize..40,
        8 => 100_usize..300,
        2 => 1000_usize..1200,
        // Three and more of the largest blocks.
        1 => 5120_usize..8960,
    ];
    (words, any::<u8>()).prop_flat_map(|(words, byte)| {
        let bytes = 8 * words;
        let sparse = vec((any::<Index>(), any::<u8>()), 0..20).prop_map(move |changes| {
            let src1 = vec![byte; bytes];
            let mut src2 = src1.clone();
            for (at, value) in changes {
                if let Some(byte) = src2.get_mut(at.index(bytes.max(1))) {
                    *byte = value;
                }
            }
            (src1, src2)
        });
        // Few values, so that words are equal and different in turn.
        let dense = (vec(0_u8..2, bytes), vec(0_u8..2, bytes));
        let random = (vec(any::<u8>(), bytes), vec(any::<u8>(), bytes));
        prop_oneof![3 => sparse, 1 => dense, 1 => random]
    })
}

proptest! {
    #[test]
    fn creation_agrees(
        (src1, src2) in sources(),
        room in 0_usize..4000,
        skip in 0_usize..9,
        at_limit: bool,
    ) {
        // With exactly the room that is needed, or any.
        let mut needed = vec![0; 2 * src1.len()];
        let created = oracle::create_delta(&src1, &src2, &mut needed).unwrap();
        let room = if at_limit { created.record_bytes() } else { room };
        let mut fast = vec![0x55; room + skip];
        let mut slow = fast.clone();
        prop_assert_eq!(
            dray_ops::create_delta(&src1, &src2, &mut fast[skip..]),
            oracle::create_delta(&src1, &src2, &mut slow[skip..])
        );
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn unaligned_sources_agree((src1, src2) in sources(), skip in 1_usize..8) {
        let (src1, src2) = (&src1[skip.min(src1.len())..], &src2[skip.min(src2.len())..]);
        let end = src1.len() / 8 * 8;
        let (mut fast, mut slow) = (vec![0; 2 * end], vec![0; 2 * end]);
        prop_assert_eq!(
            dray_ops::create_delta(&src1[..end], &src2[..end], &mut fast),
            oracle::create_delta(&src1[..end], &src2[..end], &mut slow)
        );
        prop_assert_eq!(fast, slow);
        prop_assert_eq!(
            dray_ops::create_delta(src1, src2, &mut []),
            oracle::create_delta(src1, src2, &mut [])
        );
    }

    #[test]
    fn what_was_created_applies((src1, src2) in sources(), entries in 0_usize..1300) {
        let mut record = vec![0; entries * DELTA_ENTRY_BYTES];
        let created = dray_ops::create_delta(&src1, &src2, &mut record).unwrap();
        let mut dst = src1.clone();
        prop_assert_eq!(
            dray_ops::apply_delta(&record[..created.record_bytes()], &mut dst),
            Ok(())
        );
        let done = match created {
            DeltaCreated::Overflow { compared_bytes, .. } => compared_bytes,
            DeltaCreated::Equal | DeltaCreated::Complete { .. } => src1.len(),
        };
        prop_assert_eq!(&dst[..done], &src2[..done]);
        prop_assert_eq!(&dst[done..], &src1[done..]);
    }

    #[test]
    fn application_agrees_on_anything(
        record in vec(any::<u8>(), 0..200),
        ascending in vec((0_u16..9, any::<[u8; 8]>()), 0..30),
        dst in vec(any::<u8>(), 0..800),
    ) {
        // Offsets that mostly ascend reach further than random ones.
        let mut word = 0_u16;
        let mut entries = Vec::new();
        for (step, data) in ascending {
            word += step;
            entries.extend(word.to_le_bytes());
            entries.extend(data);
        }
        for record in [record, entries] {
            let (mut fast, mut slow) = (dst.clone(), dst.clone());
            prop_assert_eq!(
                dray_ops::apply_delta(&record, &mut fast),
                oracle::apply_delta(&record, &mut slow)
            );
            prop_assert_eq!(fast, slow);
        }
    }
}
