//! Times to the picosecond. Making the model faster, or arranging it otherwise, must not change
//! them; changing a mechanism may, and then the new numbers belong in the same commit.
//!
//! `DRAY_PRINT=1 cargo test -p dray-model --test it exact:: -- --nocapture` prints the table as it is now.

use crate::common::busy::Busy;
use crate::common::machine::{frozen, one_queue, world};
use crate::common::operation;
use dray::Operation;
use dray_device::{Payload, WorkQueueMode};
use dray_model::{ChannelOptions, World};
use dray_platform::{Cache, MemoryLocation, NodeId, WaitMode};
use dray_spec::{Descriptor, Flags};

use WorkQueueMode::{Dedicated, Shared};

/// One workload on cores that all do the same.
#[derive(Clone)]
struct Case {
    mode: WorkQueueMode,
    engines: u16,
    devices: u16,
    /// Cores for each device, all on one queue.
    cores: u16,
    batch: u32,
    depth: u32,
    op: Op,
    size: u32,
    offset: u64,
    nodes: [u16; 2],
    cache: Cache,
    wait: WaitMode,
    evicted: bool,
    block: bool,
    moved: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Op {
    Noop,
    Copy,
    Fill,
    Compare,
    Pattern,
    Dualcast,
    Crc,
    CopyCrc,
    /// Another operation and size each time, some of them refused, some fenced.
    Mixed,
}

const BASE: Case = Case {
    mode: Dedicated,
    engines: 1,
    devices: 1,
    cores: 1,
    batch: 1,
    depth: 64,
    op: Op::Copy,
    size: 4096,
    offset: 0,
    nodes: [0, 0],
    cache: Cache::Memory,
    wait: WaitMode::Poll,
    evicted: false,
    block: false,
    moved: false,
};

const OPERATIONS: u64 = 300;
const BUFFERS: u64 = 16;

impl Case {
    fn world(&self) -> World {
        let config = one_queue(self.engines, self.mode);
        let payload = match self.moved {
            true => Payload::Moved,
            false => Payload::Skipped,
        };
        world(frozen(), vec![config; self.devices.into()], payload)
    }

    /// Time and digest of every core, folded into one pair.
    fn run(&self) -> (u64, u64) {
        let mut world = self.world();
        let mut applications = Vec::new();
        for device in 0..self.devices {
            for _ in 0..self.cores {
                let options = ChannelOptions {
                    queue: Some((device, 0)),
                    batch: self.batch,
                    depth: self.depth / u32::from(self.cores),
                    wait: self.wait,
                    ..ChannelOptions::default()
                };
                world.open(options).expect("a queue");
                let case = self.clone();
                let [src, dst, dst2] = self.buffers(&mut world);
                let mut random = 0x9e37_79b9_7f4a_7c15 ^ u64::from(device);
                applications.push(Busy::new(OPERATIONS, move |n| {
                    let at = n % BUFFERS * u64::from(case.size.next_multiple_of(4096));
                    case.operation([src + at, dst + at, dst2 + at], &mut random)
                }));
            }
        }
        world.run(&mut applications).expect("all end");
        world.settle();
        applications.iter().fold((0, 0), |(time, digest), a| {
            let folded = (digest ^ a.digest).wrapping_mul(0x100_0000_01b3);
            (time.max(a.last.0), folded)
        })
    }

    fn buffers(&self, world: &mut World) -> [u64; 3] {
        let [src, dst] = self.nodes;
        [src, dst, dst].map(|node| {
            let place = MemoryLocation {
                node: NodeId(node),
                cache: self.cache,
            };
            let len = BUFFERS * u64::from(self.size.next_multiple_of(4096)) + self.offset;
            let region = world.memory.allocate(len, place, self.moved);
            if self.evicted {
                world.memory.evict(region);
            }
            world.memory.region(region).base + if node == dst { self.offset } else { 0 }
        })
    }

    fn operation(&self, [src, dst, dst2]: [u64; 3], random: &mut u64) -> Operation {
        let size = self.size;
        let (op, size, fence) = match self.op {
            Op::Mixed => {
                *random ^= *random << 13;
                *random ^= *random >> 7;
                *random ^= *random << 17;
                let ops = [
                    Op::Noop,
                    Op::Copy,
                    Op::Fill,
                    Op::Compare,
                    Op::Pattern,
                    Op::Dualcast,
                    Op::Crc,
                    Op::CopyCrc,
                ];
                let op = ops[(*random >> 8) as usize % ops.len()];
                // Size 0 is refused.
                let size = match *random >> 32 & 15 {
                    0 => 0,
                    bits => size >> (bits % 4) | (*random >> 40 & 7) as u32,
                };
                (op, size.min(self.size), *random >> 50 & 7 == 0)
            }
            op => (op, size, false),
        };
        let descriptor = match op {
            Op::Noop => Descriptor::noop(),
            Op::Copy | Op::Mixed => Descriptor::memmove(src, dst, size),
            Op::Fill => Descriptor::fill(0x0123_4567_89ab_cdef, dst, size),
            Op::Compare => Descriptor::compare(src, dst, size),
            Op::Pattern => Descriptor::compare_pattern(src, 0, size),
            Op::Dualcast => Descriptor::dualcast(src, dst, dst2, size),
            Op::Crc => Descriptor::crc(src, size, 1),
            Op::CopyCrc => Descriptor::copy_crc(src, dst, size, 1),
        };
        // Outside a batch a fence is refused, which is a result as well.
        let descriptor = match fence {
            true => descriptor.with_flags(Flags::FENCE),
            false => descriptor,
        };
        let operation = operation(descriptor);
        match self.block && op != Op::Noop {
            true => operation.with_block_on_fault(),
            false => operation,
        }
    }
}

#[rustfmt::skip]
fn cases() -> Vec<(String, Case)> {
    let mut cases = Vec::new();
    for mode in [Dedicated, Shared] {
        for engines in [1, 4] {
            for batch in [1, 4, 32] {
                for size in [64, 4096, 65536] {
                    let name = format!("{mode:?} {engines} engines, batch {batch}, {size} B");
                    let depth = 128 / batch;
                    cases.push((name, Case { mode, engines, batch, size, depth, ..BASE }));
                }
            }
        }
    }
    let more = [
        ("alone, one at a time", Case { depth: 1, ..BASE }),
        ("shared, one at a time", Case { depth: 1, mode: Shared, ..BASE }),
        ("shared, three cores", Case { cores: 3, mode: Shared, engines: 4, ..BASE }),
        ("shared, three cores, batches of 2, mixed", Case { cores: 3, mode: Shared, engines: 2, batch: 2, op: Op::Mixed, ..BASE }),
        ("two devices", Case { devices: 2, engines: 4, size: 16384, ..BASE }),
        ("eight devices", Case { devices: 8, engines: 2, size: 16384, ..BASE }),
        ("misaligned by 8", Case { offset: 8, ..BASE }),
        ("misaligned by 32, 4 engines", Case { offset: 32, engines: 4, size: 16384, ..BASE }),
        ("misaligned by 13, batch 4, within a line", Case { offset: 13, size: 40, batch: 4, ..BASE }),
        ("from remote", Case { nodes: [1, 0], ..BASE }),
        ("to remote, 4 engines", Case { nodes: [0, 1], engines: 4, ..BASE }),
        ("from cxl", Case { nodes: [2, 0], size: 65536, ..BASE }),
        ("to cxl, 4 engines, batch 8", Case { nodes: [0, 2], engines: 4, batch: 8, depth: 16, ..BASE }),
        ("cached", Case { cache: Cache::Llc, ..BASE }),
        ("cached, 4 engines, 256 B", Case { cache: Cache::Llc, engines: 4, size: 256, ..BASE }),
        ("noop", Case { op: Op::Noop, ..BASE }),
        ("noop, 4 engines, shared", Case { op: Op::Noop, engines: 4, mode: Shared, ..BASE }),
        ("fill", Case { op: Op::Fill, ..BASE }),
        ("fill, 4 engines, batch 32", Case { op: Op::Fill, engines: 4, batch: 32, depth: 4, ..BASE }),
        ("compare", Case { op: Op::Compare, ..BASE }),
        ("compare pattern", Case { op: Op::Pattern, ..BASE }),
        ("dualcast", Case { op: Op::Dualcast, engines: 2, ..BASE }),
        ("crc", Case { op: Op::Crc, moved: true, ..BASE }),
        ("copy with crc", Case { op: Op::CopyCrc, moved: true, batch: 4, ..BASE }),
        ("mixed", Case { op: Op::Mixed, moved: true, ..BASE }),
        ("mixed, 3 engines, batch 5", Case { op: Op::Mixed, moved: true, engines: 3, batch: 5, depth: 20, ..BASE }),
        ("mixed, 4 engines, shared, misaligned", Case { op: Op::Mixed, engines: 4, mode: Shared, offset: 48, ..BASE }),
        ("mixed, 64 KiB, batch 32, 2 devices", Case { op: Op::Mixed, devices: 2, engines: 2, batch: 32, depth: 4, size: 65536, ..BASE }),
        ("absent pages", Case { evicted: true, size: 8192, ..BASE }),
        ("absent pages, mixed, 4 engines, batch 4", Case { evicted: true, size: 8192, engines: 4, batch: 4, op: Op::Mixed, ..BASE }),
        ("absent pages, device waits", Case { evicted: true, block: true, size: 8192, ..BASE }),
        ("absent pages, device waits, 4 engines, batch 4", Case { evicted: true, block: true, size: 8192, engines: 4, batch: 4, ..BASE }),
        ("pause", Case { wait: WaitMode::Pause, depth: 4, ..BASE }),
        ("umwait", Case { wait: WaitMode::Umwait, depth: 4, ..BASE }),
    ];
    cases.extend(more.map(|(name, case)| (name.to_owned(), case)));
    cases
}

#[test]
fn modelled_times_equal_those_of_exact_txt() {
    let print = std::env::var_os("DRAY_PRINT").is_some();
    let expected = include_str!("exact.txt");
    let mut lines = expected.lines();
    let mut wrong = Vec::new();
    for (name, case) in cases() {
        let (time, digest) = case.run();
        let line = format!("{name}: {time} ps, {digest:016x}");
        if print {
            println!("{line}");
        }
        let before = lines.next().unwrap_or("nothing");
        if line != before {
            wrong.push(format!("{line}\n    was {before}"));
        }
    }
    assert!(print || wrong.is_empty(), "{}", wrong.join("\n"));
}
