//! The thread that owns the device: it feeds the device from the rings, its engines from the device,
//! and carries out what the device says.
//!
//! A descriptor leaves its ring as soon as the dispatcher sees it and waits in the device's own
//! queue, where arbitration finds it; its entry is free only when the device has given it to an
//! engine. So what ring and queue hold together is what the ring counts, the device's queue has
//! always room, and the rules of who comes next are the device's alone.

use std::sync::Arc;

use dray_device::{
    Access, Device, Domains, Effect, Member, Outcome, Portal, Work, WorkId, WorkKind, WorkQueueMode,
};
use dray_spec::{Descriptor, Opcode, Status};
use zerocopy::transmute;

use crate::engine::Engine;
use crate::event::{Event, Listener};
use crate::patience::Patience;
use crate::ring::Reader;
use crate::shared::{Queue, Shared};
use crate::worker::{Order, carry_out};
use crate::{Idle, SharedMemory};

/// A work queue as the dispatcher sees it.
pub(crate) struct Source {
    portal: Portal,
    mode: WorkQueueMode,
    reader: Reader,
    /// Losses that have been told.
    lost: u64,
}

pub(crate) struct Dispatcher<M> {
    shared: Arc<Shared>,
    device: Device,
    sources: Vec<Source>,
    engines: Vec<Engine>,
    memory: M,
    listener: Listener,
    effects: Vec<Effect>,
    list: Vec<Descriptor>,
    name: String,
}

impl<M: SharedMemory> Dispatcher<M> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        device: Device,
        engines: Vec<Engine>,
        memory: M,
        listener: Listener,
        name: String,
    ) -> Dispatcher<M> {
        let source = |queue: &Queue| Source {
            // The ring has applied the threshold.
            portal: Portal {
                wq: queue.config.id,
                limited: false,
            },
            mode: queue.config.mode,
            reader: Reader::new(queue.ring.clone()),
            lost: 0,
        };
        Dispatcher {
            sources: shared.queues.iter().map(source).collect(),
            shared,
            device,
            engines,
            memory,
            listener,
            effects: Vec::new(),
            list: Vec::new(),
            name,
        }
    }

    /// Until the device is to stop, and has stopped.
    pub(crate) fn run(&mut self, idle: Idle) {
        let mut patience = Patience::new(idle);
        loop {
            if self.shared.is_aborting() {
                return;
            }
            if self.turn() {
                patience.renew();
            } else if self.shared.is_stopping() && self.is_quiet() {
                return;
            } else if patience.is_over() {
                let shared = self.shared.clone();
                shared.board.doorbell().sleep(|| self.is_pending(), None);
                patience.renew();
            }
        }
    }

    /// Looks everywhere once. Whether there was anything.
    #[inline]
    fn turn(&mut self) -> bool {
        let mut worked = false;
        if self.shared.is_requested() {
            worked = true;
            self.obey();
        }
        worked |= self.hear();
        worked |= self.collect();
        for index in 0..self.engines.len() {
            worked |= self.start(index);
        }
        worked
    }

    /// Carries out what handles of the device have asked for.
    #[cold]
    fn obey(&mut self) {
        for request in self.shared.take_requests() {
            // What has been accepted before the request was made comes before it.
            self.collect();
            request(&mut self.device, &mut self.effects);
            self.free();
            self.carry_out();
        }
    }

    /// Takes in what the engines' threads have done.
    #[inline]
    fn hear(&mut self) -> bool {
        let mut heard = false;
        for index in 0..self.engines.len() {
            while let Some(report) = self.engines[index].worker.as_mut().and_then(|w| w.report()) {
                heard = true;
                self.engines[index].outstanding -= 1;
                self.device
                    .done(report.id, &report.outcome, &mut self.effects);
                self.carry_out();
            }
        }
        heard
    }

    /// Moves descriptors from the rings to the device's queues.
    #[inline]
    fn collect(&mut self) -> bool {
        let mut found = false;
        for source in &mut self.sources {
            while let Some(words) = source.reader.next() {
                found = true;
                let descriptor: Descriptor = transmute!(words);
                // A queue that the device has disabled meanwhile takes nothing, and says so to
                // nobody: the descriptor is gone, and its entry free.
                let _ = match source.mode {
                    WorkQueueMode::Dedicated => {
                        self.device.write_posted(source.portal, &descriptor)
                    }
                    WorkQueueMode::Shared => self.device.enqueue(source.portal, &descriptor),
                };
            }
            let lost = source.reader.ring().lost();
            if lost != source.lost {
                source.lost = lost;
                // However many they are: the register holds one (spec 9.2.15).
                (self.listener)(Event::SoftwareError {
                    status: Status::WQ_OVERFLOW,
                    wq: Some(source.portal.wq),
                    address: 0,
                });
            }
        }
        found
    }

    /// Entries whose descriptors have left the device's queues are free.
    #[inline]
    fn free(&mut self) {
        for source in &mut self.sources {
            let waiting = self.device.occupancy(source.portal.wq).unwrap_or(0);
            source.reader.free_but(waiting.into());
        }
    }

    /// Has an engine start one thing, if there is something and it has room.
    #[inline]
    fn start(&mut self, index: usize) -> bool {
        let engine = &mut self.engines[index];
        if !engine.has_room() {
            return false;
        }
        if let Some(batch) = engine.batch {
            match self.device.next_member(batch) {
                Member::Work(work) => self.begin(index, work),
                Member::Fenced => return false,
                Member::None => engine.batch = None,
            }
            return true;
        }
        let Some(work) = self.device.take(engine.id) else {
            // Drains that wait for others have left their queue all the same.
            self.free();
            return false;
        };
        self.free();
        self.begin(index, work);
        true
    }

    #[inline]
    fn begin(&mut self, index: usize, work: Work) {
        let outcome = match work.kind {
            WorkKind::Execute(opcode) => match self.execute(index, work.id, opcode, None) {
                Some(outcome) => outcome,
                None => return,
            },
            WorkKind::ExecuteBetween(opcode) => match self.device.domains(work.id) {
                Ok(domains) => match self.execute(index, work.id, opcode, Some(domains)) {
                    Some(outcome) => outcome,
                    None => return,
                },
                Err(outcome) => outcome,
            },
            WorkKind::Reject(rejection) => rejection.outcome(),
            WorkKind::FetchList { address, count } => {
                self.engines[index].batch = Some(work.id);
                self.fetch(work.id, address, count);
                return self.carry_out();
            }
        };
        self.device.done(work.id, &outcome, &mut self.effects);
        self.carry_out();
    }

    /// Has an engine carry a descriptor out: how it ended, unless that is for its thread to tell.
    #[inline]
    fn execute(
        &mut self,
        index: usize,
        id: WorkId,
        opcode: Opcode,
        domains: Option<Domains>,
    ) -> Option<Outcome> {
        let order = Order {
            id,
            opcode,
            descriptor: *self.device.descriptor(id)?,
            domains,
        };
        let engine = &mut self.engines[index];
        match &mut engine.worker {
            Some(worker) => {
                engine.outstanding += 1;
                worker.order(order);
                None
            }
            None => Some(carry_out(
                &order,
                &mut self.memory,
                &self.shared,
                &self.name,
            )),
        }
    }

    /// Reads the list of a batch, as far as it can be read (spec 8.3.2).
    fn fetch(&mut self, id: WorkId, address: u64, count: u32) {
        const SIZE: u64 = size_of::<Descriptor>() as u64;
        let size = u64::from(count) * SIZE;
        let readable = self.memory.accessible(address, size, Access::Read);
        let whole = readable / SIZE;
        self.list.clear();
        for n in 0..whole {
            let mut bytes = [0; SIZE as usize];
            self.memory.read(address + n * SIZE, &mut bytes);
            self.list.push(transmute!(bytes));
        }
        let fault = address.saturating_add(whole * SIZE);
        let effects = &mut self.effects;
        if whole == u64::from(count) {
            self.device.list_fetched(id, &self.list, effects);
        } else if whole == 0 {
            self.device.list_faulted(id, fault, effects);
        } else {
            self.device
                .list_fetched_until(id, &self.list, fault, effects);
        }
    }

    /// Carries out what the device has said.
    #[inline]
    fn carry_out(&mut self) {
        const SIZE: u64 = 32;
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Record { address, record } => {
                    let writable = self.memory.accessible(address, SIZE, Access::Write);
                    if writable == SIZE {
                        self.memory.publish(address, &record);
                    } else {
                        (self.listener)(Event::SoftwareError {
                            status: Status::COMPLETION_ADDRESS_FAULT,
                            wq: None,
                            address,
                        });
                    }
                }
                Effect::Interrupt { handle } => (self.listener)(Event::Interrupt { handle }),
                Effect::SoftwareError {
                    status,
                    wq,
                    address,
                    ..
                } => (self.listener)(Event::SoftwareError {
                    status,
                    wq: Some(wq),
                    address,
                }),
                // Of a device with registers alone.
                Effect::Message { .. } | Effect::Log { .. } | Effect::Abandoned { .. } => {}
            }
        }
    }

    /// Whether a look would find anything.
    fn is_pending(&self) -> bool {
        let source = |s: &Source| s.reader.pending() || s.reader.ring().lost() != s.lost;
        let reports = |e: &Engine| e.worker.as_ref().is_some_and(|w| w.has_reports());
        self.shared.is_requested()
            || self.shared.is_stopping()
            || self.sources.iter().any(source)
            || self.engines.iter().any(reports)
    }

    /// Whether all that was accepted has ended. The rings are closed.
    fn is_quiet(&self) -> bool {
        let empty = |s: &Source| {
            let accepted = s.reader.ring().close();
            s.reader.read() == accepted && self.device.occupancy(s.portal.wq).unwrap_or(0) == 0
        };
        self.sources.iter().all(empty) && self.engines.iter().all(Engine::is_idle)
    }
}
