//! A device of version 2 with its event log on or off, and what that log holds.

use dray_device::{
    Capabilities, DescriptorResult, Effect, Hardware, ListRead, Member, Payload, PciControls,
    Rejection, SliceMemory, Work, WorkId, WorkKind,
};
use dray_spec::registers::{
    self as at, Command, ErrorHead, EventLogEntry, IdCap, MsixPermission, SoftwareErrorRegister,
    TableOffsets, WorkQueuePolicy,
};
use dray_spec::{Descriptor, GenCap, OpCap, Opcode, Status};
use zerocopy::{FromBytes, IntoBytes};

use super::driver::{Driver, config};
use crate::common::profile::capabilities;

const LOG: u64 = 0x10_0000;

/// Version 2 with every operation.
fn version_2() -> Capabilities {
    let all = Opcode::ALL
        .iter()
        .fold(OpCap::default(), |all, opcode| all.with(*opcode));
    let id_cap = IdCap::new()
        .with_types(3)
        .with_entries(16)
        .with_offset_mode(true);
    Capabilities {
        version: 0x200,
        gen_cap: GenCap::from_bits(capabilities().gen_cap)
            .with_inter_domain(true)
            .with_drain_readback(true)
            .with_fault_info(true)
            .with_event_log_entry(1)
            .into_bits(),
        op_cap: all.0,
        id_cap: id_cap.into_bits(),
        ..capabilities()
    }
}

pub(crate) struct Setup {
    pub(crate) log: bool,
    pub(crate) page_requests: bool,
    /// Added to the policy of queue 0.
    pub(crate) policy: WorkQueuePolicy,
    pub(crate) traffic_classes: u8,
}

pub(crate) const ON: Setup = Setup {
    log: true,
    page_requests: true,
    policy: WorkQueuePolicy::new(),
    traffic_classes: u8::MAX,
};
pub(crate) const OFF: Setup = Setup { log: false, ..ON };

impl Setup {
    /// Enabled, with a log of 64 entries, and both queues.
    pub(crate) fn driver(&self) -> Driver {
        let hardware = Hardware {
            masks_vectors: false,
            ..Hardware::new(version_2())
        };
        let mut driver = Driver::new(hardware);
        let mut pci = PciControls {
            page_requests: self.page_requests,
            ..PciControls::default()
        };
        pci.config.traffic_classes = self.traffic_classes;
        driver.function.set_pci(pci, &mut driver.effects);
        let mut config = config();
        config.capabilities = version_2();
        config.groups[0].traffic_classes = [0, 3];
        driver.configure(&config);
        if self.log {
            write64(&mut driver, at::EVLCFG, LOG);
            write64(&mut driver, at::EVLCFG + 8, 64);
            let value = driver.read(at::GENCFG);
            driver.write(at::GENCFG, value | 1 << 13);
        }
        let policy = driver.read(0x808);
        driver.write(0x808, policy | self.policy.into_bits());
        // Entry 3 is for this queue's descriptors.
        let permission = MsixPermission::new().with_pasid_enable(true).into_bits();
        let permissions = u64::from(driver.read(at::OFFSETS + 4) & 0xffff) * TableOffsets::UNIT;
        driver.write(permissions + 8 * 3, permission);
        assert_eq!(driver.command(Command::EnableDevice, 0), 0);
        for wq in [0, 1] {
            assert_eq!(driver.command(Command::EnableWq, wq), 0);
        }
        driver.effects.clear();
        driver
    }
}

pub(crate) fn write64(driver: &mut Driver, offset: u64, value: u64) {
    driver.function.write64(offset, value, &mut driver.effects);
}

pub(crate) fn end(driver: &mut Driver, id: WorkId, outcome: &DescriptorResult) {
    driver.function.done(id, outcome, &mut driver.effects);
}

pub(crate) fn success(driver: &mut Driver, id: WorkId) {
    end(driver, id, &DescriptorResult::status(Status::SUCCESS));
}

pub(crate) fn rejection(work: &Work) -> Rejection {
    match work.kind {
        WorkKind::Reject(rejection) => rejection,
        other => panic!("{other:?} where a rejection was expected"),
    }
}

pub(crate) fn member(driver: &mut Driver, batch: WorkId) -> Work {
    match driver.function.next_member(batch) {
        Member::Work(work) => work,
        other => panic!("{other:?} where a member was expected"),
    }
}

/// A batch whose list is there; its handle.
pub(crate) fn begin(driver: &mut Driver, descriptor: &Descriptor, list: &[Descriptor]) -> WorkId {
    driver.submit(0, descriptor);
    let work = driver.take(0);
    driver.list_read(work.id, list, ListRead::default());
    work.id
}

/// How work ends on memory of which the page of its record is no part.
pub(crate) fn without_record(driver: &mut Driver, work: &Work) -> DescriptorResult {
    let nothing = &mut SliceMemory::new(0, Vec::new());
    execute(driver, work, nothing)
}

/// Starts work and executes it; how it ends.
pub(crate) fn execute(
    driver: &mut Driver,
    work: &Work,
    memory: &mut SliceMemory,
) -> DescriptorResult {
    let task = driver.function.start(work).expect("work under way");
    task.execute(memory, Payload::Moved)
}

/// Entries of the log since the last call; nothing else has been reported.
pub(crate) fn entries(driver: &mut Driver) -> Vec<EventLogEntry> {
    let halves: Vec<[u64; 4]> = driver
        .effects
        .drain(..)
        .map(|effect| match effect {
            Effect::Log { words, .. } => words,
            other => panic!("{other:?} beside the log"),
        })
        .collect();
    let entry = |pair: &[[u64; 4]]| EventLogEntry::read_from_bytes(pair.as_bytes()).expect("64");
    halves.chunks(2).map(entry).collect()
}

pub(crate) fn entry(driver: &mut Driver) -> EventLogEntry {
    let entries = entries(driver);
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries[0]
}

pub(crate) fn software_error(driver: &Driver) -> SoftwareErrorRegister {
    let words = [0, 8, 16, 24].map(|at| driver.function.read64(at::SWERROR + at));
    SoftwareErrorRegister::read_from_bytes(words.as_bytes()).expect("32 bytes")
}

pub(crate) fn code(entry: &EventLogEntry) -> u8 {
    ErrorHead::from_bits(entry.head).error()
}
