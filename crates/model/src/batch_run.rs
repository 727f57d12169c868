//! A run of a batch's members in closed form.
//!
//! An engine that has all bandwidth to itself starts the members of a batch one after the other, and nothing changes when: each
//! start follows from the one before. So members that are like one before them, and leave nothing but a record, need no
//! events of their own. One event at the last end writes all their records; nobody looks at them before, since the
//! batch ends later.

use std::collections::VecDeque;

use dray_clock::{Duration, Time};
use dray_device::{Payload, WorkId};
use dray_spec::{CompletionRecord, Status};

use crate::engine::{EngineAt, EngineRun};
use crate::memory::record_at;
use crate::world::{Event, World};

/// Members that end together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    at: EngineAt,
    batch: WorkId,
    /// The first one's number in its batch.
    first: u32,
    count: u32,
}

/// An engine's way through members that it has started ahead of time.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// When each starts, and when the engine is free again, in order.
    starts: VecDeque<(Time, Time)>,
    /// When each has ended, also those of runs before, in order.
    ends: VecDeque<Time>,
}

impl Ahead {
    /// Whether the engine works at `now`, free at last at `free_at`.
    #[inline]
    pub(crate) fn works(&self, now: Time, free_at: Time) -> bool {
        if self.starts.is_empty() {
            return free_at > now;
        }
        match self.starts.iter().rev().find(|start| start.0 <= now) {
            Some(start) => start.1 > now,
            None => free_at > now,
        }
    }

    /// Whether members may be ahead.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        !self.ends.is_empty()
    }

    /// When the engine is next idle and looks whether there is room for what waits in its queues: as it starts a member, or as
    /// one ends between two starts.
    fn next_look(&self, now: Time, free_at: Time, start_at: Option<Time>) -> Option<Time> {
        let begun = self.starts.iter().rev().find(|start| start.0 <= now);
        let free = begun.map_or(free_at, |start| start.1);
        let coming = self.starts.iter().find(|start| start.0 > now);
        let start = coming.map(|start| start.0);
        let idle = |end: &&Time| **end > now && **end >= free;
        let end = self.ends.iter().find(idle).copied();
        match (end, start.or(start_at)) {
            (Some(end), Some(start)) if end < start => Some(end),
            (Some(end), None) => Some(end),
            // There is an event for the start of what is not ahead.
            _ => start,
        }
    }

    /// When the first member ends while the engine is idle, from `free_at` to `start`.
    #[inline]
    pub(crate) fn idle_end(&self, now: Time, free_at: Time, start: Time) -> Option<Time> {
        let idle = |end: &&Time| **end > now && (free_at..start).contains(*end);
        self.ends.iter().find(idle).copied()
    }

    /// Whether a member starts at `now`: before it does, the engine is idle.
    fn starts(&self, now: Time) -> bool {
        self.starts.iter().any(|start| start.0 == now)
    }

    /// A descriptor has started by an event, after all that were ahead.
    #[inline]
    pub(crate) fn catch_up(&mut self) {
        if !self.starts.is_empty() {
            self.starts.clear();
        }
    }

    /// Ends that have been.
    fn forget_before(&mut self, now: Time) {
        while self.ends.front().is_some_and(|end| *end <= now) {
            self.ends.pop_front();
        }
    }

    fn push(&mut self, start: Time, free_at: Time, end: Time) {
        self.starts.push_back((start, free_at));
        let after = self.ends.iter().rev().take_while(|other| **other > end);
        let place = self.ends.len() - after.count();
        self.ends.insert(place, end);
        debug_assert!(self.starts.iter().is_sorted() && self.ends.iter().is_sorted());
    }
}

impl World {
    /// Whether members of batches can be run ahead: nothing shares the engine's bandwidth, no bytes move, and no ENQCMD asks
    /// what the device has read so far.
    pub(crate) fn runs_ahead(&self) -> bool {
        self.solo && self.payload == Payload::Skipped && !self.channels.iter().any(|c| c.shared)
    }

    /// The engine, which may start a member now, starts the next members of a batch at their times, as far as these are like
    /// one before them. False if the next one is not.
    pub(crate) fn run_members(&mut self, at: EngineAt, batch: WorkId) -> bool {
        let p = &self.parameters;
        let run = &mut self.devices[at.device()];
        let EngineRun {
            costs, pipe, ahead, ..
        } = &mut run.engines[at.engine()];
        let Some(first) = run.device.members_started(batch) else {
            return false;
        };
        ahead.forget_before(self.now);
        ahead.catch_up();
        let (mut start, mut free_at, mut last) = (self.now, self.now, self.now);
        let mut count = 0;
        while let Some((opcode, record)) = run.device.start_plain(batch, |opcode, d| {
            let repeats = costs.repeats(opcode, d, &self.memory);
            repeats.then_some((opcode, d.completion_addr))
        }) {
            let services =
                |requester, transfer: &_| self.services.of(&self.platform, requester, transfer);
            let id = costs.book(opcode, record, services, pipe);
            let cost = costs.get(id);
            let issue = pipe.issue(start, start + cost.alone, Duration::ZERO, &cost.service, p);
            run.inbound += cost.service.inbound;
            free_at = issue.next_start;
            ahead.push(start, free_at, issue.record_written);
            last = last.max(issue.record_written);
            count += 1;
            start = pipe.slot_free(free_at.max(start), p);
        }
        if count == 0 {
            return false;
        }
        let engine = &mut run.engines[at.engine()];
        engine.free_at = free_at;
        let stream = engine.stream;
        self.descriptors += u64::from(count);
        let run = self.keep_run(Run {
            at,
            batch,
            first,
            count,
        });
        self.events.schedule_in(stream, last, Event::Run { run });
        true
    }

    fn keep_run(&mut self, run: Run) -> u32 {
        match self.free_runs.pop() {
            Some(index) => {
                self.runs[index as usize] = run;
                index
            }
            None => {
                self.runs.push(run);
                self.runs.len() as u32 - 1
            }
        }
    }

    /// The members of a run have ended.
    pub(crate) fn run_ended(&mut self, run: u32) {
        self.free_runs.push(run);
        let Run {
            at,
            batch,
            first,
            count,
        } = self.runs[run as usize];
        let device = &mut self.devices[at.device()].device;
        let owner = device.descriptor(batch).map(|d| d.completion_addr);
        if let Some((channel, record)) = owner.and_then(record_at) {
            let channel = &mut self.channels[channel.index()];
            let unit = record - channel.slots() as u32;
            let slot = (unit * channel.options.batch + first) as usize;
            let written = CompletionRecord::with_status(Status::SUCCESS);
            channel.records[slot..slot + count as usize].fill(written);
        }
        device.plain_done(batch, count, &mut self.effects);
        self.apply_effects(at.device());
        self.member_ended(at);
    }

    /// An engine may have room for what waits in its queues.
    pub(crate) fn look(&mut self, at: EngineAt) {
        let idle = self.engine(at).ahead.starts(self.now);
        self.fetch_more(at, idle);
    }

    /// Where something waits in the queues of an engine that has room for it once it is idle: without events for members'
    /// starts and ends, one is scheduled for the first that would let it look again.
    #[cold]
    pub(crate) fn look_later(&mut self, at: EngineAt) {
        let ahead = self.parameters.engine_fetch_ahead();
        let run = &mut self.devices[at.device()];
        let engine = &mut run.engines[at.engine()];
        engine.ahead.forget_before(self.now);
        if !engine.has_room(false, ahead) || !run.device.has_work(engine.id) {
            return;
        }
        let next = engine
            .ahead
            .next_look(self.now, engine.free_at, engine.start_at);
        if let Some(next) = next {
            self.events.schedule(next, Event::Look { at });
        }
    }
}
