//! A recorded thread as an application in modelled time.

use std::collections::HashMap;

use dray::{Application, Completion, Mover, Next, Operation, Progress};
use dray_clock::{Duration, Time};
use dray_model::CoreTime;

use crate::Think;
use crate::latency::Latency;
use crate::machine::{UsedQueue, known, pieces};
use crate::operation::{Bases, operation};
use crate::program::{Part, Step, Steps};
use crate::way::{Placement, Way};

/// A machine may take so many times as long for an operation as the modelled one.
const SLOWEST: u64 = 3;
/// A page fault or a preemption is longer.
const SHORTEST_NS: u64 = 1000;
/// Completions that are taken at once.
const COMPLETIONS: usize = 256;

/// A thread that runs.
pub(crate) struct ReplayThread<'a> {
    steps: &'a Steps,
    way: Way,
    placement: Placement,
    think: Think,
    queue: UsedQueue,
    bases: Bases,
    core_times: &'a HashMap<(Part, [bool; 2]), u64>,
    /// The step that comes next, and how many of its units were handed over.
    next: usize,
    handed_over: u32,
    /// The operations of that step, and in how many they are handed over at a time: made once, however often there is no room.
    units: Option<(Vec<Operation>, usize)>,
    /// It has rested before that.
    rested: bool,
    has_begun: bool,
    /// Operations of a step that have not ended, and when it was submitted..
    open: HashMap<u32, Open>,
    unsubmitted: bool,
    /// There was no room for the next step.
    full: bool,
    completions: Vec<Completion>,
    pub(crate) measured: ThreadMeasured,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    left: u32,
    since: Time,
}

/// What a thread did.
#[derive(Debug, Default)]
pub(crate) struct ThreadMeasured {
    /// Time that it rested, which its core was not used.
    pub(crate) idle: Duration,
    /// Time that it worked between requests.
    pub(crate) think: Duration,
    /// Time that calls took beyond what a core explains.
    pub(crate) excess: Duration,
    /// Time that it carried requests out itself.
    pub(crate) on_core: Duration,
    pub(crate) latency: Latency,
    /// Sum of the times from submission to the completion that was seen, of the device.
    pub(crate) in_flight: Duration,
    pub(crate) most_in_flight: usize,
    pub(crate) failed: u64,
    pub(crate) by_device: u64,
    /// When it was through.
    pub(crate) end: Time,
}

impl<'a> ReplayThread<'a> {
    pub(crate) fn new(
        steps: &'a Steps,
        (way, placement, think): (Way, Placement, Think),
        (queue, bases): (UsedQueue, Bases),
        core_times: &'a HashMap<(Part, [bool; 2]), u64>,
    ) -> ReplayThread<'a> {
        ReplayThread {
            steps,
            way,
            placement,
            think,
            queue,
            bases,
            core_times,
            next: 0,
            handed_over: 0,
            units: None,
            rested: false,
            has_begun: false,
            open: HashMap::new(),
            unsubmitted: false,
            full: false,
            completions: vec![Completion::default(); COMPLETIONS],
            measured: ThreadMeasured::default(),
        }
    }

    /// Whether the thread may go on to a step: what it waited for has ended.
    fn may_go_on(&self, index: usize, step: &Step) -> bool {
        let distance = self.way.distance(step) as usize;
        match index.checked_sub(distance) {
            Some(before) if distance > 0 => !self.open.contains_key(&(before as u32)),
            _ => true,
        }
    }

    fn collect(&mut self, mover: &mut dyn Mover) {
        self.full = false;
        let mut completions = std::mem::take(&mut self.completions);
        let count = mover.poll(&mut completions);
        let now = mover.core_time();
        for completion in &completions[..count] {
            let step = completion.user_data as u32;
            self.measured.failed += u64::from(!completion.status().is_success());
            let Some(open) = self.open.get_mut(&step) else {
                continue;
            };
            open.left -= 1;
            if open.left == 0 {
                let took = now.since(open.since);
                self.open.remove(&step);
                self.measured.in_flight += took;
                let bytes = self.steps.steps[step as usize].bytes;
                self.measured.latency.enter(bytes, took);
            }
        }
        self.completions = completions;
    }

    /// Spends what the thread does before a step. Whether that took time.
    fn rest(&mut self, step: &Step, mover: &mut dyn Mover) -> bool {
        self.rested = true;
        if !self.think.is_recorded() {
            self.has_begun = true;
            return false;
        }
        let late = match std::mem::replace(&mut self.has_begun, true) {
            true => 0,
            false => self.steps.began_ns,
        };
        let idle = Duration::from_ns(step.idle_ns + late);
        let think = Duration::from_ns(step.think_ns);
        let excess = self.excess(step);
        self.measured.idle += idle;
        self.measured.think += think;
        self.measured.excess += excess;
        let all = idle + think + excess;
        mover.spend(all.0);
        all > Duration::ZERO
    }

    /// Carries a step out on the core.
    fn work(&mut self, index: usize, step: &Step, mover: &mut dyn Mover) {
        let span = self.on_core(step);
        mover.spend(span.0);
        self.measured.on_core += span;
        self.measured.latency.enter(step.bytes, span);
        debug_assert!(!self.open.contains_key(&(index as u32)));
    }

    /// What the core of the model takes for a step.
    fn on_core(&self, step: &Step) -> Duration {
        let each = self.parts(step).iter().map(|part| {
            let key = (*part, known(part, self.placement));
            let time = self.core_times.get(&key).copied();
            time.expect("what the core may execute has been timed")
        });
        Duration(each.sum())
    }

    /// What a call took beyond what a core explains: page faults, which it has whoever copies, and preemption. Memory that is
    /// mapped anew where other memory was is not known to be used for the first time.
    fn excess(&self, step: &Step) -> Duration {
        if step.took_ns == 0 {
            return Duration::ZERO;
        }
        let explained = match step.is_first_use {
            true => self.on_core(step).0,
            false => SLOWEST * self.on_core(step).0 + Duration::from_ns(SHORTEST_NS).0,
        };
        Duration(Duration::from_ns(step.took_ns).0.saturating_sub(explained))
    }

    fn parts(&self, step: &Step) -> &'a [Part] {
        &self.steps.parts[step.first as usize..(step.first + step.count) as usize]
    }

    /// The operations of a step, and how many are a unit: one, or those of a batch.
    fn units(&self, index: usize, step: &Step) -> (Vec<Operation>, usize) {
        let each = self.parts(step).iter().flat_map(|part| {
            pieces(part.bytes, self.queue.max_transfer()).map(move |bytes| (part, bytes))
        });
        let operations = each
            .zip(u64::from(step.first)..)
            .map(|((part, bytes), turn)| {
                let known = known(part, self.placement);
                operation(part, bytes, known, (&self.bases, turn)).with_user_data(index as u64)
            });
        let operations: Vec<Operation> = operations.collect();
        let most = match (step.is_batch, self.way) {
            (false, _) => 1,
            (true, Way::Recorded { batch, .. }) if batch > 0 => batch as usize,
            (true, _) => step.count as usize,
        };
        (operations, most.max(1))
    }

    /// Hands a step over to the device. False if there was no room for all of it.
    fn hand_over(&mut self, index: usize, step: &Step, mover: &mut dyn Mover) -> bool {
        let units = self.units.take();
        let (operations, most) = units.unwrap_or_else(|| self.units(index, step));
        if self.handed_over == 0 && !self.open.contains_key(&(index as u32)) {
            let open = Open {
                left: operations.len() as u32,
                since: mover.core_time(),
            };
            self.open.insert(index as u32, open);
            self.measured.by_device += 1;
        }
        for unit in operations.chunks(most).skip(self.handed_over as usize) {
            // SAFETY: the memory is the model's, and of no process.
            if unsafe { mover.enqueue_batch(unit) }.is_err() {
                self.full = true;
                self.units = Some((operations, most));
                return false;
            }
            self.handed_over += 1;
            self.unsubmitted = true;
        }
        self.handed_over = 0;
        let most = self.measured.most_in_flight.max(self.open.len());
        self.measured.most_in_flight = most;
        true
    }

    /// Submits what was handed over; false while the core waits for an answer.
    fn submit(&mut self, mover: &mut dyn Mover) -> bool {
        if self.unsubmitted {
            self.unsubmitted = mover.submit() == Progress::Pending;
        }
        !self.unsubmitted
    }

    fn step_on(&mut self, mover: &mut dyn Mover) -> Next {
        if !self.submit(mover) {
            return Next::Again;
        }
        if !self.open.is_empty() && !self.is_ready() {
            self.collect(mover);
        }
        while let Some(step) = self.steps.steps.get(self.next).copied() {
            let index = self.next;
            let rests_first = self.way.rests_before_it_waits();
            if !rests_first && !self.may_go_on(index, &step) {
                break;
            }
            if !self.rested {
                if !self.submit(mover) {
                    return Next::Again;
                }
                if self.rest(&step, mover) {
                    return Next::Again;
                }
            }
            if rests_first && !self.may_go_on(index, &step) {
                break;
            }
            if self.way.takes(step.bytes) {
                if !self.hand_over(index, &step, mover) {
                    break;
                }
            } else {
                if !self.submit(mover) {
                    return Next::Again;
                }
                self.work(index, &step, mover);
            }
            self.next += 1;
            self.rested = false;
        }
        if !self.submit(mover) {
            return Next::Again;
        }
        let through = self.next == self.steps.steps.len() && self.open.is_empty();
        if through {
            self.measured.end = mover.core_time();
            return Next::Done;
        }
        Next::Wait
    }

    /// Whether the thread goes on without looking for completions: they are looked for where something is waited for.
    fn is_ready(&self) -> bool {
        let step = self.steps.steps.get(self.next);
        !self.full && step.is_some_and(|step| self.may_go_on(self.next, step))
    }
}

impl Application for ReplayThread<'_> {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        self.step_on(mover)
    }
}
