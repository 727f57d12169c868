//! Two sides that take turns, and how they compare.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::memory::{Arena, Slot};

/// How often each side has its turn.
pub(crate) const ROUNDS: usize = 101;

/// Bytes of data that one turn goes through.
const TURN_BYTES: usize = 2 << 20;

/// Quartiles.
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

pub(crate) struct Measured {
    pub(crate) ratio: Spread,
    /// Medians, 1e9 bytes of data a second.
    pub(crate) ours_gbps: f64,
    pub(crate) peer_gbps: f64,
}

type Side<'a> = &'a dyn Fn(&mut Slot<'_>) -> u64;

pub(crate) fn measure(arena: &mut Arena, ours: Side<'_>, peer: Side<'_>) -> Measured {
    let count = (TURN_BYTES / arena.bytes).max(1);
    let mut next = 0;
    let mut turn = |side: Side<'_>| -> Duration {
        // A stride that shares no factor with the number of slots, so that all have their turn and
        // no prefetcher knows which comes next.
        let stride = 1 + 2 * 37;
        clean_upper_halves();
        let start = time();
        for _ in 0..count {
            next += stride;
            black_box(side(black_box(&mut arena.slot(next))));
        }
        time().saturating_sub(start)
    };
    turn(ours);
    turn(peer);
    let (mut ratios, mut of_ours, mut of_peer) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // The first of one round is second in the next.
        let (a, b) = match round % 2 {
            0 => {
                let a = turn(ours);
                (a, turn(peer))
            }
            _ => {
                let b = turn(peer);
                (turn(ours), b)
            }
        };
        ratios.push(b.as_secs_f64() / a.as_secs_f64());
        of_ours.push(a.as_secs_f64());
        of_peer.push(b.as_secs_f64());
    }
    let moved = (count * arena.bytes) as f64 / 1e9;
    Measured {
        ratio: spread(&mut ratios),
        ours_gbps: moved / spread(&mut of_ours).median,
        peer_gbps: moved / spread(&mut of_peer).median,
    }
}

/// Some of ISA-L's functions leave the upper halves of vector registers in use (2.30's zero detection
/// does), which slows down the next one.
fn clean_upper_halves() {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX, and nothing keeps a value in an upper half across a call.
        unsafe { std::arch::x86_64::_mm256_zeroupper() };
    }
}

/// What this thread has run, so that others on the machine cost no more than the cache that they take.
fn time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn spread(values: &mut [f64]) -> Spread {
    values.sort_by(f64::total_cmp);
    let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
    Spread {
        low: at(1),
        median: at(2),
        high: at(3),
    }
}
