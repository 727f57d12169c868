//! What is known of the threads of programs, and of what they have in flight.

use std::collections::{HashMap, VecDeque};

use dray_device::WorkId;
use dray_realtime::{Event, Moment};
use dray_recording::{
    Alignment, Cursor, Flags, Log, Operands, Queue, Region, Request, Slot, cycles, time,
};
use dray_spec::{self as spec, Descriptor, Opcode, Status};

use crate::processes::Pid;

/// Pages that are remembered.
const PAGES: usize = 1 << 16;
/// Completion records of a thread that are remembered.
const RECORDS: usize = 1 << 16;
/// Of so many descriptors, the entry of one is timed.
const TIMED: u64 = 16;

/// A thread, by process and number.
type ThreadKey = (Pid, u32);

#[derive(Debug)]
struct Submitter {
    cursor: Cursor,
    /// Requests that it has recorded, members of batches as well.
    count: u32,
    /// Its last submission.
    last: Option<Moment>,
    /// The last end before its last submission: when, and of which request.
    seen: Option<(u64, u32)>,
    /// Ends that came later, in that order.
    ends: VecDeque<(u64, u32)>,
    /// By address of a completion record: the last request that has it.
    records: HashMap<u64, u32>,
}

#[derive(Debug)]
struct Flight {
    thread: ThreadKey,
    /// Number of the request in its thread.
    index: u32,
    slot: Slot,
    /// When it was submitted, or its batch was, in cycles.
    at: u64,
    member: bool,
    queue: u8,
}

#[derive(Debug)]
pub(super) struct Books {
    log: Log,
    threads: HashMap<ThreadKey, Submitter>,
    flights: HashMap<(u32, WorkId), Flight>,
    /// Process and page, and the thread whose request named it last.
    pages: Vec<(Pid, u64, u32)>,
    entered: u64,
}

impl Books {
    pub(super) fn new(log: Log) -> Books {
        Books {
            log,
            threads: HashMap::new(),
            flights: HashMap::new(),
            pages: vec![(0, u64::MAX, 0); PAGES],
            entered: 0,
        }
    }

    pub(super) fn take_in(
        &mut self,
        device: u32,
        event: &Event,
        owner: impl FnOnce(u32) -> Option<Pid>,
    ) {
        match event {
            Event::Accepted {
                id,
                wq,
                pasid,
                descriptor,
                origin,
            } => {
                let entered = cycles();
                let pid = owner(*pasid).unwrap_or(0);
                let thread = origin.map_or(0, |origin| origin.thread);
                let mut at = origin.map_or(Moment::default(), |origin| origin.at);
                if at.cycles == 0 {
                    // It came by write(2), or its program is traced: about now.
                    at.cycles = entered;
                }
                let queue = Queue {
                    device: device as u16,
                    wq: *wq,
                };
                self.accept((device, *id), (pid, thread), at, queue, descriptor);
                self.entered += 1;
                if self.entered.is_multiple_of(TIMED) {
                    self.log.timed(self.log.ns(cycles().wrapping_sub(entered)));
                }
            }
            Event::Started {
                id,
                batch: Some(batch),
                descriptor,
                ..
            } => self.member((device, *id), (device, *batch), descriptor),
            Event::Ended { id, record } => {
                let failed = record.is_none_or(|record| record.status() != Status::SUCCESS);
                self.end((device, *id), failed);
            }
            _ => {}
        }
    }

    /// A thread has submitted a descriptor.
    fn accept(
        &mut self,
        id: (u32, WorkId),
        key: ThreadKey,
        at: Moment,
        queue: Queue,
        descriptor: &Descriptor,
    ) {
        let (Some(queue), Ok(_)) = (self.log.queue(queue), descriptor.opcode()) else {
            return self.log.lose(1);
        };
        let operands = self.operands(key, descriptor);
        let new = || Submitter {
            cursor: Cursor::new(key.0, key.1),
            count: 0,
            last: None,
            seen: None,
            ends: VecDeque::new(),
            records: HashMap::new(),
        };
        let thread = self.threads.entry(key).or_insert_with(new);
        while let Some(end) = thread.ends.front().filter(|(when, _)| *when < at.cycles) {
            thread.seen = Some(*end);
            thread.ends.pop_front();
        }
        let (think, idle) = thread.pause(at, |cycles| self.log.ns(cycles));
        let reused = thread.record(descriptor);
        let request = Request {
            flags: flags(descriptor),
            operation: descriptor.opcode_byte(),
            operands,
            queue,
            seen: thread.seen.map_or(0, |(_, index)| thread.count - index),
            reuses: reused.map_or(0, |index| thread.count - index),
            think: time::from_ns(think),
            idle: time::from_ns(idle),
            ..Request::default()
        }
        .with_bytes(descriptor.size.into());
        let Some(slot) = self.log.append(&mut thread.cursor, at.cycles, &request) else {
            return;
        };
        let index = thread.count;
        thread.count += 1;
        thread.last = Some(at);
        let flight = Flight {
            thread: key,
            index,
            slot,
            at: at.cycles,
            member: false,
            queue,
        };
        self.flights.insert(id, flight);
    }

    /// A member of a batch has started.
    fn member(&mut self, id: (u32, WorkId), batch: (u32, WorkId), descriptor: &Descriptor) {
        let Some(of) = self.flights.get(&batch) else {
            return;
        };
        let (key, of_index, at, queue) = (of.thread, of.index, of.at, of.queue);
        let operands = self.operands(key, descriptor);
        let Some(thread) = self.threads.get_mut(&key) else {
            return;
        };
        let request = Request {
            flags: flags(descriptor).with(Flags::MEMBER),
            operation: descriptor.opcode_byte(),
            operands,
            queue,
            seen: thread.count - of_index,
            ..Request::default()
        }
        .with_bytes(descriptor.size.into());
        let Some(slot) = self.log.append(&mut thread.cursor, at, &request) else {
            return;
        };
        let flight = Flight {
            thread: key,
            index: thread.count,
            slot,
            at,
            member: true,
            queue,
        };
        thread.count += 1;
        self.flights.insert(id, flight);
    }

    fn end(&mut self, id: (u32, WorkId), failed: bool) {
        let Some(flight) = self.flights.remove(&id) else {
            return;
        };
        let now = cycles();
        let took = self.log.ns(now.wrapping_sub(flight.at));
        self.log
            .end(flight.slot, time::from_ns(took.max(1)), failed);
        // The program waits for the record of a batch, not for those of its members.
        if let Some(thread) = self.threads.get_mut(&flight.thread)
            && !flight.member
        {
            thread.ends.push_back((now, flight.index));
        }
    }

    /// What the operands of a descriptor are, which a thread names now.
    fn operands(&mut self, key: ThreadKey, d: &Descriptor) -> Operands {
        let (first, second) = match d.opcode() {
            Ok(Opcode::Fill) => (None, Some(d.address2)),
            Ok(Opcode::Noop | Opcode::Drain | Opcode::Batch) | Err(_) => (None, None),
            Ok(Opcode::ComparePattern | Opcode::CrcGenerate | Opcode::DifCheck) => {
                (Some(d.address1), None)
            }
            Ok(_) => (Some(d.address1), Some(d.address2)),
        };
        let both = [first, second];
        Operands {
            alignment: both.map(|at| at.map_or(Alignment::Page, Alignment::of)),
            region: both.map(|at| at.map_or(Region::None, |at| self.region(key, at))),
        }
    }

    fn region(&mut self, (pid, thread): ThreadKey, address: u64) -> Region {
        let page = address >> 12;
        let mixed = (page ^ (pid as u64) << 44).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = &mut self.pages[(mixed >> 48) as usize % PAGES];
        let before = std::mem::replace(place, (pid, page, thread));
        match before {
            (of, same, by) if (of, same) == (pid, page) && by == thread => Region::Reused,
            (of, same, _) if (of, same) == (pid, page) => Region::Shared,
            _ => Region::Fresh,
        }
    }
}

impl Submitter {
    /// The last request with the completion record of a descriptor, which comes next.
    fn record(&mut self, d: &Descriptor) -> Option<u32> {
        if !d.flags().contains(spec::Flags::COMPLETION_ADDRESS_VALID) {
            return None;
        }
        // A program may name any address.
        if self.records.len() >= RECORDS {
            self.records.clear();
        }
        self.records.insert(d.completion_addr, self.count)
    }

    /// CPU time, and other time, between what this thread did last, or the end that it could have seen after that, and a
    /// submission. Its CPU time is known at submissions alone: of a pause that begins with an end it is at most all that the
    /// thread has used since its last submission.
    fn pause(&self, at: Moment, ns: impl Fn(u64) -> u64) -> (u64, u64) {
        let Some(last) = self.last else {
            return (at.cpu_ns, 0);
        };
        // What it says is of the submission before, or of none.
        let returned = at.returned.clamp(last.cycles, at.cycles.max(last.cycles));
        let ended = self.seen.map_or(0, |(when, _)| when);
        let pause = ns(at.cycles.saturating_sub(returned.max(ended)));
        let think = match (last.cpu_ns, at.cpu_ns) {
            (0, _) | (_, 0) => pause,
            (before, now) => pause.min(now.saturating_sub(before)),
        };
        (think, pause - think)
    }
}

fn flags(d: &Descriptor) -> Flags {
    let set = [
        (spec::Flags::CACHE_CONTROL, Flags::CACHE_CONTROL),
        (spec::Flags::FENCE, Flags::FENCE),
    ];
    let set = set
        .into_iter()
        .filter(|(flag, _)| d.flags().contains(*flag));
    set.fold(Flags::default(), |flags, (_, flag)| flags.with(flag))
}
