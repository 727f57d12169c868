//! Runs a device on one thread: one engine after the other, each descriptor to its end.

use dray_device::{
    Access, Device, DeviceConfig, Effect, Member, Memory, Outcome, Payload, Portal, Submission,
    Work, WorkId, WorkKind, WorkQueueMode, execute, execute_between,
};
use dray_spec::{CompletionRecord, Descriptor, Status};
use zerocopy::{FromBytes, IntoBytes};

use dray_device::conformance::Pages;

pub(crate) struct Runner {
    pub(crate) device: Device,
    pub(crate) memory: Pages,
    pub(crate) payload: Payload,
    pub(crate) records: Vec<(u64, CompletionRecord)>,
    pub(crate) interrupts: Vec<u16>,
    pub(crate) errors: Vec<(Status, u64)>,
}

impl Runner {
    pub(crate) fn new(config: DeviceConfig, memory: Pages) -> Runner {
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
    pub(crate) fn submit(&mut self, wq: u16, descriptor: &Descriptor) -> Submission {
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
    pub(crate) fn run(&mut self) {
        let engines = self.device.config().capabilities.max_engines;
        while let Some(work) = (0..engines).find_map(|engine| self.device.take(engine)) {
            self.work(&work);
        }
    }

    /// Carries work out, with all the members of a batch.
    pub(crate) fn work(&mut self, work: &Work) {
        let outcome = match work.kind {
            _ if !self.is_recordable(work.id) => Outcome::unrecorded(),
            WorkKind::Reject(rejection) => rejection.outcome(),
            WorkKind::Execute(opcode) => {
                let descriptor = self.device.descriptor(work.id).expect("work under way");
                execute(opcode, descriptor, &mut self.memory, self.payload)
            }
            WorkKind::ExecuteBetween(opcode) => match self.device.domains(work.id) {
                Err(outcome) => outcome,
                Ok(domains) => {
                    let descriptor = self.device.descriptor(work.id).expect("work under way");
                    let memory = &mut self.memory;
                    execute_between(opcode, descriptor, &domains, memory, self.payload)
                }
            },
            WorkKind::FetchList { address, count } => {
                self.fetch(work.id, address, count);
                while let Member::Work(member) = self.device.next_member(work.id) {
                    self.work(&member);
                }
                return;
            }
        };
        self.done(work.id, &outcome);
    }

    fn is_recordable(&self, id: WorkId) -> bool {
        let record = self.device.record_address(id);
        record.is_none_or(|address| self.memory.accessible(address, 32, Access::Write) == 32)
    }

    pub(crate) fn done(&mut self, id: WorkId, outcome: &Outcome) {
        let mut effects = Vec::new();
        self.device.done(id, outcome, &mut effects);
        self.apply(effects);
    }

    pub(crate) fn fetch(&mut self, id: WorkId, address: u64, count: u32) {
        let size = u64::from(count) * 64;
        let readable = self.memory.accessible(address, size, Access::Read) / 64 * 64;
        let bytes = match readable {
            0 => &[],
            _ => self.memory.peek(address, readable as usize),
        };
        let list: Vec<Descriptor> = bytes
            .chunks_exact(64)
            .map(|bytes| Descriptor::read_from_bytes(bytes).expect("64 bytes"))
            .collect();
        let mut effects = Vec::new();
        let fault = address.wrapping_add(readable);
        match list.len() as u32 {
            n if n == count => self.device.list_fetched(id, &list, &mut effects),
            0 => self.device.list_faulted(id, fault, &mut effects),
            _ => self
                .device
                .list_fetched_until(id, &list, fault, &mut effects),
        }
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
