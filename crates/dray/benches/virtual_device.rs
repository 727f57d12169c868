//! The virtual device in real time: from submission to a completion that is seen, and how many
//! descriptors it does in a second. It wants two idle cores.
//!
//! Printed are the least, the middle and the largest of several interleaved runs: on a machine that
//! does other things as well the least is the one that says something about the device.

use std::time::Instant;

use dray::virt::{Engines, Idle, Options, VirtualDevice};
use dray::{Completion, Mover, Operation, Progress};
use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};

const RUNS: usize = 9;
const SAMPLES: usize = 50_000;
/// Descriptors of a measured stretch: few enough that most stretches are not interrupted.
const STRETCH: u64 = 2_000;
const STRETCHES: usize = 200;
const IN_FLIGHT: usize = 128;

fn config(mode: WorkQueueMode, engines: u16) -> DeviceConfig {
    let queue = WorkQueueConfig {
        max_batch_size: 1024,
        ..WorkQueueConfig::new(0, mode, 128)
    };
    DeviceConfig {
        user_interrupts: false,
        ..DeviceConfig::sapphire_rapids(engines, vec![queue])
    }
}

/// Sources and destinations of 64 bytes, each a line of its own.
struct Lines {
    bytes: Vec<u8>,
}

impl Lines {
    fn new() -> Lines {
        Lines {
            bytes: vec![1; 64 * (2 * IN_FLIGHT + 1)],
        }
    }

    fn copy(&self, n: usize) -> Operation {
        let base = (self.bytes.as_ptr().expose_provenance() as u64).next_multiple_of(64);
        let at = |n: usize| base + 64 * n as u64;
        Operation::memmove(at(n % IN_FLIGHT), at(IN_FLIGHT + n % IN_FLIGHT), 64)
    }
}

/// Nanoseconds from before a submission until its completion has been seen: median and 99th
/// percentile.
fn latency(mover: &mut impl Mover, lines: &Lines) -> [u64; 2] {
    let mut seen = [Completion::default()];
    let mut samples = Vec::with_capacity(SAMPLES);
    for n in 0..SAMPLES {
        let operation = lines.copy(n);
        let start = Instant::now();
        // SAFETY: the lines outlive the run, and nothing else accesses them.
        unsafe { mover.enqueue(&operation) }.expect("a slot");
        while mover.submit() == Progress::Pending {}
        while mover.poll(&mut seen) == 0 {}
        samples.push(start.elapsed().as_nanos() as u64);
        assert!(seen[0].status().is_success());
    }
    samples.sort_unstable();
    [samples[SAMPLES / 2], samples[SAMPLES * 99 / 100]]
}

/// Thousands of descriptors in a second: of all stretches the middle and the best.
fn throughput(mover: &mut impl Mover, lines: &Lines) -> [u64; 2] {
    let mut seen = [Completion::default(); IN_FLIGHT];
    let mut rates = Vec::with_capacity(STRETCHES);
    let mut issued = 0;
    for _ in 0..STRETCHES {
        let (mut ended, start) = (0, Instant::now());
        while ended < STRETCH {
            // SAFETY: the lines outlive the run, and nothing else reads what is written.
            while unsafe { mover.enqueue(&lines.copy(issued)) }.is_ok() {
                issued += 1;
            }
            mover.submit();
            let count = mover.poll(&mut seen);
            assert!(seen[..count].iter().all(|c| c.status().is_success()));
            ended += count as u64;
        }
        rates.push(ended * 1_000_000 / start.elapsed().as_nanos() as u64);
    }
    rates.sort_unstable();
    [rates[STRETCHES / 2], rates[STRETCHES - 1]]
}

fn print(what: &str, mut values: Vec<u64>, unit: &str) {
    values.sort_unstable();
    let [least, middle, largest] = [0, values.len() / 2, values.len() - 1].map(|n| values[n]);
    println!("{what:54} least {least:>7}  middle {middle:>7}  largest {largest:>7}  {unit}");
}

fn main() {
    let engines = |engines| Options {
        idle: Idle::Spin,
        engines,
        ..Options::default()
    };
    use WorkQueueMode::{Dedicated, Shared};
    let kinds = [
        (
            "dedicated, one engine",
            Dedicated,
            engines(Engines::Dispatcher),
            1,
        ),
        (
            "shared, one engine",
            Shared,
            engines(Engines::Dispatcher),
            1,
        ),
        (
            "dedicated, sleeping after 50 us",
            Dedicated,
            Options::default(),
            1,
        ),
    ];
    let lines = Lines::new();
    let mut results = kinds.map(|_| [const { Vec::new() }; 4]);
    for _ in 0..RUNS {
        for (kind, into) in kinds.iter().zip(&mut results) {
            let config = config(kind.1, kind.3);
            let device = VirtualDevice::start(config, kind.2).expect("a device");
            let mut mover = device.open(0, IN_FLIGHT).expect("a queue");
            let [median, late] = latency(&mut mover, &lines);
            into[0].push(median);
            into[1].push(late);
            let [middle, best] = throughput(&mut mover, &lines);
            into[2].push(middle);
            into[3].push(best);
        }
    }
    for (kind, [median, late, middle, best]) in kinds.iter().zip(results) {
        print(&format!("{}: median", kind.0), median, "ns");
        print(&format!("{}: 99 %", kind.0), late, "ns");
        let rate = format!("{}: {IN_FLIGHT} in flight", kind.0);
        print(&rate, middle, "thousand/s");
        print(&format!("{rate}, best"), best, "thousand/s");
    }
}
