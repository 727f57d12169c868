//! Knows what was submitted and sees what is reported; fails on any report that does not fit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dray_device::{
    DescriptorResult, Device, DeviceConfig, Effect, ListRead, Member as Next, Portal, Submission,
    Work, WorkId, WorkKind, WorkQueueMode,
};
use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    pub(crate) fenced: bool,
    pub(crate) refused: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Noop,
    Drain,
    /// A drain that an engine carries out, once it has waited.
    ReadBack,
    /// Breaks a rule.
    Refused,
    Batch(Vec<Member>),
}

/// A descriptor, known by the number of its record.
#[derive(Debug)]
struct Known {
    kind: Kind,
    wq: u16,
    pasid: u32,
    /// What a drain waits for, as far as it had not ended when the drain was submitted.
    before: BTreeSet<u64>,
    /// Numbers of the members; none have a record before the list is there.
    members: Vec<u64>,
    failed: bool,
    processed: u32,
}

pub(crate) struct Witness {
    device: Device,
    next: u64,
    known: BTreeMap<u64, Known>,
    /// What waits in each queue, in order.
    waiting: Vec<VecDeque<u64>>,
    /// Batches whose list is not there yet, and those whose members run.
    unfetched: Vec<(WorkId, u64)>,
    running: Vec<(WorkId, u64)>,
    /// What engines work on, with its number and the batch that it belongs to.
    worked: Vec<(Work, u64, Option<u64>)>,
    ended: BTreeMap<u64, CompletionRecord>,
    lost: BTreeSet<u64>,
    errors: usize,
}

fn number(descriptor: &Descriptor) -> u64 {
    descriptor.completion_addr / 32
}

impl Witness {
    pub(crate) fn new(config: DeviceConfig) -> Witness {
        let waiting = vec![VecDeque::new(); config.work_queues.len()];
        Witness {
            device: Device::new(config).expect("a configuration that can be enabled"),
            next: 1,
            known: BTreeMap::new(),
            waiting,
            unfetched: Vec::new(),
            running: Vec::new(),
            worked: Vec::new(),
            ended: BTreeMap::new(),
            lost: BTreeSet::new(),
            errors: 0,
        }
    }

    pub(crate) fn queues(&self) -> usize {
        self.waiting.len()
    }

    fn new_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn submit(&mut self, wq: u16, limited: bool, posted: bool, kind: &Kind, pasid: u32) {
        let n = self.new_number();
        let descriptor = match kind {
            Kind::Noop => Descriptor::noop(),
            Kind::Drain => Descriptor::drain(),
            Kind::ReadBack => Descriptor::drain().with_readback2(0x1000),
            Kind::Refused => Descriptor::fill(0, 0, 0),
            Kind::Batch(members) => Descriptor::batch(64 * n, members.len() as u32),
        };
        let descriptor = descriptor.with_completion(32 * n).with_pasid(pasid);
        let queue = &self.device.config().work_queues[usize::from(wq)];
        let (mode, size, threshold) = (queue.mode, queue.size, queue.threshold);
        let occupancy = self.waiting[usize::from(wq)].len() as u16;
        let expected = match (mode, posted) {
            (WorkQueueMode::Dedicated, true) if occupancy < size => Submission::Accepted,
            (WorkQueueMode::Dedicated, true) => Submission::Lost,
            (WorkQueueMode::Dedicated, false) => Submission::Retry,
            (WorkQueueMode::Shared, true) => Submission::Ignored,
            (WorkQueueMode::Shared, false) => {
                let limit = if limited { threshold.min(size) } else { size };
                match occupancy < limit {
                    true => Submission::Accepted,
                    false => Submission::Retry,
                }
            }
        };
        let portal = Portal { wq, limited };
        let answer = match posted {
            true => self.device.write_posted(portal, &descriptor),
            false => self.device.enqueue(portal, &descriptor),
        };
        assert_eq!(answer, expected);
        match answer {
            Submission::Accepted => {
                let open = |(n, known): (&u64, &Known)| {
                    let same = mode == WorkQueueMode::Dedicated || known.pasid == pasid;
                    let open = known.wq == wq && !self.ended.contains_key(n);
                    (same && open).then_some(*n)
                };
                let before = self.known.iter().filter_map(open).collect();
                self.waiting[usize::from(wq)].push_back(n);
                let known = Known {
                    kind: kind.clone(),
                    wq,
                    pasid,
                    before,
                    members: Vec::new(),
                    failed: false,
                    processed: 0,
                };
                self.known.insert(n, known);
            }
            Submission::Lost => {
                self.lost.insert(n);
                self.errors += 1;
            }
            Submission::Retry | Submission::Ignored => {
                self.lost.insert(n);
            }
        }
        self.check_occupancy();
    }

    /// Whose memory a descriptor of a queue works on: a dedicated queue has an owner.
    fn pasid(&self, n: u64) -> u32 {
        let known = &self.known[&n];
        let queue = &self.device.config().work_queues[usize::from(known.wq)];
        match queue.mode {
            WorkQueueMode::Shared => known.pasid,
            WorkQueueMode::Dedicated => queue.pasid.unwrap_or(0),
        }
    }

    fn descriptor(&self, work: &Work) -> Descriptor {
        *self.device.descriptor(work.id).expect("work under way")
    }

    pub(crate) fn take(&mut self, engine: u16) {
        let work = self.device.take(engine);
        let taken = work.map(|work| number(&self.descriptor(&work)));
        for wq in 0..self.waiting.len() {
            let left = usize::from(self.device.occupancy(wq as u16).expect("a queue"));
            while self.waiting[wq].len() > left {
                let n = self.waiting[wq].pop_front().expect("something taken");
                let known = &self.known[&n];
                let home = self.device.engines_of(known.wq);
                assert!(
                    home.contains(&engine),
                    "taken by an engine of another group"
                );
                // Only drains leave a queue without reaching an engine, to wait.
                if Some(n) != taken {
                    assert!(
                        matches!(known.kind, Kind::Drain | Kind::ReadBack),
                        "{n} got lost"
                    );
                    let open = |n: &u64| !self.ended.contains_key(n);
                    assert!(known.before.iter().any(open), "drain {n} waits for nothing");
                }
            }
        }
        if let Some(work) = work {
            let descriptor = self.descriptor(&work);
            let n = number(&descriptor);
            assert!(!self.waiting.iter().flatten().any(|w| *w == n));
            match (&self.known[&n].kind, work.kind) {
                (Kind::Batch(_), WorkKind::FetchList { .. }) => self.unfetched.push((work.id, n)),
                (Kind::Refused, WorkKind::Reject(_))
                | (Kind::Noop | Kind::Drain | Kind::ReadBack, WorkKind::Execute(_)) => {
                    self.worked.push((work, n, None));
                }
                (kind, work) => panic!("{kind:?} became {work:?}"),
            }
        }
        self.check_occupancy();
    }

    pub(crate) fn fetch(&mut self, pick: impl FnOnce(usize) -> usize) {
        if self.unfetched.is_empty() {
            return;
        }
        let (id, n) = self.unfetched.swap_remove(pick(self.unfetched.len()));
        let Kind::Batch(members) = self.known[&n].kind.clone() else {
            panic!("only batches have lists");
        };
        let mut list = Vec::new();
        for member in &members {
            let descriptor = match member.refused {
                true => Descriptor::drain(),
                false => Descriptor::noop(),
            };
            let m = self.new_number();
            let flags = if member.fenced {
                Flags::FENCE
            } else {
                Flags::EMPTY
            };
            list.push(descriptor.with_completion(32 * m).with_flags(flags));
        }
        let numbers = list.iter().map(number).collect();
        self.known.get_mut(&n).expect("a batch").members = numbers;
        let mut effects = Vec::new();
        self.device
            .list_read(id, &list, ListRead::default(), &mut effects);
        assert_eq!(effects, []);
        self.running.push((id, n));
    }

    pub(crate) fn start(&mut self, pick: impl FnOnce(usize) -> usize) {
        if self.running.is_empty() {
            return;
        }
        let (id, batch) = self.running[pick(self.running.len())];
        let known = &self.known[&batch];
        let ended = |n: &&u64| self.ended.contains_key(*n);
        match self.device.next_member(id) {
            Next::Work(work) => {
                let descriptor = self.descriptor(&work);
                let n = number(&descriptor);
                let place = known
                    .members
                    .iter()
                    .position(|m| *m == n)
                    .expect("a member");
                if descriptor.flags().contains(Flags::FENCE) {
                    let earlier = &known.members[..place];
                    assert!(earlier.iter().all(|m| ended(&m)), "{n} passed its fence");
                    assert!(!known.failed, "{n} passed a failure");
                }
                self.worked.push((work, n, Some(batch)));
            }
            Next::Fenced => {
                let waits = self.worked.iter().any(|(_, _, b)| *b == Some(batch));
                assert!(waits, "a fence of {batch} waits for nothing");
            }
            Next::None => {}
        }
    }

    pub(crate) fn end(&mut self, pick: impl FnOnce(usize) -> usize, fails: bool) {
        if self.worked.is_empty() {
            return;
        }
        let (work, n, batch) = self.worked.swap_remove(pick(self.worked.len()));
        let outcome = match work.kind {
            WorkKind::Reject(rejection) => rejection.outcome(),
            _ if fails => DescriptorResult::page_fault(0x1000, 0, false),
            _ => DescriptorResult::status(Status::SUCCESS),
        };
        if let Some(batch) = batch {
            let known = self.known.get_mut(&batch).expect("a batch");
            known.processed += 1;
            known.failed |= outcome.record.status() != Status::SUCCESS;
        }
        let mut effects = Vec::new();
        self.device.done(work.id, &outcome, &mut effects);
        let mut reported = effects.iter();
        let first = reported
            .next()
            .expect("the end of something that asked for a record");
        assert_eq!(
            *first,
            Effect::Record {
                address: 32 * n,
                record: outcome.record,
                pasid: self.pasid(batch.unwrap_or(n)),
            }
        );
        self.report(n, outcome.record);
        for effect in reported {
            let Effect::Record {
                address,
                record,
                pasid,
            } = effect
            else {
                panic!("{effect:?}");
            };
            assert_eq!(*pasid, self.pasid(address / 32));
            self.follow(address / 32, *record);
        }
    }

    /// The end of a batch with its last member, or of a drain with the last before it.
    fn follow(&mut self, n: u64, record: CompletionRecord) {
        let known = &self.known[&n];
        match &known.kind {
            Kind::Batch(_) => {
                let status = match known.failed {
                    true => Status::BATCH_FAIL,
                    false => Status::SUCCESS,
                };
                assert_eq!(record.status(), status);
                assert_eq!(record.descriptors_completed(), known.processed);
                let missing = known.members.len() - known.processed as usize;
                assert!(missing == 0 || known.failed, "{n} ended too early");
                let open = |(_, _, batch): &&(Work, u64, Option<u64>)| *batch == Some(n);
                assert_eq!(self.worked.iter().filter(open).count(), 0);
                self.running.retain(|(_, batch)| *batch != n);
            }
            Kind::Drain => assert_eq!(record.status(), Status::SUCCESS),
            kind => panic!("{n} is a {kind:?} and ended by itself"),
        }
        self.report(n, record);
    }

    fn report(&mut self, n: u64, record: CompletionRecord) {
        assert!(!self.lost.contains(&n), "{n} was never accepted");
        if let Some(known) = self.known.get(&n)
            && matches!(known.kind, Kind::Drain | Kind::ReadBack)
        {
            let open = |b: &u64| !self.ended.contains_key(b);
            assert!(!known.before.iter().any(open), "drain {n} before its turn");
        }
        assert!(self.ended.insert(n, record).is_none(), "{n} ended twice");
    }

    fn check_occupancy(&mut self) {
        for (wq, waiting) in (0..).zip(&self.waiting) {
            let occupancy = self.device.occupancy(wq).expect("a queue");
            let size = self.device.config().work_queues[usize::from(wq)].size;
            assert!(occupancy <= size);
            assert_eq!(usize::from(occupancy), waiting.len());
        }
    }

    /// Lets everything run out: then all that was accepted has ended.
    pub(crate) fn finish(mut self) {
        loop {
            (0..4).for_each(|engine| self.take(engine));
            self.fetch(|_| 0);
            for n in 0..self.running.len() {
                self.start(|_| n);
            }
            let idle = self.waiting.iter().all(VecDeque::is_empty)
                && self.unfetched.is_empty()
                && self.running.is_empty()
                && self.worked.is_empty();
            if idle {
                break;
            }
            self.end(|n| n - 1, false);
        }
        for n in self.known.keys() {
            assert!(self.ended.contains_key(n), "{n} never ended");
        }
        let errors = self.device.take_errors();
        assert_eq!(errors.len(), self.errors);
    }
}
