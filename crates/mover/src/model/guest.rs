//! Descriptors and memory that a program brings itself: raw writes to a portal of a modelled device.

use std::fmt;

use dray_clock::{Duration, Time};
use dray_device::{
    Access, AddressSpace, Domains, Effect, Memory, Outcome, Payload, Portal, Submission, execute,
    execute_between, execute_untranslated,
};
use dray_platform::Parameters;
use dray_spec::{CompletionRecord, Descriptor, Opcode, Status};
use zerocopy::{FromBytes, IntoBytes};

use super::world::World;

const RECORD_BYTES: u64 = size_of::<CompletionRecord>() as u64;

/// A program's memory, as the devices access it. Its lines count as data in DRAM of node 0.
pub(super) struct Guest(Box<dyn Memory>);

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guest")
    }
}

impl Memory for Guest {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        self.0.accessible(addr, len, access)
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        self.0.read(addr, into);
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        self.0.write(addr, from);
    }

    fn alternate(&mut self, space: AddressSpace) -> Option<&mut dyn Memory> {
        self.0.alternate(space)
    }
}

impl Guest {
    /// Executes a descriptor's bytes, between the address spaces of `domains` if it names any. How
    /// it ends, and the time that its faults take.
    pub(super) fn carry(
        &mut self,
        opcode: Opcode,
        d: &Descriptor,
        domains: Option<Result<Domains, Outcome>>,
        translates: bool,
        p: &Parameters,
    ) -> (Outcome, Duration) {
        let outcome = match domains.transpose() {
            Err(outcome) => outcome,
            Ok(domains) if !translates => {
                execute_untranslated(opcode, d, domains.as_ref(), self, Payload::Moved)
            }
            Ok(None) => execute(opcode, d, self, Payload::Moved),
            Ok(Some(domains)) => execute_between(opcode, d, &domains, self, Payload::Moved),
        };
        let status = outcome.record.status().code();
        let fault = match status == Status::PAGE_FAULT.code() {
            true => p.fault_detect,
            false => Duration::ZERO,
        };
        (outcome, fault)
    }

    /// Whether a completion record can be written where it is to go, if it is to go anywhere.
    pub(super) fn is_recordable(&self, record: Option<u64>) -> bool {
        let fits = |at| self.accessible(at, RECORD_BYTES, Access::Write) == RECORD_BYTES;
        record.is_none_or(fits)
    }

    /// The descriptors of a list that can be read, and the address of the first that cannot
    /// (spec 8.3.2).
    pub(super) fn list(&self, address: u64, count: u32, list: &mut Vec<Descriptor>) -> Option<u64> {
        const SIZE: u64 = size_of::<Descriptor>() as u64;
        let readable = self.accessible(address, u64::from(count) * SIZE, Access::Read);
        let whole = readable / SIZE;
        list.clear();
        for index in 0..whole {
            let mut bytes = [0; SIZE as usize];
            self.read(address + index * SIZE, &mut bytes);
            list.extend(Descriptor::read_from_bytes(&bytes));
        }
        (whole < u64::from(count)).then(|| address.saturating_add(whole * SIZE))
    }

    /// Writes a record, or says that it could not be written.
    pub(super) fn tell(&mut self, effect: &Effect) -> Option<Effect> {
        let Effect::Record {
            address, record, ..
        } = effect
        else {
            return None;
        };
        if self.is_recordable(Some(*address)) {
            self.write(*address, record.as_bytes());
            return None;
        }
        Some(Effect::SoftwareError {
            status: Status::COMPLETION_ADDRESS_FAULT.with_write_fault(),
            wq: 0,
            address: *address,
            origin: None,
            record: CompletionRecord::default(),
        })
    }
}

impl World {
    /// Gives the devices a program's memory instead of the regions of [`World::memory`]. Bytes
    /// always move in it.
    pub fn attach(&mut self, memory: Box<dyn Memory>) {
        self.guest = Some(Guest(memory));
    }

    /// A descriptor of a program's own reaches a portal now: MOVDIR64B to a dedicated work queue,
    /// ENQCMD to a shared one. `None` if there is no such device.
    pub fn write_portal(
        &mut self,
        device: u16,
        portal: Portal,
        descriptor: &Descriptor,
    ) -> Option<Submission> {
        let run = self.devices.get_mut(usize::from(device))?;
        let queues = &run.device.config().work_queues;
        let queue = queues.iter().find(|q| q.id == portal.wq);
        let answer = match queue.map(|q| q.mode) {
            Some(dray_device::WorkQueueMode::Shared) => run.device.enqueue(portal, descriptor),
            _ => run.device.write_posted(portal, descriptor),
        };
        if answer == Submission::Accepted {
            self.feed(device.into(), portal.wq);
        }
        Some(answer)
    }

    /// What the devices have said to others than the channels since the last call, and when:
    /// records, interrupts, software errors.
    pub fn take_effects(&mut self) -> Vec<(Time, Effect)> {
        let now = self.now;
        let mut effects = std::mem::take(&mut self.told);
        for run in &mut self.devices {
            let errors = run.device.take_errors().into_iter();
            effects.extend(errors.map(|effect| (now, effect)));
        }
        effects
    }
}
