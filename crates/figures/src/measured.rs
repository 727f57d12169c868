//! Software on a core of this machine, through the same interface as the device.

use std::io;
use std::time::Duration;

use dray_platform::{Cache, Distance, Parameter, PlatformFile};
use dray_workload::{
    Arena, Buffers, CoreRounds, Op, Pages, Ring, available_cpus, caches, cpuinfo, pin, text,
};

use crate::workload::Workload;
use crate::{FiguresError, Metric, Metrics, Model};

/// Memory for all buffers of a point together.
const ARENA_BYTES: usize = 384 << 20;
/// Operations handed over at once, so that reading the clock costs nothing that matters.
const SLOTS: usize = 64;
/// Runs of a point, of which the median counts.
const RUNS: usize = 9;
/// Least time of one run.
const RUN: Duration = Duration::from_millis(4);
/// Buffers are laid on pages: the two destinations of a dualcast must be alike in bits 11:0.
const PAGE: usize = 4096;

/// Whether this machine can run a point: software with a counterpart here, on local memory.
pub(crate) fn can(w: &Workload) -> bool {
    // A plain store loop is no non-temporal fill, and a NOOP has no software.
    !matches!(w.op, Op::NtFill | Op::Nop)
        && w.nodes == [Distance::Local; 2]
        && !w.random
        && !w.kernel
}

/// What a reader must know of this machine to read a measured series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Processor, as the kernel names it.
    pub processor: String,
    /// Kernel release.
    pub kernel: String,
    /// Whether the measuring thread was kept on one core.
    pub pinned: bool,
    /// Bytes of the last-level cache that the kernel reports.
    pub last_level_cache: Option<u64>,
    /// Bytes that the buffers of one point rotate over.
    pub rotation: u64,
}

impl Machine {
    /// One line for the report.
    pub fn describe(&self) -> String {
        let pinned = match self.pinned {
            true => "one thread, pinned to one core",
            false => "one thread, not pinned",
        };
        let cache = match self.last_level_cache {
            Some(bytes) => format!("{} MiB of last-level cache", bytes >> 20),
            None => "last-level cache of unknown size".to_owned(),
        };
        let cached = match self.last_level_cache {
            Some(bytes) if bytes >= self.rotation => {
                ": they fit in it, so this is not a measurement of memory"
            }
            _ => "",
        };
        format!(
            "{}, Linux {}; {pinned}; {cache}, buffers rotate over {} MiB{cached}; median of {RUNS} runs",
            self.processor,
            self.kernel,
            self.rotation >> 20,
        )
    }
}

/// Memory to measure on, touched and filled.
#[derive(Debug)]
pub(crate) struct Bench {
    arena: Arena,
    cpu: u16,
    pinned: bool,
}

impl Bench {
    /// Takes and touches memory; keeps the calling thread on one core.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn new() -> io::Result<Bench> {
        let cpu = available_cpus().first().copied().unwrap_or(0);
        let pinned = pin(cpu);
        // One pattern everywhere: comparisons then run to their end.
        let arena = Arena::new(ARENA_BYTES, Pages::Transparent, None)?;
        Ok(Bench { arena, cpu, pinned })
    }

    /// What it measures on.
    pub(crate) fn machine(&self) -> Machine {
        Machine {
            processor: cpuinfo("model name").unwrap_or("unknown processor".to_owned()),
            kernel: text("/proc/sys/kernel/osrelease").unwrap_or_default(),
            pinned: self.pinned,
            last_level_cache: last_level_cache(self.cpu),
            rotation: ARENA_BYTES as u64,
        }
    }

    /// Runs one point: the median of several runs, and how far they spread.
    ///
    /// # Errors
    /// An operation that did not do what it should.
    pub(crate) fn run(&mut self, w: &Workload) -> Result<Metrics, FiguresError> {
        let operations = w.operations(self.buffers(w));
        let mut core = CoreRounds::new(SLOTS);
        // Finds how many rounds fill a run, and warms code and translations up.
        let mut rounds = 1u64;
        loop {
            // SAFETY: the rings lie in the arena, which outlives this; a ring that is read and written at once holds
            // the same pattern throughout.
            let took = unsafe { core.rounds(&operations, rounds) };
            if took >= RUN || rounds >= 1 << 20 {
                break;
            }
            rounds *= 2;
        }
        let per_run = (rounds * SLOTS as u64) as f64;
        let mut periods: Vec<f64> = (0..RUNS)
            .map(|_| {
                // SAFETY: as above.
                let took = unsafe { core.rounds(&operations, rounds) };
                took.as_nanos() as f64 / per_run
            })
            .collect();
        if core.failed() > 0 {
            return Err(FiguresError::Failed {
                operations: core.failed(),
            });
        }
        periods.sort_by(f64::total_cmp);
        let (low, period, high) = (periods[1], periods[RUNS / 2], periods[RUNS - 2]);
        let throughput = w.bytes() as f64 / period.max(f64::MIN_POSITIVE);
        Ok(Metrics::single(Metric::Throughput, throughput)
            .with(Metric::Latency, period)
            .with(Metric::Period, period)
            .with(Metric::Prepare, 0.0)
            .with(Metric::Submit, period)
            .with(Metric::Wait, 0.0)
            .with(Metric::PeriodLow, low)
            .with(Metric::PeriodHigh, high))
    }

    /// Rings that take equal parts of the arena; data that is to be in a cache is used again.
    fn buffers(&self, w: &Workload) -> Buffers {
        let stride = (w.bytes().max(64) as usize).next_multiple_of(match w.op {
            Op::Dualcast => PAGE,
            _ => 64,
        });
        let rings = match w.op {
            Op::Fill | Op::ComparePattern | Op::Crc => 1,
            Op::Dualcast => 3,
            _ => 2,
        };
        let part = (ARENA_BYTES / rings) & !(PAGE - 1);
        let cached = w.hot || w.cache == Cache::Llc;
        let count = match cached {
            true => 1,
            false => (part / stride).max(1) as u64,
        };
        let start = self.arena.start();
        let ring = |index: usize| Ring {
            base: start + (index % rings * part) as u64,
            stride: stride as u64,
            count,
        };
        Buffers {
            src: ring(0),
            dst: ring(1),
            dst2: ring(2),
        }
    }
}

/// A model whose core takes as long for an operation as one of this machine.
#[derive(Debug, Clone)]
pub struct MeasuredCore {
    /// The model.
    pub model: Model,
    /// The parameter that was measured.
    pub parameter: &'static str,
    /// Its value and its range, in nanoseconds a line.
    pub line_ns: [f64; 3],
    machine: Machine,
}

impl MeasuredCore {
    /// One line for people.
    pub fn describe(&self) -> String {
        let [low, value, high] = self.line_ns;
        format!(
            "{} = {value:.3} ns, {low:.3} to {high:.3}, measured on {}",
            self.parameter,
            self.machine.describe()
        )
    }
}

/// Measures the operation of a workload on a core of this machine, and takes its time per line
/// into the model.
///
/// # Errors
/// An operation that this machine has no software for, or on memory that it cannot place.
pub fn measured_core(model: &Model, w: &Workload) -> Result<MeasuredCore, FiguresError> {
    let parameter = match w.op {
        Op::Move | Op::Copy => "cpu_copy_line",
        Op::Fill => "cpu_fill_line",
        Op::Compare => "cpu_compare_line",
        Op::ComparePattern => "cpu_pattern_line",
        Op::Crc => "cpu_crc_compute",
        Op::Dualcast => "cpu_dualcast_line",
        _ => return Err(FiguresError::NotMeasurable),
    };
    if !can(w) || w.cache == Cache::Llc {
        return Err(FiguresError::NotMeasurable);
    }
    let mut bench = Bench::new().map_err(|source| FiguresError::Memory { source })?;
    let metrics = bench.run(w)?;
    let call = model.platform.parameters().cpu_call.as_ns();
    let lines = w.bytes().div_ceil(64).max(1) as f64;
    let line = |metric| {
        let period = metrics.get(metric).unwrap_or_default();
        ((period - call).max(0.01 * period) / lines).max(1e-3)
    };
    let line_ns = [Metric::PeriodLow, Metric::Period, Metric::PeriodHigh].map(line);
    let [low, value, high] = line_ns;
    let source = format!("measured: {}", bench.machine().describe());
    let platform = model
        .platform
        .measured(parameter, value, [low, high], &source)?;
    let platform = match w.op {
        Op::Crc => read_within(&platform, value, high)?,
        _ => platform,
    };
    Ok(MeasuredCore {
        model: Model {
            platform: platform.into(),
            ..model.clone()
        },
        parameter,
        line_ns,
        machine: bench.machine(),
    })
}

/// A CRC over data in memory took `measured` ns a line, `high` at most: no read that it waits for takes longer.
fn read_within(
    platform: &PlatformFile,
    measured: f64,
    high: f64,
) -> Result<PlatformFile, FiguresError> {
    let name = "cpu_crc_line";
    let slower = |p: &&Parameter| p.name == name && p.range[1] > high;
    let Some(read) = platform.list().iter().find(slower) else {
        return Ok(platform.clone());
    };
    let range = read.range.map(|end| end.min(high));
    let source = "At most what a CRC was measured to take";
    Ok(platform.measured(name, read.value.min(measured), range, source)?)
}

/// Size of the largest cache of a CPU.
fn last_level_cache(cpu: u16) -> Option<u64> {
    caches(cpu).into_iter().map(|cache| cache.size).max()
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;

    use super::*;

    #[test]
    fn points_that_a_core_cannot_measure_are_left_out() {
        let can =
            |point: Point| can(&Workload::from_point(&point.with("kind", "software")).unwrap());
        assert!(can(Point::default().with("op", "memmove")));
        assert!(!can(Point::default().with("op", "nt_fill")));
        assert!(!can(Point::default().with("dst_node", "remote")));
    }

    #[test]
    fn a_fast_crc_bounds_its_reads() {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let [fast, slow] = [2.0, 20.0].map(|ns| read_within(&platform, ns, ns * 1.1).unwrap());
        let of = |platform: &PlatformFile| {
            let found = platform.list().iter().find(|p| p.name == "cpu_crc_line");
            found.map(|p| (p.value, p.range)).unwrap()
        };
        assert_eq!(of(&fast), (2.0, [2.0, 2.2]));
        assert_eq!(of(&slow), of(&platform));
    }

    #[test]
    fn a_machine_warns_when_the_buffers_fit_in_its_cache() {
        let machine = |cache| Machine {
            processor: "X".into(),
            kernel: "6.1".into(),
            pinned: true,
            last_level_cache: Some(cache),
            rotation: 384 << 20,
        };
        assert!(
            machine(1 << 30)
                .describe()
                .contains("not a measurement of memory")
        );
        assert!(!machine(32 << 20).describe().contains("not a measurement"));
    }
}
