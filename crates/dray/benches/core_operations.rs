//! Each operation on the calling core: the function of `dray_ops` alone, and the same by [`CpuMover`], one
//! operation at a time.
//!
//! `cargo bench -p dray --bench core_operations`. Both sides take turns on the same buffers, which are hot.
//! Printed are medians, and the quartiles of what the mover takes more.

mod paired;

use std::hint::black_box;
use std::slice;

use dray::{Completion, CpuMover, Mover, Operation};
use dray_ops::{
    CrcOptions, DestinationDifFlags, DifFlags, Pattern, SourceDifFlags, Tags, UpdateTags,
};
use dray_spec::{DifTags, Status};
use paired::paired;

const SIZES: [(usize, &str); 3] = [(64, "64 B"), (4 << 10, "4 KiB"), (64 << 10, "64 KiB")];
/// Bytes of a timed stretch, so that the clock does not count.
const STRETCH: usize = 1 << 18;
const PATTERN: u64 = 0x0807_0605_0403_0201;
/// Bytes of a block without and with its field.
const BLOCK: usize = 512;
const PROTECTED: usize = BLOCK + 8;

/// Room for any operand, with its fields.
const ROOM: usize = (64 << 10) / BLOCK * PROTECTED + 4096;

/// Two sources and two destinations that hold the same: as far apart as a dualcast wants its destinations, and
/// sources elsewhere in their pages.
struct Buffers {
    memory: Vec<u8>,
    start: usize,
}

impl Buffers {
    fn new() -> Buffers {
        let memory = vec![7; 5 * (ROOM + 4096)];
        let start = memory.as_ptr().align_offset(4096);
        Buffers { memory, start }
    }

    /// Address of buffer `n`: 0 and 1 are sources, 2 and 3 are destinations.
    fn address(&mut self, n: usize) -> u64 {
        let at = self.start + n * ROOM.next_multiple_of(4096) + [0, 1024, 2048, 2048][n];
        self.memory[at..].as_mut_ptr().expose_provenance() as u64
    }
}

/// Bytes that are read.
///
/// # Safety
/// They live as long as they are used, and nothing writes them meanwhile.
unsafe fn source<'a>(address: u64, len: usize) -> &'a [u8] {
    // SAFETY: the caller's promise is the same.
    unsafe { slice::from_raw_parts(black_box(address) as *const u8, black_box(len)) }
}

/// Bytes that are written.
///
/// # Safety
/// They live as long as they are used, and nothing else accesses them meanwhile.
unsafe fn destination<'a>(address: u64, len: usize) -> &'a mut [u8] {
    // SAFETY: the caller's promise is the same.
    unsafe { slice::from_raw_parts_mut(black_box(address) as *mut u8, black_box(len)) }
}

/// # Safety
/// As [`source`], of both.
unsafe fn sources<'a>(a: u64, b: u64, len: usize) -> (&'a [u8], &'a [u8]) {
    // SAFETY: the caller's promise is the same.
    let a = unsafe { source(a, len) };
    // SAFETY: as above.
    (a, unsafe { source(b, len) })
}

/// A source and a destination, by address and length.
///
/// # Safety
/// As [`source`] and [`destination`].
unsafe fn both<'a>(from: (u64, usize), to: (u64, usize)) -> (&'a [u8], &'a mut [u8]) {
    // SAFETY: the caller's promise is the same.
    let source = unsafe { source(from.0, from.1) };
    // SAFETY: as above.
    (source, unsafe { destination(to.0, to.1) })
}

/// Compares an operation by the mover with `plain`, which does the same.
fn case(name: &str, (size, label): (usize, &str), operation: Operation, mut plain: impl FnMut()) {
    let times = STRETCH / size;
    let mut mover = CpuMover::new(1);
    let mut ended = [Completion::default()];
    let library = || {
        for _ in 0..times {
            // SAFETY: the buffers are those of `main`, and nothing else accesses them meanwhile.
            let taken = unsafe { mover.enqueue(black_box(&operation)) };
            assert!(taken.is_ok());
            mover.submit();
            assert_eq!(mover.poll(&mut ended), 1);
            assert_eq!(ended[0].record.status(), Status::SUCCESS);
        }
        black_box(&ended);
    };
    let plain = || (0..times).for_each(|_| plain());
    paired(&format!("{name}, {label}"), times as f64, plain, library);
}

/// Operations without integrity fields and deltas.
fn bytes(buffers: &mut Buffers, (size, label): (usize, &str)) {
    let [a, b, to, second] = [0, 1, 2, 3].map(|n| buffers.address(n));
    let (len, at) = (size as u32, (size, label));
    let options = CrcOptions::default();
    case("fill", at, Operation::fill(PATTERN, to, len), || {
        let pattern = Pattern::Eight(PATTERN.to_le_bytes());
        // SAFETY: the buffers have room, and are used by one side at a time.
        dray_ops::fill(unsafe { destination(to, size) }, black_box(pattern));
    });
    // SAFETY: as above.
    unsafe { destination(to, size) }.fill(7);
    case("compare", at, Operation::compare(a, b, len), || {
        // SAFETY: as above.
        let (a, b) = unsafe { sources(a, b, size) };
        assert_eq!(black_box(dray_ops::compare(a, b)), None);
    });
    let pattern = u64::from_le_bytes([7; 8]);
    let compare = Operation::compare_pattern(a, pattern, len);
    case("compare pattern", at, compare, || {
        // SAFETY: as above.
        let found = dray_ops::compare_pattern(unsafe { source(a, size) }, black_box([7; 8]));
        assert_eq!(black_box(found), None);
    });
    case(
        "dualcast",
        at,
        Operation::dualcast(a, to, second, len),
        || {
            // SAFETY: as above.
            let (from, first) = unsafe { both((a, size), (to, size)) };
            // SAFETY: as above.
            let copied = dray_ops::dualcast(from, first, unsafe { destination(second, size) });
            assert!(copied.is_ok());
        },
    );
    case("CRC-32", at, Operation::crc(a, len, 1), || {
        // SAFETY: as above.
        black_box(dray_ops::crc32c(1, unsafe { source(a, size) }, options));
    });
    case("CRC-64", at, Operation::crc64(a, len, 1), || {
        // SAFETY: as above.
        black_box(dray_ops::crc64(1, unsafe { source(a, size) }, options));
    });
    case(
        "copy with CRC-32",
        at,
        Operation::copy_crc(a, to, len, 1),
        || {
            // SAFETY: as above.
            let (from, to) = unsafe { both((a, size), (to, size)) };
            assert!(black_box(dray_ops::copy_crc(1, from, to, options)).is_ok());
        },
    );
    case(
        "copy with CRC-64",
        at,
        Operation::copy_crc64(a, to, len, 1),
        || {
            // SAFETY: as above.
            let (from, to) = unsafe { both((a, size), (to, size)) };
            assert!(black_box(dray_ops::copy_crc64(1, from, to, options)).is_ok());
        },
    );
}

/// Delta records of buffers of which every 32nd word differs.
fn deltas(buffers: &mut Buffers, (size, label): (usize, &str)) {
    let [a, b, to, record] = [0, 1, 2, 3].map(|n| buffers.address(n));
    let (len, at) = (size as u32, (size, label));
    let room = (size / 256).max(1) * 10;
    let max = room.max(80);
    let equal = Operation::create_delta(a, b, len, record, max as u32);
    case("create delta, equal", at, equal, || {
        // SAFETY: the buffers have room, and are used by one side at a time.
        let (a, b) = unsafe { sources(a, b, size) };
        // SAFETY: as above.
        let into = unsafe { destination(record, max) };
        assert!(black_box(dray_ops::create_delta(a, b, into)).is_ok());
    });
    // SAFETY: as above.
    for word in unsafe { destination(b, size) }.chunks_mut(256) {
        word[0] = 8;
    }
    let different = Operation::create_delta(a, b, len, record, max as u32);
    case("create delta", at, different, || {
        // SAFETY: as above.
        let (a, b) = unsafe { sources(a, b, size) };
        // SAFETY: as above.
        let into = unsafe { destination(record, max) };
        assert!(black_box(dray_ops::create_delta(a, b, into)).is_ok());
    });
    let apply = Operation::apply_delta(record, to, len, room as u32);
    case("apply delta", at, apply, || {
        // SAFETY: as above.
        let (record, to) = unsafe { both((record, room), (to, size)) };
        assert_eq!(black_box(dray_ops::apply_delta(record, to)), Ok(()));
    });
    for n in 0..4 {
        let buffer = buffers.address(n);
        // SAFETY: as above.
        unsafe { destination(buffer, size) }.fill(7);
    }
}

/// Integrity fields of blocks of 512 bytes: `blocks` of them.
fn fields(buffers: &mut Buffers, (blocks, label): (usize, &str)) {
    let [plain, protected, to] = [0, 1, 2].map(|n| buffers.address(n));
    let (data, whole) = (blocks * BLOCK, blocks * PROTECTED);
    let flags = DifFlags::default();
    let (checked, made) = (SourceDifFlags::default(), DestinationDifFlags::default());
    let (bits, tags) = (DifTags::default(), Tags::default());
    let at = (data, label);
    let (short, long) = (data as u32, whole as u32);
    let insert = |to| Operation::dif_insert(plain, to, short, flags, (made, bits));
    case("DIF insert", at, insert(protected), || {
        // SAFETY: the buffers have room, and are used by one side at a time.
        let (from, to) = unsafe { both((plain, data), (protected, whole)) };
        assert!(black_box(dray_ops::dif_insert(from, to, flags, made, tags)).is_ok());
    });
    let check = Operation::dif_check(protected, long, flags, (checked, bits));
    case("DIF check", at, check, || {
        // SAFETY: as above.
        let from = unsafe { source(protected, whole) };
        assert!(black_box(dray_ops::dif_check(from, flags, checked, tags)).is_ok());
    });
    let strip = Operation::dif_strip(protected, to, long, flags, (checked, bits));
    case("DIF strip", at, strip, || {
        // SAFETY: as above.
        let (from, to) = unsafe { both((protected, whole), (to, data)) };
        assert!(black_box(dray_ops::dif_strip(from, to, flags, checked, tags)).is_ok());
    });
    let sides = ((checked, bits), (made, bits));
    let update = Operation::dif_update(protected, to, long, flags, sides.0, sides.1);
    case("DIF update", at, update, || {
        // SAFETY: as above.
        let (from, to) = unsafe { both((protected, whole), (to, whole)) };
        let tags = UpdateTags::default();
        let updated = dray_ops::dif_update(from, to, flags, checked, made, tags);
        assert!(black_box(updated).is_ok());
    });
    let generate = Operation::dix_generate(plain, to, short, flags, (made, bits));
    case("DIX generate", at, generate, || {
        // SAFETY: as above.
        let (from, to) = unsafe { both((plain, data), (to, blocks * 8)) };
        assert!(black_box(dray_ops::dix_generate(from, to, flags, made, tags)).is_ok());
    });
}

fn main() {
    let mut buffers = Buffers::new();
    for size in SIZES {
        bytes(&mut buffers, size);
        deltas(&mut buffers, size);
    }
    for blocks in [(1, "512 B"), (8, "4 KiB"), (128, "64 KiB")] {
        fields(&mut buffers, blocks);
    }
}
