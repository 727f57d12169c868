//! Cases on this machine: threads, repetitions, and what they took.

use std::io;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

use super::arena::Arena;
use super::cache::{look, place, push_out};
use super::host::{available, cache_bytes, pin};
use super::work::Work;
use crate::BenchError;
use crate::buffers::{Buffers, Ring};
use crate::case::{Case, Location, Op};
use crate::modelled::MinTime;
use crate::timing::{Counter, Timing};

/// A timed span is at least so long, so that reading the clock costs nothing that matters.
const SPAN: Duration = Duration::from_micros(10);
/// Most time for placing buffers, as a multiple of the time that is measured.
const PLACING: u32 = 8;

/// One measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Times.
    pub timing: Timing,
    /// Percentiles of an iteration.
    pub percentiles: Vec<Counter>,
    /// What makes it doubtful.
    pub warnings: Vec<String>,
}

/// The CPUs of this machine that cases run on.
#[derive(Debug)]
pub struct Real {
    cpus: Vec<u16>,
    min_time: MinTime,
}

/// What one thread did.
struct Share {
    iterations: u64,
    elapsed: Duration,
    cpu_share: f64,
    histogram: Histogram<u64>,
    failed: u64,
    pinned: bool,
    misplaced: Option<String>,
}

impl Real {
    /// All CPUs that this process may use; cases last so long.
    pub fn new(min_time: MinTime) -> Real {
        Real {
            cpus: available(),
            min_time,
        }
    }

    /// Measures a case once.
    ///
    /// # Errors
    /// More threads than CPUs, no memory, operations that fail.
    pub fn run(&self, case: &Case) -> Result<Measured, BenchError> {
        let threads = case.threads as usize;
        if threads > self.cpus.len() {
            return Err(BenchError::Value {
                flag: format!("--threads={threads}"),
                reason: format!("this process may use {} CPUs", self.cpus.len()),
                hint: format!("--threads={}", self.cpus.len()),
            });
        }
        let barrier = Barrier::new(threads);
        let shares: Vec<io::Result<Share>> = std::thread::scope(|scope| {
            let handles: Vec<_> = self.cpus[..threads]
                .iter()
                .map(|cpu| scope.spawn(|| share(case, *cpu, self.min_time, &barrier)))
                .collect();
            let join = |handle: std::thread::ScopedJoinHandle<'_, _>| {
                let lost = |_| Err(io::Error::other("a measuring thread ended early"));
                handle.join().unwrap_or_else(lost)
            };
            handles.into_iter().map(join).collect()
        });
        let shares: Vec<Share> = shares.into_iter().collect::<io::Result<_>>()?;
        measured(case, shares)
    }
}

fn measured(case: &Case, shares: Vec<Share>) -> Result<Measured, BenchError> {
    let failed = shares.iter().map(|s| s.failed).sum();
    if failed > 0 {
        return Err(BenchError::Software { operations: failed });
    }
    let iterations: u64 = shares.iter().map(|s| s.iterations).sum();
    let ns: Vec<f64> = shares.iter().map(|s| s.elapsed.as_nanos() as f64).collect();
    let cpu: f64 = shares.iter().zip(&ns).map(|(s, ns)| s.cpu_share * ns).sum();
    let total: f64 = ns.iter().sum();
    let mut histogram = histogram();
    let mut warnings = Vec::new();
    for share in shares {
        // Both have the same range.
        let _ = histogram.add(&share.histogram);
        if !share.pinned {
            warnings.push(format!("{case}: a thread could not be kept on one CPU"));
        }
        warnings.extend(share.misplaced.map(|why| format!("{case}: {why}")));
    }
    let percentile = |name: &str, at| Counter {
        name: name.to_owned(),
        value: histogram.value_at_quantile(at) as f64 / 1e9 / TENTHS,
        unit: "s",
    };
    Ok(Measured {
        timing: Timing {
            iterations,
            real_ns: total / f64::from(case.threads) / iterations.max(1) as f64,
            cpu_ns: cpu / iterations.max(1) as f64,
        },
        percentiles: vec![
            percentile("p50", 0.5),
            percentile("p90", 0.9),
            percentile("p99", 0.99),
        ],
        warnings,
    })
}

/// Histograms count tenths of a nanosecond: a hot iteration may take a few of them only.
const TENTHS: f64 = 10.0;

fn histogram() -> Histogram<u64> {
    #[expect(clippy::expect_used, reason = "three digits are in the allowed 0 to 5")]
    Histogram::new(3).expect("three significant digits are allowed")
}

/// One thread: its memory, its warm-up, its iterations.
fn share(case: &Case, cpu: u16, min_time: MinTime, barrier: &Barrier) -> io::Result<Share> {
    let pinned = pin(cpu);
    let mut thread = match Thread::new(case, cpu) {
        Ok(thread) => thread,
        // The others wait for this one too.
        Err(error) => {
            barrier.wait();
            return Err(error);
        }
    };
    let misplaced = thread.misplaced();
    let plan = thread.plan(min_time);
    barrier.wait();
    let mut histogram = histogram();
    let (wall, cpu_before) = (Instant::now(), thread_time());
    let mut elapsed = Duration::ZERO;
    let mut done = 0;
    while done < plan {
        let count = thread.chunk.min(plan - done);
        let took = thread.span(count);
        elapsed += took;
        done += count;
        let tenths = took.as_nanos() as u64 * TENTHS as u64 / count;
        histogram.saturating_record(tenths.max(1));
    }
    let cpu_time = thread_time().saturating_sub(cpu_before);
    let lived = wall.elapsed().as_secs_f64().max(1e-9);
    Ok(Share {
        iterations: done,
        elapsed,
        cpu_share: (cpu_time.as_secs_f64() / lived).min(1.0),
        histogram,
        failed: thread.work.failed,
        pinned,
        misplaced,
    })
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A thread's buffers and operations.
struct Thread {
    work: Work,
    queue: u32,
    /// Ranges with the places where they are to be.
    ranges: Vec<(u64, u64, Location)>,
    /// Iterations between two looks at the clock.
    chunk: u64,
    /// Buffers are placed again before every iteration.
    replace: bool,
    /// Memory that pushes lines out of the second-level cache.
    space: Vec<u8>,
    cpu: u16,
    _arena: Arena,
}

impl Thread {
    fn new(case: &Case, cpu: u16) -> io::Result<Thread> {
        let queue = case.queue_per_thread();
        let stride = u64::from(case.size.max(64)).next_multiple_of(match case.op {
            Op::Dualcast => 4096,
            _ => 64,
        });
        let part = (stride * u64::from(queue)).next_multiple_of(4096);
        let operands = match case.op {
            Op::Dualcast => 3,
            Op::Fill | Op::ComparePattern | Op::Crc | Op::Nop => 1,
            _ => 2,
        };
        let arena = Arena::new((part * operands) as usize)?;
        let ring = |index: u64| Ring {
            base: arena.start() + index.min(operands - 1) * part,
            stride,
            count: queue.into(),
        };
        let buffers = Buffers {
            src: ring(0),
            dst: ring(1),
            dst2: ring(2),
        };
        let mut ranges = vec![(buffers.src.base, part, case.in_mem)];
        match operands {
            1 if case.op == Op::Fill => ranges[0].2 = case.out_mem.location,
            1 => {}
            2 => ranges.push((buffers.dst.base, part, case.out_mem.location)),
            _ => {
                ranges.push((buffers.dst.base, part, case.out_mem.location));
                ranges.push((buffers.dst2.base, part, case.out_mem.location));
            }
        }
        let is = |wanted: Location| ranges.iter().any(|(_, _, location)| *location == wanted);
        let space = match is(Location::Llc) {
            true => vec![1; 2 * cache_bytes(cpu, 2).unwrap_or(2 << 20) as usize],
            false => Vec::new(),
        };
        Ok(Thread {
            work: Work::new(case.op, case.api, case.size, buffers, queue),
            queue,
            chunk: 1,
            // What is hot stays hot by being used.
            replace: is(Location::Llc) || is(Location::Ram),
            ranges,
            space,
            cpu,
            _arena: arena,
        })
    }

    fn place(&self) {
        for &(address, len, location) in &self.ranges {
            // SAFETY: the range is in this thread's arena.
            unsafe { place(address, len, location) };
        }
        push_out(&self.space);
    }

    /// `count` iterations; how long they took, placing apart.
    fn span(&mut self, count: u64) -> Duration {
        if self.replace {
            self.place();
        }
        let start = Instant::now();
        for _ in 0..count {
            // SAFETY: the buffers are in this thread's arena, which lives as long as the work.
            unsafe { self.work.round(self.queue) };
        }
        start.elapsed()
    }

    /// Warms up, finds how many iterations make a span, and how many make the wanted time.
    fn plan(&mut self, min_time: MinTime) -> u64 {
        let start = Instant::now();
        let mut took = self.span(1);
        while !self.replace && took < SPAN && self.chunk < 1 << 20 {
            self.chunk *= 2;
            took = self.span(self.chunk);
        }
        for _ in 0..2 {
            took = took.min(self.span(self.chunk));
        }
        let with_placing = (start.elapsed() / 3).max(took);
        match min_time {
            MinTime::Iterations(count) => count,
            MinTime::Seconds(seconds) => {
                let spans = seconds / took.as_secs_f64().max(1e-9);
                let most = seconds * f64::from(PLACING) / with_placing.as_secs_f64().max(1e-9);
                let spans = match self.replace {
                    true => spans.min(most),
                    false => spans,
                };
                // Float to integer saturates.
                (spans.ceil() as u64).max(1).saturating_mul(self.chunk)
            }
        }
    }

    /// Looks whether buffers are where they were put; why not.
    fn misplaced(&mut self) -> Option<String> {
        if !super::cache::CAN_PLACE {
            return None;
        }
        let (address, len, location) = *self.ranges.first()?;
        let fits = |level: u8| {
            let all: u64 = self.ranges.iter().map(|(_, len, _)| len).sum();
            cache_bytes(self.cpu, level).is_none_or(|size| all <= size)
        };
        let (level, name) = match location {
            Location::L1 => (1, "first"),
            Location::L2 => (2, "second"),
            Location::Llc => (3, "last"),
            Location::Ram => return self.not_flushed(address, len),
            Location::None => return None,
        };
        (!fits(level)).then(|| format!("the buffers do not fit into the {name}-level cache"))
    }

    /// What was flushed must take longer to come than what is hot.
    fn not_flushed(&self, address: u64, len: u64) -> Option<String> {
        // SAFETY: the range is in this thread's arena.
        unsafe { place(address, len, Location::L1) };
        // SAFETY: as above.
        let hot = unsafe { look(address, len.min(4096)) };
        // SAFETY: as above.
        unsafe { place(address, len, Location::Ram) };
        // SAFETY: as above.
        let cold = unsafe { look(address, len) };
        (cold < 2 * hot)
            .then(|| format!("flushing had no effect: a load took {cold} ticks, a hot one {hot}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Api;
    use crate::catalog::Axes;

    #[test]
    fn every_case_that_is_listed_runs_and_is_right() {
        let axes = Axes {
            real: true,
            sizes: vec![1000, 4096],
            queue_sizes: vec![2],
            threads: vec![1],
            ..Axes::default()
        };
        let real = Real::new(MinTime::Iterations(20));
        for case in axes.cases() {
            assert_ne!(case.api, Api::C);
            let found = real.run(&case).unwrap();
            assert_eq!(found.timing.iterations, 20, "{case}");
            assert!(
                found.timing.real_ns > 0.0 && found.percentiles.len() == 3,
                "{case}"
            );
        }
    }

    #[test]
    fn more_threads_than_cpus_are_refused() {
        let axes = Axes {
            real: true,
            queue_sizes: vec![1 << 16],
            sizes: vec![64],
            threads: vec![1 << 15],
            ..Axes::default()
        };
        let case = axes.cases().into_iter().find(|c| c.threads > 1).unwrap();
        let error = Real::new(MinTime::Iterations(1)).run(&case).unwrap_err();
        assert!(error.to_string().contains("may use"), "{error}");
    }
}
