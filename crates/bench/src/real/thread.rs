//! One thread of a case: its memory, its warm-up, its iterations.

use std::io;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use dray_workload::{
    Arena, Buffers, Operand, Pages, Percentiles, Placement, Ring, Routine, Software, clock_cost,
    pin, prepare, thread_time,
};

use super::cpp::{CppLoop, Library};
use crate::case::{Api, Case};
use crate::modelled::MinTime;

/// A timed span is at least so long, so that reading the clock costs nothing that matters.
const SPAN: Duration = Duration::from_micros(10);
/// Most time for placing operands, as a multiple of the time that is measured.
const PLACING: u32 = 8;
/// Share of its CPU below which something else was running there.
const ALONE: f64 = 0.97;

/// What one thread did.
pub(super) struct Share {
    pub(super) iterations: u64,
    pub(super) elapsed: Duration,
    /// Share of its time in which it had a CPU.
    pub(super) cpu_share: f64,
    pub(super) percentiles: Percentiles,
    pub(super) failed: u64,
    /// What makes its numbers doubtful.
    pub(super) doubts: Vec<String>,
}

/// Runs a case's share of one thread on a CPU; all threads start to count together.
pub(super) fn share(
    case: &Case,
    cpu: u16,
    cpp: Option<&Arc<Library>>,
    min_time: MinTime,
    barrier: &Barrier,
) -> io::Result<Share> {
    let pinned = pin(cpu);
    let thread = Thread::new(case, cpu, cpp).and_then(|mut thread| {
        let plan = thread.plan(min_time)?;
        Ok((thread, plan))
    });
    let (mut thread, plan) = match thread {
        Ok(planned) => planned,
        // The others wait for this one too.
        Err(error) => {
            barrier.wait();
            return Err(error);
        }
    };
    let mut doubts = Vec::new();
    if !pinned {
        doubts.push("a thread could not be kept on one CPU".to_owned());
    }
    doubts.extend(thread.placement.doubt());
    if thread.arena.huge_bytes() == Some(0) {
        doubts.push("no huge page was to be had: translations are part of the time".to_owned());
    }
    barrier.wait();
    let mut percentiles = Percentiles::default();
    let (wall, cpu_before) = (Instant::now(), thread_time());
    let mut elapsed = Duration::ZERO;
    let mut done = 0;
    while done < plan {
        let count = thread.chunk.min(plan - done);
        let took = thread.span(count)?;
        elapsed += took;
        done += count;
        percentiles.record(took, count);
    }
    let cpu_time = thread_time().saturating_sub(cpu_before).as_secs_f64();
    let cpu_share = (cpu_time / wall.elapsed().as_secs_f64().max(1e-9)).min(1.0);
    if cpu_share < ALONE {
        doubts.push(format!(
            "something else was running on CPU {cpu}: the thread had {:.0} % of it",
            cpu_share * 100.0
        ));
    }
    Ok(Share {
        iterations: done,
        elapsed,
        cpu_share,
        percentiles,
        failed: thread.work.failed(),
        doubts,
    })
}

/// A thread's operands.
pub(super) struct Operands {
    pub(super) buffers: Buffers,
    pub(super) placement: Placement,
    /// What they lie in; dropped last.
    pub(super) arena: Arena,
}

/// The operands of one thread of a case.
pub(super) fn operands(case: &Case, cpu: u16) -> io::Result<Operands> {
    let queue = case.queue_per_thread() * case.bsize.max(1);
    let shape = case.shape();
    // What does nothing has buffers all the same.
    let operands = case.op.operands().max(1);
    let longest = (0..operands as usize).map(|operand| shape.operand(operand));
    let longest = u64::from(longest.max().unwrap_or(0).max(64));
    let stride = longest.next_multiple_of(shape.alignment());
    let part = (stride * u64::from(queue)).next_multiple_of(4096);
    let arena = Arena::new((part * operands) as usize, Pages::Transparent, None)?;
    let ring = |index: u64| Ring {
        base: arena.start() + index.min(operands - 1) * part,
        stride,
        count: queue.into(),
    };
    let buffers = Buffers {
        src: ring(0),
        // What has no source, or no destination, has its only operand there.
        dst: ring(1),
        dst2: ring(2),
    };
    let places = (0..operands).map(|index| Operand {
        address: ring(index).base,
        len: stride * u64::from(queue),
        location: match index == 0 && !case.op.is_destination_only() {
            true => case.in_mem,
            false => case.out_mem.location,
        },
    });
    // SAFETY: the operands are in the arena, which is dropped after the placement.
    let placement = unsafe { Placement::new(places.collect(), cpu) };
    Ok(Operands {
        buffers,
        placement,
        arena,
    })
}

/// Who executes the operations of a thread.
enum Work {
    Software(Software),
    /// Through dray.hpp; and operations that did not succeed.
    Cpp(CppLoop, u64),
}

impl Work {
    fn failed(&self) -> u64 {
        match self {
            Work::Software(work) => work.failed,
            Work::Cpp(_, failed) => *failed,
        }
    }

    /// `count` rounds of a whole queue; how long they took.
    ///
    /// # Safety
    /// Their buffers must be there, and nothing else may access them.
    unsafe fn rounds(&mut self, queue: u32, count: u64) -> io::Result<Duration> {
        match self {
            // SAFETY: the caller's promise is the same.
            Work::Software(work) => Ok(unsafe { work.rounds(queue, count) }),
            Work::Cpp(work, failed) => {
                // SAFETY: the caller's promise is the same.
                let found = unsafe { work.rounds(count) }.map_err(io::Error::other)?;
                *failed += found.failed;
                Ok(found.elapsed())
            }
        }
    }
}

/// A thread's operands and operations.
struct Thread {
    work: Work,
    queue: u32,
    placement: Placement,
    /// Iterations between two looks at the clock.
    chunk: u64,
    /// Operands are placed again before every iteration.
    replace: bool,
    clock_cost: Duration,
    /// What the operands lie in; freed last.
    arena: Arena,
}

impl Thread {
    fn new(case: &Case, cpu: u16, cpp: Option<&Arc<Library>>) -> io::Result<Thread> {
        let queue = case.queue_per_thread();
        let shape = case.shape();
        let Operands {
            buffers,
            placement,
            arena,
        } = operands(case, cpu)?;
        // SAFETY: the operands are in the arena, which this thread alone has.
        unsafe { prepare(&shape, &buffers) };
        let work = match (case.api, cpp) {
            (Api::Cpp, Some(library)) => {
                let opened = CppLoop::open(library, case, &buffers, None);
                Work::Cpp(opened.map_err(io::Error::other)?, 0)
            }
            _ => Work::Software(Software::new(shape, routine(case.api), buffers, queue)),
        };
        Ok(Thread {
            work,
            queue,
            chunk: 1,
            replace: placement.is_lost_by_use(),
            placement,
            clock_cost: clock_cost(),
            arena,
        })
    }

    /// `count` iterations; how long they took, without placing and the clock.
    fn span(&mut self, count: u64) -> io::Result<Duration> {
        if self.replace {
            self.placement.place();
        }
        // SAFETY: the buffers are in this thread's arena, which lives as long as the work.
        let took = unsafe { self.work.rounds(self.queue, count) }?;
        Ok(took.saturating_sub(self.clock_cost))
    }

    /// Warms up, finds how many iterations make a span, and how many make the wanted time.
    fn plan(&mut self, min_time: MinTime) -> io::Result<u64> {
        let start = Instant::now();
        let mut took = self.span(1)?;
        while !self.replace && took < SPAN && self.chunk < 1 << 20 {
            self.chunk *= 2;
            took = self.span(self.chunk)?;
        }
        for _ in 0..2 {
            took = took.min(self.span(self.chunk)?);
        }
        let with_placing = (start.elapsed() / 3).max(took);
        Ok(match min_time {
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
        })
    }
}

fn routine(api: Api) -> Routine {
    match api {
        Api::Glibc => Routine::CLibrary,
        Api::C | Api::Cpp | Api::Rust => Routine::Library,
    }
}
