//! The splitter beside the rules that its users had before it, each restated here.

use dray_placement::{Cut, PAGE, Piece, Rest};
use proptest::prelude::*;

type Pieces = Vec<(u64, u64)>;

fn pieces(rest: Rest, cut: Cut) -> Pieces {
    let list = |piece: Piece| (piece.offset, piece.bytes);
    rest.pieces(cut).map(list).collect()
}

/// Of a queue and of channels: the bytes of a part of an operation that does not fit.
fn largest_part(most: u64, granule: u32) -> Option<u64> {
    let most = most.min(u32::MAX.into()) as u32;
    let step = match granule {
        1 | 8 | 16 if most >= 4096 => 4096,
        granule => granule,
    };
    let part = most / step * step;
    (part > 0).then_some(part.into())
}

/// Of a queue: every part is at most the largest.
fn queue(len: u64, most: u64, granule: u32, backward: bool) -> Option<Pieces> {
    let largest = largest_part(most, granule)?;
    let (mut done, mut all) = (0, Vec::new());
    while done < len {
        let left = len - done;
        let part = largest.min(left);
        all.push((if backward { left - part } else { done }, part));
        done += part;
    }
    Some(all)
}

/// Of channels: a rest that fits goes whole.
fn channels(len: u64, most: u64, granule: u32, backward: bool) -> Option<Pieces> {
    let (mut done, mut all) = (0, Vec::new());
    while done < len {
        let left = len - done;
        let part = match left <= most.min(u32::MAX.into()) {
            true => left,
            false => largest_part(most, granule)?,
        };
        all.push((if backward { left - part } else { done }, part));
        done += part;
    }
    Some(all)
}

/// Of channels: the stripes of an operation.
fn stripes(len: u32, stripes: u32, granule: u32) -> Pieces {
    let granule = if granule <= 16 { 4096 } else { granule };
    let size = match stripes {
        1 => len,
        _ => len.div_ceil(stripes).next_multiple_of(granule),
    };
    let (mut offset, mut all) = (0, Vec::new());
    loop {
        let bytes = size.min(len - offset);
        all.push((offset.into(), bytes.into()));
        offset += bytes;
        if offset >= len {
            return all;
        }
    }
}

/// Of page lists: a run over channels.
fn run(bytes: u64, channels: u64, max_transfer: u64) -> Pieces {
    let largest = max_transfer.clamp(1, u32::MAX.into());
    let part = match bytes >= 64 << 10 {
        true => bytes.div_ceil(channels),
        false => bytes,
    };
    let part = part.next_multiple_of(PAGE).min(largest);
    steps(bytes, part)
}

/// Of `dray offload` behind the share of the core, and of the cores of `dray tier`.
fn steps(len: u64, most: u64) -> Pieces {
    let (mut at, mut all) = (0, Vec::new());
    while at < len {
        let bytes = most.min(len - at);
        all.push((at, bytes));
        at += bytes;
    }
    all
}

/// Of threads that copy a page list: all of the same bytes, the last ones perhaps none.
fn threads(bytes: u64, threads: u64) -> Pieces {
    let part = bytes.div_ceil(threads).next_multiple_of(PAGE);
    let part_of = |n: u64| (n * part, part.min(bytes.saturating_sub(n * part)));
    let all = (0..threads).map(part_of);
    all.filter(|(_, bytes)| *bytes > 0).collect()
}

fn rest(len: u64, backward: bool) -> Rest {
    match backward {
        true => Rest::backward(len),
        false => Rest::new(len),
    }
}

fn granules() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![1, 8, 16, 512, 520, 4096, 4104])
}

/// Lengths of all magnitudes, in as few pieces as a test can hold.
fn lengths(most: u64) -> impl Strategy<Value = u64> {
    let least = (most / 4096).max(1);
    (0_u32..12, least..=most).prop_map(|(shift, base)| (base << shift).min(u32::MAX.into()))
}

fn requests() -> impl Strategy<Value = (u64, u64)> {
    let limit = prop_oneof![1_u64..100_000, (0_u32..33).prop_map(|bits| 1 << bits)];
    limit.prop_flat_map(|most| (lengths(most), Just(most)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn every_byte_is_in_one_piece_in_order(
        (len, most) in requests(), granule in granules(), backward: bool,
    ) {
        let Some(cut) = Cut::up_to(most, granule) else {
            prop_assert!(most < granule.into());
            return Ok(());
        };
        prop_assert!(granule > 1 || cut == Cut::bytes(most));
        let pieces = pieces(rest(len, backward), cut);
        let mut done = 0;
        for (n, (offset, bytes)) in pieces.iter().copied().enumerate() {
            prop_assert!(bytes > 0 && bytes <= most);
            let expected = if backward { len - done - bytes } else { done };
            prop_assert_eq!(offset, expected);
            prop_assert!(n + 1 == pieces.len() || bytes % u64::from(granule) == 0);
            prop_assert!(n + 1 == pieces.len() || granule > 16 || most < PAGE || bytes % PAGE == 0);
            done += bytes;
        }
        prop_assert_eq!(done, len);
    }

    #[test]
    fn it_cuts_as_channels_have_cut(
        (len, most) in requests(), granule in granules(), backward: bool,
    ) {
        let of_channels = channels(len, most, granule, backward);
        match Cut::up_to(most, granule) {
            Some(cut) => prop_assert_eq!(Some(pieces(rest(len, backward), cut)), of_channels),
            // What fits was not cut.
            None => prop_assert!(of_channels.is_none() || len <= most),
        }
    }

    #[test]
    fn it_cuts_as_a_queue_has_cut_but_for_a_last_part_that_fits(
        (len, most) in requests(), granule in granules(), backward: bool,
    ) {
        let of_queue = queue(len, most, granule, backward);
        let cut = Cut::up_to(most, granule);
        prop_assert_eq!(cut.is_some(), of_queue.is_some());
        let (Some(cut), Some(of_queue)) = (cut, of_queue) else {
            return Ok(());
        };
        let now = pieces(rest(len, backward), cut);
        if largest_part(most, granule) == Some(most) {
            prop_assert_eq!(now, of_queue);
        } else {
            // A queue made one descriptor more than it had to.
            prop_assert!(of_queue.len() - now.len() <= 1);
        }
    }

    #[test]
    fn it_makes_the_stripes_of_channels(len in 1_u32..=1 << 31, count in 1_u32..1024, granule in granules()) {
        let now = match count {
            // All of it, whatever the granule.
            1 => vec![(0, len.into())],
            _ => pieces(Rest::new(len.into()), Cut::equal(len.into(), count.into(), granule)),
        };
        prop_assert_eq!(now, stripes(len, count, granule));
    }

    #[test]
    fn it_cuts_runs_of_pages_into_whole_pages((bytes, most) in requests(), channels in 1_u64..9) {
        let count = if bytes >= 64 << 10 { channels } else { 1 };
        let limit = Cut::bytes(most);
        let now = pieces(Rest::new(bytes), Cut::equal(bytes, count, 1).within(limit));
        if most.is_multiple_of(PAGE) && most < 1 << 32 {
            prop_assert_eq!(now, run(bytes, channels, most));
        } else if most > PAGE {
            // They began within pages where the largest transfer is not a multiple of one.
            prop_assert!(now.iter().all(|(offset, _)| offset.is_multiple_of(PAGE)));
        }
    }

    #[test]
    fn it_cuts_as_offload_has_cut_what_the_core_leaves((len, most) in requests(), core in 0_u64..1 << 20) {
        if most.is_multiple_of(PAGE) && most < 1 << 32 {
            let cut = Cut::bytes(most);
            let behind = |(at, bytes): (u64, u64)| (core + at, bytes);
            let now: Pieces = pieces(Rest::new(len), cut).into_iter().map(behind).collect();
            let before: Pieces = steps(len, most).into_iter().map(behind).collect();
            prop_assert_eq!(now, before);
        }
    }

    #[test]
    fn it_cuts_as_cores_and_threads_have_cut(bytes in 1_u64..1 << 32, count in 1_u64..64) {
        let share = Cut::bytes(256 << 10);
        prop_assert_eq!(pieces(Rest::new(bytes), share), steps(bytes, 256 << 10));
        let equal = pieces(Rest::new(bytes), Cut::equal(bytes, count, 1));
        prop_assert_eq!(equal, threads(bytes, count));
    }
}

#[test]
fn a_run_of_pages_beyond_4_gib_has_no_piece_that_begins_within_a_page() {
    let (bytes, most) = (6_u64 << 30, u64::from(u32::MAX));
    // As it was: a piece of 2^32 - 1 bytes.
    let before = run(bytes, 1, most);
    assert!(!before[1].0.is_multiple_of(PAGE));
    let limit = Cut::bytes(most);
    let now = pieces(Rest::new(bytes), Cut::equal(bytes, 1, 1).within(limit));
    assert!(
        now.iter()
            .all(|(offset, bytes)| (offset | bytes).is_multiple_of(PAGE)),
        "{now:?}"
    );
}

#[test]
fn a_fault_moves_what_follows() {
    let cut = Cut::bytes(8192);
    let mut rest = Rest::new(20_000);
    rest.advance(5000);
    let left: Pieces = pieces(rest, cut);
    assert_eq!(left, [(5000, 8192), (13_192, 6808)]);
    assert_eq!((rest.done(), rest.left()), (5000, 15_000));
    rest.advance(15_000);
    assert_eq!(pieces(rest, cut), []);
}

#[test]
fn lengths_at_the_end_of_the_numbers_are_cut() {
    assert_eq!(Cut::up_to(0, 1), None);
    assert_eq!(Cut::up_to(519, 520), None);
    assert_eq!(Some(Cut::bytes(0)), Cut::up_to(1, 1));
    assert!(Cut::up_to(u64::MAX, 0).is_some());
    let whole = Cut::equal(u64::MAX, 1, 1);
    assert_eq!(pieces(Rest::new(u64::MAX), whole), [(0, u64::MAX)]);
    assert_eq!(pieces(Rest::new(0), Cut::equal(0, 0, 1)), []);
}
