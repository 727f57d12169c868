//! Where the device's effects go: records and log to memory, the rest to the listener.

use std::collections::VecDeque;
use std::sync::Arc;

use dray_device::{Access, Effect, Function, LifecycleEvent, Memory, WorkId};
use dray_ring::Origin;
use dray_spec::{CompletionRecord, Status};
use zerocopy::IntoBytes;

use crate::chaos::{Chaos, Delivery};
use crate::event::{Event, Listener};
use crate::shared::Shared;
use crate::{SharedMemory, View};

/// Bytes of a completion record, and of half an entry of the event log.
pub(crate) const RECORD_BYTES: u64 = 32;

pub(crate) struct EffectSink<M> {
    shared: Arc<Shared>,
    pub(crate) memory: M,
    listener: Listener,
    /// It gets an event at each step of a descriptor.
    pub(crate) steps: bool,
    /// Records that could not be written, with their addresses.
    unrecorded: Vec<(u64, CompletionRecord)>,
    /// Part of the event log could not be written.
    unlogged: bool,
    /// Effects that have been carried out, of those that are being carried out: a panic leaves it where it was.
    applied: usize,
    chaos: Option<Chaos>,
    /// Interrupts so far, where an adversary has them.
    interrupts: u64,
    /// Those that it delivers later.
    late: Vec<Event>,
    /// Of what was accepted and not yet reported, in that order.
    origins: VecDeque<Option<Origin>>,
}

impl<M: SharedMemory> EffectSink<M> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        memory: M,
        listener: Listener,
        steps: bool,
        chaos: Option<Chaos>,
    ) -> EffectSink<M> {
        EffectSink {
            shared,
            memory,
            listener,
            steps,
            unrecorded: Vec::new(),
            unlogged: false,
            applied: 0,
            chaos,
            interrupts: 0,
            late: Vec::new(),
            origins: VecDeque::new(),
        }
    }

    /// Carries all `effects` out, and those of what goes wrong with that.
    #[inline]
    pub(crate) fn apply_effects(&mut self, effects: &mut Vec<Effect>, function: &mut Function) {
        if self.steps {
            self.tell_steps(function);
        }
        while let Some(&effect) = effects.get(self.applied) {
            match effect {
                Effect::Record {
                    address,
                    record,
                    pasid,
                } => {
                    if !self.publish(address, &record, pasid) {
                        self.unrecorded.push((address, record));
                    }
                }
                other => self.notify(other, function),
            }
            self.applied += 1;
        }
        self.applied = 0;
        effects.clear();
        if !self.unrecorded.is_empty() || self.unlogged {
            self.report(effects, function);
        }
    }

    /// Writes a record. Whether it could be written.
    #[inline]
    pub(crate) fn publish(&mut self, address: u64, record: &CompletionRecord, pasid: u32) -> bool {
        let view = View {
            pasid,
            blocks: true,
        };
        self.memory.enter(view);
        let writable = self.memory.accessible(address, RECORD_BYTES, Access::Write) == RECORD_BYTES;
        writable
            && match &self.shared.deviant {
                None => self.memory.publish(address, record),
                Some(deviant) => deviant.publish(&mut self.memory, view, address, record),
            }
    }

    /// After a panic: the effects that have not been carried out, or only in part.
    pub(crate) fn unapplied(&self, effects: &[Effect]) -> Vec<Effect> {
        effects.get(self.applied..).unwrap_or_default().to_vec()
    }

    /// A descriptor that was accepted was submitted there.
    #[cold]
    pub(crate) fn submitted_from(&mut self, origin: Option<Origin>) {
        self.origins.push_back(origin);
    }

    /// Reports what has happened to descriptors.
    #[cold]
    pub(crate) fn tell_steps(&mut self, function: &mut Function) {
        for step in function.take_lifecycle() {
            (self.listener)(match step {
                LifecycleEvent::Accepted {
                    id,
                    wq,
                    pasid,
                    descriptor,
                } => Event::Accepted {
                    id,
                    wq,
                    pasid,
                    descriptor,
                    origin: self.origins.pop_front().flatten(),
                },
                LifecycleEvent::Ended { id, record } => Event::Ended { id, record },
            });
        }
    }

    /// Reports something of the dispatcher's own.
    #[cold]
    pub(crate) fn tell(&mut self, event: Event) {
        (self.listener)(event);
    }

    /// Reports what has begun.
    #[cold]
    pub(crate) fn tell_start(
        &mut self,
        id: WorkId,
        engine: u16,
        batch: Option<WorkId>,
        function: &mut Function,
    ) {
        self.tell_steps(function);
        if let Some(&descriptor) = function.device().descriptor(id) {
            (self.listener)(Event::Started {
                id,
                engine,
                batch,
                descriptor,
            });
        }
    }

    /// Errors of the sink itself go where the device's go.
    #[cold]
    fn report(&mut self, effects: &mut Vec<Effect>, function: &mut Function) {
        for (address, record) in std::mem::take(&mut self.unrecorded) {
            if function.hardware().without_driver {
                (self.listener)(Event::SoftwareError {
                    status: Status::COMPLETION_ADDRESS_FAULT.with_write_fault(),
                    wq: None,
                    address,
                });
            }
            function.unrecorded(address, &record, effects);
        }
        if std::mem::take(&mut self.unlogged) {
            function.unlogged(effects);
        }
        for effect in effects.drain(..) {
            self.notify(effect, function);
        }
        // One about a log that cannot be written is in the register already.
        if std::mem::take(&mut self.unlogged) {
            function.unlogged(effects);
            effects.clear();
        }
    }

    #[cold]
    fn notify(&mut self, effect: Effect, function: &Function) {
        let event = match effect {
            Effect::Record { .. } => return,
            Effect::Log { address, words } => {
                self.unlogged |= !self.log(address, &words, function);
                return;
            }
            Effect::Interrupt { handle } => return self.interrupt(Event::Interrupt { handle }),
            Effect::Message { address, data } => {
                return self.interrupt(Event::Message { address, data });
            }
            Effect::SoftwareError {
                status,
                wq,
                address,
                ..
            } => Event::SoftwareError {
                status,
                wq: Some(wq),
                address,
            },
            Effect::Abandoned {
                wq,
                completion,
                member,
            } => Event::Abandoned {
                wq,
                completion,
                member,
            },
        };
        (self.listener)(event);
    }

    fn interrupt(&mut self, event: Event) {
        let Some(chaos) = &self.chaos else {
            return (self.listener)(event);
        };
        let delivery = Delivery::of(chaos, self.interrupts);
        self.interrupts += 1;
        match delivery {
            Delivery::Once => (self.listener)(event),
            Delivery::Lost => {}
            Delivery::Twice => {
                (self.listener)(event);
                (self.listener)(event);
            }
            Delivery::Late => self.late.push(event),
        }
    }

    /// Delivers the interrupts that are late.
    #[cold]
    pub(crate) fn deliver_late(&mut self) {
        for event in std::mem::take(&mut self.late) {
            (self.listener)(event);
        }
    }

    /// Writes to the event log, in its address space where the memory has several. False if that
    /// faults.
    fn log(&mut self, address: u64, words: &[u64; 4], function: &Function) -> bool {
        self.memory.enter(View::default());
        let space = function.event_log_space();
        if let Some(space) = space.filter(|space| space.pasid.is_some())
            && let Some(other) = self.memory.alternate(space)
        {
            let written = write(other, address, words);
            return self.memory.settle() && written;
        }
        let written = write(&mut self.memory, address, words);
        self.memory.settle() && written
    }
}

fn write(memory: &mut dyn Memory, address: u64, words: &[u64; 4]) -> bool {
    let writable = memory.accessible(address, RECORD_BYTES, Access::Write) == RECORD_BYTES;
    if writable {
        memory.write(address, words.map(u64::to_le).as_bytes());
    }
    writable
}
