//! From the work queue through an engine: fetched, started, its data on the way.

use dray_clock::{Duration, Time};
use dray_device::{Action, DescriptorResult, ListRead, Member, Payload, Task, Work, WorkKind};
use dray_platform::{PAGE_BYTES, RecordedParameters};
use dray_spec::{Flags, Opcode, Status};

use crate::channel::Channel;
use crate::cost::Volume;
use crate::engine::{Current, Ending, EngineAt, EngineRun, Job};
use crate::memory::{DeviceView, Memory, list_at};
use crate::world::{Event, World};

impl World {
    /// A queue has something new: one of its engines may take it, the idlest first.
    #[inline]
    pub(crate) fn feed(&mut self, device: usize, wq: u16) {
        let fetch_ahead = self.parameters.engine_fetch_ahead();
        let run = &self.devices[device];
        let mut best: Option<(usize, u16)> = None;
        for index in &run.serving[usize::from(wq)] {
            let engine = &run.engines[usize::from(*index)];
            if engine.takes_more(self.now, fetch_ahead) {
                let load = engine.jobs.len() * 2 + usize::from(engine.current.is_some());
                if best.is_none_or(|b| (load, *index) < b) {
                    best = Some((load, *index));
                }
            }
        }
        match best {
            Some((_, engine)) => self.pump(EngineAt::new(device, engine.into())),
            None => {
                // Room may come without an event where members have been started ahead.
                if let Some(index) = run.serving[usize::from(wq)].first()
                    && run.engines[usize::from(*index)].ahead.is_used()
                {
                    self.look_later(EngineAt::new(device, (*index).into()));
                }
            }
        }
    }

    /// An engine takes what it can hold and starts what it can start.
    pub(crate) fn pump(&mut self, at: EngineAt) {
        self.fetch(at);
        while let Some((work, member)) = self.next_to_start(at) {
            self.begin(at, work, member);
            self.fetch(at);
        }
        if self.engine(at).ahead.is_used() {
            self.look_later(at);
        }
    }

    /// The descriptor that an engine starts now, and whether it is a member of a batch. Where one starts later, there is
    /// an event for that.
    #[inline]
    fn next_to_start(&mut self, at: EngineAt) -> Option<(Work, bool)> {
        loop {
            let run = &mut self.devices[at.device()];
            let engine = &mut run.engines[at.engine()];
            if engine.current.is_some() || engine.start_at.is_some() {
                return None;
            }
            let (work, ready) = match engine.jobs.front()? {
                Job::Single(work, ready) => (*work, Some(*ready)),
                Job::Batch { list_read, .. } if !list_read => return None,
                Job::Batch { work, .. } => (*work, None),
            };
            let start = ready.unwrap_or(self.now).max(engine.free_at).max(self.now);
            let start = engine.pipe.slot_free(start, &self.parameters);
            if start > self.now {
                let look = engine.ahead.idle_end(self.now, engine.free_at, start);
                if look.is_none() && self.is_next(start) {
                    self.now = start;
                    self.fetch(at);
                    continue;
                }
                self.engine_mut(at).start_at = Some(start);
                self.events.schedule(start, Event::Start { at });
                return None;
            }
            if ready.is_some() {
                engine.jobs.pop_front();
                return Some((work, false));
            }
            if self.runs_ahead() && self.run_members(at, work.id) {
                continue;
            }
            let run = &mut self.devices[at.device()];
            let engine = &mut run.engines[at.engine()];
            let member = run.device.next_member(work.id);
            engine.fenced = member == Member::Fenced;
            match member {
                Member::Work(work) => return Some((work, true)),
                Member::Fenced => return None,
                Member::None => {
                    engine.jobs.pop_front();
                    self.fetch(at);
                }
            }
        }
    }

    /// Whether nothing happens until then. Handlers pump last: what an engine does at that time can follow at once.
    #[inline]
    fn is_next(&self, at: Time) -> bool {
        let ends = self.bandwidth.next_finish().map(|end| end.0);
        let next = self.events.next_time();
        next.is_none_or(|next| at < next) && ends.is_none_or(|end| at < end)
    }

    /// Takes descriptors from the queues while there is room in the engine.
    #[inline]
    fn fetch(&mut self, at: EngineAt) {
        let ahead = self.parameters.engine_fetch_ahead();
        if self.engine(at).takes_more(self.now, ahead) {
            self.fetch_more(at, false);
        }
    }

    /// The same; `idle`: the engine has not begun what it starts at this moment.
    pub(crate) fn fetch_more(&mut self, at: EngineAt, idle: bool) {
        let p = &self.parameters;
        let ahead = p.engine_fetch_ahead();
        let run = &mut self.devices[at.device()];
        let engine = &mut run.engines[at.engine()];
        while engine.has_room(!idle && engine.is_working(self.now), ahead) {
            let Some(work) = run.device.take(engine.id) else {
                return;
            };
            let job = match work.kind {
                WorkKind::FetchList { .. } => {
                    let list = run.device.descriptor(work.id);
                    let list = list.and_then(|d| list_at(d.address1));
                    let shared = list.map_or(Duration::ZERO, |(channel, first)| {
                        self.channels
                            .get(channel.index())
                            .map_or(Duration::ZERO, |channel| shared_batch(channel, first, p))
                    });
                    let list_there =
                        self.now + p.dispatch() + p.read_llc() + p.batch_dispatch() + shared;
                    self.events.schedule(list_there, Event::ListRead { at });
                    Job::Batch {
                        work,
                        list_read: false,
                    }
                }
                _ => Job::Single(work, self.now + p.dispatch()),
            };
            engine.jobs.push_back(job);
        }
    }

    /// The list of the engine's first batch without one is there: they take equally long.
    pub(crate) fn list_read(&mut self, at: EngineAt) {
        let run = &mut self.devices[at.device()];
        let unread = |job: &mut Job| match job {
            Job::Batch { work, list_read } if !*list_read => {
                *list_read = true;
                Some(*work)
            }
            _ => None,
        };
        let jobs = &mut run.engines[at.engine()].jobs;
        let Some(work) = jobs.iter_mut().find_map(unread) else {
            return;
        };
        let Some(task) = run.device.start(&work) else {
            return;
        };
        let Action::ReadList { address, count } = task.action else {
            return;
        };
        // Lists lie in the rings of channels, and nowhere else.
        let list = list_at(address).and_then(|(channel, first)| {
            let channel = self.channels.get(channel.index())?;
            let first = first as usize;
            channel.descriptors.get(first..first + count as usize)
        });
        let read = ListRead {
            fault: list.is_none().then_some(address),
            ..ListRead::default()
        };
        let list = list.unwrap_or_default();
        run.device.list_read(work.id, list, read, &mut self.effects);
        self.apply_effects(at.device());
        self.pump(at);
    }

    /// An engine starts a descriptor: from here on all its times follow.
    #[inline]
    fn begin(&mut self, at: EngineAt, work: Work, member: bool) {
        let run = &mut self.devices[at.device()];
        let engine = &mut run.engines[at.engine()];
        let Some(d) = run.device.descriptor(work.id) else {
            return;
        };
        let record = d.completion_addr;
        let success = DescriptorResult::status(Status::SUCCESS);
        let repeated = match work.kind {
            WorkKind::Execute(opcode) if self.payload == Payload::Skipped => {
                let repeats = engine.costs.repeats(opcode, d, &self.memory);
                repeats.then_some((opcode, success, Duration::ZERO))
            }
            _ => None,
        };
        let executed = repeated.or_else(|| self.execute(at, &work));
        let Some((opcode, outcome, fault)) = executed else {
            return;
        };
        let blocked = match outcome.record.status() == Status::SUCCESS {
            true => fault,
            false => Duration::ZERO,
        };
        let pending = self.keep(Ending {
            id: work.id,
            at,
            member,
            outcome,
        });
        self.descriptors += 1;
        let services =
            |requester, transfer: &_| self.services.of(&self.platform, requester, transfer);
        let run = &mut self.devices[at.device()];
        let engine = &mut run.engines[at.engine()];
        let id = engine
            .costs
            .book(opcode, record, services, &mut engine.pipe);
        let cost = engine.costs.get(id);
        run.inbound += cost.service.inbound;
        let mut current = Current {
            pending,
            cost: id,
            start: self.now,
            fault,
            blocked,
            queued: Duration::ZERO,
        };
        if self.solo {
            let moved_at = self.now + cost.alone;
            self.moved(at, &current, moved_at);
        } else {
            let (service, flow) = (&cost.service, engine.flow);
            let outstanding = service.outstanding;
            self.bandwidth
                .start(self.now, flow, service.lines, &service.demand);
            current.queued = run.wait_at_port(&outstanding);
            run.engines[at.engine()].current = Some(current);
        }
    }

    /// What a descriptor does that starts now, and the time that its faults take. `None` if it has ended.
    #[inline(never)]
    fn execute(
        &mut self,
        at: EngineAt,
        work: &Work,
    ) -> Option<(Opcode, DescriptorResult, Duration)> {
        let run = &mut self.devices[at.device()];
        let task = run.device.start(work)?;
        // A channel's records can always be written.
        let task = Task {
            record: None,
            ..task
        };
        let (opcode, (outcome, fault)) = match task.action {
            Action::Execute(opcode) => {
                let p = &self.parameters;
                let executed = execute_blocking(&task, &mut self.memory, self.payload, p);
                (opcode, executed)
            }
            Action::End(outcome) => (Opcode::Noop, (outcome, Duration::ZERO)),
            Action::ReadList { .. } => return None,
        };
        // An operation that a fault or a refusal ended has moved less than it was asked to.
        let d = &task.descriptor;
        let volume = Volume::of(opcode, d, &outcome.record, self.payload);
        let success = outcome.record.status() == Status::SUCCESS;
        let costs = &mut run.engines[at.engine()].costs;
        costs.learn(opcode, d, volume, success, &self.memory);
        Some((opcode, outcome, fault))
    }

    /// The data of the descriptor in a flow's engine has moved.
    #[inline(never)]
    pub(crate) fn flow_ended(&mut self, slot: usize) {
        let at = self.flows[slot];
        let Some(current) = self.engine_mut(at).current.take() else {
            return;
        };
        self.moved(at, &current, self.now);
        self.pump(at);
    }

    /// An engine is through with the data of `current` at `moved`: when it is free, and when the record is written.
    #[inline]
    fn moved(&mut self, at: EngineAt, current: &Current, moved: Time) {
        let p = &self.parameters;
        let engine = &mut self.devices[at.device()].engines[at.engine()];
        let service = &engine.costs.get(current.cost).service;
        let issue = engine
            .pipe
            .issue(current.start, moved, current.queued, service, p);
        engine.free_at = issue.next_start + current.blocked;
        engine.ahead.catch_up();
        let written = issue.record_written + current.fault;
        let pending = current.pending;
        self.events
            .schedule_in(engine.stream, written, Event::Ended { pending });
    }

    #[inline]
    pub(crate) fn engine(&self, at: EngineAt) -> &EngineRun {
        &self.devices[at.device()].engines[at.engine()]
    }

    #[inline]
    pub(crate) fn engine_mut(&mut self, at: EngineAt) -> &mut EngineRun {
        &mut self.devices[at.device()].engines[at.engine()]
    }
}

/// What a batch on a shared queue takes longer until its members start: it goes with their data, and is
/// published for pages; members of a line show none.
fn shared_batch(channel: &Channel, first: u32, p: &RecordedParameters) -> Duration {
    let member = channel.descriptors.get(first as usize);
    match channel.shared {
        true => {
            let bytes = member.map_or(0, |d| u64::from(d.size)).min(PAGE_BYTES);
            Duration(p.batch_shared().0 * bytes / PAGE_BYTES)
        }
        false => Duration::ZERO,
    }
}

/// Executes a task; with block on fault, pages are brought in one after the other. How it ends, and
/// the time that its faults take.
fn execute_blocking(
    task: &Task,
    memory: &mut Memory,
    payload: Payload,
    p: &RecordedParameters,
) -> (DescriptorResult, Duration) {
    let mut fault = Duration::ZERO;
    loop {
        let outcome = task.execute(&mut DeviceView(memory), payload);
        let status = outcome.record.status().code();
        let faulted = status == Status::PAGE_FAULT.code()
            || status == Status::PAGE_FAULT_INVALID_RESPONSE.code();
        // Without address translation the device sees no page fault to wait for.
        if !faulted || !task.translates {
            return (outcome, fault);
        }
        let address = outcome.record.fault_address;
        let blocks = task.descriptor.flags().contains(Flags::BLOCK_ON_FAULT);
        if !blocks || memory.place(address).is_none() {
            return (outcome, fault + p.fault_detect());
        }
        memory.touch(address);
        fault += p.fault_block();
    }
}
