//! A device worked by hand: every step is the test's.

use dray_device::{
    DescriptorResult, Device, DeviceConfig, Effect, ListRead, Member, Portal, Submission, Work,
    WorkId, WorkKind,
};
use dray_spec::{Descriptor, Status};

pub(crate) struct ManualRunner {
    pub(crate) device: Device,
}

/// A descriptor that does nothing, with its record at a place of its own.
pub(crate) fn noop(n: u64) -> Descriptor {
    Descriptor::noop().with_completion(n * 32)
}

/// A drain whose record is at a place of its own.
pub(crate) fn drain(n: u64) -> Descriptor {
    Descriptor::drain().with_completion(n * 32)
}

/// A batch whose record is at a place of its own.
pub(crate) fn batch(n: u64, count: u32) -> Descriptor {
    Descriptor::batch(0x1000, count).with_completion(n * 32)
}

impl ManualRunner {
    pub(crate) fn new(config: DeviceConfig) -> ManualRunner {
        ManualRunner {
            device: Device::new(config).expect("a configuration that can be enabled"),
        }
    }

    pub(crate) fn write(&mut self, wq: u16, descriptor: &Descriptor) -> Submission {
        self.device
            .write_posted(Portal { wq, limited: true }, descriptor)
    }

    pub(crate) fn enqueue(&mut self, wq: u16, descriptor: &Descriptor) -> Submission {
        self.device
            .enqueue(Portal { wq, limited: true }, descriptor)
    }

    pub(crate) fn enqueue_unlimited(&mut self, wq: u16, descriptor: &Descriptor) -> Submission {
        self.device
            .enqueue(Portal { wq, limited: false }, descriptor)
    }

    pub(crate) fn take(&mut self, engine: u16) -> Work {
        self.device.take(engine).expect("work for the engine")
    }

    /// What was taken.
    pub(crate) fn descriptor(&self, work: &Work) -> Descriptor {
        *self.device.descriptor(work.id).expect("work under way")
    }

    /// Takes a batch and hands it its list; its handle.
    pub(crate) fn take_batch(&mut self, engine: u16, list: &[Descriptor]) -> WorkId {
        let work = self.take(engine);
        let kind = WorkKind::FetchList {
            address: 0x1000,
            count: list.len() as u32,
        };
        assert_eq!(work.kind, kind);
        assert_eq!(self.fetched(work.id, list), []);
        work.id
    }

    /// Records that the list causes, by number.
    pub(crate) fn fetched(&mut self, id: WorkId, list: &[Descriptor]) -> Vec<(u64, Status)> {
        let mut effects = Vec::new();
        self.device
            .list_read(id, list, ListRead::default(), &mut effects);
        records(&effects)
    }

    pub(crate) fn member(&mut self, batch: WorkId) -> Work {
        match self.device.next_member(batch) {
            Member::Work(work) => work,
            other => panic!("{other:?} where a member was expected"),
        }
    }

    /// Records that the end causes, by number.
    pub(crate) fn done(&mut self, work: &Work) -> Vec<(u64, Status)> {
        self.ended(work, Status::SUCCESS)
    }

    /// Records that the end causes, by number.
    pub(crate) fn ended(&mut self, work: &Work, status: Status) -> Vec<(u64, Status)> {
        records(&self.effects(work, &DescriptorResult::status(status)))
    }

    pub(crate) fn effects(&mut self, work: &Work, outcome: &DescriptorResult) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.device.done(work.id, outcome, &mut effects);
        effects
    }
}

/// The records among the effects, by number.
pub(crate) fn records(effects: &[Effect]) -> Vec<(u64, Status)> {
    let record = |effect: &Effect| match effect {
        Effect::Record {
            address, record, ..
        } => Some((address / 32, record.status())),
        _ => None,
    };
    effects.iter().filter_map(record).collect()
}
