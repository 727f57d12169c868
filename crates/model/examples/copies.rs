//! Modelled copies and nothing else: `.ci/instructions` counts what they take of the processor that models them.
//!
//! `copies CASE COUNT` copies 4 KiB so many times. Cases: `alone` (one core, one engine), `shared` (four cores on a
//! shared work queue of four engines), `batch` (descriptors in batches of 16).

use std::process::ExitCode;
use std::sync::Arc;

use dray::{Application, Completion, Mover, Next, Operation, Progress};
use dray_device::{DeviceConfig, Payload, WorkQueueConfig, WorkQueueMode};
use dray_model::{ChannelOptions, World, WorldOptions};
use dray_platform::{Cache, MemoryLocation, NodeId};

const BYTES: u32 = 4096;

/// Keeps a channel full of copies until `count` have ended.
struct Copies {
    count: u64,
    /// Copies of a descriptor.
    batch: u32,
    /// The copies, in turn: a multiple of a batch.
    operations: Vec<Operation>,
    issued: u64,
    ended: u64,
    failed: u64,
    completions: Vec<Completion>,
}

impl Copies {
    fn new(count: u64, batch: u32, base: u64) -> Copies {
        let copy = |n: u64| {
            let from = base + 2 * n * u64::from(BYTES);
            Operation::memmove(from, from + u64::from(BYTES), BYTES)
        };
        Copies {
            count,
            batch,
            operations: (0..256).map(copy).collect(),
            issued: 0,
            ended: 0,
            failed: 0,
            completions: vec![Completion::default(); 64],
        }
    }

    /// Hands the next copies over, as one descriptor. False: there is no room.
    fn issue<M: Mover>(&mut self, mover: &mut M) -> bool {
        let first = self.issued as usize % self.operations.len();
        match &self.operations[first..first + self.batch as usize] {
            // SAFETY: modelled memory checks itself.
            [one] => unsafe { mover.enqueue(one) }.is_ok(),
            // SAFETY: as above.
            many => unsafe { mover.enqueue_batch(many) }.is_ok(),
        }
    }
}

impl Application for Copies {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        loop {
            let count = mover.poll(&mut self.completions);
            for completion in &self.completions[..count] {
                self.ended += 1;
                self.failed += u64::from(!completion.status().is_success());
            }
            if count < self.completions.len() {
                break;
            }
        }
        while self.issued < self.count && self.issue(mover) {
            self.issued += u64::from(self.batch);
        }
        match mover.submit() {
            Progress::Pending => Next::Again,
            Progress::Done if self.ended >= self.count => Next::Done,
            Progress::Done => Next::Wait,
        }
    }
}

fn run(case: &str, count: u64) -> Result<u64, String> {
    let (cores, engines, mode, batch) = match case {
        "alone" => (1, 1, WorkQueueMode::Dedicated, 1),
        "shared" => (4, 4, WorkQueueMode::Shared, 1),
        "batch" => (1, 1, WorkQueueMode::Dedicated, 16),
        other => return Err(format!("no such case: {other}")),
    };
    let queue = WorkQueueConfig {
        max_batch_size: 1024,
        ..WorkQueueConfig::new(0, mode, 32)
    };
    let platform = dray_platform::builtin("spr-2s").map_err(|error| error.to_string())?;
    let devices = vec![DeviceConfig::sapphire_rapids(engines, vec![queue])];
    let options = WorldOptions {
        payload: Payload::Skipped,
        ..WorldOptions::default()
    };
    let mut world =
        World::new(Arc::new(platform), devices, options).map_err(|error| error.to_string())?;
    let options = ChannelOptions {
        depth: 32 / cores as u32,
        batch,
        ..ChannelOptions::default()
    };
    let mut applications = Vec::new();
    for _ in 0..cores {
        let place = MemoryLocation {
            node: NodeId(0),
            cache: Cache::Memory,
        };
        let region = world.memory.allocate(512 * u64::from(BYTES), place, false);
        let base = world.memory.region(region).base;
        world.open(options).ok_or("no such queue")?;
        applications.push(Copies::new(count / cores, batch, base));
    }
    world
        .run(&mut applications)
        .map_err(|error| error.to_string())?;
    let failed: u64 = applications.iter().map(|copies| copies.failed).sum();
    if failed > 0 {
        return Err(format!("{failed} copies failed"));
    }
    Ok(applications.iter().map(|copies| copies.ended).sum())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match &arguments[..] {
        [case, count] => match count.parse() {
            Ok(count) => run(case, count),
            Err(_) => Err(format!("no number: {count}")),
        },
        _ => Err("copies CASE COUNT".to_owned()),
    };
    match result {
        Ok(copies) => {
            println!("{copies}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
