//! A device without threads or time: one engine after the other, each descriptor to its end.

use dray_device::{
    Access, Action, DescriptorResult, Device, DeviceConfig, Effect, Member, Memory, Payload,
    Portal, Submission, Task, Work, WorkId, WorkQueueMode,
};
use dray_spec::{CompletionRecord, Descriptor, Status};
use zerocopy::IntoBytes;

use crate::rules::Pages;

/// A device, its memory, and what became visible.
#[derive(Debug)]
pub struct Runner {
    /// The device.
    pub device: Device,
    /// The memory that it works on.
    pub memory: Pages,
    /// Whether bytes move.
    pub payload: Payload,
    /// Records with their addresses, in order.
    pub records: Vec<(u64, CompletionRecord)>,
    /// Handles of interrupts, in order.
    pub interrupts: Vec<u16>,
    /// Software errors with their addresses, in order.
    pub errors: Vec<(Status, u64)>,
}

impl Runner {
    /// A device that is enabled as configured.
    ///
    /// # Panics
    /// It cannot be enabled so.
    pub fn new(config: DeviceConfig, memory: Pages) -> Runner {
        Runner {
            device: Device::new(config).expect("a configuration that can be enabled"),
            memory,
            payload: Payload::Moved,
            records: Vec::new(),
            interrupts: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Submits as the queue wants it, through the limited portal.
    pub fn submit(&mut self, wq: u16, descriptor: &Descriptor) -> Submission {
        let portal = Portal { wq, limited: true };
        let mut queues = self.device.config().work_queues.iter();
        let mode = queues.find(|q| q.id == wq).map(|q| q.mode);
        let answer = match mode {
            Some(WorkQueueMode::Shared) => self.device.enqueue(portal, descriptor),
            _ => self.device.write_posted(portal, descriptor),
        };
        let effects = self.device.take_errors();
        self.apply(effects);
        answer
    }

    /// Until nothing is left to do.
    pub fn run(&mut self) {
        let engines = self.device.config().capabilities.max_engines;
        while let Some(work) = (0..engines).find_map(|engine| self.device.take(engine)) {
            self.work(&work);
        }
    }

    /// Executes work, with all the members of a batch.
    ///
    /// # Panics
    /// It is not under way.
    pub fn work(&mut self, work: &Work) {
        let task = self.device.start(work).expect("work under way");
        if let Action::ReadList { .. } = task.action {
            self.read_list(&task);
            while let Member::Work(member) = self.device.next_member(work.id) {
                self.work(&member);
            }
            return;
        }
        let outcome = task.execute(&mut self.memory, self.payload);
        self.done(work.id, &outcome);
    }

    /// Work has ended.
    pub fn done(&mut self, id: WorkId, outcome: &DescriptorResult) {
        let mut effects = Vec::new();
        self.device.done(id, outcome, &mut effects);
        self.apply(effects);
    }

    /// Reads the list of a batch.
    pub fn read_list(&mut self, task: &Task) {
        let mut list = Vec::new();
        let read = task.read_list(&mut self.memory, &mut list);
        let mut effects = Vec::new();
        self.device.list_read(task.id, &list, read, &mut effects);
        self.apply(effects);
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Record {
                    address, record, ..
                } => {
                    assert_eq!(address % 32, 0, "records are aligned");
                    if self.memory.accessible(address, 32, Access::Write) == 32 {
                        self.memory.poke(address, record.as_bytes());
                        self.records.push((address, record));
                    } else {
                        self.errors
                            .push((Status::COMPLETION_ADDRESS_FAULT.with_write_fault(), address));
                    }
                }
                Effect::Interrupt { handle } => self.interrupts.push(handle),
                Effect::Message { .. } | Effect::Log { .. } | Effect::Abandoned { .. } => {
                    panic!("a device without registers has none of these")
                }
                Effect::SoftwareError {
                    status, address, ..
                } => self.errors.push((status, address)),
            }
        }
    }
}
