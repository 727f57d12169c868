//! What runs in a program: it watches, decides and migrates, one interval after the other.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::TierError;
use crate::adopt::Adopter;
use crate::copier::Switch;
use crate::knobs::Knob;
use crate::mechanism::{
    BASE_SLOTS, BLOCK, Block, Config, Engine, HUGE_SLOTS, Order, Piece, Ranges, Release, Tier,
    measure_knee,
};
use crate::policy::{Policy, Room, by_index, units};
use crate::session::{Process, Reason, Session, Value};
use crate::sys::cgroup::Cgroup;
use crate::sys::damon::{self, DamonError};
use crate::sys::pagemap::{FILE, HUGE_PAGE, PRESENT, PageMap, Wanted, ZERO};
use crate::sys::{HUGE, PAGE};
use crate::tracking::{Choice, Tracked, Tracker, choose, unit};

/// How often new mappings are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// Bytes of a control group's limit that are left to the program while pages move.
const LEFT_IN_GROUP: u64 = 2 << 20;

/// Which memory is managed.
#[derive(Debug)]
pub enum Memory {
    /// All of the process that can be, without these ranges.
    Process {
        /// Ranges of dray's own.
        own: Ranges,
        /// Pages that never move.
        pinned: Ranges,
    },
    /// Ranges that the caller has registered.
    Given {
        /// Bytes of them that are in use.
        bytes: u64,
    },
}

/// Tiers the memory of this process.
pub struct Manager {
    session: Session,
    pid: u64,
    process: Option<&'static Process>,
    memory: Memory,
    active: Option<Active>,
    failed: bool,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

/// What there is once the fast tier is nearly full. Before, nothing is registered and costs nothing.
struct Active {
    engine: Arc<Engine>,
    tracker: Box<dyn Tracker>,
    policy: Box<dyn Policy>,
    adopter: Adopter,
    pagemap: PageMap,
    knee: u64,
    interval: u32,
    looked: Option<Instant>,
    cooled: u32,
    decided: Instant,
    cgroup: Cgroup,
    /// Batches in a row of which little could move, and the interval until which none is tried.
    refused: (u32, u32),
}

impl Manager {
    /// For a session.
    pub fn new(session: Session, memory: Memory) -> Manager {
        Manager {
            session,
            pid: u64::from(std::process::id()),
            process: None,
            memory,
            active: None,
            failed: false,
        }
    }

    /// The engine, once there is one.
    pub fn engine(&self) -> Option<&Arc<Engine>> {
        self.active.as_ref().map(|active| &active.engine)
    }

    /// Bytes that the caller uses of what it has registered.
    pub fn set_given(&mut self, used: u64) {
        if let Memory::Given { bytes } = &mut self.memory {
            *bytes = used;
        }
    }

    /// One interval. How long to wait until the next.
    pub fn step(&mut self) -> Duration {
        let pause = Duration::from_millis(self.session.knob(Knob::IntervalMs));
        if self.failed {
            return pause.max(LOOK);
        }
        let setup = self.session.setup();
        let used = match &self.memory {
            Memory::Process { .. } => anonymous_bytes(),
            Memory::Given { bytes } => *bytes,
        };
        if self.process.is_none() {
            self.process = self.session.claim(self.pid);
        }
        let others = self.session.fast_of_others(self.pid);
        let limit = setup.bytes[0].saturating_sub(others);
        let keep = keep_free(&self.session, setup.bytes[0]);
        if let Some(process) = self.process {
            let slow = self.engine().map_or(0, |engine| engine.slow_pages() * PAGE);
            process.put(Value::FastBytes, used.saturating_sub(slow));
            process.put(Value::SlowBytes, slow);
            process.put(Value::AgentCpuNs, thread_cpu_ns());
        }
        if self.active.is_none() {
            if used + keep <= limit {
                return pause;
            }
            if let Err(error) = self.activate() {
                self.failed = true;
                let hint = error
                    .hint()
                    .map_or_else(String::new, |hint| format!("; {hint}"));
                if let Some(process) = self.process {
                    process.say(&format!("{error}{hint}"));
                }
                return pause;
            }
        }
        self.tier(used, limit, keep);
        pause
    }

    /// Starts the engine, and the thread that serves its events.
    ///
    /// # Errors
    /// userfaultfd is forbidden; no node; no threads.
    pub fn activate(&mut self) -> Result<(), TierError> {
        let setup = self.session.setup();
        let knee = measure_knee()?;
        let config = Config {
            tiers: setup.nodes.map(|node| Tier { node }),
            order: match setup.shared_read {
                true => Order::SharedRead,
                false => Order::Strict,
            },
            release: match setup.reuse {
                true => Release::Reuse,
                false => Release::Kernel,
            },
            unprotected: false,
        };
        let proc = |error: std::io::Error| TierError::System {
            call: "opening /proc/self/pagemap",
            errno: error.raw_os_error().unwrap_or(0),
        };
        let engine = Engine::new(config, Box::new(Switch::new(self.session)))?;
        let (tracker, refused) = choose(setup.tracking, config.order, Path::new(damon::DIRECTORY))?;
        if let Some(process) = self.process {
            process.tracks(tracker.tracking());
            if let Some(cause) = refused {
                process.note(&format!("accesses are not tracked with DAMON: {cause}"));
            }
        }
        if let Memory::Process { pinned, .. } = &self.memory {
            engine.set_pinned(*pinned);
        }
        let engine = Arc::new(engine);
        let served = engine.clone();
        thread::Builder::new()
            .name("dray-tier-fault".to_owned())
            .spawn(move || served.serve())
            .map_err(|error| TierError::System {
                call: "starting a thread",
                errno: error.raw_os_error().unwrap_or(0),
            })?;
        if let Some(process) = self.process {
            process.state.store(1, std::sync::atomic::Ordering::Relaxed);
            process.put(Value::KneePages, knee.pages);
        }
        self.active = Some(Active {
            engine,
            tracker,
            policy: by_index(setup.policy),
            adopter: Adopter::default(),
            pagemap: PageMap::own().map_err(proc)?,
            knee: knee.pages,
            interval: 0,
            looked: None,
            cooled: 0,
            decided: Instant::now(),
            cgroup: Cgroup::own(),
            refused: (0, 0),
        });
        Ok(())
    }

    fn tier(&mut self, used: u64, limit: u64, keep: u64) {
        let Some(active) = &mut self.active else {
            return;
        };
        let session = self.session;
        active.interval += 1;
        if let Memory::Process { own, .. } = &self.memory
            && active.looked.is_none_or(|at| at.elapsed() >= LOOK)
        {
            active.looked = Some(Instant::now());
            let mut own = own();
            own.extend(active.engine.own_ranges());
            active.adopter.step(&active.engine, &own);
        }
        let overhead = session.knob(Knob::Overhead);
        let tracked = active.tracker.step(&active.engine, overhead);
        let tracked = tracked.unwrap_or_else(|error| {
            active.track_otherwise(self.process, &error);
            Tracked::default()
        });
        let interval_ms = session.knob(Knob::IntervalMs);
        let intervals = |ms: u64| ms.div_ceil(interval_ms).min(u64::from(u32::MAX)) as u32;
        let cooling = intervals(session.knob(Knob::CoolingMs));
        if active.interval - active.cooled >= cooling {
            active.cooled = active.interval;
            active.engine.cool();
        }
        let slow = active.engine.slow_pages();
        let slow_limit = session.setup().bytes[1] / PAGE;
        let rate = session.knob(Knob::PromoteRateLimit) * 1_000_000 / PAGE;
        let elapsed = active.decided.elapsed().min(Duration::from_secs(1));
        active.decided = Instant::now();
        let room = Room {
            fast_limit: limit / PAGE,
            fast_used: (used / PAGE).saturating_sub(slow),
            keep_free: keep / PAGE,
            slow_room: slow_limit.saturating_sub(slow),
            promote: rate * elapsed.as_millis() as u64 / 1000,
            interval: active.interval,
            ping_pong: intervals(session.knob(Knob::PingPongMs)),
            cooling,
        };
        let blocks = active.engine.blocks();
        let plan = active.policy.decide(&units(&blocks), &room);
        let moves = [
            (Reason::Demotion, &plan.demote),
            (Reason::NumaMisplaced, &plan.promote),
        ];
        for (reason, numbers) in moves {
            active.migrate(session, self.process, &blocks, numbers, reason);
        }
        let Some(process) = self.process else { return };
        if let Some(failure) = active.engine.take_failure() {
            process.say(&failure.to_string());
        }
        process.outcomes[crate::Outcome::Vanished as usize].fetch_add(
            active.engine.take_vanished(),
            std::sync::atomic::Ordering::Relaxed,
        );
        process.add(Value::HintsArmed, tracked.armed);
        process.add(Value::HintsTouched, tracked.touched);
        process.add(Value::Scans, u64::from(tracked.scanned));
        process.add(Value::TrackingNs, tracked.cost.as_nanos() as u64);
        let regions = active.engine.regions();
        process.put(Value::Regions, regions.len() as u64);
        let managed = regions.iter().map(|(start, end)| end - start).sum();
        process.put(Value::ManagedBytes, managed);
        let [missing, protected, layout] = active.engine.events();
        process.put(Value::MissingFaults, missing);
        process.put(Value::WriteProtectFaults, protected);
        process.put(Value::LayoutChanges, layout);
    }
}

impl Active {
    /// The tracker can track no more: hints always can.
    fn track_otherwise(&mut self, process: Option<&'static Process>, error: &DamonError) {
        let order = self.engine.config().order;
        let other = choose(Choice::Hints, order, Path::new(damon::DIRECTORY));
        if let Ok((tracker, _)) = other {
            self.tracker = tracker;
        }
        if let Some(process) = process {
            process.tracks(self.tracker.tracking());
            process.note(&format!("accesses are not tracked with DAMON: {error}"));
        }
    }

    fn migrate(
        &mut self,
        session: Session,
        process: Option<&'static Process>,
        blocks: &[(u64, Block)],
        numbers: &[u64],
        reason: Reason,
    ) {
        if numbers.is_empty() {
            return;
        }
        let to = usize::from(reason == Reason::Demotion);
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        let mut pieces = self.pieces(blocks, &numbers, to);
        if reason == Reason::NumaMisplaced {
            // A few single pages cost several times as much each; a block of them is cheap. What is
            // alone waits until its neighbours are hot too, unless nothing else is.
            let long = |piece: &Piece| piece.huge || piece.len >= self.knee * PAGE;
            if pieces.iter().any(long) && pieces.iter().filter(|p| !long(p)).count() > 64 {
                pieces.retain(long);
            }
        }
        let most = self.within_group(&mut pieces, process);
        for batch in &batches(&pieces, most) {
            if self.interval < self.refused.1 {
                break;
            }
            let mut report = self.engine.migrate(batch, to);
            if report.outcomes.get(crate::Outcome::NoHugeFrame) > 0 {
                // There is no huge page to be had: as the kernel does, it moves as base pages.
                let huge = batch.iter().filter(|piece| piece.huge);
                let parts: Vec<Piece> = huge
                    .map(|piece| Piece {
                        huge: false,
                        ..*piece
                    })
                    .collect();
                report.add(&self.engine.migrate(&parts, to));
            }
            session.record(reason, &report);
            let moved = report.outcomes.get(crate::Outcome::Moved);
            let refused = report.pages >= 64 && moved < report.pages / 4;
            match refused {
                true => {
                    // Pages that are shared with a child stay so for its life.
                    let times = (self.refused.0 + 1).min(8);
                    self.refused = (times, self.interval + (1 << times));
                }
                false => self.refused = (0, 0),
            }
            let Some(process) = process else { continue };
            let value = match reason {
                Reason::Demotion => Value::DemotedPages,
                Reason::NumaMisplaced => Value::PromotedPages,
            };
            process.add(value, moved);
            for (word, (_, pages)) in process.outcomes.iter().zip(report.outcomes.iter()) {
                word.fetch_add(pages, std::sync::atomic::Ordering::Relaxed);
            }
        }
        let soon = (session.knob(Knob::PingPongMs) / session.knob(Knob::IntervalMs)) as u32;
        let back = self.engine.moved(&numbers, to == 1, self.interval, soon);
        if let Some(process) = process {
            process.add(Value::PingPongs, back);
        }
    }

    /// Bytes that a call may move at most, base and huge: new frames beyond the limit of the control group
    /// would end the program. What cannot be moved so is left, and said.
    fn within_group(&self, pieces: &mut Vec<Piece>, process: Option<&'static Process>) -> [u64; 2] {
        let Some(room) = self.cgroup.room() else {
            return MOST;
        };
        let most = most_within(room);
        let bytes = |pieces: &[Piece]| pieces.iter().map(|piece| piece.len).sum::<u64>();
        let all = bytes(pieces);
        pieces.retain(|piece| most[usize::from(piece.huge)] > 0);
        let left = (all - bytes(pieces)) / PAGE;
        if let (Some(process), 1..) = (process, left) {
            process.outcomes[crate::Outcome::NoFrame as usize]
                .fetch_add(left, std::sync::atomic::Ordering::Relaxed);
            process.note(&format!(
                "the control group's memory limit leaves {} KiB: pages stay where they are",
                room >> 10
            ));
        }
        most
    }

    /// The pages of blocks that are there and of the other tier, as runs.
    fn pieces(&mut self, blocks: &[(u64, Block)], numbers: &[u64], to: usize) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut until = 0;
        for number in numbers {
            let find = |number: &u64| blocks.binary_search_by_key(number, |(n, _)| *n).ok();
            let Some(block) = find(number).map(|index| blocks[index].1) else {
                continue;
            };
            let (start, len) = unit(*number, block.huge);
            if start < until {
                continue;
            }
            until = start + len;
            let wanted = Wanted {
                all: PRESENT,
                none: FILE | ZERO,
                tell: HUGE_PAGE,
                protect: false,
            };
            let pieces = &mut pieces;
            let _ = self.pagemap.scan(start, until, wanted, |run| {
                let huge = run.categories & HUGE_PAGE != 0;
                if huge {
                    let whole = run.start.is_multiple_of(HUGE) && run.end - run.start >= HUGE;
                    if whole {
                        push(pieces, run.start, run.end - run.start, true);
                    }
                    return;
                }
                for page in (run.start..run.end).step_by(PAGE as usize) {
                    let index = find(&(page / BLOCK));
                    let slow = index.map_or(0, |index| blocks[index].1.slow);
                    let is_slow = slow >> (page % BLOCK / PAGE) & 1 == 1;
                    if is_slow == (to == 0) {
                        push(pieces, page, PAGE, false);
                    }
                }
            });
        }
        pieces
    }
}

/// Bytes of a call at most: as many pages as fill the engine's windows, base and huge.
const MOST: [u64; 2] = [BASE_SLOTS * PAGE, HUGE_SLOTS * HUGE];

fn push(pieces: &mut Vec<Piece>, start: u64, len: u64, huge: bool) {
    match pieces.last_mut() {
        Some(last) if last.huge == huge && last.start + last.len == start => last.len += len,
        _ => pieces.push(Piece { start, len, huge }),
    }
}

/// As [`MOST`], where a control group has room for so many bytes more: half of what it can spare for
/// each kind.
fn most_within(room: u64) -> [u64; 2] {
    let spare = room.saturating_sub(LEFT_IN_GROUP) / 2;
    [
        MOST[0].min(spare / PAGE * PAGE),
        MOST[1].min(spare / HUGE * HUGE),
    ]
}

/// Pieces for one call each, of which none moves more than `most` bytes of a kind. The histograms count
/// calls.
fn batches(pieces: &[Piece], most: [u64; 2]) -> Vec<Vec<Piece>> {
    let mut batches: Vec<Vec<Piece>> = Vec::new();
    let mut room = [0; 2];
    for piece in pieces {
        let mut rest = *piece;
        let kind = usize::from(rest.huge);
        while rest.len > 0 {
            if room[kind] == 0 {
                batches.push(Vec::new());
                room = most;
            }
            let len = rest.len.min(room[kind]);
            if let Some(batch) = batches.last_mut() {
                batch.push(Piece { len, ..rest });
            }
            room[kind] -= len;
            rest.start += len;
            rest.len -= len;
        }
    }
    batches
}

/// Bytes that are to be free in the fast tier.
fn keep_free(session: &Session, fast: u64) -> u64 {
    let scale = session.knob(Knob::DemoteScaleFactor);
    (fast / 10_000).saturating_mul(scale).max(BLOCK)
}

/// Anonymous memory of this process that is present: `statm` has it in pages.
fn anonymous_bytes() -> u64 {
    let mut text = Vec::with_capacity(128);
    let _ = crate::sys::maps::read("/proc/self/statm", &mut text);
    let text = String::from_utf8_lossy(&text);
    let mut fields = text
        .split(' ')
        .skip(1)
        .map(|field| field.parse().unwrap_or(0));
    let (resident, shared): (u64, u64) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    resident.saturating_sub(shared) * PAGE
}

pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the place is written to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_what_fills_the_windows() {
        let piece = |start, pages, huge| Piece {
            start,
            len: pages * if huge { HUGE } else { PAGE },
            huge,
        };
        let all = [
            piece(0, 600, false),
            piece(1 << 30, 20, true),
            piece(1 << 22, 1500, false),
            piece(1 << 31, 30, true),
        ];
        let batches = batches(&all, MOST);
        let pages = |batch: &Vec<Piece>, huge| -> u64 {
            let bytes = batch.iter().filter(|piece| piece.huge == huge);
            bytes.map(|piece| piece.len).sum::<u64>() / if huge { HUGE } else { PAGE }
        };
        let counts: Vec<_> = batches
            .iter()
            .map(|batch| (pages(batch, false), pages(batch, true)))
            .collect();
        assert_eq!(counts, [(1024, 20), (1024, 0), (52, 24), (0, 6)]);
        assert_eq!(batches[1][0].start, (1 << 22) + 424 * PAGE);
        assert!(super::batches(&[], MOST).is_empty());
    }

    #[test]
    fn a_control_group_bounds_what_a_call_moves() {
        assert_eq!(most_within(1 << 40), MOST);
        assert_eq!(most_within(LEFT_IN_GROUP), [0, 0]);
        assert_eq!(most_within(LEFT_IN_GROUP + 3 * PAGE), [PAGE, 0]);
        assert_eq!(most_within(LEFT_IN_GROUP + 2 * HUGE), [HUGE, HUGE]);
        let piece = Piece {
            start: 0,
            len: 10 * PAGE,
            huge: false,
        };
        let lens: Vec<u64> = batches(&[piece], [4 * PAGE, 0])
            .iter()
            .map(|batch| batch.iter().map(|piece| piece.len / PAGE).sum())
            .collect();
        assert_eq!(lens, [4, 4, 2]);
    }
}
