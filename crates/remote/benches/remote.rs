//! What the memory of another process costs: the check of what is there, copies, the record.
//!
//! `cargo bench -p dray-remote`. Medians of rounds, with the fastest and the slowest tenth.

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use common::{CHILD, Child, PAGE, Pages};
use dray_device::{Access, Memory, Payload, execute};
use dray_realtime::{SharedMemory, View};
use dray_remote::{Presence, RemoteMemory, Spaces};
use dray_spec::{CompletionRecord, Descriptor, Opcode, Status};

const ROUNDS: usize = 200;

fn measure(name: &str, each: usize, mut action: impl FnMut()) {
    action();
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..each).for_each(|_| action());
            start.elapsed().as_nanos() as f64 / each as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    let [fast, median, slow] = [ROUNDS / 10, ROUNDS / 2, ROUNDS * 9 / 10].map(|n| rounds[n]);
    println!("{name:<44} {median:>10.0} ns   {fast:.0} to {slow:.0}");
}

fn main() {
    let pages = Pages::new(600);
    let child = Child::start(|| (0..600).for_each(|page| pages.set(page * PAGE, 1)));
    let spaces = Arc::new(Spaces::new());
    spaces.add(CHILD, child.pid()).expect("a process");
    let (from, into) = (pages.address(0), pages.address(300 * PAGE));
    for presence in [Presence::Strict, Presence::Touch] {
        let mut memory = RemoteMemory::new(spaces.clone(), presence);
        let view = View {
            pasid: CHILD,
            blocks: false,
        };
        println!("{presence:?}");
        for (name, len) in [("1 page", 64), ("1 MiB", 1 << 20)] {
            measure(&format!("  check of {name}"), 64, || {
                memory.enter(view);
                let there = memory.accessible(from, len, Access::Read);
                assert_eq!(black_box(there), len);
            });
        }
        for (name, len, each) in [("64 B", 64, 64), ("4 KiB", 4096, 64), ("1 MiB", 1 << 20, 2)] {
            let copy = Descriptor::memmove(from, into, len);
            measure(&format!("  copy of {name}, checked"), each, || {
                memory.enter(view);
                let outcome = execute(Opcode::Memmove, &copy, &mut memory, Payload::Moved);
                assert!(memory.settle());
                assert_eq!(outcome.record.status(), Status::SUCCESS);
            });
        }
        let record = CompletionRecord::with_status(Status::SUCCESS);
        measure("  completion record", 64, || {
            memory.enter(view);
            assert!(memory.publish(into, &record));
        });
    }
    let (source, mut target) = (vec![1_u8; 1 << 20], vec![0_u8; 1 << 20]);
    measure("copy of 1 MiB within the process (memcpy)", 2, || {
        black_box(&mut target).copy_from_slice(black_box(&source));
    });
}
