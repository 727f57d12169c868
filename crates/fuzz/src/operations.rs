//! Every fast operation against the oracle, on buffers that end where the bytes end, so that an
//! address sanitizer sees reads beyond them.

use dray_ops::{
    CrcOptions, DestinationDifFlags, DifFlags, Pattern, SourceDifFlags, Tags, UpdateTags, oracle,
};

use crate::draw::Draw;

/// Does with `bytes` what their first ones say.
///
/// # Panics
///
/// If the fast version and the oracle differ.
pub fn operations(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let kind = draw.below(6);
    let parameters: [u8; 40] = {
        let mut into = [0; 40];
        draw.fill(&mut into);
        into
    };
    let src = draw.rest().to_vec();
    // Any alignment of the source, and another one of the destination.
    let skip = usize::from(parameters[38] % 65).min(src.len());
    let src = &src[skip..];
    match kind {
        0 => crcs(&parameters, src),
        1 => compares(&parameters, src),
        2 => moves(&parameters, src),
        3 => deltas(&parameters, src),
        _ => difs(&parameters, src),
    }
}

/// Room for `bytes` bytes at its end.
fn room(parameters: &[u8; 40], bytes: usize) -> (Vec<u8>, usize) {
    let skip = usize::from(parameters[39] % 65);
    (vec![0; skip + bytes], skip)
}

fn number(parameters: &[u8; 40], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&parameters[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn options(byte: u8) -> CrcOptions {
    CrcOptions {
        bypass_inversion_reflection: byte & 1 != 0,
        bypass_data_reflection: byte & 2 != 0,
    }
}

fn crcs(parameters: &[u8; 40], src: &[u8]) {
    let (seed, options) = (number(parameters, 0), options(parameters[8]));
    let seed32 = seed as u32;
    let expected = oracle::crc32c(seed32, src, options);
    let expected64 = oracle::crc64(seed, src, options);
    assert_eq!(dray_ops::crc32c(seed32, src, options), expected);
    assert_eq!(dray_ops::crc64(seed, src, options), expected64);
    let ((mut first, skip), mut second) = (room(parameters, src.len()), vec![0; src.len()]);
    let first = &mut first[skip..];
    let crc = dray_ops::copy_crc(seed32, src, first, options);
    assert_eq!(crc, Ok(expected));
    let crc = dray_ops::copy_crc64(seed, src, &mut second, options);
    assert_eq!(crc, Ok(expected64));
    assert!(first == src && second == src);
}

fn compares(parameters: &[u8; 40], src: &[u8]) {
    let (a, b) = src.split_at(src.len() / 2);
    assert_eq!(dray_ops::compare(a, b), oracle::compare(a, b));
    let mut changed = src.to_vec();
    if let Some(byte) = changed.get_mut(number(parameters, 0) as u16 as usize) {
        *byte ^= parameters[8];
    }
    let found = dray_ops::compare(src, &changed);
    assert_eq!(found, oracle::compare(src, &changed));
    let pattern = number(parameters, 16).to_le_bytes();
    let found = dray_ops::compare_pattern(src, pattern);
    assert_eq!(found, oracle::compare_pattern(src, pattern));
    oracle::fill(&mut changed, Pattern::Eight(pattern));
    if let Some(byte) = changed.get_mut(number(parameters, 0) as u16 as usize) {
        *byte ^= parameters[8];
    }
    let found = dray_ops::compare_pattern(&changed, pattern);
    assert_eq!(found, oracle::compare_pattern(&changed, pattern));
}

fn moves(parameters: &[u8; 40], src: &[u8]) {
    let ((mut first, skip), mut second) = (room(parameters, src.len()), vec![0; src.len()]);
    let first = &mut first[skip..];
    assert_eq!(dray_ops::dualcast(src, first, &mut second), Ok(()));
    assert!(first == src && second == src);
    first.fill(0);
    assert_eq!(dray_ops::copy(src, first), Ok(()));
    assert!(first == src);
    let mut sixteen = [0; 16];
    sixteen.copy_from_slice(&parameters[..16]);
    let eight = number(parameters, 16).to_le_bytes();
    for pattern in [Pattern::Eight(eight), Pattern::Sixteen(sixteen)] {
        dray_ops::fill(first, pattern);
        oracle::fill(&mut second, pattern);
        assert!(first == second);
    }
}

fn deltas(parameters: &[u8; 40], src: &[u8]) {
    let (a, b) = src.split_at(src.len() / 2);
    let mut b = b.to_vec();
    let kept = parameters[8];
    // Where a bit of the mask is set, the words are the same.
    for (n, word) in b.chunks_exact_mut(8).enumerate() {
        if kept >> (n % 8) & 1 != 0
            && let Some(same) = a.get(8 * n..8 * n + 8)
        {
            word.copy_from_slice(same);
        }
    }
    let room = usize::from(number(parameters, 0) as u16);
    let (mut fast, mut slow) = (vec![0x55; room], vec![0x55; room]);
    let created = dray_ops::create_delta(a, &b, &mut fast);
    assert_eq!(created, oracle::create_delta(a, &b, &mut slow));
    assert!(fast == slow);
    let used = created.map_or(0, |created| created.record_bytes());
    for record in [&fast[..used], &b] {
        let (mut fast, mut slow) = (a.to_vec(), a.to_vec());
        let applied = dray_ops::apply_delta(record, &mut fast);
        assert_eq!(applied, oracle::apply_delta(record, &mut slow));
        assert!(fast == slow);
    }
}

fn tags(parameters: &[u8; 40], at: usize) -> Tags {
    let bits = number(parameters, at);
    Tags {
        reference: bits as u32,
        app_mask: (bits >> 32) as u16,
        app: (bits >> 48) as u16,
    }
}

fn difs(parameters: &[u8; 40], src: &[u8]) {
    let flags = DifFlags::from_bits(parameters[0] & 15);
    let source = SourceDifFlags::from_bits(parameters[1]);
    let destination = DestinationDifFlags::from_bits(parameters[2]);
    let both = UpdateTags {
        source: tags(parameters, 8),
        destination: tags(parameters, 16),
    };
    let size = flags.block_size();
    let (data, protected) = (size.bytes(), size.protected_bytes());
    // As many blocks as there are bytes for, or sizes that are not whole.
    let blocks = (src.len() / protected).max(1);
    let mut whole = src.to_vec();
    if parameters[3] & 3 != 0 {
        whole.resize(blocks * data, parameters[4]);
    }
    let bytes = whole.len() / data * protected + usize::from(parameters[3] == 7);
    let ((mut made, skip), mut slow) = (room(parameters, bytes), vec![0; bytes]);
    let made = &mut made[skip..];
    let given = both.destination;
    let next = dray_ops::dif_insert(&whole, made, flags, destination, given);
    let expected = oracle::dif_insert(&whole, &mut slow, flags, destination, given);
    assert_eq!(next, expected);
    assert!(made == slow);
    let (mut fast, mut slow) = (
        vec![0; bytes / protected * 8],
        vec![0; bytes / protected * 8],
    );
    let next = dray_ops::dix_generate(&whole, &mut fast, flags, destination, given);
    let expected = oracle::dix_generate(&whole, &mut slow, flags, destination, given);
    assert_eq!(next, expected);
    assert!(fast == slow);
    // What was made, with a byte changed, and what came as it is.
    if parameters[3] & 4 != 0
        && let Some(byte) = made.get_mut(number(parameters, 24) as u16 as usize)
    {
        *byte ^= parameters[5];
    }
    for (src, expected_tags) in [
        (&*made, given),
        (&*made, both.source),
        (&whole[..], both.source),
    ] {
        let checked = dray_ops::dif_check(src, flags, source, expected_tags);
        assert_eq!(
            checked,
            oracle::dif_check(src, flags, source, expected_tags)
        );
        let bytes = src.len() / protected * data;
        let ((mut fast, skip), mut slow) = (room(parameters, bytes), vec![0; bytes]);
        let fast = &mut fast[skip..];
        let next = dray_ops::dif_strip(src, fast, flags, source, expected_tags);
        let expected = oracle::dif_strip(src, &mut slow, flags, source, expected_tags);
        assert_eq!(next, expected);
        assert!(fast == slow);
        let ((mut fast, skip), mut slow) = (room(parameters, src.len()), vec![0; src.len()]);
        let fast = &mut fast[skip..];
        let both = UpdateTags {
            source: expected_tags,
            ..both
        };
        let next = dray_ops::dif_update(src, fast, flags, source, destination, both);
        let expected = oracle::dif_update(src, &mut slow, flags, source, destination, both);
        assert_eq!(next, expected);
        assert!(fast == slow);
    }
}
