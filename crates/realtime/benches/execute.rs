//! Descriptors carried out on memory of this process, beside the plain call that does the same: what
//! is between an engine and the bytes. Both take turns; printed are the quartiles of the ratio, above
//! 1 where the engine is faster.

use std::hint::black_box;
use std::time::Instant;

use dray_device::{Payload, execute};
use dray_ops::{CrcOptions, crc32c};
use dray_realtime::{AllAccessible, ProcessMemory};
use dray_spec::{Descriptor, Opcode, Status};

const ROUNDS: usize = 201;
const SIZES: [(usize, &str); 4] = [
    (64, "64 B"),
    (4 << 10, "4 KiB"),
    (64 << 10, "64 KiB"),
    (1 << 20, "1 MiB"),
];
/// Bytes of a timed stretch, so that the clock does not count.
const STRETCH: usize = 1 << 20;

/// Seconds of `times` calls.
fn time(times: usize, mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..times).for_each(|_| call());
    start.elapsed().as_secs_f64()
}

fn main() {
    // SAFETY: what descriptors name here lives as long as they are carried out, on this thread.
    let mut memory = unsafe { ProcessMemory::new(AllAccessible) };
    println!(
        "{:<10}{:>8}{:>9}{:>9}{:>9}",
        "", "size", "25 %", "50 %", "75 %"
    );
    for (size, name) in SIZES {
        let source = vec![7_u8; size];
        let mut destination = vec![7_u8; size];
        let from = source.as_ptr().expose_provenance() as u64;
        let to = destination.as_mut_ptr().expose_provenance() as u64;
        let bytes = size as u32;
        let operations = [
            (
                "copy",
                Opcode::Memmove,
                Descriptor::memmove(from, to, bytes),
            ),
            (
                "compare",
                Opcode::Compare,
                Descriptor::compare(from, to, bytes),
            ),
            (
                "crc32c",
                Opcode::CrcGenerate,
                Descriptor::crc(from, bytes, 0),
            ),
        ];
        let times = (STRETCH / size).max(1);
        for (label, opcode, descriptor) in operations {
            let mut ratios: Vec<f64> = (0..ROUNDS)
                .map(|_| {
                    let ours = time(times, || {
                        let outcome =
                            execute(opcode, black_box(&descriptor), &mut memory, Payload::Moved);
                        assert_eq!(outcome.record.status(), Status::SUCCESS);
                        black_box(&outcome);
                    });
                    let plain = time(times, || match opcode {
                        Opcode::Memmove => {
                            black_box(&mut destination).copy_from_slice(black_box(&source));
                        }
                        Opcode::Compare => {
                            assert!(black_box(&source) == black_box(&destination));
                        }
                        _ => {
                            black_box(crc32c(0, black_box(&source), CrcOptions::default()));
                        }
                    });
                    plain / ours
                })
                .collect();
            ratios.sort_by(f64::total_cmp);
            let at = |part: usize| ratios[ROUNDS * part / 4];
            println!(
                "{label:<10}{name:>8}{:>9.2}{:>9.2}{:>9.2}",
                at(1),
                at(2),
                at(3)
            );
        }
    }
}
