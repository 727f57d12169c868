//! The mechanism by itself: core time a page, without the copy.

use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Quartiles;
use super::memory::Mapped;
use crate::copier::{Copied, Copy, CopyError, PageCopier};
use crate::sys::{HUGE, PAGE, thread_cpu_ns};
use crate::{Config, Engine, Order, Outcome, Piece, Release, TierError};

/// Nanoseconds a page of one way to move a batch.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    /// `strict`, `shared-read`, `hemem`.
    pub way: &'static str,
    /// Whether frames are used again.
    pub reuse: bool,
    /// Pages of a batch; 2 MiB pages if `huge`.
    pub pages: u64,
    /// Pages are of 2 MiB.
    pub huge: bool,
    /// Core time of the calling thread for a page, without the copy.
    pub core_ns: Quartiles,
    /// Time of the copy for a page.
    pub copy_ns: Quartiles,
    /// Time to make the frames that go in, for a page; part of `core_ns`.
    pub frames_ns: Quartiles,
    /// Time to release those that are left, for a page; part of `core_ns`.
    pub release_ns: Quartiles,
    /// Batches that were measured.
    pub batches: usize,
}

/// Copies nothing, so that the rest can be measured. The memory is a benchmark's own.
#[derive(Debug)]
struct NoCopy;

impl PageCopier for NoCopy {
    fn name(&self) -> &'static str {
        "cpu"
    }

    unsafe fn copy(&mut self, list: &[Copy]) -> Result<Copied, CopyError> {
        Ok(Copied {
            core: super::super::copier::bytes(list),
            ..Copied::default()
        })
    }
}

/// Measures batches of so many pages in `rounds` rounds, each of which has every batch once.
///
/// # Errors
/// userfaultfd is forbidden; no memory.
pub fn costs(batches: &[u64], rounds: usize) -> Result<Vec<Cost>, TierError> {
    let mut measured = Vec::new();
    for (order, release) in [
        (Order::Strict, Release::Reuse),
        (Order::Strict, Release::Kernel),
        (Order::SharedRead, Release::Reuse),
    ] {
        for huge in [false, true] {
            if huge && order == Order::SharedRead {
                // The copy is part of the same thread's time, and a hundred times the rest.
                continue;
            }
            let sizes: &[u64] = match huge {
                true => &[1, 8],
                false => batches,
            };
            measured.extend(one(order, release, huge, sizes, rounds)?);
        }
    }
    Ok(measured)
}

/// Nanoseconds a page of each batch.
#[derive(Debug, Clone, Default)]
struct Samples {
    core: Vec<u64>,
    copy: Vec<u64>,
    frames: Vec<u64>,
    release: Vec<u64>,
}

fn one(
    order: Order,
    release: Release,
    huge: bool,
    sizes: &[u64],
    rounds: usize,
) -> Result<Vec<Cost>, TierError> {
    let page = if huge { HUGE } else { PAGE };
    let most = sizes.iter().max().copied().unwrap_or(1);
    let memory = Mapped::new(2 * most * page, huge)?;
    let config = Config {
        order,
        release,
        ..Config::default()
    };
    let engine = Engine::new(config, Box::new(NoCopy))?;
    let mut samples = vec![Samples::default(); sizes.len()];
    thread::scope(|scope| {
        let server = scope.spawn(|| engine.serve());
        let registered = engine.register(memory.start, memory.start + memory.len);
        for round in 0..rounds + 2 {
            for (size, samples) in sizes.iter().zip(&mut samples) {
                for to in [1, 0] {
                    let piece = Piece {
                        start: memory.start,
                        len: size * page,
                        huge,
                    };
                    let (start, before) = (Instant::now(), thread_cpu_ns());
                    let report = engine.migrate(&[piece], to);
                    let spent = thread_cpu_ns() - before;
                    let waited = start.elapsed().as_nanos() as u64 > spent + spent / 8;
                    let moved = report.outcomes.get(Outcome::Moved) * PAGE / page;
                    // The first rounds fill the windows with frames.
                    if round < 2 || moved < *size || registered.is_err() {
                        continue;
                    }
                    // In shared-read the kernel copies, in this thread; how long is known only of a call that did not
                    // wait for a processor.
                    if waited && order == Order::SharedRead {
                        continue;
                    }
                    let copied = match order {
                        Order::SharedRead => report.copy.as_nanos() as u64,
                        Order::Strict => 0,
                    };
                    let each = |time: Duration| time.as_nanos() as u64 / size;
                    samples.core.push(spent.saturating_sub(copied) / size);
                    samples.copy.push(each(report.copy));
                    samples.frames.push(each(report.frames));
                    samples.release.push(each(report.release));
                }
            }
        }
        engine.stop();
        let _ = server.join();
    });
    let way = match order {
        Order::Strict => "strict",
        Order::SharedRead => "shared-read",
    };
    Ok(sizes
        .iter()
        .zip(samples)
        .map(|(size, samples)| Cost {
            way,
            reuse: release == Release::Reuse,
            pages: *size,
            huge,
            batches: samples.core.len(),
            core_ns: Quartiles::of(samples.core),
            copy_ns: Quartiles::of(samples.copy),
            frames_ns: Quartiles::of(samples.frames),
            release_ns: Quartiles::of(samples.release),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_batch_is_measured() {
        let costs = costs(&[1, 64], 2).expect("root on Linux 6.8");
        let base: Vec<_> = costs.iter().filter(|cost| !cost.huge).collect();
        assert_eq!(base.len(), 6);
        for cost in base {
            assert_eq!(cost.batches, 4, "{cost:?}");
            assert!(cost.core_ns.median > 0);
        }
    }
}
