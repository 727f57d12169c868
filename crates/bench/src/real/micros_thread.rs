//! One CPU of a measurement in software.

use std::io;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use dray_workload::{
    Arena, Buffers, Gauge, Location, Operand, Percentiles, Placement, Ring, Routine, Shape,
    Software, pin, prepare,
};

use crate::micros::{Access, Micros};

const PAGE: u64 = 4096;
/// Time between two progress reports.
const WATCHED: Duration = Duration::from_millis(50);

/// What a CPU did.
pub(super) struct Share {
    pub(super) rounds: u64,
    pub(super) elapsed: Duration,
    pub(super) percentiles: Percentiles,
    pub(super) failed: u64,
    /// A buffer that does not hold what it should.
    pub(super) wrong: Option<u64>,
    /// What makes its numbers doubtful.
    pub(super) doubts: Vec<String>,
}

fn offset(micros: &Micros, operand: usize) -> u64 {
    micros.offsets.get(operand).copied().unwrap_or(0) * PAGE
}

/// Memory for each operand of the CPU with this index, on the nodes that were asked for.
pub(super) fn arenas(micros: &Micros, index: usize) -> io::Result<Vec<Arena>> {
    let nodes = micros.nodes.get(index).or(micros.nodes.last());
    let node = |operand: usize| {
        let node = nodes.and_then(|nodes| nodes.get(operand))?;
        u16::try_from(*node).ok()
    };
    arena_bytes(micros)
        .enumerate()
        .map(|(operand, bytes)| Arena::new(bytes, micros.pages, node(operand)))
        .collect()
}

/// Bytes of memory for each operand of one CPU.
pub(super) fn arena_bytes(micros: &Micros) -> impl Iterator<Item = usize> + '_ {
    (0..micros.op.operands() as usize).map(|operand| {
        (micros.span(operand, micros.buffers.into()) + offset(micros, operand)) as usize
    })
}

/// Runs the part of one CPU; all start together.
pub(super) fn share(
    micros: &Micros,
    index: usize,
    cpu: u16,
    barrier: &Barrier,
    watched: Option<&Gauge>,
) -> io::Result<Share> {
    let pinned = pin(cpu);
    let made = arenas(micros, index);
    barrier.wait();
    let made = made?;
    let buffers = operand_rings(micros, &made);
    let placement = placed(micros, &made, cpu);
    let mut doubts = Vec::new();
    if !pinned {
        doubts.push(format!("a thread could not be kept on CPU {cpu}"));
    }
    doubts.extend(placement.doubt());
    if made.iter().any(|arena| arena.huge_bytes() == Some(0)) {
        doubts.push("no huge page was to be had: translations are part of the time".to_owned());
    }
    let shape = micros.shape();
    // SAFETY: the buffers are in this thread's arenas, which nothing else uses.
    unsafe { prepare(&shape, &buffers) };
    let mut work = Software::new(shape, Routine::Library, buffers, micros.buffers);
    // Code and translations are warm before the first iteration that counts.
    // SAFETY: the buffers are in this thread's arenas.
    unsafe { work.rounds(micros.buffers, 1) };
    let mut share = Share {
        rounds: 0,
        elapsed: Duration::ZERO,
        percentiles: Percentiles::default(),
        failed: 0,
        wrong: None,
        doubts,
    };
    repeat(micros, &placement, &mut work, &mut share, watched);
    share.failed = work.failed;
    if micros.verify {
        share.wrong = wrong(&shape, &buffers);
    }
    Ok(share)
}

/// Where the operands of one CPU are.
pub(super) fn operand_rings(micros: &Micros, made: &[Arena]) -> Buffers {
    let ring = |wanted: usize| {
        let operand = wanted.min(made.len() - 1);
        Ring {
            base: made[operand].start() + offset(micros, operand),
            stride: micros.stride(wanted),
            count: micros.buffers.into(),
        }
    };
    Buffers {
        src: ring(0),
        dst: ring(1),
        dst2: ring(2),
    }
}

/// Where their bytes are put before each iteration. The arenas must outlive it.
pub(super) fn placed(micros: &Micros, made: &[Arena], cpu: u16) -> Placement {
    let operands = made.iter().enumerate().map(|(operand, arena)| Operand {
        address: arena.start() + offset(micros, operand),
        len: micros.span(operand, micros.buffers.into()),
        location: match micros.access.get(operand) {
            None | Some(Access::None) => Location::None,
            Some(Access::Touched) => Location::L1,
            Some(Access::Demoted) => Location::Llc,
            Some(Access::Flushed) => Location::Ram,
        },
    });
    // SAFETY: the operands are in the arenas, which outlive the placement.
    unsafe { Placement::new(operands.collect(), cpu) }
}

/// The iterations that count.
fn repeat(
    micros: &Micros,
    placement: &Placement,
    work: &mut Software,
    share: &mut Share,
    watched: Option<&Gauge>,
) {
    let iterations = micros.iterations.unwrap_or(u64::MAX);
    let limit = match micros.iterations {
        Some(_) => Duration::MAX,
        None => Duration::from_secs_f64(micros.seconds.clamp(0.001, 1e6)),
    };
    let per_round = u64::from(micros.buffers);
    let (mut reported_at, mut reported) = (Instant::now(), (0, Duration::ZERO));
    let report = |share: &Share, reported: (u64, Duration)| {
        if let Some(gauge) = watched {
            gauge.add(match micros.iterations {
                Some(_) => share.rounds - reported.0,
                None => (share.elapsed - reported.1).as_nanos() as u64,
            });
        }
    };
    while share.rounds < iterations && share.elapsed < limit {
        placement.place();
        // SAFETY: the buffers are in the calling thread's arenas, and nothing else uses them.
        let took = unsafe { work.rounds(micros.buffers, 1) };
        share.elapsed += took;
        share.rounds += 1;
        share.percentiles.record(took, per_round);
        let now = Instant::now();
        if now.duration_since(reported_at) > WATCHED {
            report(share, reported);
            (reported_at, reported) = (now, (share.rounds, share.elapsed));
        }
    }
    report(share, reported);
}

/// The first buffer that does not hold what it should.
pub(super) fn wrong(shape: &Shape, buffers: &Buffers) -> Option<u64> {
    let rings = [buffers.src, buffers.dst, buffers.dst2];
    rings.iter().enumerate().find_map(|(operand, ring)| {
        let expected = shape.after(operand)?;
        // Buffers that overlap hold what came last.
        if ring.stride < expected.len() as u64 {
            return None;
        }
        (0..ring.count).find(|index| {
            let at = ring.at(*index) as *const u8;
            // SAFETY: the buffer is in an arena of the calling thread, which nothing else uses.
            let found = unsafe { std::slice::from_raw_parts(at, expected.len()) };
            found != expected
        })
    })
}
