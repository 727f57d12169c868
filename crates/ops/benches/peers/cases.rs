//! What is compared with what. Both sides of a case return the same number.

use std::ffi::{c_int, c_void};

use dray_ops::{CrcOptions, DestinationDifFlags, DifFlags, Pattern, SourceDifFlags, Tags};

use crate::isal::Isal;
use crate::memory::{Content, Slot};

/// One operation and its peer.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) peer_name: &'static str,
    pub(crate) content: Content,
    pub(crate) ours: fn(&mut Slot<'_>) -> u64,
    pub(crate) peer: Peer,
}

#[derive(Clone, Copy)]
pub(crate) enum Peer {
    /// The C library.
    Library(fn(&mut Slot<'_>) -> u64),
    Isal(fn(&Isal, &mut Slot<'_>) -> u64),
}

// What the compiler cannot see through, as it can through the standard library's.
unsafe extern "C" {
    fn memmove(dst: *mut c_void, src: *const c_void, bytes: usize) -> *mut c_void;
    fn memset(dst: *mut c_void, byte: c_int, bytes: usize) -> *mut c_void;
    fn memcmp(a: *const c_void, b: *const c_void, bytes: usize) -> c_int;
}

/// As much of `dst` as `src` has.
fn libc_move(src: &[u8], dst: &mut [u8]) {
    let dst = &mut dst[..src.len()];
    // SAFETY: both have so many bytes.
    unsafe { memmove(dst.as_mut_ptr().cast(), src.as_ptr().cast(), src.len()) };
}

fn libc_set(dst: &mut [u8], byte: u8) {
    // SAFETY: it has so many bytes.
    unsafe { memset(dst.as_mut_ptr().cast(), byte.into(), dst.len()) };
}

fn libc_equal(a: &[u8], b: &[u8]) -> bool {
    let bytes = a.len().min(b.len());
    // SAFETY: both have so many bytes.
    unsafe { memcmp(a.as_ptr().cast(), b.as_ptr().cast(), bytes) == 0 }
}

fn is_ok<T, E>(result: Result<T, E>) -> u64 {
    u64::from(result.is_ok())
}

fn compare_peer(slot: &mut Slot<'_>) -> u64 {
    u64::from(libc_equal(slot.src, slot.twin))
}

/// Both in parts that a delta can have: 512 KiB.
fn delta_parts<'a>(src: &'a [u8], twin: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    src.chunks(dray_ops::DELTA_MAX_BYTES)
        .zip(twin.chunks(dray_ops::DELTA_MAX_BYTES))
}

fn fill_peer(slot: &mut Slot<'_>) -> u64 {
    libc_set(&mut slot.dst[..slot.src.len()], 7);
    0
}

/// Data and field of each block.
fn blocks(protected: &[u8]) -> impl Iterator<Item = (&[u8], u16)> {
    protected.chunks_exact(520).map(|block| {
        let (data, field) = block.split_at(512);
        (data, u16::from_be_bytes([field[0], field[1]]))
    })
}

const OPTIONS: CrcOptions = CrcOptions {
    bypass_inversion_reflection: false,
    bypass_data_reflection: false,
};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "copy",
        peer_name: "memmove",
        content: Content::Random,
        ours: |slot| is_ok(dray_ops::copy(slot.src, &mut slot.dst[..slot.src.len()])),
        peer: Peer::Library(|slot| {
            libc_move(slot.src, slot.dst);
            1
        }),
    },
    Case {
        name: "dualcast",
        peer_name: "memmove twice",
        content: Content::Random,
        ours: |slot| {
            let bytes = slot.src.len();
            let (first, second) = (&mut slot.dst[..bytes], &mut slot.second[..bytes]);
            is_ok(dray_ops::dualcast(slot.src, first, second))
        },
        peer: Peer::Library(|slot| {
            libc_move(slot.src, slot.dst);
            libc_move(slot.src, slot.second);
            1
        }),
    },
    Case {
        name: "fill, one byte",
        peer_name: "memset",
        content: Content::Random,
        ours: |slot| {
            let pattern = Pattern::Eight([7; 8]);
            dray_ops::fill(&mut slot.dst[..slot.src.len()], pattern);
            0
        },
        peer: Peer::Library(fill_peer),
    },
    Case {
        name: "fill, 8 bytes",
        peer_name: "memset",
        content: Content::Random,
        ours: |slot| {
            let pattern = Pattern::Eight(*b"ABCDEFGH");
            dray_ops::fill(&mut slot.dst[..slot.src.len()], pattern);
            0
        },
        peer: Peer::Library(fill_peer),
    },
    Case {
        name: "compare",
        peer_name: "memcmp",
        content: Content::Random,
        ours: |slot| u64::from(dray_ops::compare(slot.src, slot.twin).is_none()),
        peer: Peer::Library(compare_peer),
    },
    Case {
        name: "compare pattern",
        peer_name: "isal_zero_detect",
        content: Content::Zero,
        ours: |slot| u64::from(dray_ops::compare_pattern(slot.src, [0; 8]).is_none()),
        peer: Peer::Isal(|isal, slot| u64::from(isal.is_zero(slot.src))),
    },
    Case {
        name: "create delta, equal",
        peer_name: "memcmp",
        content: Content::Random,
        ours: |slot| {
            let mut equal = 1;
            for (src, twin) in delta_parts(slot.src, slot.twin) {
                let created = dray_ops::create_delta(src, twin, &mut slot.dst[..80]);
                equal &= u64::from(created == Ok(dray_ops::DeltaCreated::Equal));
            }
            equal
        },
        peer: Peer::Library(|slot| {
            let mut parts = delta_parts(slot.src, slot.twin);
            u64::from(parts.all(|(src, twin)| libc_equal(src, twin)))
        }),
    },
    Case {
        name: "crc32c",
        peer_name: "crc32_iscsi",
        content: Content::Random,
        ours: |slot| dray_ops::crc32c(0, slot.src, OPTIONS).into(),
        peer: Peer::Isal(|isal, slot| isal.crc32c(slot.src).into()),
    },
    Case {
        name: "copy with crc32c",
        peer_name: "memmove, crc32_iscsi",
        content: Content::Random,
        ours: |slot| {
            let dst = &mut slot.dst[..slot.src.len()];
            dray_ops::copy_crc(0, slot.src, dst, OPTIONS).map_or(0, u64::from)
        },
        peer: Peer::Isal(|isal, slot| {
            libc_move(slot.src, slot.dst);
            isal.crc32c(slot.src).into()
        }),
    },
    Case {
        name: "dif check, 512",
        peer_name: "crc16_t10dif",
        content: Content::Protected,
        ours: |slot| {
            let (flags, tags) = (SourceDifFlags::new(), Tags::default());
            is_ok(dray_ops::dif_check(slot.src, DifFlags::new(), flags, tags))
        },
        peer: Peer::Isal(|isal, slot| {
            u64::from(blocks(slot.src).all(|(data, guard)| isal.t10dif(data) == guard))
        }),
    },
    Case {
        name: "dif insert, 512",
        peer_name: "crc16_t10dif_copy",
        content: Content::Random,
        ours: |slot| {
            let flags = DestinationDifFlags::new();
            let tags = Tags::default();
            is_ok(dray_ops::dif_insert(
                slot.src,
                slot.dst,
                DifFlags::new(),
                flags,
                tags,
            ))
        },
        peer: Peer::Isal(|isal, slot| {
            let pairs = slot
                .src
                .chunks_exact(512)
                .zip(slot.dst.chunks_exact_mut(520));
            for (reference, (block, to)) in (0_u32..).zip(pairs) {
                let (data, field) = to.split_at_mut(512);
                let guard = isal.t10dif_copy(block, data);
                let bits = u64::from(guard) << 48 | u64::from(reference);
                field.copy_from_slice(&bits.to_be_bytes());
            }
            1
        }),
    },
    Case {
        name: "dif strip, 512",
        peer_name: "crc16_t10dif_copy",
        content: Content::Protected,
        ours: |slot| {
            let (flags, tags) = (SourceDifFlags::new(), Tags::default());
            is_ok(dray_ops::dif_strip(
                slot.src,
                slot.dst,
                DifFlags::new(),
                flags,
                tags,
            ))
        },
        peer: Peer::Isal(|isal, slot| {
            let pairs = blocks(slot.src).zip(slot.dst.chunks_exact_mut(512));
            let mut good = true;
            for ((data, guard), to) in pairs {
                good &= isal.t10dif_copy(data, to) == guard;
            }
            u64::from(good)
        }),
    },
];
