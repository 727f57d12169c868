//! Buffers between pages that cannot be touched: who reads or writes a byte too far dies.
//!
//! Every size up to [`MOST`] at both ends of the pages, so that every alignment of both ends comes;
//! what lies between a destination and its guard must stay as it is.

use std::ptr::NonNull;

use dray_ops::{
    CrcOptions, DestinationDifFlags, DifFlags, Pattern, SourceDifFlags, Tags, UpdateTags, oracle,
};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Every size from 0 to this one.
const MOST: usize = 600;

const PAGE: usize = 4096;

/// Pages in use, between two that are not.
const PAGES: usize = 5;

const USED: usize = PAGES * PAGE;

/// What a destination holds where nothing is written.
const UNTOUCHED: u8 = 0xa5;

struct Guarded(NonNull<u8>);

impl Guarded {
    fn new(content: impl Fn(usize) -> u8) -> Guarded {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        let length = USED + 2 * PAGE;
        // SAFETY: a new mapping, where the kernel likes.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), length, prot, MapFlags::PRIVATE) };
        let start = NonNull::new(start.expect("memory").cast::<u8>()).expect("not address 0");
        for guard in [0, PAGE + USED] {
            // SAFETY: inside the mapping.
            let page = unsafe { start.add(guard) };
            // SAFETY: a page of the mapping that no reference covers.
            unsafe {
                mprotect(
                    page.as_ptr().cast(),
                    PAGE,
                    rustix::mm::MprotectFlags::empty(),
                )
            }
            .expect("a guard");
        }
        let mut guarded = Guarded(start);
        for (n, byte) in guarded.all().iter_mut().enumerate() {
            *byte = content(n);
        }
        guarded
    }

    fn source() -> Guarded {
        Guarded::new(|n| (n ^ n >> 7).wrapping_mul(73) as u8)
    }

    fn destination() -> Guarded {
        Guarded::new(|_| UNTOUCHED)
    }

    fn all(&mut self) -> &mut [u8] {
        // SAFETY: inside the mapping.
        let used = unsafe { self.0.add(PAGE) };
        // SAFETY: so many bytes are mapped, initialised, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts_mut(used.as_ptr(), USED) }
    }

    /// `bytes` bytes, right behind the first guard or right before the second one.
    fn part(&mut self, bytes: usize, at_end: bool) -> &mut [u8] {
        match at_end {
            true => &mut self.all()[USED - bytes..],
            false => &mut self.all()[..bytes],
        }
    }

    /// What a part is not must be untouched; the part will be.
    fn clear(&mut self, bytes: usize, at_end: bool) {
        let part = self.part(bytes, at_end);
        part.fill(UNTOUCHED);
        assert!(self.all().iter().all(|byte| *byte == UNTOUCHED), "{bytes}");
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, to which no reference is left.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), USED + 2 * PAGE) };
    }
}

/// Sizes, at each end; around the blocks in which the fast versions work too.
fn places() -> impl Iterator<Item = (usize, bool)> {
    let blocks = [1024, 4096, 8192, 16_384, USED - 13].map(|at| at - 3..at + 14);
    let sizes = (0..=MOST).chain(blocks.into_iter().flatten());
    sizes
        .filter(|size| *size <= USED)
        .flat_map(|size| [(size, false), (size, true)])
}

fn every_option() -> [CrcOptions; 4] {
    [(false, false), (true, false), (false, true), (true, true)].map(|(inversion, data)| {
        CrcOptions {
            bypass_inversion_reflection: inversion,
            bypass_data_reflection: data,
        }
    })
}

#[test]
fn crcs() {
    let mut src = Guarded::source();
    for (size, at_end) in places() {
        let src = src.part(size, at_end);
        for options in every_option() {
            for seed in [0, 0x1234_5678_9abc_def0] {
                let seed32 = seed as u32;
                let expected = oracle::crc32c(seed32, src, options);
                assert_eq!(dray_ops::crc32c(seed32, src, options), expected, "{size}");
                let expected = oracle::crc64(seed, src, options);
                assert_eq!(dray_ops::crc64(seed, src, options), expected, "{size}");
            }
        }
    }
}

#[test]
fn copies_and_fills() {
    let mut src = Guarded::source();
    let (mut first, mut second) = (Guarded::destination(), Guarded::destination());
    let patterns = [
        Pattern::Eight([9; 8]),
        Pattern::Eight(*b"ABCDEFGH"),
        Pattern::Sixteen(*b"0123456789abcdef"),
    ];
    for (size, at_end) in places() {
        let src = src.part(size, at_end);
        // The destination at the other end has another alignment.
        for to_end in [at_end, !at_end] {
            dray_ops::copy(src, first.part(size, to_end)).unwrap();
            assert!(first.part(size, to_end) == src, "{size}");
            first.clear(size, to_end);
            let to = (first.part(size, to_end), second.part(size, at_end));
            dray_ops::dualcast(src, to.0, to.1).unwrap();
            assert!(to.0 == src && to.1 == src, "{size}");
            first.clear(size, to_end);
            second.clear(size, at_end);
            let options = CrcOptions::default();
            let crc = dray_ops::copy_crc(7, src, first.part(size, to_end), options);
            assert_eq!(crc, Ok(dray_ops::crc32c(7, src, options)), "{size}");
            assert!(first.part(size, to_end) == src, "{size}");
            first.clear(size, to_end);
            for pattern in patterns {
                dray_ops::fill(first.part(size, to_end), pattern);
                let mut expected = vec![0; size];
                oracle::fill(&mut expected, pattern);
                assert!(first.part(size, to_end) == expected, "{size}");
                first.clear(size, to_end);
            }
        }
    }
}

#[test]
fn compares() {
    let (mut a, mut b) = (Guarded::source(), Guarded::destination());
    for (size, at_end) in places() {
        let a = a.part(size, at_end);
        for to_end in [at_end, !at_end] {
            let b = b.part(size, to_end);
            b.copy_from_slice(a);
            assert_eq!(dray_ops::compare(a, b), None, "{size}");
            for at in [0, size / 2, size.saturating_sub(1)] {
                let Some(byte) = b.get_mut(at) else { continue };
                *byte ^= 0x10;
                assert_eq!(dray_ops::compare(a, b), Some(at), "{size}");
                b[at] ^= 0x10;
            }
            let pattern = *b"ABCDEFGH";
            oracle::fill(b, Pattern::Eight(pattern));
            assert_eq!(dray_ops::compare_pattern(b, pattern), None, "{size}");
            if let Some(last) = b.last_mut() {
                *last ^= 1;
                assert_eq!(dray_ops::compare_pattern(b, pattern), Some(size - 1));
            }
        }
    }
}

#[test]
fn deltas() {
    let (mut a, mut b) = (Guarded::source(), Guarded::source());
    let mut record = Guarded::destination();
    for (size, at_end) in places().filter(|(size, _)| size % 8 == 0) {
        let (a, b) = (a.part(size, at_end), b.part(size, !at_end));
        b.copy_from_slice(a);
        for word in b.chunks_exact_mut(8).step_by(3) {
            word[5] ^= 1;
        }
        let mut expected = vec![UNTOUCHED; 2 * size];
        let needed = oracle::create_delta(a, b, &mut expected).unwrap();
        // All the room that is needed, an entry less, and a byte less.
        for less in [0, 1, 10] {
            let room = needed.record_bytes().saturating_sub(less);
            let created = dray_ops::create_delta(a, b, record.part(room, at_end));
            let mut expected = vec![UNTOUCHED; room];
            assert_eq!(created, oracle::create_delta(a, b, &mut expected));
            assert!(record.part(room, at_end) == expected, "{size}");
            if less == 0 {
                let mut restored = a.to_vec();
                let applied = dray_ops::apply_delta(record.part(room, at_end), &mut restored);
                assert!(applied.is_ok() && restored == b, "{size}");
            }
            record.clear(room, at_end);
        }
    }
}

/// Every size of block, every flag of the source, at both ends; as many blocks as are worked on
/// alone, together, and while others are copied.
#[test]
fn integrity_fields() {
    let (mut src, mut made) = (Guarded::source(), Guarded::destination());
    let mut dst = Guarded::destination();
    for bits in 0..16 {
        let flags = DifFlags::from_bits(bits);
        let (data, protected) = (
            flags.block_size().bytes(),
            flags.block_size().protected_bytes(),
        );
        let counts: &[usize] = if data < 1000 {
            &[1, 3, 4, 9]
        } else {
            &[1, 3, 4]
        };
        let ends = counts
            .iter()
            .flat_map(|blocks| [(*blocks, false), (*blocks, true)]);
        for (blocks, at_end) in ends {
            let src = src.part(blocks * data, at_end);
            let tags = Tags {
                reference: u32::MAX - 1,
                app_mask: 0x00f0,
                app: u16::MAX,
            };
            for destination in (0..=u8::MAX).step_by(8) {
                let destination = DestinationDifFlags::from_bits(destination);
                let made = made.part(blocks * protected, at_end);
                let mut expected = vec![0; made.len()];
                oracle::dif_insert(src, &mut expected, flags, destination, tags).unwrap();
                dray_ops::dif_insert(src, made, flags, destination, tags).unwrap();
                assert!(made == expected);
                let fields = dst.part(blocks * 8, !at_end);
                dray_ops::dix_generate(src, fields, flags, destination, tags).unwrap();
                let mut fields = expected.chunks_exact(protected).map(|block| &block[data..]);
                let found = dst.part(blocks * 8, !at_end).chunks_exact(8);
                assert!(found.eq(fields.by_ref()));
                dst.clear(blocks * 8, !at_end);
            }
            for source in 0..=u8::MAX {
                let source = SourceDifFlags::from_bits(source);
                let made = made.part(blocks * protected, at_end);
                let stripped = dst.part(blocks * data, !at_end);
                let next = dray_ops::dif_strip(made, stripped, flags, source, tags);
                let mut expected = vec![UNTOUCHED; stripped.len()];
                let end = oracle::dif_strip(made, &mut expected, flags, source, tags);
                assert_eq!(next, end);
                assert!(stripped == expected);
                dst.clear(blocks * data, !at_end);
                assert_eq!(
                    dray_ops::dif_check(made, flags, source, tags),
                    oracle::dif_check(made, flags, source, tags)
                );
                let both = UpdateTags {
                    source: tags,
                    destination: tags,
                };
                let destination = DestinationDifFlags::new().with_guard_pass_through(true);
                let updated = dst.part(blocks * protected, !at_end);
                let next = dray_ops::dif_update(made, updated, flags, source, destination, both);
                let mut expected = vec![UNTOUCHED; updated.len()];
                let end = oracle::dif_update(made, &mut expected, flags, source, destination, both);
                assert_eq!(next, end);
                assert!(updated == expected);
                dst.clear(blocks * protected, !at_end);
            }
            made.clear(blocks * protected, at_end);
        }
    }
}
