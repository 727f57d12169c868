//! An engine in modelled time: what it has fetched, what it moves, what is on its way out.

use std::collections::VecDeque;

use dray_clock::{Duration, Time};
use dray_device::{Outcome, Work, WorkId};
use dray_platform::{EnginePipe, Service, Transfer};

/// A descriptor that an engine has taken from a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Job {
    /// One descriptor, decoded at the given time.
    Single(Work, Time),
    /// A batch; its members can be had once the list has been read.
    Batch {
        id: WorkId,
        /// Address and length of the list.
        list: (u64, u32),
        list_read: bool,
    },
}

/// The descriptor whose data moves right now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Current {
    pub(crate) id: WorkId,
    pub(crate) outcome: Outcome,
    pub(crate) service: Service,
    pub(crate) start: Time,
    /// Extra time of a fault before the completion.
    pub(crate) fault: Duration,
    /// It is a member of a batch.
    pub(crate) member: bool,
}

/// A descriptor whose record is on its way to memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) id: WorkId,
    pub(crate) outcome: Outcome,
    pub(crate) member: bool,
}

#[derive(Debug)]
pub(crate) struct EngineRun {
    /// Index on the device.
    pub(crate) id: u16,
    /// Slot in the fabric.
    pub(crate) flow: usize,
    /// Read buffers that its group may hold.
    pub(crate) buffers: u64,
    pub(crate) pipe: EnginePipe,
    pub(crate) jobs: VecDeque<Job>,
    pub(crate) current: Option<Current>,
    /// No descriptor starts before.
    pub(crate) free_at: Time,
    /// A start event is scheduled for this time.
    pub(crate) start_at: Option<Time>,
    /// Service of the last transfer: workloads repeat themselves.
    pub(crate) last_service: Option<(Transfer, bool, Service)>,
}

impl EngineRun {
    pub(crate) fn new(id: u16, flow: usize, buffers: u64) -> EngineRun {
        EngineRun {
            id,
            flow,
            buffers,
            pipe: EnginePipe::default(),
            jobs: VecDeque::new(),
            current: None,
            free_at: Time::ZERO,
            start_at: None,
            last_service: None,
        }
    }

    /// Whether the engine takes another descriptor from its queues: it holds the one that it works
    /// on and a few that it has fetched ahead.
    pub(crate) fn takes_more(&self, now: Time, fetch_ahead: u64) -> bool {
        let working = self.current.is_some() || self.free_at > now;
        let room = match working {
            true => fetch_ahead,
            false => fetch_ahead + 1,
        };
        (self.jobs.len() as u64) < room
    }
}
