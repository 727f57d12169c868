//! An engine in modelled time: what it has fetched, what it moves, what is on its way out.

use std::collections::VecDeque;

use dray_clock::{Duration, EventStream, Time};
use dray_device::{DescriptorResult, Work, WorkId};
use dray_platform::EnginePipe;

use crate::batch_run::Ahead;
use crate::cost::{CostId, Costs};

/// Where an engine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EngineAt {
    device: u16,
    engine: u16,
}

impl EngineAt {
    pub(crate) fn new(device: usize, engine: usize) -> EngineAt {
        // A platform has at most 64 devices, a device at most 255 engines.
        EngineAt {
            device: device as u16,
            engine: engine as u16,
        }
    }

    #[inline]
    pub(crate) fn device(self) -> usize {
        self.device.into()
    }

    #[inline]
    pub(crate) fn engine(self) -> usize {
        self.engine.into()
    }
}

/// A descriptor that an engine has taken from a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Job {
    /// One descriptor, decoded at the given time.
    Single(Work, Time),
    /// A batch; its members can be had once the list has been read.
    Batch { work: Work, list_read: bool },
}

/// The descriptor whose data moves right now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Current {
    /// Its [`Ending`], by index.
    pub(crate) pending: u32,
    pub(crate) cost: CostId,
    pub(crate) start: Time,
    /// Extra time of a fault before the completion.
    pub(crate) fault: Duration,
    /// How long it holds up the engine: a fault that the device resolves does, one that it reports does not.
    pub(crate) blocked: Duration,
    /// Wait of its lines for those of the device's other engines.
    pub(crate) queued: Duration,
}

/// A descriptor whose record is on its way to memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) id: WorkId,
    pub(crate) at: EngineAt,
    /// It is a member of a batch.
    pub(crate) member: bool,
    pub(crate) outcome: DescriptorResult,
}

#[derive(Debug)]
pub(crate) struct EngineRun {
    /// Index on the device.
    pub(crate) id: u16,
    /// Its group, whose engines share read buffers.
    pub(crate) group: u16,
    /// Flow slot of the shared bandwidth.
    pub(crate) flow: usize,
    /// Records leave an engine mostly in order.
    pub(crate) stream: EventStream,
    pub(crate) pipe: EnginePipe,
    pub(crate) costs: Costs,
    pub(crate) jobs: VecDeque<Job>,
    pub(crate) current: Option<Current>,
    /// No descriptor starts before.
    pub(crate) free_at: Time,
    /// Of members that have been started ahead of time.
    pub(crate) ahead: Ahead,
    /// The next member of the first batch waits for those before it.
    pub(crate) fenced: bool,
    /// A start event is scheduled for this time. There is at most one, and what it waits for does
    /// not change before.
    pub(crate) start_at: Option<Time>,
}

impl EngineRun {
    pub(crate) fn new(
        id: u16,
        flow: usize,
        stream: EventStream,
        at: EngineAt,
        buffers: u64,
        alone: bool,
    ) -> EngineRun {
        EngineRun {
            id,
            group: 0,
            flow,
            stream,
            pipe: EnginePipe::default(),
            costs: Costs::new(at.device, buffers, alone),
            jobs: VecDeque::new(),
            current: None,
            free_at: Time::ZERO,
            ahead: Ahead::default(),
            fenced: false,
            start_at: None,
        }
    }

    /// Whether the engine takes another descriptor from its queues: it holds the one that it works
    /// on and a few that it has fetched ahead.
    #[inline]
    pub(crate) fn takes_more(&self, now: Time, fetch_ahead: u64) -> bool {
        self.has_room(self.is_working(now), fetch_ahead)
    }

    #[inline]
    pub(crate) fn is_working(&self, now: Time) -> bool {
        self.current.is_some() || self.ahead.works(now, self.free_at)
    }

    #[inline]
    pub(crate) fn has_room(&self, working: bool, fetch_ahead: u64) -> bool {
        let room = match working {
            true => fetch_ahead,
            false => fetch_ahead + 1,
        };
        (self.jobs.len() as u64) < room
    }
}
