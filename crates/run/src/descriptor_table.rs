//! The descriptors of one device: those on their way, and sums of those that have ended.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use dray_device::{WorkId, WorkQueueMode};
use dray_realtime::{Event, RealtimeDevice};
use dray_spec::registers::WorkQueueState;
use dray_spec::{CompletionRecord, Descriptor, Opcode};
use hdrhistogram::Histogram;

use crate::processes::Pid;
use crate::stats::{Queue, Tally};

/// Times are kept to 1 %, from a nanosecond to an hour.
const DIGITS: u8 = 2;
const LONGEST_NS: u64 = 3600 * 1_000_000_000;

/// A descriptor that has ended. Times are nanoseconds from the beginning of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) wq: u16,
    /// The engine that has had it; drains may reach none.
    pub(crate) engine: Option<u16>,
    pub(crate) pasid: u32,
    /// Process of the PASID.
    pub(crate) pid: Option<Pid>,
    /// Operation code.
    pub(crate) operation: u8,
    /// Bytes; members of a batch.
    pub(crate) size: u32,
    /// It is a member of a batch.
    pub(crate) member: bool,
    /// When it was read from the ring, or its batch was.
    pub(crate) accepted_ns: u64,
    pub(crate) started_ns: u64,
    pub(crate) ended_ns: u64,
    /// `None` if it was given up.
    pub(crate) record: Option<CompletionRecord>,
}

impl Ended {
    /// From the ring to an engine; to its end for what has reached none.
    pub(crate) fn wait_ns(&self) -> u64 {
        self.started_ns.saturating_sub(self.accepted_ns)
    }

    pub(crate) fn is_batch(&self) -> bool {
        self.operation == u8::from(Opcode::Batch)
    }

    /// The status of its record, in a word.
    pub(crate) fn status_name(&self) -> &'static str {
        self.record
            .map_or("abandoned", |record| record.status().name())
    }

    pub(crate) fn bytes_completed(&self) -> u32 {
        self.record.map_or(0, |record| record.bytes_completed)
    }
}

#[derive(Debug, Clone, Copy)]
struct UnderWay {
    wq: u16,
    pasid: u32,
    pid: Option<Pid>,
    engine: Option<u16>,
    member: bool,
    accepted_ns: u64,
    started_ns: Option<u64>,
    operation: u8,
    size: u32,
}

/// Times of the descriptors of one queue.
#[derive(Debug)]
pub(crate) struct Times(Option<Histogram<u64>>);

impl Times {
    pub(crate) fn new() -> Times {
        Times(Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).ok())
    }

    pub(crate) fn record(&mut self, ns: u64) {
        if let Some(times) = &mut self.0 {
            times.saturating_record(ns);
        }
    }

    /// Median and 99 %, if there are any.
    pub(crate) fn summary(&self) -> Option<(u64, u64)> {
        let times = self.0.as_ref().filter(|times| !times.is_empty())?;
        Some((times.value_at_quantile(0.5), times.value_at_quantile(0.99)))
    }
}

/// Mode and size of the queues that are enabled.
pub(crate) type Enabled = BTreeMap<u16, (WorkQueueMode, u16)>;

/// Asks a device for them. Not while its books are open: its thread may wait for them.
pub(crate) fn enabled(device: &RealtimeDevice) -> Enabled {
    let found = device.control(|function, _| {
        let enabled = |wq| function.queue_state(wq) == Some(WorkQueueState::Enabled);
        let queues = function.config().work_queues.iter();
        let queues = queues.filter(|queue| enabled(queue.id));
        queues.map(|q| (q.id, (q.mode, q.size))).collect()
    });
    // A device that has stopped has no queues.
    found.unwrap_or_default()
}

/// The books of one device.
#[derive(Debug)]
pub(crate) struct DescriptorTable {
    began: Instant,
    under_way: HashMap<WorkId, UnderWay>,
    tallies: BTreeMap<(u16, u8), Tally>,
    /// From ring to engine, by work queue.
    waits: BTreeMap<u16, Times>,
}

impl DescriptorTable {
    pub(crate) fn new(began: Instant) -> DescriptorTable {
        DescriptorTable {
            began,
            under_way: HashMap::new(),
            tallies: BTreeMap::new(),
            waits: BTreeMap::new(),
        }
    }

    /// Descriptors that have not ended.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Enters an event of a device; returns the descriptor that ended with it. `owner` gives the process of a PASID.
    pub(crate) fn take_in(
        &mut self,
        event: &Event,
        owner: impl FnOnce(u32) -> Option<Pid>,
    ) -> Option<Ended> {
        match event {
            Event::Accepted {
                id,
                wq,
                pasid,
                descriptor,
                ..
            } => {
                let began = UnderWay {
                    wq: *wq,
                    pasid: *pasid,
                    pid: owner(*pasid),
                    engine: None,
                    member: false,
                    accepted_ns: self.now(),
                    started_ns: None,
                    operation: descriptor.opcode_byte(),
                    size: size(descriptor),
                };
                self.under_way.insert(*id, began);
                None
            }
            Event::Started {
                id,
                engine,
                batch,
                descriptor,
            } => {
                self.start(*id, *engine, *batch, descriptor);
                None
            }
            Event::Ended { id, record } => self.end(*id, *record),
            _ => None,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn start(&mut self, id: WorkId, engine: u16, batch: Option<WorkId>, descriptor: &Descriptor) {
        let now = self.now();
        if let Some(batch) = batch {
            let Some(of) = self.under_way.get(&batch).copied() else {
                return;
            };
            let member = UnderWay {
                engine: Some(engine),
                member: true,
                started_ns: Some(now),
                operation: descriptor.opcode_byte(),
                size: size(descriptor),
                ..of
            };
            self.under_way.insert(id, member);
        } else if let Some(one) = self.under_way.get_mut(&id) {
            one.engine = Some(engine);
            one.started_ns = Some(now);
            let times = self.waits.entry(one.wq).or_insert_with(Times::new);
            times.record(now.saturating_sub(one.accepted_ns));
        }
    }

    fn end(&mut self, id: WorkId, record: Option<CompletionRecord>) -> Option<Ended> {
        let ended_ns = self.now();
        let one = self.under_way.remove(&id)?;
        let ended = Ended {
            wq: one.wq,
            engine: one.engine,
            pasid: one.pasid,
            pid: one.pid,
            operation: one.operation,
            size: one.size,
            member: one.member,
            accepted_ns: one.accepted_ns,
            started_ns: one.started_ns.unwrap_or(ended_ns),
            ended_ns,
            record,
        };
        let tally = self.tallies.entry((ended.wq, ended.operation));
        tally.or_default().add(&ended);
        Some(ended)
    }

    /// What is to be said of its queues: those that had descriptors, and those that are enabled.
    pub(crate) fn sum_up(&self, id: u32, device: &RealtimeDevice, enabled: &Enabled) -> Vec<Queue> {
        let count = device.hardware().wq_cap.work_queues();
        let queue = |wq: u16| {
            let tallies = self.tallies.range((wq, 0)..=(wq, u8::MAX));
            let tallies: BTreeMap<u8, Tally> = tallies
                .map(|((_, operation), tally)| (*operation, tally.clone()))
                .collect();
            let under_way = self.under_way.values().filter(|one| one.wq == wq);
            let queue = Queue {
                device: id,
                wq,
                mode: enabled.get(&wq).map(|(mode, _)| *mode),
                size: enabled.get(&wq).map(|(_, size)| *size),
                tallies,
                retries: device.retried(wq).unwrap_or(0),
                lost: device.lost(wq).unwrap_or(0),
                wrong_kind: device.wrong_kind(wq).unwrap_or_default(),
                under_way: under_way.count() as u64,
                wait_ns: self.waits.get(&wq).and_then(Times::summary),
            };
            (queue.mode.is_some() || queue.has_been_used()).then_some(queue)
        };
        (0..count.into()).filter_map(queue).collect()
    }
}

/// Bytes that a descriptor is about, or members; 0 for operations without a size.
fn size(descriptor: &Descriptor) -> u32 {
    match descriptor.opcode() {
        Ok(Opcode::Noop | Opcode::Drain) => 0,
        _ => descriptor.size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_to_one_percent() {
        let mut times = Times::new();
        assert_eq!(times.summary(), None);
        for ns in (1..=100).map(|n| n * 10_000) {
            times.record(ns);
        }
        let (median, most) = times.summary().unwrap();
        assert!((500_000..=505_000).contains(&median), "{median}");
        assert!((990_000..=999_900).contains(&most), "{most}");
        times.record(u64::MAX);
    }
}
