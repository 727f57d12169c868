//! The back end that is the kernel: the pages of processes, which move_pages(2) moves between nodes.
//!
//! One policy decides on the memory of all processes together. A unit's number has the process in its upper bits.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::call::{MovePages, System};
use super::copies::Copies;
use super::process::{Means, RemoteProcess};
use super::shared::SharedPages;
use crate::TierError;
use crate::back_end::BackEnd;
use crate::knobs::Knob;
use crate::mechanism::{Block, Outcome, Report};
use crate::nodes::Tiers;
use crate::policy::{Room, units};
use crate::session::{Note, Reason, Session, Value};
use crate::sys::{PAGE, thread_cpu_ns};

/// Bits of the number of a block within a process: 57 bits of address, 18 of them within a block.
const NUMBER_BITS: u32 = 39;
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;

/// The memory of processes on two tiers of nodes.
#[derive(Debug)]
pub struct KernelBackEnd {
    session: Session,
    means: Means,
    shared: SharedPages,
    copies: Copies,
    pub(super) processes: BTreeMap<u32, RemoteProcess>,
    next: u32,
    moved: Moved,
    failed: Vec<(u32, TierError)>,
}

/// Pages that have moved, and the time of the calls that moved them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moved {
    /// Pages of 4 KiB.
    pub pages: u64,
    /// Core time of this process in the calls, copies by this core included.
    pub cpu: Duration,
    /// Bytes that the device has copied.
    pub by_device: u64,
}

impl KernelBackEnd {
    /// Over no process yet. What it does is recorded in the session. `shared`: pages that several processes map are
    /// counted and moved, too.
    pub fn new(tiers: Tiers, session: Session, shared: bool) -> KernelBackEnd {
        KernelBackEnd::over(Box::new(System), tiers, session, shared)
    }

    pub(super) fn over(
        calls: Box<dyn MovePages>,
        tiers: Tiers,
        session: Session,
        shared: bool,
    ) -> KernelBackEnd {
        KernelBackEnd {
            session,
            means: Means {
                calls,
                tiers,
                shared,
            },
            shared: SharedPages::default(),
            copies: Copies::of_the_module(),
            processes: BTreeMap::new(),
            next: 0,
            moved: Moved::default(),
            failed: Vec::new(),
        }
    }

    /// Has the memory of a process tiered, too; its slot.
    ///
    /// # Errors
    /// It has ended; no right to look into it.
    pub fn add(&mut self, pid: i32) -> Result<u32, TierError> {
        let slot = self.next;
        // Those beyond the number of counters count together with those that have ended.
        let counters = self.session.claim(pid.unsigned_abs().into());
        let counters = counters.unwrap_or(&self.session.shared().processes[0]);
        let process = RemoteProcess::open(pid, slot, counters)?;
        self.next += 1;
        self.processes.insert(slot, process);
        Ok(slot)
    }

    /// Tiers a process no more.
    pub(super) fn remove(&mut self, slot: u32) {
        if let Some(process) = self.processes.remove(&slot) {
            for value in [
                Value::FastBytes,
                Value::SlowBytes,
                Value::ManagedBytes,
                Value::Regions,
            ] {
                process.counters.put(value, 0);
            }
            self.shared.release(slot);
        }
    }

    /// Looks at a process that is new.
    ///
    /// # Errors
    /// It has ended; no right to look into it.
    pub(super) fn look(&mut self, slot: u32) -> Result<(), TierError> {
        let process = self.processes.get_mut(&slot);
        process.map_or(Ok(()), |process| {
            process.look(&self.means, &mut self.shared)
        })
    }

    /// Looks at all processes anew; those that could not be looked at, and why.
    pub(super) fn look_at_all(&mut self) -> Vec<(u32, TierError)> {
        self.shared.clear();
        let mut failed = Vec::new();
        for (slot, process) in &mut self.processes {
            if let Err(error) = process.look(&self.means, &mut self.shared) {
                failed.push((*slot, error));
            }
        }
        failed
    }

    /// Processes whose pages could not be moved any more, and why.
    pub(super) fn take_failed(&mut self) -> Vec<(u32, TierError)> {
        std::mem::take(&mut self.failed)
    }

    /// What has moved so far.
    pub fn moved(&self) -> Moved {
        self.moved
    }

    /// Whether the module is loaded that has devices copy.
    pub(super) fn device_copies(&self) -> bool {
        self.copies.has_module()
    }

    /// The tiers.
    pub fn tiers(&self) -> &Tiers {
        &self.means.tiers
    }

    /// Halves all access counts.
    pub(super) fn cool(&self) {
        self.processes.values().for_each(RemoteProcess::cool);
    }

    fn move_unit(&mut self, reason: Reason, unit: u64, room: &Room) -> Result<Report, TierError> {
        let (slot, number) = ((unit >> NUMBER_BITS) as u32, unit & NUMBER);
        if self.failed.iter().any(|(failed, _)| *failed == slot) {
            return Ok(Report::default());
        }
        let to = usize::from(reason == Reason::Demotion);
        let mut report = Report::default();
        let Some(process) = self.processes.get(&slot) else {
            return Ok(report);
        };
        // Its number may be another's in a moment, not before: numbers are given out in turn.
        if process.has_ended() {
            return Ok(report);
        }
        let (start, cpu) = (Instant::now(), thread_cpu_ns());
        let before = self.copies.read();
        let result = process.move_unit(&self.means, number, to, &mut report);
        let cpu = Duration::from_nanos(thread_cpu_ns() - cpu);
        // The kernel does not report its phases.
        report.copy = start.elapsed();
        let moved = report.outcomes.get(Outcome::Moved);
        report.copied = self.copies.since(before, moved * PAGE);
        self.session.record(reason, &report);
        self.moved.pages += moved;
        self.moved.cpu += cpu;
        self.moved.by_device += report.copied.device;
        process.counters.moved(reason, &report.outcomes);
        process
            .counters
            .add(Value::AgentCpuNs, cpu.as_nanos() as u64);
        match result {
            // It ends, or has executed what may not be looked into: the others go on.
            Err(error @ TierError::System { .. }) => {
                self.failed.push((slot, error));
                return Ok(report);
            }
            Err(error @ TierError::NotAllowed { .. }) => {
                process.counters.note(Note::Group, &error.to_string());
                return Ok(report);
            }
            result => result?,
        }
        let back = process.enter_move(number, to == 1, room.interval, room.ping_pong);
        process.counters.add(Value::PingPongs, u64::from(back));
        let full =
            report.outcomes.get(Outcome::NoFrame) + report.outcomes.get(Outcome::NoHugeFrame);
        if full > 0 {
            let nodes = &self.means.tiers.nodes[to];
            let nodes: Vec<String> = nodes.iter().map(u32::to_string).collect();
            let text = format!(
                "node {} has no room for all pages: they stay where they are",
                nodes.join(", ")
            );
            process.counters.note(Note::Group, &text);
        }
        Ok(report)
    }
}

impl BackEnd for KernelBackEnd {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn used(&self) -> [u64; 2] {
        let all = self.processes.values().map(RemoteProcess::used);
        all.fold([0; 2], |sum, used| [sum[0] + used[0], sum[1] + used[1]])
    }

    fn units(&mut self) -> Cow<'_, [(u64, Block)]> {
        let mut all = Vec::new();
        for (slot, process) in &self.processes {
            let books = process.memory.blocks.borrow();
            let base = u64::from(*slot) << NUMBER_BITS;
            let blocks = books.map.iter();
            all.extend(blocks.map(|(number, block)| (base | number, *block)));
        }
        Cow::Owned(units(&all))
    }

    fn migrate(&mut self, reason: Reason, numbers: &[u64], room: &Room) -> Result<(), TierError> {
        // What does not fit into an interval is decided on again: processes come and go meanwhile.
        let end = Instant::now() + Duration::from_millis(self.session.knob(Knob::IntervalMs));
        for unit in numbers {
            let report = self.move_unit(reason, *unit, room)?;
            // Where a page has found no room the next one finds none.
            if report.outcomes.get(Outcome::NoFrame) > 0 || Instant::now() >= end {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
impl KernelBackEnd {
    pub(crate) fn memory(&self, slot: u32) -> &super::process::RemoteMemory {
        &self.processes[&slot].memory
    }
}
