//! A session from outside: processes come and go, are looked at, and one policy decides on the memory of all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::call::may_move_shared;
use super::tracking::{Places, Trackers, describe, shows_frames};
use super::{KernelBackEnd, Members, Moved, failed};
use crate::TierError;
use crate::back_end::{BackEnd, Limits, Tiering};
use crate::knobs::Knob;
use crate::nodes::Tiers;
use crate::policy::{POLICIES, by_index, needs_accesses};
use crate::session::{Session, Value};
use crate::sys::{PAGE, thread_cpu_ns};
use crate::tracking::{Books, Tracking};

/// How often it is looked for processes.
const MEMBERS: Duration = Duration::from_millis(100);
/// How often mappings and the nodes of pages are looked at, if that costs little.
const LOOK: Duration = Duration::from_secs(1);

/// What this process may do to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Pages that several processes map may be moved (CAP_SYS_NICE).
    pub moves_shared: bool,
    /// Pages that several processes map can be told apart (CAP_SYS_ADMIN).
    pub shows_frames: bool,
}

impl Rights {
    /// Those of this process, tried: in a user namespace capabilities say nothing.
    pub fn own() -> Rights {
        Rights {
            moves_shared: may_move_shared(),
            shows_frames: shows_frames(),
        }
    }

    /// Pages that several processes map are tiered, too.
    pub fn shared(self) -> bool {
        self.moves_shared && self.shows_frames
    }

    /// Nothing if nothing is left out.
    pub fn left_out(self) -> Option<String> {
        let lacks: Vec<&str> = [
            (!self.moves_shared).then_some("CAP_SYS_NICE"),
            (!self.shows_frames).then_some("CAP_SYS_ADMIN"),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!lacks.is_empty()).then(|| {
            format!(
                "without {} pages that several processes map (shared memory, after fork) stay where they are, and other \
                 users' processes are not tiered",
                lacks.join(" and ")
            )
        })
    }
}

/// What is known of a process that is a member.
#[derive(Debug)]
enum Member {
    Tiered(u32),
    /// It may not be looked into, and its counters have the reason, or it has no memory, as one that is about to end.
    /// When that was tried.
    Left(Instant),
}

/// A session that tiers processes from outside.
#[derive(Debug)]
pub struct Remote {
    session: Session,
    members: Members,
    known: BTreeMap<u32, Member>,
    back_end: KernelBackEnd,
    trackers: Trackers,
    tiering: Tiering,
    refreshed: Option<Instant>,
    /// When mappings and nodes were looked at, and how long that is enough.
    looked: (Instant, Duration),
    decided: Instant,
    missed: u64,
}

impl Remote {
    /// Tiers members between nodes.
    ///
    /// # Errors
    /// Accesses cannot be tracked as asked for, or not at all, and the policy needs them.
    pub fn new(
        members: Members,
        tiers: Tiers,
        session: Session,
        rights: Rights,
    ) -> Result<Remote, TierError> {
        let back_end = KernelBackEnd::new(tiers, session, rights.shared());
        Remote::with(members, back_end, session, &Places::default())
    }

    fn with(
        members: Members,
        back_end: KernelBackEnd,
        session: Session,
        places: &Places,
    ) -> Result<Remote, TierError> {
        let setup = session.setup();
        let trackers = Trackers::choose(setup.tracking, places)?;
        if needs_accesses(setup.policy) && trackers.tracking() == Tracking::Nothing {
            return Err(TierError::Untracked {
                policy: POLICIES[setup.policy],
                why: trackers.missing.join("; "),
            });
        }
        Ok(Remote {
            session,
            members,
            known: BTreeMap::new(),
            back_end,
            trackers,
            tiering: Tiering::new(by_index(setup.policy)),
            refreshed: None,
            looked: (Instant::now(), LOOK),
            decided: Instant::now(),
            missed: 0,
        })
    }

    /// How accesses are tracked, and why not better.
    pub fn tracking(&self) -> String {
        describe(&self.trackers)
    }

    /// Pages that have moved, and what that cost.
    pub fn moved(&self) -> Moved {
        self.back_end.moved()
    }

    /// Processes that ended before their memory was looked at, of those that were seen.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Whether the module is loaded that has devices copy.
    pub fn device_copies(&self) -> bool {
        self.back_end.device_copies()
    }

    /// Whether it is a control group of version 1.
    pub fn is_version_1(&self) -> bool {
        self.members.is_version_1()
    }

    /// Looks for processes, and one interval if it is due. How long to wait until the next step; nothing once the last
    /// process of a tree has ended, or the control group is gone.
    ///
    /// # Errors
    /// The group cannot be read; a node is gone.
    pub fn step(&mut self) -> Result<Option<Duration>, TierError> {
        if self.refreshed.is_none_or(|at| at.elapsed() >= MEMBERS) {
            self.refreshed = Some(Instant::now());
            if !self.refresh()? {
                return Ok(None);
            }
        }
        let interval = Duration::from_millis(self.session.knob(Knob::IntervalMs));
        if self.tiering.interval() == 0 || self.decided.elapsed() >= interval {
            self.interval()?;
        }
        let left = interval.saturating_sub(self.decided.elapsed());
        Ok(Some(left.min(MEMBERS)))
    }

    /// Finds out which processes there are. Those that are new are held by descriptors between two readings of the
    /// list: a number that is in both is a member's, even if it was another one's before.
    fn refresh(&mut self) -> Result<bool, TierError> {
        let group = |source| TierError::Io {
            what: "reading cgroup.procs",
            source,
        };
        let list = self.members.list(&self.living());
        let Some(first) = list.map_err(group)? else {
            return Ok(false);
        };
        let known: Vec<u32> = self.known.keys().copied().collect();
        for pid in known {
            let tiered = matches!(self.known[&pid], Member::Tiered(_));
            if !first.contains(&pid) {
                self.forget(pid);
            } else if tiered && !self.lives(pid) {
                // Nobody has waited for it yet.
                self.leave(pid);
            }
        }
        let new: Vec<u32> = first.into_iter().filter(|pid| self.is_due(*pid)).collect();
        let held: Vec<_> = new
            .into_iter()
            .map(|pid| (pid, self.back_end.add(pid as i32)))
            .collect();
        if !held.is_empty() {
            let mut living = self.living();
            let added = held.iter().filter(|(_, added)| added.is_ok());
            living.extend(added.map(|(pid, _)| *pid));
            let list = self.members.list(&living);
            let Some(second) = list.map_err(group)? else {
                return Ok(false);
            };
            for (pid, added) in held {
                self.admit(pid, added, second.contains(&pid));
            }
        }
        self.session.by_kernel(self.missed);
        let lives = !self.living().is_empty();
        Ok(lives || !self.members.end_with_the_last())
    }

    /// Whether a process that is known has not ended.
    fn lives(&self, pid: u32) -> bool {
        match self.known.get(&pid) {
            Some(Member::Tiered(slot)) => !self.back_end.processes[slot].has_ended(),
            Some(Member::Left(_)) => exists(pid),
            None => false,
        }
    }

    fn living(&self) -> BTreeSet<u32> {
        let known = self.known.keys().copied();
        known.filter(|pid| self.lives(*pid)).collect()
    }

    /// A process that is not known, or that may be looked into by now.
    fn is_due(&self, pid: u32) -> bool {
        match self.known.get(&pid) {
            None => true,
            Some(Member::Tiered(_)) => false,
            Some(Member::Left(at)) => at.elapsed() >= LOOK && exists(pid),
        }
    }

    fn admit(&mut self, pid: u32, added: Result<u32, TierError>, listed: bool) {
        let new = !self.known.contains_key(&pid);
        let looked = added.and_then(|slot| {
            self.known.insert(pid, Member::Tiered(slot));
            self.back_end.look(slot)
        });
        match looked {
            Ok(()) if listed && self.lives(pid) => {
                if let Some(Member::Tiered(slot)) = self.known.get(&pid) {
                    let counters = self.back_end.processes[slot].counters;
                    counters.tracks(self.trackers.tracking());
                    counters.begin_tiering();
                }
            }
            Err(error) if listed && exists(pid) && !reads(pid) => self.refuse(pid, &error),
            _ => {
                self.leave(pid);
                self.missed += u64::from(new);
            }
        }
    }

    /// Tiers a process no more, which is still listed.
    fn leave(&mut self, pid: u32) {
        self.forget(pid);
        self.known.insert(pid, Member::Left(Instant::now()));
    }

    /// Says why a process is not tiered; all others are.
    fn refuse(&mut self, pid: u32, error: &TierError) {
        self.leave(pid);
        if let Some(counters) = self.session.claim(pid.into()) {
            counters.fail(&error.to_string(), &error.hint().unwrap_or_default());
        }
    }

    fn forget(&mut self, pid: u32) {
        if let Some(Member::Tiered(slot)) = self.known.remove(&pid) {
            self.back_end.remove(slot);
        }
    }

    fn interval(&mut self) -> Result<(), TierError> {
        let overhead = self.session.knob(Knob::Overhead);
        let (at, pause) = self.looked;
        if at.elapsed() >= pause {
            let start = thread_cpu_ns();
            self.look();
            let cost = Duration::from_nanos(thread_cpu_ns() - start);
            let pause = LOOK.max(cost * 100 / overhead.max(1) as u32);
            self.looked = (Instant::now(), pause);
        }
        self.trackers.step(&mut self.back_end.processes, overhead);
        let fast = self.session.setup().bytes[0];
        // Others use the nodes, too.
        let [used, _] = self.back_end.used();
        let free = self.back_end.tiers().free();
        let fast = free.map_or(fast, |free| fast.min(used * PAGE + free));
        let mut limits = Limits::of(self.session, fast, self.decided.elapsed());
        self.decided = Instant::now();
        if self.trackers.tracking() == Tracking::Nothing
            && needs_accesses(self.session.setup().policy)
        {
            // What tracked accesses has ended: pages that were read once would be promoted.
            limits.promote = 0;
        }
        if self.tiering.cools(&limits) {
            self.back_end.cool();
        }
        let stepped = self.tiering.step(&mut self.back_end, &limits);
        for (slot, error) in self.back_end.take_failed() {
            self.fail(slot, &error);
        }
        for process in self.back_end.processes.values() {
            let [fast, slow] = process.used();
            process.counters.put(Value::FastBytes, fast * PAGE);
            process.counters.put(Value::SlowBytes, slow * PAGE);
            let regions = process.memory.regions();
            process.counters.put(Value::Regions, regions.len() as u64);
            process
                .counters
                .put(Value::ManagedBytes, (fast + slow) * PAGE);
        }
        stepped
    }

    fn look(&mut self) {
        for (slot, error) in self.back_end.look_at_all() {
            self.fail(slot, &error);
        }
    }

    /// A process could not be looked at, or its pages not moved: it has ended, or what it executes now may not be.
    fn fail(&mut self, slot: u32, error: &TierError) {
        let Some(process) = self.back_end.processes.get_mut(&slot) else {
            return;
        };
        let pid = process.pid.unsigned_abs();
        match process.has_ended() || reads(pid) && !process.has_memory() {
            true => self.leave(pid),
            false => self.refuse(pid, error),
        }
    }
}

/// Whether a process is there that has not ended.
fn exists(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    crate::sys::processes::parse(stat.trim_end()).is_some()
}

/// Whether a process's memory may be looked into, if it has any.
fn reads(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/maps")).is_ok()
}

/// Checks that a process is there and may be looked into.
///
/// # Errors
/// It is not, or may not.
pub fn check(pid: i32) -> Result<(), TierError> {
    std::fs::read(format!("/proc/{pid}/maps")).map_err(failed(pid))?;
    crate::sys::pagemap::PageMap::of(pid).map_err(failed(pid))?;
    Ok(())
}

#[cfg(test)]
mod tests;
