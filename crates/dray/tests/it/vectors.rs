//! Operations on lists of segments, beside the same on whole buffers.

use std::pin::Pin;
use std::task::{Context, Waker};

use dray::task::{self, Driver, Handle, Look, Segment, Submitter, VectorError, Work};
use dray::virt::{Options, VirtualDevice};
use dray::{CpuMover, Mover, Operation, Outcome, Output};
use dray_device::WorkQueueMode;
use dray_ops::{CrcOptions, crc32c, crc64};
use dray_spec::Status;
use proptest::prelude::*;

use crate::machine::{device, queue};

/// Bytes in pieces at the ends that are given, each in a buffer of its own; some are empty.
struct Pieces(Vec<Vec<u8>>);

impl Pieces {
    fn new(bytes: &[u8], cuts: &[usize]) -> Pieces {
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        ends.push(bytes.len());
        ends.sort_unstable();
        let mut start = 0;
        let piece = |end: usize| bytes[std::mem::replace(&mut start, end)..end].to_vec();
        Pieces(ends.into_iter().map(piece).collect())
    }

    fn segments(&mut self) -> Vec<Segment> {
        let of = |piece: &mut Vec<u8>| Segment {
            base: piece.as_mut_ptr().expose_provenance(),
            bytes: piece.len(),
        };
        self.0.iter_mut().map(of).collect()
    }

    fn joined(&self) -> Vec<u8> {
        self.0.concat()
    }
}

fn run<M: Mover>(both: &mut (Submitter, Driver<M>), work: Result<Work, VectorError>) -> Outcome {
    let (submitter, driver) = both;
    let handle = Handle::new();
    let work = work.expect("it is possible");
    // SAFETY: the caller keeps buffers and lists, and it has ended when this returns.
    unsafe { submitter.start(&handle, work, false) }.expect("it starts");
    loop {
        let _ = Pin::new(&mut *driver).poll(&mut Context::from_waker(Waker::noop()));
        if let Look::Ended(outcome) = handle.look() {
            return outcome;
        }
        std::thread::yield_now();
    }
}

fn check<M: Mover>(
    both: &mut (Submitter, Driver<M>),
    bytes: &[u8],
    cuts: (&[usize], &[usize]),
    differs_at: usize,
) {
    let len = bytes.len();
    let mut source = Pieces::new(bytes, cuts.0);
    let from = source.segments();
    let mut target = Pieces::new(&vec![0; len], cuts.1);
    let to = target.segments();
    let of = |outcome: Outcome, operation: Operation| {
        let all = outcome.core_bytes + outcome.device_bytes;
        (outcome.output(&operation), all)
    };
    let (move_, copy_crc) = (Operation::memmove(0, 0, 0), Operation::copy_crc(0, 0, 0, 5));
    let done = run(both, Work::on(move_, Some(&from), Some(&to)));
    assert_eq!(of(done, move_), (Ok(Output::Done), len as u64));
    assert_eq!(target.joined(), bytes);
    // CRC, alone, wide, and with a copy.
    let crc = crc32c(5, bytes, CrcOptions::default());
    let one = Operation::crc(0, 0, 5);
    let done = run(both, Work::on(one, Some(&from), None));
    assert_eq!(of(done, one).0, Ok(Output::Crc32(crc)));
    let wide = Operation::crc64(0, 0, 9);
    if both.0.capabilities().supports(&wide) {
        let done = run(both, Work::on(wide, Some(&from), None));
        let expected = crc64(9, bytes, CrcOptions::default());
        assert_eq!(of(done, wide).0, Ok(Output::Crc64(expected)));
    }
    target.0.iter_mut().for_each(|piece| piece.fill(0));
    let done = run(both, Work::on(copy_crc, Some(&from), Some(&to)));
    assert_eq!(of(done, copy_crc), (Ok(Output::Crc32(crc)), len as u64));
    assert_eq!(target.joined(), bytes);
    // Equal, and with one difference.
    let compare = Operation::compare(0, 0, 0);
    let done = run(both, Work::on(compare, Some(&from), Some(&to)));
    let equal = Output::Compared { difference: None };
    assert_eq!(of(done, compare).0, Ok(equal));
    let mut at = differs_at;
    for piece in &mut target.0 {
        if let Some(byte) = piece.get_mut(at) {
            *byte ^= 0xff;
            break;
        }
        at -= piece.len();
    }
    let done = run(both, Work::on(compare, Some(&from), Some(&to)));
    let Ok(Output::Compared {
        difference: Some(found),
    }) = of(done, compare).0
    else {
        panic!("{done:?}");
    };
    // A device says where the bytes that it compares at a time begin.
    assert!(
        found as usize <= differs_at && differs_at - found as usize <= 64,
        "{found}"
    );
    // A pattern goes on where a segment ends; the source is one run of bytes.
    let pattern = 0x0807_0605_0403_0201;
    let fill = Operation::fill(pattern, 0, 0);
    run(both, Work::on(fill, None, Some(&to)));
    let filled = target.joined();
    assert!(
        filled
            .iter()
            .enumerate()
            .all(|(n, byte)| *byte as usize == n % 8 + 1)
    );
    let patterned = Operation::compare_pattern(0, pattern, 0);
    let done = run(both, Work::on(patterned, Some(&to), None));
    assert_eq!(of(done, patterned).0, Ok(equal));
    let whole = bytes.as_ptr().expose_provenance() as u64;
    let scatter = Operation::memmove(whole, 0, 0);
    run(both, Work::on(scatter, None, Some(&to)));
    assert_eq!(target.joined(), bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn segments_of_both_sides_end_where_they_like(
        bytes in prop::collection::vec(any::<u8>(), 1..3000),
        from in prop::collection::vec(any::<usize>(), 0..12),
        to in prop::collection::vec(any::<usize>(), 0..12),
        at in any::<usize>(),
    ) {
        // Fewer slots than parts, and more.
        for slots in [1, 3, 32] {
            check(&mut task::share(CpuMover::new(slots)), &bytes, (&from, &to), at % bytes.len());
        }
        let config = device(2, vec![queue(0, WorkQueueMode::Dedicated, 16)]);
        let device = VirtualDevice::start(config, Options::default()).expect("a device");
        let mover = device.open(0, 4).expect("a queue");
        check(&mut task::share(mover), &bytes, (&from, &to), at % bytes.len());
    }
}

/// Of several parts that fail, or of one that fails behind others, the first decides.
#[test]
fn a_segment_that_cannot_be_accessed_ends_it_after_the_bytes_before() {
    let mut bytes = [7_u8; 96];
    let base = bytes.as_mut_ptr().expose_provenance();
    let bad = 16;
    let from = [base, bad, base + 32].map(|base| Segment { base, bytes: 32 });
    let mut to = [0_u8; 96];
    let into = [to.as_mut_ptr().expose_provenance()].map(|base| Segment { base, bytes: 96 });
    for slots in [1, 8] {
        let mut both = task::share(CpuMover::checked(slots));
        for operation in [Operation::memmove(0, 0, 0), Operation::copy_crc(0, 0, 0, 0)] {
            let done = run(&mut both, Work::on(operation, Some(&from), Some(&into)));
            let record = done.completion.record;
            assert_eq!(record.status().code(), Status::PAGE_FAULT.code());
            assert_eq!(record.bytes_completed, 32);
            assert_eq!(to[..32], [7; 32]);
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let one = [Segment { base: 64, bytes: 8 }];
    let two = [one[0], one[0]];
    let lengths = Work::on(Operation::memmove(0, 0, 0), Some(&one), Some(&two)).err();
    let expected = VectorError::Lengths {
        sources: 8,
        destinations: 16,
    };
    assert_eq!(lengths, Some(expected));
    let empty = Work::on(Operation::crc(0, 0, 0), Some(&[]), None).err();
    assert_eq!(empty, Some(VectorError::Length { bytes: 0 }));
    let large = [Segment {
        base: 0,
        bytes: usize::MAX,
    }; 2];
    let large = Work::on(Operation::crc(0, 0, 0), Some(&large), None).err();
    assert_eq!(large, Some(VectorError::Length { bytes: u64::MAX }));
    for (operation, sources) in [
        (Operation::dualcast(0, 0, 0, 0), Some(&one[..])),
        (Operation::noop(), None),
        (Operation::fill(0, 0, 8), Some(&one[..])),
        (Operation::memmove(0, 0, 8), None),
    ] {
        let refused = Work::on(operation, sources, None).err();
        let opcode = operation.opcode();
        assert_eq!(refused, Some(VectorError::Operation { opcode }));
    }
}
