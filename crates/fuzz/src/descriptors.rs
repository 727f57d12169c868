//! Any descriptors and batches in memory with holes: each ends exactly once, the device is empty
//! afterwards, and no byte changes that no descriptor names.

use dray_device::{
    Access, Capabilities, Device, DeviceConfig, Effect, GroupConfig, IdptEntry, Member, Memory,
    Outcome, Payload, Portal, Submission, Work, WorkKind, WorkQueueConfig, WorkQueueMode, execute,
    execute_between,
};
use dray_ops::BlockSize;
use dray_spec::registers::{IdCap, IdptAccess, IdptControl};
use dray_spec::{Descriptor, Flags, GenCap, Opcode};
use zerocopy::IntoBytes;

use crate::descriptor::descriptor;
use crate::draw::Draw;
use crate::image::{BYTES, Image, Page};

/// Runs descriptors made of `bytes`.
///
/// # Panics
///
/// If a promise of the device is broken.
pub fn descriptors(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let config = config(&mut draw);
    let Ok(device) = Device::new(config) else {
        panic!("the configuration is one that can be enabled");
    };
    let memory = Image::draw(&mut draw);
    let mut world = World {
        device,
        memory,
        held: Vec::new(),
        ended: 0,
        told: Vec::new(),
        errors: 0,
    };
    world.lay_lists(&mut draw);
    if draw.any() {
        world.alone(&mut draw);
    } else {
        world.together(&mut draw);
    }
}

/// All that a device can do, with one block of interrupt messages: tables are what takes most of the
/// time of a run.
pub(crate) const EVERYTHING: GenCap = GenCap::from_bits(u64::MAX).with_ims_blocks(1);

/// Two queues and two engines, of a part that can do everything, or as a Xeon has them.
fn config(draw: &mut Draw<'_>) -> DeviceConfig {
    let everything: bool = draw.any();
    let whole = IdptEntry {
        control: IdptControl::new().with_usable(true).with_allow_update(true),
        access: IdptAccess::new().with_read(true).with_write(true),
        ..IdptEntry::default()
    };
    let queue = |id, mode| WorkQueueConfig {
        id,
        mode,
        size: 8,
        threshold: 8,
        priority: 10,
        block_on_fault: everything,
        max_batch_size: 1 << 10,
        max_transfer_size: 1 << 31,
        pasid: Some(0),
        ..WorkQueueConfig::default()
    };
    let mut config = DeviceConfig {
        capabilities: Capabilities {
            version: if everything { 0x300 } else { 0x100 },
            gen_cap: match everything {
                true => EVERYTHING.into_bits(),
                false => 0x40_915f_0107,
            },
            op_cap: match everything {
                true => [u64::MAX; 4],
                false => [0x1_003f_03ff, 0, 0, 0],
            },
            id_cap: match everything {
                true => IdCap::from(u64::MAX).with_entries(4).into_bits(),
                false => 0,
            },
            max_groups: 4,
            max_work_queues: 8,
            max_engines: 4,
            work_queue_size: 128,
            max_read_buffers: 96,
            max_batch_size: 1 << 10,
            max_transfer_size: 1 << 31,
        },
        user_interrupts: true,
        work_queues: vec![
            queue(0, WorkQueueMode::Dedicated),
            queue(1, WorkQueueMode::Shared),
        ],
        groups: vec![GroupConfig {
            engines: vec![0, 1],
            ..GroupConfig::default()
        }],
        ..DeviceConfig::default()
    };
    if everything {
        config.idpt.entries = vec![whole; 4];
    }
    config
}

/// Where the records of [`World::together`] lie: apart from the image, each for itself.
const RECORDS: u64 = 0x5eed_0000_0000;

/// What an engine has, and whether its list has come if it is a batch.
#[derive(Clone, Copy)]
struct Held {
    work: Work,
    fetched: bool,
}

struct World {
    device: Device,
    memory: Image,
    held: Vec<Held>,
    /// Ends of works that engines had.
    ended: u64,
    /// Records by number, from [`RECORDS`] on.
    told: Vec<bool>,
    errors: u64,
}

impl World {
    /// Descriptors in memory, where batches may find them.
    fn lay_lists(&mut self, draw: &mut Draw<'_>) {
        let base = self.memory.base();
        for _ in 0..draw.below(3) {
            let at = draw.below(BYTES / 64 - 8) * 64;
            for n in 0..draw.below(8) {
                let member = descriptor(draw, base);
                if member.completion_addr >> 32 != RECORDS >> 32 {
                    self.memory.poke(at + 64 * n, member.as_bytes());
                }
            }
        }
    }

    /// One descriptor, and every byte looked at afterwards.
    fn alone(&mut self, draw: &mut Draw<'_>) {
        let d = descriptor(draw, self.memory.base());
        let before = self.memory.clone();
        let accepted = self.submit(0, &d) == Submission::Accepted;
        self.run(draw);
        if d.opcode() == Ok(Opcode::Batch) {
            // Its members write where they like.
            return;
        }
        let at_engine = d.opcode() != Ok(Opcode::Drain);
        assert!(!(accepted && at_engine) || self.ended == 1, "{d:?}");
        let mut allowed = targets(&d);
        if d.flags().contains(Flags::COMPLETION_ADDRESS_VALID) {
            allowed.push(range(d.completion_addr, 32));
        }
        for at in self.memory.changes(&before) {
            assert!(before.page(at) == Page::ReadWrite, "{at:#x} is protected");
            let named = allowed.iter().any(|(a, b)| (*a..=*b).contains(&at));
            assert!(named || is_between(&d), "{at:#x} is not named by {d:?}");
        }
    }

    /// Many at a time, on engines that go on in any order.
    fn together(&mut self, draw: &mut Draw<'_>) {
        while !draw.is_empty() {
            match draw.below(3) {
                0 => {
                    let mut d = descriptor(draw, self.memory.base());
                    d.completion_addr = RECORDS + 32 * self.told.len() as u64;
                    let flags = Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_RECORD;
                    let d = d.with_flags(flags);
                    if self.submit(draw.below(2) as u16, &d) == Submission::Accepted {
                        self.told.push(false);
                    }
                }
                1 => self.take(draw.below(2) as u16),
                _ => self.step(draw),
            }
        }
        self.run(draw);
        let untold = self.told.iter().filter(|told| !**told).count() as u64;
        // Errors are told elsewhere where records cannot be.
        assert!(untold <= self.errors, "{untold} have not ended");
    }

    fn submit(&mut self, wq: u16, d: &Descriptor) -> Submission {
        let portal = Portal { wq, limited: true };
        let answer = match wq {
            0 => self.device.write_posted(portal, d),
            _ => self.device.enqueue(portal, d),
        };
        for error in self.device.take_errors() {
            let lost = matches!(error, Effect::SoftwareError { .. }) && answer == Submission::Lost;
            assert!(lost, "{error:?}, and the answer is {answer:?}");
        }
        answer
    }

    fn take(&mut self, engine: u16) {
        let fetched = false;
        let taken = self.device.take(engine);
        self.held.extend(taken.map(|work| Held { work, fetched }));
    }

    /// Until nothing is left. What is under way is bounded: 16 entries, lists of 256 at most.
    fn run(&mut self, draw: &mut Draw<'_>) {
        for _ in 0..100_000 {
            for engine in 0..2 {
                self.take(engine);
            }
            if self.held.is_empty() {
                for wq in 0..2 {
                    assert_eq!(self.device.occupancy(wq), Some(0), "an entry is kept");
                }
                return;
            }
            self.step(draw);
        }
        panic!("it never ends");
    }

    /// One of the works under way goes on, and then lets the others.
    fn step(&mut self, draw: &mut Draw<'_>) {
        if self.held.is_empty() {
            return;
        }
        let mut held = self
            .held
            .remove(draw.below(self.held.len() as u64) as usize);
        let work = held.work;
        let mut effects = Vec::new();
        match work.kind {
            WorkKind::FetchList { address, count } if !held.fetched => {
                held.fetched = true;
                self.fetch(work, address, count, &mut effects);
                self.held.push(held);
            }
            WorkKind::FetchList { .. } => match self.device.next_member(work.id) {
                Member::Work(work) => self.held.extend([
                    held,
                    Held {
                        work,
                        fetched: false,
                    },
                ]),
                Member::None if self.device.descriptor(work.id).is_none() => self.ended += 1,
                Member::Fenced | Member::None => self.held.push(held),
            },
            _ => {
                let outcome = self.carry_out(&work);
                self.device.done(work.id, &outcome, &mut effects);
                // Whoever says so twice changes nothing.
                let before = effects.len();
                self.device.done(work.id, &outcome, &mut effects);
                assert_eq!(effects.len(), before, "it ends twice");
                self.ended += 1;
            }
        }
        self.apply(effects);
    }

    fn fetch(&mut self, work: Work, address: u64, count: u32, effects: &mut Vec<Effect>) {
        let (list, fault) = self.memory.list(address, count);
        match fault {
            None => self.device.list_fetched(work.id, &list, effects),
            Some(at) if list.is_empty() => self.device.list_faulted(work.id, at, effects),
            Some(at) => self.device.list_fetched_until(work.id, &list, at, effects),
        }
    }

    fn carry_out(&mut self, work: &Work) -> Outcome {
        let memory = &mut self.memory;
        let domains = match work.kind {
            WorkKind::ExecuteBetween(_) => Some(self.device.domains(work.id)),
            _ => None,
        };
        let Some(d) = self.device.descriptor(work.id) else {
            panic!("work under way has a descriptor");
        };
        match (work.kind, domains) {
            (WorkKind::Reject(rejection), _) => rejection.outcome(),
            (WorkKind::Execute(opcode), _) => execute(opcode, d, memory, Payload::Moved),
            (WorkKind::ExecuteBetween(opcode), Some(Ok(domains))) => {
                execute_between(opcode, d, &domains, memory, Payload::Moved)
            }
            (_, Some(Err(outcome))) => outcome,
            (kind, _) => panic!("{kind:?} is not carried out"),
        }
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Record {
                    address, record, ..
                } => {
                    assert_eq!(address % 32, 0, "records are aligned");
                    assert_ne!(record.status, 0, "a record says how it ended");
                    let number = address.wrapping_sub(RECORDS) / 32;
                    if let Some(told) = self.told.get_mut(number as usize) {
                        assert!(!*told, "it is told twice");
                        *told = true;
                    } else if self.memory.accessible(address, 32, Access::Write) == 32 {
                        self.memory.write(address, record.as_bytes());
                    }
                }
                Effect::SoftwareError { .. } => self.errors += 1,
                Effect::Interrupt { .. } => {}
                other => panic!("a device without registers has no {other:?}"),
            }
        }
    }
}

/// `bytes` from an address on, inclusive; none if that is 0.
fn range(start: u64, bytes: u64) -> (u64, u64) {
    match bytes {
        0 => (1, 0),
        _ => (start, start.saturating_add(bytes - 1)),
    }
}

/// Operations whose addresses are those of other address spaces, behind windows.
fn is_between(d: &Descriptor) -> bool {
    matches!(
        d.opcode(),
        Ok(Opcode::InterDomainCopy | Opcode::InterDomainFill)
    )
}

/// Where a descriptor may write.
fn targets(d: &Descriptor) -> Vec<(u64, u64)> {
    let size = u64::from(d.size);
    let Ok(opcode) = d.opcode() else {
        return Vec::new();
    };
    let block = BlockSize::from_bits(d.dif_flags());
    let (data, protected) = (block.bytes() as u64, block.protected_bytes() as u64);
    match opcode {
        Opcode::Memmove
        | Opcode::Fill
        | Opcode::CopyCrc
        | Opcode::ApplyDelta
        | Opcode::DifUpdate => vec![range(d.address2, size)],
        Opcode::CreateDelta => vec![range(d.delta_record(), d.max_delta_size().into())],
        Opcode::DifInsert => vec![range(d.address2, size / data * protected)],
        Opcode::DifStrip => vec![range(d.address2, size / protected * data)],
        Opcode::DixGenerate => vec![range(d.address2, size / data * 8)],
        Opcode::Dualcast => vec![range(d.address2, size), range(d.destination2(), size)],
        _ => Vec::new(),
    }
}
