//! A core with a work queue, or with software: what one application sees.

use std::collections::VecDeque;

use dray::{Capabilities, Completion, Executor, Operation, Ticket};
use dray_clock::{Duration, EventStream, Time};
use dray_device::Portal;
use dray_platform::{Core, WaitMode};
use dray_spec::{CompletionRecord, Descriptor};

use crate::memory::{list_address, record_address};

/// Handle of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelId(pub(crate) u32);

impl ChannelId {
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a channel submits and waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelOptions {
    /// Socket of the core.
    pub socket: u16,
    /// Device and work queue; `None`: software on the modelled core.
    pub queue: Option<(u16, u16)>,
    /// Operations per batch descriptor; 1: none.
    pub batch: u32,
    /// Descriptors in the work queue and beyond at once. A client of a dedicated queue keeps
    /// within its size, or loses descriptors.
    pub depth: u32,
    /// How the core waits.
    pub wait: WaitMode,
    /// MOVDIR64B goes to another line of the portal page each time.
    pub portal_rotates: bool,
    /// Descriptors were written beforehand: submission alone costs the core time.
    pub prepared: bool,
    /// Software finds its data in the core's own caches.
    pub hot: bool,
    /// Software fills with non-temporal stores.
    pub non_temporal: bool,
    /// Software cannot foresee its addresses.
    pub random: bool,
    /// Software is the kernel's, which copies without vector registers.
    pub kernel: bool,
    /// The core of a channel that was opened before, which then feeds both; `None`: one of its own.
    pub core_of: Option<ChannelId>,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        ChannelOptions {
            socket: 0,
            queue: Some((0, 0)),
            batch: 1,
            depth: 1,
            wait: WaitMode::Poll,
            portal_rotates: false,
            prepared: false,
            hot: false,
            non_temporal: false,
            random: false,
            kernel: false,
            core_of: None,
        }
    }
}

/// What a channel did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Descriptors handed over, batch descriptors counted once.
    pub submitted: u64,
    /// ENQCMD that were answered with retry.
    pub retries: u64,
    /// Descriptors that a full dedicated queue dropped.
    pub lost: u64,
    /// Operations that ended.
    pub completed: u64,
}

/// Descriptors that travel together: one operation, or a batch of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unit {
    /// Operations in it.
    pub(crate) members: u32,
}

/// State of a channel. Unit u owns slots `u * batch ..` and record `slots + u`.
#[derive(Debug)]
pub struct Channel {
    pub(crate) id: ChannelId,
    pub(crate) options: ChannelOptions,
    pub(crate) portal: Portal,
    pub(crate) shared: bool,
    pub(crate) capabilities: Capabilities,
    /// One-way time from the core to the work queue.
    pub(crate) way: Duration,
    /// Posted writes arrive in order.
    pub(crate) stream: EventStream,
    /// Where channels share a core, that of the channel which ran last; see [`SharedCores`].
    ///
    /// [`SharedCores`]: crate::shared_cores::SharedCores
    pub(crate) core: Core,
    pub(crate) counters: Counters,
    pub(crate) units: Vec<Unit>,
    free_units: Vec<u32>,
    /// The unit that is being filled.
    open: Option<u32>,
    pub(crate) ready: VecDeque<u32>,
    pub(crate) descriptors: Vec<Descriptor>,
    /// What the application gave each operation, by slot.
    pub(crate) user_data: Vec<u64>,
    pub(crate) records: Vec<CompletionRecord>,
    /// Units whose record has been written, and when the core can see it.
    pub(crate) visible: VecDeque<(Time, u32)>,
    /// The unit being polled and its next member.
    draining: Option<(u32, u32)>,
    /// An ENQCMD is on its way, with this unit.
    pub(crate) awaiting: Option<u32>,
    /// It has reached the device and waits for its turn.
    pub(crate) deferred: bool,
    pub(crate) in_flight: u32,
    pub(crate) waiting: bool,
    pub(crate) scheduled: bool,
    pub(crate) last_enqcmd: Time,
    pub(crate) inbound_then: Duration,
}

impl Channel {
    pub(crate) fn new(
        id: ChannelId,
        options: ChannelOptions,
        portal: Portal,
        shared: bool,
        capabilities: Capabilities,
        way: Duration,
        stream: EventStream,
    ) -> Self {
        let batch = options.batch.max(1);
        let units = options.depth.max(1);
        let slots = (units * batch) as usize;
        Channel {
            id,
            options: ChannelOptions { batch, ..options },
            portal,
            shared,
            capabilities: Capabilities {
                max_batch: batch,
                ..capabilities
            },
            way,
            stream,
            core: Core::new(),
            counters: Counters::default(),
            units: vec![Unit::default(); units as usize],
            free_units: (0..units).rev().collect(),
            open: None,
            ready: VecDeque::with_capacity(units as usize),
            descriptors: vec![Descriptor::default(); slots],
            user_data: vec![0; slots],
            records: vec![CompletionRecord::default(); slots + units as usize],
            visible: VecDeque::with_capacity(units as usize),
            draining: None,
            awaiting: None,
            deferred: false,
            in_flight: 0,
            waiting: false,
            scheduled: false,
            last_enqcmd: Time::ZERO,
            inbound_then: Duration::ZERO,
        }
    }

    #[inline]
    pub(crate) fn slots(&self) -> usize {
        self.descriptors.len()
    }

    /// Operations whose completions have not been taken.
    pub(crate) fn operations(&self) -> usize {
        let members = |unit: &Unit| unit.members as usize;
        let of_all: usize = self.units.iter().map(members).sum();
        let free = self.free_units.iter();
        let of_free: usize = free.map(|unit| members(&self.units[*unit as usize])).sum();
        let taken = self.draining.map_or(0, |(_, next)| next as usize);
        of_all - of_free - taken
    }

    /// Puts an operation into the open unit; `None` if all units are taken.
    #[inline]
    pub(crate) fn place(&mut self, operation: &Operation) -> Option<Ticket> {
        let unit = match self.open {
            Some(unit) => unit,
            None => {
                let unit = self.free_units.pop()?;
                self.units[unit as usize].members = 0;
                unit
            }
        };
        let batch = self.options.batch;
        let member = self.units[unit as usize].members;
        let slot = unit * batch + member;
        self.units[unit as usize].members += 1;
        let address = record_address(self.id, slot);
        self.descriptors[slot as usize] = operation.descriptor().with_completion(address);
        self.user_data[slot as usize] = operation.user_data();
        self.records[slot as usize] = CompletionRecord::default();
        if member + 1 == batch {
            self.ready.push_back(unit);
            self.open = None;
        } else {
            self.open = Some(unit);
        }
        Some(Ticket(slot))
    }

    /// Whether a unit can be opened.
    pub(crate) fn has_free_unit(&self) -> bool {
        !self.free_units.is_empty()
    }

    /// Closes a unit that is not full.
    #[inline]
    pub(crate) fn close(&mut self) {
        if let Some(unit) = self.open.take() {
            self.ready.push_back(unit);
        }
    }

    /// Hands the descriptor that goes to the portal for a unit to `submit`.
    #[inline]
    pub(crate) fn with_descriptor<T>(&self, unit: u32, submit: impl FnOnce(&Descriptor) -> T) -> T {
        let first = unit * self.options.batch;
        match self.units[unit as usize].members {
            1 => submit(&self.descriptors[first as usize]),
            count => submit(
                &Descriptor::batch(list_address(self.id, first), count)
                    .with_completion(record_address(self.id, self.slots() as u32 + unit)),
            ),
        }
    }

    /// A record has been written. The unit that has ended with it, if one has.
    #[inline]
    pub(crate) fn write_record(&mut self, index: u32, record: &CompletionRecord) -> Option<u32> {
        self.records[index as usize] = *record;
        let slots = self.slots() as u32;
        match index.checked_sub(slots) {
            Some(unit) => Some(unit),
            None => {
                let unit = index / self.options.batch;
                (self.units[unit as usize].members == 1).then_some(unit)
            }
        }
    }

    /// Next completion that the core can see.
    #[inline]
    pub(crate) fn next_completion(&mut self) -> Option<Completion> {
        let (unit, member) = match self.draining.take() {
            Some(position) => position,
            None => {
                let (at, unit) = *self.visible.front()?;
                if at > self.core.clock {
                    return None;
                }
                self.visible.pop_front();
                self.in_flight -= 1;
                (unit, 0)
            }
        };
        let slot = unit * self.options.batch + member;
        if member + 1 < self.units[unit as usize].members {
            self.draining = Some((unit, member + 1));
        } else {
            self.free_units.push(unit);
        }
        self.counters.completed += 1;
        Some(Completion {
            ticket: Ticket(slot),
            user_data: self.user_data[slot as usize],
            record: self.records[slot as usize],
            executor: match self.options.queue {
                Some(_) => Executor::Model,
                None => Executor::ModelCpu,
            },
        })
    }

    /// Whether completions are at hand that the core need not wait for: the rest of a unit, or
    /// what it has done itself.
    pub(crate) fn has_at_hand(&self) -> bool {
        self.draining.is_some() || self.options.queue.is_none() && !self.visible.is_empty()
    }

    /// What the channel did so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The core's time.
    pub fn now(&self) -> Time {
        self.core.clock
    }

    /// Time of looks that found nothing, and of sleep.
    pub fn waited(&self) -> Duration {
        self.core.waited
    }

    /// Time that the core was not asleep.
    pub fn busy(&self) -> Duration {
        self.core.busy
    }
}
