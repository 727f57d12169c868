//! The mechanism by itself: core time a page, without the copy.

use std::fmt;
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
    /// What becomes of frames: [`Release::name`], or `mapped files`.
    pub frames: &'static str,
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
    /// Time to protect pages, for a page; part of `core_ns`.
    pub protect_ns: Quartiles,
    /// Time to move them out, for a page; part of `core_ns`.
    pub out_ns: Quartiles,
    /// Time to move them in again, for a page; part of `core_ns`.
    pub in_ns: Quartiles,
    /// Time to release those that are left, and to check them, for a page; part of `core_ns`.
    pub release_ns: Quartiles,
    /// Batches that were measured.
    pub batches: usize,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:11} {:14} {:>4} x {}  {:>8} ns a page ({} to {}): frames {}, protect {}, out {}, in {}, release {}; {} batches",
            self.way,
            self.frames,
            self.pages,
            if self.huge { "2M" } else { "4K" },
            self.core_ns.median,
            self.core_ns.lower,
            self.core_ns.upper,
            self.frames_ns.median,
            self.protect_ns.median,
            self.out_ns.median,
            self.in_ns.median,
            self.release_ns.median,
            self.batches
        )
    }
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
    let mut ways = vec![
        (Order::Strict, Release::Reuse),
        (Order::Strict, Release::Kernel),
        (Order::SharedRead, Release::Reuse),
    ];
    // Huge pages are never checked. Where this kernel does not say what refers to a frame there is nothing to measure.
    if Release::safe() == Release::Checked {
        ways.insert(0, (Order::Strict, Release::Checked));
        ways.push((Order::SharedRead, Release::Checked));
    }
    for (order, release) in ways {
        for huge in [false, true] {
            // In shared-read the copy is part of the same thread's time, and a hundred times the rest.
            if huge && (order == Order::SharedRead || release == Release::Checked) {
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
    protect: Vec<u64>,
    out: Vec<u64>,
    back: Vec<u64>,
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
        let stops = engine.stops();
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
                    samples.protect.push(each(report.protect));
                    samples.out.push(each(report.out));
                    samples.back.push(each(report.back));
                    samples.release.push(each(report.release));
                }
            }
        }
        drop(stops);
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
            frames: release.name(),
            pages: *size,
            huge,
            batches: samples.core.len(),
            core_ns: Quartiles::of(samples.core),
            copy_ns: Quartiles::of(samples.copy),
            frames_ns: Quartiles::of(samples.frames),
            protect_ns: Quartiles::of(samples.protect),
            out_ns: Quartiles::of(samples.out),
            in_ns: Quartiles::of(samples.back),
            release_ns: Quartiles::of(samples.release),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_measured_for_every_batch_size() {
        let costs = costs(&[1, 64], 2).expect("root on Linux 6.8");
        let base: Vec<_> = costs.iter().filter(|cost| !cost.huge).collect();
        assert!(base.len() == 6 || base.len() == 10, "{base:?}");
        for cost in base {
            // Calls in shared-read order that waited for a processor are left out.
            let (least, most) = match cost.way {
                "shared-read" => (0, 4),
                _ => (4, 4),
            };
            assert!((least..=most).contains(&cost.batches), "{cost:?}");
            assert_eq!(cost.core_ns.median > 0, cost.batches > 0, "{cost:?}");
        }
    }
}
