//! The same policies over the kernel's back end: another process, watched by DAMON, whose pages move by
//! move_pages(2).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{CALL, gone, move_pages};
use crate::TierError;
use crate::knobs::Knob;
use crate::mechanism::{BLOCK, BLOCK_PAGES, Blocks, Outcome, Report};
use crate::policy::{Policy, Room, by_index, units};
use crate::session::{Note, Process, Reason, Session, Value};
use crate::sys::pagemap::PageMap;
use crate::sys::{HUGE, PAGE, maps};
use crate::tracking::{Books, Choice, DamonTracker, Tracking, enter_present, stretches};

/// How often mappings and the nodes of pages are looked at, if that costs little.
const LOOK: Duration = Duration::from_secs(1);

/// A process that runs and is tiered from outside, between two nodes.
pub struct RemoteProcess {
    pid: i32,
    nodes: [u32; 2],
    session: Session,
    process: Option<&'static Process>,
    memory: RemoteMemory,
    pagemap: PageMap,
    /// Without one nothing is known of accesses.
    tracker: Option<DamonTracker>,
    policy: Box<dyn Policy>,
    interval: u32,
    cooled: u32,
    /// When mappings and nodes were looked at, and how long that is enough.
    looked: Option<(Instant, Duration)>,
    decided: Instant,
    text: Vec<u8>,
}

impl std::fmt::Debug for RemoteProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteProcess")
            .field("pid", &self.pid)
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}

/// Its anonymous memory and the books of it.
#[derive(Debug, Default)]
struct RemoteMemory {
    regions: Vec<(u64, u64)>,
    blocks: RefCell<Blocks>,
}

impl Books for RemoteMemory {
    fn regions(&self) -> Vec<(u64, u64)> {
        self.regions.clone()
    }

    fn change(&self, _: u64, _: u64, change: impl FnOnce(&mut Blocks)) {
        change(&mut self.blocks.borrow_mut());
    }
}

impl RemoteProcess {
    /// Watches a process; `damon` is the directory of its files.
    ///
    /// # Errors
    /// No such process, or no right to look into it; DAMON alone was asked for and cannot be had.
    pub fn new(
        pid: i32,
        nodes: [u32; 2],
        session: Session,
        damon: &Path,
    ) -> Result<RemoteProcess, TierError> {
        let setup = session.setup();
        let pagemap = PageMap::of(pid).map_err(gone)?;
        let process = session.claim(pid.unsigned_abs().into());
        let taken = DamonTracker::take(damon, pid).map_err(gone)?;
        let tracker = match (taken, setup.tracking) {
            (Ok(tracker), Choice::Best | Choice::Damon) => {
                if let Some(process) = process {
                    process.tracks(Tracking::Damon);
                }
                Some(tracker)
            }
            (Err(cause), Choice::Damon) => return Err(TierError::Damon { cause }),
            (taken, _) => {
                let why = taken.map_or_else(
                    |cause| cause.to_string(),
                    |_| "hints work inside a process alone".to_owned(),
                );
                if let Some(process) = process {
                    let text = format!(
                        "accesses are not tracked: {why}; pages go by their addresses, and none comes back"
                    );
                    process.note(Note::Tracking, &text);
                }
                None
            }
        };
        if let Some(process) = process {
            process.state.store(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(RemoteProcess {
            pid,
            nodes,
            session,
            process,
            memory: RemoteMemory::default(),
            pagemap,
            tracker,
            policy: by_index(setup.policy),
            interval: 0,
            cooled: 0,
            looked: None,
            decided: Instant::now(),
            text: Vec::new(),
        })
    }

    /// One interval. How long to wait until the next; nothing once the process has ended.
    ///
    /// # Errors
    /// No right to move its pages; no such node.
    pub fn step(&mut self) -> Result<Option<Duration>, TierError> {
        let pause = Duration::from_millis(self.session.knob(Knob::IntervalMs));
        self.interval += 1;
        if self.looked.is_none_or(|(at, pause)| at.elapsed() >= pause) {
            let start = crate::manager::thread_cpu_ns();
            match self.look() {
                Ok(()) if lives(self.pid) => {}
                Ok(()) => return Ok(None),
                Err(_) if !lives(self.pid) => return Ok(None),
                Err(error) => return Err(error),
            }
            let cost = Duration::from_nanos(crate::manager::thread_cpu_ns() - start);
            let overhead = self.session.knob(Knob::Overhead).max(1) as u32;
            self.looked = Some((Instant::now(), LOOK.max(cost * 100 / overhead)));
        }
        self.track();
        let (room, all) = (self.room(), self.all());
        let plan = self.policy.decide(&units(&all), &room);
        let moves = [
            (Reason::Demotion, plan.demote),
            (Reason::NumaMisplaced, plan.promote),
        ];
        for (reason, numbers) in moves {
            match self.migrate(reason, &numbers) {
                Ok(()) => {}
                Err(_) if !lives(self.pid) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        if let Some(process) = self.process {
            let (fast, slow) = self.used();
            process.put(Value::FastBytes, fast * PAGE);
            process.put(Value::SlowBytes, slow * PAGE);
            process.put(Value::Regions, self.memory.regions.len() as u64);
            let managed = self.memory.regions.iter().map(|(start, end)| end - start);
            process.put(Value::ManagedBytes, managed.sum());
            process.put(Value::AgentCpuNs, crate::manager::thread_cpu_ns());
        }
        Ok(Some(pause))
    }

    /// Reads the mappings, and on which node each page is.
    fn look(&mut self) -> Result<(), TierError> {
        maps::read(&format!("/proc/{}/maps", self.pid), &mut self.text).map_err(gone)?;
        let regions = maps::anonymous(&String::from_utf8_lossy(&self.text));
        let mut pages = Vec::new();
        for (start, end) in &regions {
            super::each_present(&mut self.pagemap, *start, *end, |page| pages.push(page));
        }
        let mut blocks = BTreeMap::new();
        let fast = self.nodes[0] as i32;
        for call in pages.chunks(16 * CALL) {
            for (page, node) in call.iter().zip(move_pages(self.pid, call, None)?) {
                let (present, slow): &mut (u64, u64) = blocks.entry(page / BLOCK).or_default();
                let bit = 1u64 << (page % BLOCK / PAGE);
                *present |= bit;
                if node >= 0 && node != fast {
                    *slow |= bit;
                }
            }
        }
        let mut books = self.memory.blocks.borrow_mut();
        let known: Vec<u64> = books.map.keys().copied().collect();
        for number in known
            .into_iter()
            .filter(|number| !blocks.contains_key(number))
        {
            books.forget(number * BLOCK, (number + 1) * BLOCK);
        }
        for (number, (present, slow)) in blocks {
            books.change(number, |block| {
                (block.present, block.slow) = (present, slow)
            });
        }
        drop(books);
        self.memory.regions = regions;
        Ok(())
    }

    fn track(&mut self) {
        let overhead = self.session.knob(Knob::Overhead);
        match &mut self.tracker {
            Some(tracker) => match tracker.step_on(&self.memory, overhead) {
                Ok(tracked) => {
                    if let Some(process) = self.process {
                        process.add(Value::Scans, u64::from(tracked.scanned));
                        process.add(Value::TrackingNs, tracked.cost.as_nanos() as u64);
                    }
                }
                Err(error) => {
                    self.tracker = None;
                    if let Some(process) = self.process {
                        let text = format!("accesses are tracked no more: {error}");
                        process.note(Note::Tracking, &text);
                    }
                }
            },
            None => {
                let (memory, pagemap) = (&self.memory, &mut self.pagemap);
                stretches(memory, |start, end| {
                    enter_present(pagemap, memory, start, end, |_| ());
                });
            }
        }
        let cooling = self.intervals(Knob::CoolingMs);
        if self.interval - self.cooled >= cooling {
            self.cooled = self.interval;
            for block in self.memory.blocks.borrow_mut().map.values_mut() {
                block.heat /= 2;
            }
        }
    }

    fn intervals(&self, knob: Knob) -> u32 {
        let intervals = self
            .session
            .knob(knob)
            .div_ceil(self.session.knob(Knob::IntervalMs));
        intervals.min(u32::MAX.into()) as u32
    }

    fn all(&self) -> Vec<(u64, crate::mechanism::Block)> {
        let books = self.memory.blocks.borrow();
        books
            .map
            .iter()
            .map(|(number, block)| (*number, *block))
            .collect()
    }

    /// Pages that are in the fast and in the slow tier.
    fn used(&self) -> (u64, u64) {
        let books = self.memory.blocks.borrow();
        books.map.values().fold((0, 0), |(fast, slow), block| {
            let bits = |bits: u64| u64::from(bits.count_ones());
            (
                fast + bits(block.present & !block.slow),
                slow + bits(block.present & block.slow),
            )
        })
    }

    fn room(&mut self) -> Room {
        let setup = self.session.setup();
        let (fast_used, slow) = self.used();
        let elapsed = self.decided.elapsed().min(Duration::from_secs(1));
        self.decided = Instant::now();
        let rate = self.session.knob(Knob::PromoteRateLimit) * 1_000_000 / PAGE;
        let keep = (setup.bytes[0] / 10_000)
            .saturating_mul(self.session.knob(Knob::DemoteScaleFactor))
            .max(BLOCK);
        Room {
            fast_limit: setup.bytes[0] / PAGE,
            fast_used,
            keep_free: keep / PAGE,
            slow_room: (setup.bytes[1] / PAGE).saturating_sub(slow),
            promote: match self.tracker {
                Some(_) => rate * elapsed.as_millis() as u64 / 1000,
                None => 0,
            },
            interval: self.interval,
            ping_pong: self.intervals(Knob::PingPongMs),
            cooling: self.intervals(Knob::CoolingMs),
        }
    }

    fn migrate(&mut self, reason: Reason, numbers: &[u64]) -> Result<(), TierError> {
        let demotes = reason == Reason::Demotion;
        let target = self.nodes[usize::from(demotes)];
        for number in numbers {
            let mut report = Report::default();
            let moved = self.move_unit(*number, demotes, target, &mut report)?;
            self.session.record(reason, &report);
            let soon = self.intervals(Knob::PingPongMs).saturating_mul(4);
            let mut books = self.memory.blocks.borrow_mut();
            if let Some(block) = books.map.get_mut(number) {
                let lately = self.interval.saturating_sub(block.moved_at) < soon;
                let back = !demotes && block.demoted && block.moved_at != 0 && lately;
                block.ping_pongs = block.ping_pongs.saturating_add(u8::from(back));
                block.moved_at = self.interval.max(1);
                block.demoted = demotes;
                if let Some(process) = self.process {
                    process.add(Value::PingPongs, u64::from(back));
                }
            }
            let Some(process) = self.process else {
                continue;
            };
            let value = match demotes {
                true => Value::DemotedPages,
                false => Value::PromotedPages,
            };
            process.add(value, moved);
            for (word, (_, pages)) in process.outcomes.iter().zip(report.outcomes.iter()) {
                word.fetch_add(pages, std::sync::atomic::Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Moves a block, or the blocks of its huge page; pages that did.
    fn move_unit(
        &self,
        number: u64,
        demotes: bool,
        target: u32,
        report: &mut Report,
    ) -> Result<u64, TierError> {
        let mut books = self.memory.blocks.borrow_mut();
        let huge = books.map.get(&number).is_some_and(|block| block.huge);
        let count = if huge { HUGE / BLOCK } else { 1 };
        let mut moved = 0;
        for number in number..number + count {
            let Some(block) = books.map.get(&number).copied() else {
                continue;
            };
            let here = match demotes {
                true => block.present & !block.slow,
                false => block.present & block.slow,
            };
            let bits: Vec<u64> = (0..BLOCK_PAGES)
                .filter(|bit| here >> bit & 1 == 1)
                .collect();
            if bits.is_empty() {
                continue;
            }
            let pages: Vec<u64> = bits.iter().map(|bit| number * BLOCK + bit * PAGE).collect();
            report.pages += pages.len() as u64;
            for (bit, node) in bits.iter().zip(move_pages(self.pid, &pages, Some(target))?) {
                let outcome = match node {
                    node if node == target as i32 => Outcome::Moved,
                    0.. => Outcome::Other,
                    error => Outcome::of_errno(-error),
                };
                report.outcomes.add(outcome, 1);
                if outcome != Outcome::Moved {
                    continue;
                }
                moved += 1;
                books.change(number, |block| match demotes {
                    true => block.slow |= 1 << bit,
                    false => block.slow &= !(1 << bit),
                });
            }
        }
        // The kernel copies with the core that calls.
        report.copied.core += moved * PAGE;
        Ok(moved)
    }
}

/// Whether the process has memory: one that has ended and is waited for has none.
fn lives(pid: i32) -> bool {
    let mut text = Vec::new();
    maps::read(&format!("/proc/{pid}/maps"), &mut text).is_ok() && !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Setup, VIRTUAL};

    const FAST: u64 = 4 << 20;

    fn session(tracking: Choice) -> Session {
        let setup = Setup {
            bytes: [FAST, u64::MAX],
            nodes: [Some(0), Some(0)],
            policy: 2,
            shared_read: false,
            reuse: false,
            device: VIRTUAL,
            tracking,
        };
        Session::private(&setup).expect("memory")
    }

    /// A child that has written to 16 MiB and sleeps until its pipe is closed.
    fn child() -> (std::process::Child, std::process::ChildStdin) {
        let script = "a=$(head -c 16777216 /dev/zero | tr '\\0' a); echo ready; read b";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh is there");
        let mut line = [0u8; 6];
        let out = child.stdout.as_mut().expect("a pipe");
        std::io::Read::read_exact(out, &mut line).expect("it is ready");
        let input = child.stdin.take().expect("a pipe");
        (child, input)
    }

    /// Both tiers are node 0, which every machine has: what is decided and counted is the same.
    #[test]
    fn a_process_is_tiered_until_it_ends() {
        let no_damon = tempfile::tempdir().expect("a directory");
        let (mut child, input) = child();
        let session = session(Choice::Best);
        let pid = child.id() as i32;
        let mut remote =
            RemoteProcess::new(pid, [0, 0], session, no_damon.path()).expect("our own child");
        assert!(remote.step().expect("it runs").is_some());
        let process = session.claim(pid as u64).expect("it has counters");
        assert!(process.get(Value::DemotedPages) >= (12 << 20) / PAGE);
        assert!(
            process.get(Value::FastBytes) <= FAST,
            "{}",
            process.get(Value::FastBytes)
        );
        assert_eq!(process.get(Value::PromotedPages), 0);
        let notes = process.notes();
        assert!(
            notes[0].contains("no DAMON; pages go by their addresses"),
            "{notes:?}"
        );
        drop(input);
        child.wait().expect("it ends");
        remote.looked = None;
        assert!(remote.step().expect("that is no error").is_none());
    }

    #[test]
    fn damon_alone_is_an_error_where_it_is_not() {
        let no_damon = tempfile::tempdir().expect("a directory");
        let pid = std::process::id() as i32;
        let session = session(Choice::Damon);
        let error = RemoteProcess::new(pid, [0, 0], session, no_damon.path()).expect_err("none");
        assert!(matches!(error, TierError::Damon { .. }), "{error}");
    }
}
