//! The modelled machine, and the loop that moves its time.

use std::sync::Arc;

use dray_clock::{Duration, EventQueue, Time};
use dray_device::{
    ConfigError, Device, DeviceConfig, Effect, Member, Outcome, Payload, Portal, Submission, Work,
    WorkId, WorkKind, WorkQueueMode, execute,
};
use dray_platform::{Fabric, MemoryMap, PlatformFile, Requester, Transfer};
use dray_spec::{Descriptor, Flags, Opcode, Status};
use thiserror::Error;

use super::channel::{Channel, ChannelId, ChannelOptions};
use super::engine::{Current, Ending, EngineRun, Job};
use super::memory::{DeviceView, list_at, record_at};
use super::model_mover::ModelMover;
use super::transfer::transfer;
use crate::{Application, Next};

/// Something that happens at a time.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// A posted write reaches its portal.
    Arrive { channel: ChannelId, unit: u32 },
    /// An ENQCMD reaches its portal.
    Enqcmd { channel: ChannelId },
    /// An engine may start a descriptor.
    Start { at: EngineAt },
    /// The descriptor list of a batch is there.
    ListRead { at: EngineAt, id: WorkId },
    /// A completion record is written.
    Ended { at: EngineAt, pending: u32 },
    /// A core goes on.
    Core { channel: ChannelId },
}

/// An engine: small, since events are copied often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EngineAt {
    device: u16,
    engine: u16,
}

impl EngineAt {
    fn new(device: usize, engine: usize) -> EngineAt {
        // A platform has at most 64 devices, a device at most 255 engines.
        EngineAt {
            device: device as u16,
            engine: engine as u16,
        }
    }

    fn indices(self) -> (usize, usize) {
        (self.device.into(), self.engine.into())
    }
}

/// All that happened, and still somebody waits: descriptors were lost, or never submitted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{waiting} of the modelled cores wait for completions that will never come ({lost} descriptors were lost in full dedicated work queues)"
)]
pub struct Stalled {
    /// Cores that wait.
    pub waiting: usize,
    /// Descriptors lost.
    pub lost: u64,
}

/// How a world treats bytes and bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorldOptions {
    /// Whether payload bytes move.
    pub payload: Payload,
    /// Follow shared bandwidth even where one engine has it all to itself. The times are the same;
    /// tests show it.
    pub always_share: bool,
}

#[derive(Debug)]
struct DeviceRun {
    device: Device,
    engines: Vec<EngineRun>,
    /// No ENQCMD is answered before.
    accept_free: Time,
    /// Time that the read port has delivered data, booked at the start of each descriptor.
    inbound: Duration,
    in_progress: u32,
}

/// A modelled machine with its devices, cores and memory.
#[derive(Debug)]
pub struct World {
    pub(crate) platform: Arc<PlatformFile>,
    /// Address space of the machine.
    pub memory: MemoryMap,
    pub(crate) payload: Payload,
    pub(crate) channels: Vec<Channel>,
    devices: Vec<DeviceRun>,
    events: EventQueue<Event>,
    fabric: Fabric,
    solo: bool,
    now: Time,
    pending: Vec<Ending>,
    free_pending: Vec<u32>,
    effects: Vec<Effect>,
    list: Vec<Descriptor>,
    descriptors: u64,
}

impl World {
    /// A machine with these devices, the first on socket 0.
    ///
    /// # Errors
    /// What a device refuses to be enabled with.
    pub fn new(
        platform: Arc<PlatformFile>,
        devices: Vec<DeviceConfig>,
        options: WorldOptions,
    ) -> Result<World, ConfigError> {
        let mut flows = 0;
        let mut runs = Vec::with_capacity(devices.len());
        for config in devices {
            let mut engines = Vec::new();
            for group in &config.groups {
                let limit = match (group.use_read_buffer_limit, config.read_buffer_limit) {
                    (true, limit) if limit > 0 => limit,
                    _ => u16::MAX,
                };
                let allowed = match group.read_buffers_allowed {
                    0 => config.capabilities.max_read_buffers,
                    allowed => allowed,
                };
                for engine in &group.engines {
                    engines.push(EngineRun::new(*engine, flows, allowed.min(limit).into()));
                    flows += 1;
                }
            }
            runs.push(DeviceRun {
                device: Device::new(config)?,
                engines,
                accept_free: Time::ZERO,
                inbound: Duration::ZERO,
                in_progress: 0,
            });
        }
        Ok(World {
            fabric: platform.fabric(flows),
            solo: flows <= 1 && !options.always_share,
            platform,
            memory: MemoryMap::new(),
            payload: options.payload,
            channels: Vec::new(),
            devices: runs,
            events: EventQueue::new(),
            now: Time::ZERO,
            pending: Vec::new(),
            free_pending: Vec::new(),
            effects: Vec::new(),
            list: Vec::new(),
            descriptors: 0,
        })
    }

    /// Adds a core with a work queue, or with software. `None` if there is no such queue.
    pub fn open(&mut self, options: ChannelOptions) -> Option<ChannelId> {
        let id = ChannelId(self.channels.len() as u32);
        let (wq, shared) = match options.queue {
            None => (0, false),
            Some((device, wq)) => {
                let config = self.devices.get(usize::from(device))?.device.config();
                let queue = config.work_queues.iter().find(|q| q.id == wq)?;
                (wq, queue.mode == WorkQueueMode::Shared)
            }
        };
        let portal = Portal { wq, limited: true };
        self.channels
            .push(Channel::new(id, options, portal, shared));
        Some(id)
    }

    /// A channel.
    pub fn channel(&self, id: ChannelId) -> &Channel {
        &self.channels[id.index()]
    }

    /// The machine's parameters.
    pub fn platform(&self) -> &PlatformFile {
        &self.platform
    }

    /// Virtual time of the last event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Descriptors that engines have carried out.
    pub fn descriptors(&self) -> u64 {
        self.descriptors
    }

    /// Runs one application on each channel, in order, until all are done.
    ///
    /// # Errors
    /// [`Stalled`] if somebody waits and nothing will happen any more.
    pub fn run<A: Application>(&mut self, applications: &mut [A]) -> Result<(), Stalled> {
        let mut left = applications.len().min(self.channels.len());
        for index in 0..left {
            self.wake(ChannelId(index as u32), self.channels[index].core.clock);
        }
        while left > 0 {
            let flow = self.fabric.next_finish();
            let event = self.events.next_time();
            match (flow, event) {
                (Some((at, slot)), next) if next.is_none_or(|next| at <= next) => {
                    self.now = at;
                    self.fabric.finish(at, slot);
                    self.flow_ended(slot);
                }
                (_, Some(_)) => {
                    let Some((at, event)) = self.events.pop() else {
                        continue;
                    };
                    self.now = at;
                    if let Event::Core { channel } = event {
                        left -= usize::from(self.step(channel, applications));
                    } else {
                        self.happen(event);
                    }
                }
                (_, None) => {
                    return Err(Stalled {
                        waiting: left,
                        lost: self.channels.iter().map(|c| c.counters.lost).sum(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Lets everything that is on its way end.
    pub fn settle(&mut self) {
        loop {
            match (self.fabric.next_finish(), self.events.next_time()) {
                (Some((at, slot)), next) if next.is_none_or(|next| at <= next) => {
                    self.now = at;
                    self.fabric.finish(at, slot);
                    self.flow_ended(slot);
                }
                (_, Some(_)) => {
                    if let Some((at, event)) = self.events.pop() {
                        self.now = at;
                        self.happen(event);
                    }
                }
                (_, None) => return,
            }
        }
    }

    /// One step of an application. True if it was the last one.
    fn step<A: Application>(&mut self, id: ChannelId, applications: &mut [A]) -> bool {
        let channel = &mut self.channels[id.index()];
        channel.scheduled = false;
        channel.waiting = false;
        let Some(application) = applications.get_mut(id.index()) else {
            return false;
        };
        let next = application.step(&mut ModelMover {
            world: self,
            channel: id,
        });
        let channel = &mut self.channels[id.index()];
        match next {
            Next::Done => return true,
            // The core is in an ENQCMD: it goes on with the answer.
            _ if channel.awaiting.is_some() => {}
            Next::Again => self.wake(id, self.channels[id.index()].core.clock),
            Next::Wait if !channel.software_done.is_empty() => {
                self.wake(id, self.channels[id.index()].core.clock);
            }
            Next::Wait => {
                channel.waiting = true;
                if let Some((at, _)) = channel.visible.front().copied() {
                    self.wait_until(id, at);
                }
            }
        }
        false
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { channel, unit } => self.arrive(channel, unit),
            Event::Enqcmd { channel } => self.answer_enqcmd(channel),
            Event::Start { at } => {
                let (device, engine) = at.indices();
                let run = &mut self.devices[device].engines[engine];
                if run.start_at == Some(self.now) {
                    run.start_at = None;
                    self.pump(device, engine);
                }
            }
            Event::ListRead { at, id } => {
                let (device, engine) = at.indices();
                self.list_read(device, engine, id);
            }
            Event::Ended { at, pending } => {
                let (device, engine) = at.indices();
                self.ended(device, engine, pending);
            }
            Event::Core { .. } => {}
        }
    }

    fn wake(&mut self, id: ChannelId, at: Time) {
        let channel = &mut self.channels[id.index()];
        if !channel.scheduled {
            channel.scheduled = true;
            self.events
                .schedule(at.max(self.now), Event::Core { channel: id });
        }
    }

    /// The core of a waiting channel sees what becomes visible at `at`.
    fn wait_until(&mut self, id: ChannelId, at: Time) {
        let channel = &mut self.channels[id.index()];
        if channel.waiting && !channel.scheduled {
            let mode = channel.options.wait;
            channel.core.wait(at, mode, self.platform.parameters());
            let seen = channel.core.clock;
            self.wake(id, seen);
        }
    }

    /// One-way time from a channel's core to its device's queue.
    fn way_to_queue(&self, id: ChannelId) -> Duration {
        let p = self.platform.parameters();
        let options = &self.channels[id.index()].options;
        let device = options.queue.map_or(0, |q| q.0);
        match self.platform.topology.socket_of_device(device) == options.socket {
            true => p.submit_to_wq,
            false => p.submit_to_wq + p.submit_remote,
        }
    }

    /// MOVDIR64B for every unit that is ready.
    pub(crate) fn post_writes(&mut self, id: ChannelId) {
        let way = self.way_to_queue(id);
        let channel = &mut self.channels[id.index()];
        while let Some(unit) = channel.ready.pop_front() {
            let rotates = channel.options.portal_rotates;
            let write = channel.core.movdir64b(self.platform.parameters(), rotates);
            channel.in_flight += 1;
            channel.counters.submitted += 1;
            self.events
                .schedule(write.leaves_at + way, Event::Arrive { channel: id, unit });
        }
    }

    /// ENQCMD for the next unit that is ready, unless one is on its way.
    pub(crate) fn start_enqcmd(&mut self, id: ChannelId) {
        let way = self.way_to_queue(id) + self.platform.parameters().enqcmd_admission;
        let channel = &mut self.channels[id.index()];
        if channel.awaiting.is_none()
            && let Some(unit) = channel.ready.pop_front()
        {
            channel.awaiting = Some(unit);
            let at = (channel.core.clock + way).max(self.now);
            self.events.schedule(at, Event::Enqcmd { channel: id });
        }
    }

    fn arrive(&mut self, id: ChannelId, unit: u32) {
        let channel = &mut self.channels[id.index()];
        let index = usize::from(channel.options.queue.map_or(0, |q| q.0));
        let descriptor = channel.descriptor_of(unit);
        let portal = channel.portal;
        match self.devices[index].device.write_posted(portal, &descriptor) {
            Submission::Accepted => {
                self.devices[index].in_progress += 1;
                self.feed(index, portal.wq);
            }
            // Nobody tells the core: the unit stays taken, as on hardware.
            _ => self.channels[id.index()].counters.lost += 1,
        }
    }

    fn answer_enqcmd(&mut self, id: ChannelId) {
        let p = self.platform.parameters();
        let channel = &mut self.channels[id.index()];
        let index = usize::from(channel.options.queue.map_or(0, |q| q.0));
        let run = &mut self.devices[index];
        if run.accept_free > self.now {
            self.events
                .schedule(run.accept_free, Event::Enqcmd { channel: id });
            return;
        }
        let Some(unit) = channel.awaiting.take() else {
            return;
        };
        run.accept_free = self.now + p.enqcmd_accept;
        let remote =
            match self.platform.topology.socket_of_device(index as u16) == channel.options.socket {
                true => Duration::ZERO,
                false => p.submit_remote,
            };
        let way = p.submit_to_wq + p.enqcmd_admission + remote;
        // The answer and the data of reads come by the same way: it waits for its turn, as long
        // as that way was busy since the last answer.
        let elapsed = self.now.since(channel.last_enqcmd).0.max(1);
        let inbound = (run.inbound - channel.inbound_then).0.min(elapsed);
        let queued = match run.in_progress > 0 {
            true => Duration(
                (u128::from(p.enqcmd_behind_reads.0) * u128::from(inbound) / u128::from(elapsed))
                    as u64,
            ),
            false => Duration::ZERO,
        };
        channel.last_enqcmd = self.now;
        channel.inbound_then = run.inbound;
        let back = (p.enqcmd_period + p.enqcmd_admission - way) + remote + queued;
        let answered = self.now + back;
        channel.core.work(answered.since(channel.core.clock));
        let descriptor = channel.descriptor_of(unit);
        let portal = channel.portal;
        match run.device.enqueue(portal, &descriptor) {
            Submission::Accepted => {
                channel.in_flight += 1;
                channel.counters.submitted += 1;
                run.in_progress += 1;
                self.wake(id, answered);
                self.feed(index, portal.wq);
            }
            _ => {
                channel.counters.retries += 1;
                channel.ready.push_front(unit);
                self.wake(id, answered);
            }
        }
    }

    /// A queue has something new: its engines may take it, the idlest first.
    fn feed(&mut self, device: usize, wq: u16) {
        let fetch_ahead = self.platform.parameters().engine_fetch_ahead;
        let run = &self.devices[device];
        let mut best: Option<(usize, usize)> = None;
        for id in run.device.engines_of(wq) {
            let found = run.engines.iter().position(|e| e.id == *id);
            if let Some(engine) = found
                && run.engines[engine].takes_more(self.now, fetch_ahead)
            {
                let load = run.engines[engine].jobs.len() * 2
                    + usize::from(run.engines[engine].current.is_some());
                if best.is_none_or(|b| (load, engine) < b) {
                    best = Some((load, engine));
                }
            }
        }
        if let Some((_, engine)) = best {
            self.pump(device, engine);
        }
    }

    /// An engine takes what it can hold and starts what it can start.
    fn pump(&mut self, device: usize, engine: usize) {
        self.fetch(device, engine);
        loop {
            let run = &self.devices[device].engines[engine];
            if run.current.is_some() || run.start_at.is_some_and(|at| at <= self.now) {
                return;
            }
            let Some(job) = run.jobs.front().copied() else {
                return;
            };
            let ready = match job {
                Job::Single(_, ready) => ready,
                Job::Batch { list_read, .. } if !list_read => return,
                Job::Batch { .. } => self.now,
            };
            let start = ready.max(run.free_at);
            let run = &mut self.devices[device].engines[engine];
            let start = run
                .pipe
                .slot_free(start.max(self.now), self.platform.parameters());
            if start > self.now {
                self.schedule_start(device, engine, start);
                return;
            }
            let (work, member) = match job {
                Job::Single(work, _) => {
                    run.jobs.pop_front();
                    (work, false)
                }
                Job::Batch { id, .. } => match self.devices[device].device.next_member(id) {
                    Member::Work(work) => (work, true),
                    Member::Fenced => return,
                    Member::None => {
                        self.devices[device].engines[engine].jobs.pop_front();
                        self.fetch(device, engine);
                        continue;
                    }
                },
            };
            self.begin(device, engine, &work, member);
            self.fetch(device, engine);
        }
    }

    fn schedule_start(&mut self, device: usize, engine: usize, at: Time) {
        let run = &mut self.devices[device].engines[engine];
        if run
            .start_at
            .is_none_or(|scheduled| scheduled > at || scheduled < self.now)
        {
            run.start_at = Some(at);
            let event = Event::Start {
                at: EngineAt::new(device, engine),
            };
            self.events.schedule(at, event);
        }
    }

    /// Takes descriptors from the queues while there is room in the engine.
    fn fetch(&mut self, device: usize, engine: usize) {
        let p = self.platform.parameters();
        let (dispatch, fetch_ahead) = (p.dispatch, p.engine_fetch_ahead);
        let list_time = dispatch + p.read_llc + p.batch_dispatch;
        let run = &mut self.devices[device];
        while run.engines[engine].takes_more(self.now, fetch_ahead) {
            let Some(work) = run.device.take(run.engines[engine].id) else {
                return;
            };
            let job = match work.kind {
                WorkKind::FetchList { address, count } => {
                    self.events.schedule(
                        self.now + list_time,
                        Event::ListRead {
                            at: EngineAt::new(device, engine),
                            id: work.id,
                        },
                    );
                    Job::Batch {
                        id: work.id,
                        list: (address, count),
                        list_read: false,
                    }
                }
                _ => Job::Single(work, self.now + dispatch),
            };
            run.engines[engine].jobs.push_back(job);
        }
    }

    fn list_read(&mut self, device: usize, engine: usize, id: WorkId) {
        let run = &mut self.devices[device];
        let mut found = None;
        for job in &mut run.engines[engine].jobs {
            if let Job::Batch {
                id: other,
                list,
                list_read,
            } = job
                && *other == id
            {
                *list_read = true;
                found = Some(*list);
            }
        }
        let Some((address, count)) = found else {
            return;
        };
        let mut effects = std::mem::take(&mut self.effects);
        match list_at(address).and_then(|(c, first)| {
            let ring = &self.channels.get(c.index())?.descriptors;
            ring.get(first as usize..first as usize + count as usize)
        }) {
            Some(list) => {
                self.list.clear();
                self.list.extend_from_slice(list);
                run.device.list_fetched(id, &self.list, &mut effects);
            }
            None => run.device.list_faulted(id, address, &mut effects),
        }
        self.effects = effects;
        self.carry_out(device);
        self.pump(device, engine);
    }

    /// An engine starts a descriptor: from here on all its times follow.
    fn begin(&mut self, device: usize, engine: usize, work: &Work, member: bool) {
        self.descriptors += 1;
        let d = &work.descriptor;
        let (opcode, outcome, fault) = match work.kind {
            WorkKind::Execute(opcode) => self.carry(opcode, d),
            WorkKind::Reject(rejection) => (Opcode::Noop, rejection.outcome(), Duration::ZERO),
            WorkKind::FetchList { .. } => return,
        };
        // An operation that a fault or a refusal ended has moved less than it was asked to.
        let bytes = match outcome.record.status().is_success() {
            true => u64::from(d.size),
            false => u64::from(outcome.record.bytes_completed),
        };
        let moved = transfer(opcode, d, bytes, &self.memory);
        let alone = self.devices.len() == 1;
        let run = &mut self.devices[device];
        let state = &mut run.engines[engine];
        let translated = state.pipe.translate(&moved, d.completion_addr);
        let shape = shape_of(&moved);
        let service = match &state.last_service {
            Some((last, hit, service)) if *last == shape && *hit == translated => *service,
            _ => {
                let requester = Requester {
                    device: device as u16,
                    buffers: state.buffers,
                    translated,
                    alone,
                };
                let service = self.platform.service(requester, &shape);
                state.last_service = Some((shape, translated, service));
                service
            }
        };
        run.inbound += service.inbound;
        let current = Current {
            id: work.id,
            outcome,
            service,
            start: self.now,
            fault,
            member,
        };
        if self.solo {
            let moved_at =
                self.now + Duration((service.lines * service.demand.alone_fs()).div_ceil(1000));
            let p = self.platform.parameters();
            let issue = state.pipe.issue(self.now, moved_at, &service, p);
            let blocked = match outcome.record.status() == Status::SUCCESS {
                true => fault,
                false => Duration::ZERO,
            };
            state.free_at = issue.next_start + blocked;
            let at = issue.record_written + fault;
            self.end_at(device, engine, &current, at);
        } else {
            state.current = Some(current);
            let flow = state.flow;
            self.fabric
                .start(self.now, flow, service.lines, service.demand);
        }
    }

    /// Executes a descriptor's bytes; with block on fault, pages are brought in one after the other.
    fn carry(&mut self, opcode: Opcode, d: &Descriptor) -> (Opcode, Outcome, Duration) {
        let p = self.platform.parameters();
        let (fault_block, fault_detect) = (p.fault_block, p.fault_detect);
        let blocks = d.flags().contains(Flags::BLOCK_ON_FAULT);
        let mut fault = Duration::ZERO;
        loop {
            let outcome = execute(opcode, d, &mut DeviceView(&mut self.memory), self.payload);
            let address = outcome.record.fault_address;
            let status = outcome.record.status().code();
            let faulted = status == Status::PAGE_FAULT.code()
                || status == Status::PAGE_FAULT_INVALID_RESPONSE.code();
            if !faulted {
                return (opcode, outcome, fault);
            }
            let mapped = self.memory.place(address).is_some();
            if !blocks || !mapped {
                return (opcode, outcome, fault + fault_detect);
            }
            self.memory.touch(address);
            fault += fault_block;
        }
    }

    /// The data of the descriptor in a flow's engine has moved.
    fn flow_ended(&mut self, slot: usize) {
        let position = self.devices.iter().enumerate().find_map(|(d, run)| {
            run.engines
                .iter()
                .position(|e| e.flow == slot)
                .map(|e| (d, e))
        });
        let Some((device, engine)) = position else {
            return;
        };
        let p = self.platform.parameters();
        let state = &mut self.devices[device].engines[engine];
        let Some(current) = state.current.take() else {
            return;
        };
        let issue = state
            .pipe
            .issue(current.start, self.now, &current.service, p);
        let blocked = match current.outcome.record.status() == Status::SUCCESS {
            true => current.fault,
            false => Duration::ZERO,
        };
        state.free_at = issue.next_start + blocked;
        self.end_at(
            device,
            engine,
            &current,
            issue.record_written + current.fault,
        );
        self.pump(device, engine);
    }

    fn end_at(&mut self, device: usize, engine: usize, current: &Current, at: Time) {
        let entry = Ending {
            id: current.id,
            outcome: current.outcome,
            member: current.member,
        };
        let pending = match self.free_pending.pop() {
            Some(index) => {
                self.pending[index as usize] = entry;
                index
            }
            None => {
                self.pending.push(entry);
                self.pending.len() as u32 - 1
            }
        };
        self.events.schedule(
            at,
            Event::Ended {
                at: EngineAt::new(device, engine),
                pending,
            },
        );
    }

    fn ended(&mut self, device: usize, engine: usize, pending: u32) {
        let ending = self.pending[pending as usize];
        self.free_pending.push(pending);
        let mut effects = std::mem::take(&mut self.effects);
        let device_state = &mut self.devices[device].device;
        device_state.done(ending.id, &ending.outcome, &mut effects);
        self.effects = effects;
        self.carry_out(device);
        if ending.member {
            // A fence may have been waiting for it.
            self.pump(device, engine);
        }
    }

    /// Writes records; what ends a unit becomes visible to its core.
    fn carry_out(&mut self, device: usize) {
        let visible_at = self.now + self.platform.parameters().completion_read;
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            let Effect::Record { address, record } = effect else {
                continue;
            };
            let Some((id, index)) = record_at(address) else {
                continue;
            };
            let channel = &mut self.channels[id.index()];
            if let Some(unit) = channel.write_record(index, record) {
                channel.visible.push_back((visible_at, unit));
                let run = &mut self.devices[device];
                run.in_progress = run.in_progress.saturating_sub(1);
                self.wait_until(id, visible_at);
            }
        }
        self.effects = effects;
    }
}

/// A transfer without what does not change its cost, so that the next one like it is recognised.
fn shape_of(transfer: &Transfer) -> Transfer {
    let mut shape = *transfer;
    for stream in shape.reads.iter_mut().chain(&mut shape.writes).flatten() {
        stream.address %= dray_platform::LINE_BYTES;
    }
    shape
}
