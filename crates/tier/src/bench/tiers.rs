//! Workloads on two tiers, in real time: small, medium and large working sets, and GUPS with a hot
//! set that moves.
//!
//! On a machine with one node both tiers are the same memory: what is seen is what migration costs the
//! program, not what it gains.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde::Serialize;

use super::memory::Mapped;
use crate::session::{Process, Session, Setup, VIRTUAL, Value};
use crate::sys::PAGE;
use crate::tracking::Choice;
use crate::{Manager, Memory, TierError};

/// Working set by the fast tier's size, as in NOMAD's micro-benchmarks (10, 13.5 and 27 GB on 16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkingSet {
    /// 5/8 of it.
    Small,
    /// 27/32 of it.
    Medium,
    /// 27/16 of it.
    Large,
    /// GUPS: twice the fast tier, and nine of ten accesses to a tenth of it, which moves half way.
    Gups,
}

/// What the accesses do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// They read.
    Read,
    /// They write.
    Write,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its working set.
    pub working_set: WorkingSet,
    /// Its accesses.
    pub access: Access,
    /// Bytes of the fast tier.
    pub fast_bytes: u64,
    /// Index of the policy.
    pub policy: usize,
    /// Knobs, `NAME=NUMBER`.
    pub knobs: Vec<String>,
    /// Time of each phase.
    pub time: Duration,
    /// Seed of the accesses.
    pub seed: u64,
}

/// One phase of a case.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Phase {
    /// Accesses a second, in thousands.
    pub kilo_accesses: u64,
    /// Pages demoted.
    pub demoted: u64,
    /// Pages promoted.
    pub promoted: u64,
    /// Percent of the accesses in a sample that went to pages of the fast tier.
    pub fast_percent: u64,
}

/// A case that has run.
#[derive(Debug, Clone, Serialize)]
pub struct Running {
    /// Its working set.
    pub working_set: WorkingSet,
    /// Its accesses.
    pub access: Access,
    /// Bytes of the working set.
    pub bytes: u64,
    /// From the start on: pages find their tier.
    pub in_progress: Phase,
    /// The time after that.
    pub stable: Phase,
    /// Words that were not as they were written: there must be none.
    pub lost: u64,
}

impl WorkingSet {
    /// Pages of the working set, and of all memory: the large tier's part that is not in the set is
    /// allocated first and fills the fast tier.
    fn pages(self, fast: u64) -> (u64, u64) {
        let pages = fast / PAGE;
        match self {
            Self::Small => (pages * 5 / 8, pages * 5 / 4),
            Self::Medium => (pages * 27 / 32, pages * 27 / 16),
            Self::Large => (pages * 27 / 16, pages * 27 / 16),
            Self::Gups => (pages * 2, pages * 2),
        }
    }
}

/// The next page: of a Zipf-like row, by inversion of a continuous power law with exponent 0.99, and
/// spread over the set by a multiplication, so that hot pages are not neighbours of each other only.
fn zipf(rng: &mut ChaCha8Rng, pages: u64) -> u64 {
    const POWER: f64 = 0.01;
    let uniform = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let most = (pages as f64).powf(POWER);
    let rank = (uniform * (most - 1.0) + 1.0).powf(1.0 / POWER) as u64 - 1;
    // Blocks of 16 pages keep together, as objects do.
    let (block, page) = (rank / 16, rank % 16);
    let blocks = (pages / 16).max(1);
    (block.wrapping_mul(2_654_435_761) % blocks * 16 + page).min(pages - 1)
}

fn gups(rng: &mut ChaCha8Rng, pages: u64, moved: bool) -> u64 {
    let hot = (pages / 10).max(1);
    let start = match moved {
        true => pages / 2,
        false => 0,
    };
    match rng.next_u32() % 10 {
        0 => rng.next_u64() % pages,
        _ => start + rng.next_u64() % hot,
    }
}

/// Runs a case.
///
/// # Errors
/// userfaultfd is forbidden; no memory.
pub fn run(case: &Case) -> Result<Running, TierError> {
    let (set, all) = case.working_set.pages(case.fast_bytes);
    let memory = Mapped::new(all * PAGE, false)?;
    let failed = |source| TierError::Io {
        what: "making a session",
        source,
    };
    let session = Session::private(&Setup {
        bytes: [case.fast_bytes, u64::MAX],
        nodes: [None; 2],
        policy: case.policy,
        shared_read: false,
        release: crate::Release::Kernel,
        device: VIRTUAL,
        tracking: Choice::Hints,
        filters: 0,
    })
    .map_err(failed)?;
    for knob in &case.knobs {
        session.set(knob).map_err(|error| TierError::Io {
            what: "setting a knob",
            source: std::io::Error::new(std::io::ErrorKind::InvalidInput, error),
        })?;
    }
    let used = all * PAGE;
    let mut manager = Manager::new(session, Memory::Given { bytes: used });
    manager.activate()?;
    let engine = manager.engine().cloned().ok_or(TierError::System {
        call: "starting the engine",
        errno: libc::EINVAL,
    })?;
    engine
        .register(memory.start, memory.start + memory.len)
        .map_err(|errno| TierError::System {
            call: "UFFDIO_REGISTER",
            errno,
        })?;
    let process = session.claim(u64::from(std::process::id()));
    let stop = AtomicBool::new(false);
    let lost = AtomicU64::new(0);
    // What is not in the set was allocated first, and so is in the fast tier.
    let base = all - set;
    let mut phases = Vec::new();
    // Pages begin to move before the first phase does.
    let mut before = counts(process);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                let pause = manager.step();
                thread::sleep(pause);
            }
        });
        let mut worker = Worker {
            memory: &memory,
            base,
            set,
            written: vec![0; set as usize],
            rng: ChaCha8Rng::seed_from_u64(case.seed),
            lost: &lost,
        };
        for moved in [false, true] {
            let accesses = worker.phase(case, moved && case.working_set == WorkingSet::Gups);
            let after = counts(process);
            let fast_percent = worker.fast_percent(&engine, case, moved);
            phases.push(Phase {
                kilo_accesses: accesses / case.time.as_millis().max(1) as u64,
                demoted: after[0] - before[0],
                promoted: after[1] - before[1],
                fast_percent,
            });
            before = after;
        }
        worker.check();
        stop.store(true, Ordering::Release);
    });
    engine.stop();
    Ok(Running {
        working_set: case.working_set,
        access: case.access,
        bytes: set * PAGE,
        in_progress: phases[0],
        stable: phases[1],
        lost: lost.into_inner(),
    })
}

fn counts(process: Option<&'static Process>) -> [u64; 2] {
    process.map_or([0; 2], |process| {
        [
            process.get(Value::DemotedPages),
            process.get(Value::PromotedPages),
        ]
    })
}

struct Worker<'a> {
    memory: &'a Mapped,
    base: u64,
    set: u64,
    /// What each page's word was last written to.
    written: Vec<u32>,
    rng: ChaCha8Rng,
    lost: &'a AtomicU64,
}

impl Worker<'_> {
    fn next(&mut self, case: &Case, moved: bool) -> u64 {
        match case.working_set {
            WorkingSet::Gups => gups(&mut self.rng, self.set, moved),
            _ => zipf(&mut self.rng, self.set),
        }
    }

    fn phase(&mut self, case: &Case, moved: bool) -> u64 {
        let start = Instant::now();
        let mut accesses = 0;
        while start.elapsed() < case.time {
            for _ in 0..256 {
                let page = self.next(case, moved);
                self.access(page, case.access == Access::Write);
            }
            accesses += 256;
        }
        accesses
    }

    fn access(&mut self, page: u64, write: bool) {
        let word = self.memory.word(self.base + page);
        let expected = &mut self.written[page as usize];
        // SAFETY: memory of the benchmark, of this thread alone.
        if unsafe { word.read_volatile() } != u64::from(*expected) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        if write {
            *expected = expected.wrapping_add(1);
            // SAFETY: as above.
            unsafe { word.write_volatile(u64::from(*expected)) };
        }
    }

    fn check(&mut self) {
        for page in 0..self.set {
            self.access(page, false);
        }
    }

    fn fast_percent(&mut self, engine: &crate::Engine, case: &Case, moved: bool) -> u64 {
        use crate::mechanism::{BLOCK, block_of};
        const SAMPLE: u64 = 10_000;
        let blocks = engine.blocks();
        let mut fast = 0;
        for _ in 0..SAMPLE {
            let page = self.next(case, moved && case.working_set == WorkingSet::Gups);
            let address = self.memory.start + (self.base + page) * PAGE;
            let found = blocks.binary_search_by_key(&block_of(address), |(number, _)| *number);
            let slow = found.map_or(0, |index| blocks[index].1.slow);
            fast += 1 - (slow >> (address % BLOCK / PAGE) & 1);
        }
        fast * 100 / SAMPLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_update_is_lost_and_the_fast_tier_does_not_overflow() {
        for (working_set, access) in [
            (WorkingSet::Large, Access::Write),
            (WorkingSet::Gups, Access::Read),
        ] {
            let case = Case {
                working_set,
                access,
                fast_bytes: 8 << 20,
                policy: 0,
                knobs: vec!["interval_ms=5".to_owned(), "overhead=50".to_owned()],
                time: Duration::from_millis(300),
                seed: 1,
            };
            let running = run(&case).expect("root on Linux 6.8");
            assert_eq!(running.lost, 0);
            let moved = running.in_progress.demoted + running.stable.demoted;
            assert!(moved > 0, "{running:?}");
        }
    }

    #[test]
    fn zipf_ranks_are_skewed_and_within_the_set() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut counts = vec![0u32; 1600];
        for _ in 0..100_000 {
            counts[zipf(&mut rng, 1600) as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let top: u32 = counts[..160].iter().sum();
        assert!(top > 50_000, "{top}");
    }
}
