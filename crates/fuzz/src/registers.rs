//! Register accesses, commands, descriptors and ends in any order: the device stays in a state that
//! the specification knows, each descriptor ends exactly once, reported or given up, and no command waits
//! for nothing.

use dray_device::{
    Bar, Capabilities, DescriptorResult, DeviceConfig, Effect, Function, GroupConfig, Hardware,
    ListRead, Member, PciControls, RegisterWrite, Submission, Work, WorkKind, WorkQueueConfig,
    WorkQueueMode,
};
use dray_spec::registers::{
    CMD, CMDSTATUS, CommandStatus, DeviceState, EVLCFG, EVLSTATUS, EvlCfg, EvlStatus, GENCFG,
    GenCfg, IdCap, PortalAddress, ResetType, WorkQueueState,
};
use dray_spec::{Descriptor, Flags, GenCap, Status};
use zerocopy::IntoBytes;

use crate::Tally;
use crate::books::{Books, Manner};
use crate::descriptor::descriptor;
use crate::descriptors::EVERYTHING;
use crate::draw::Draw;
use crate::scene::Scene;

/// Runs what software and engines do, made of `bytes`.
///
/// # Panics
///
/// If the device violates an invariant.
pub fn registers(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let hardware = hardware(&mut draw);
    let function = Function::new(hardware, PciControls::default());
    let mut world = World {
        function,
        effects: Vec::new(),
        held: Vec::new(),
        // Errors are in registers; the traffic classes are all carried.
        books: Books::new(Manner {
            bare: false,
            classes: [true; 2],
        }),
        submitted: 0,
    };
    world.function.record_lifecycle();
    if draw.any() {
        world.configure();
        if draw.any() {
            world.enable_event_log();
        }
        if draw.any() {
            for value in [1 << 20, 6 << 20, 6 << 20 | 1] {
                world.function.write32(CMD, value, &mut world.effects);
            }
        }
    }
    while !draw.is_empty() {
        world.act(&mut draw);
    }
    world.end();
}

/// A Xeon of the fourth generation, or a part that has all there is.
fn hardware(draw: &mut Draw<'_>) -> Hardware {
    let kind = draw.below(3);
    let mut capabilities = Capabilities {
        version: [0x100, 0x200, 0x300][kind as usize],
        ..Capabilities::sapphire_rapids()
    };
    if kind > 0 {
        capabilities.gen_cap = match draw.once_in(4) {
            true => GenCap::from(draw.any::<u64>()).with_ims_blocks(draw.below(2) as u8),
            false => EVERYTHING,
        }
        .into_bits();
        capabilities.op_cap = [u64::MAX; 4];
        let id_cap = IdCap::from(draw.any::<u64>());
        let entries = match draw.once_in(16) {
            true => id_cap.entries(),
            false => id_cap.entries() % 16,
        };
        capabilities.id_cap = id_cap.with_entries(entries).into_bits();
    }
    let masks_vectors = draw.any();
    Hardware {
        masks_vectors,
        ..Hardware::new(capabilities)
    }
}

/// Queue 0 is dedicated, queue 1 shared.
fn two_queues(hardware: &Hardware) -> DeviceConfig {
    let queue = |id, mode| WorkQueueConfig::new(id, mode, 8);
    DeviceConfig {
        capabilities: hardware.capabilities.clone(),
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
    }
}

/// Where the records of submitted descriptors lie.
const RECORDS: u64 = 0x5eed_0000_0000;

/// What a record can say, from the first one that is an end.
const RECORDED: &[Status] = Status::ALL.split_at(1).1.split_at(Status::ALL.len() - 5).0;

/// A status that stands in a record. One whose record cannot be written ends in
/// [`World::end_without_record`], which knows whether the event log takes it.
fn recorded(draw: &mut Draw<'_>) -> Status {
    match draw.pick(RECORDED) {
        Status::COMPLETION_ADDRESS_FAULT => Status::SUCCESS,
        status => status,
    }
}

struct World {
    function: Function,
    effects: Vec<Effect>,
    held: Vec<Work>,
    books: Books,
    /// Descriptors that were accepted.
    submitted: u64,
}

impl World {
    fn configure(&mut self) {
        let config = two_queues(self.function.hardware());
        let writes = config.register_writes(self.function.hardware());
        for RegisterWrite {
            offset,
            value,
            size,
        } in writes.unwrap_or_default()
        {
            let bytes = &value.to_le_bytes()[..usize::from(size)];
            self.function
                .write(Bar::Registers, offset, bytes, &mut self.effects);
        }
    }

    /// With as few entries as there may be. A part that has no log ignores it.
    fn enable_event_log(&mut self) {
        let effects = &mut self.effects;
        let log = EvlCfg::new().with_base_page(0x77).with_entries(64);
        let bits = log.into_bits();
        self.function.write64(EVLCFG, bits as u64, effects);
        self.function
            .write64(EVLCFG + 8, (bits >> 64) as u64, effects);
        let config = GenCfg::from_bits(self.function.read32(GENCFG));
        let config = config.with_event_log_enable(true);
        self.function.write32(GENCFG, config.into_bits(), effects);
    }

    fn act(&mut self, draw: &mut Draw<'_>) {
        let before = self.function.state();
        let kind = draw.below(20);
        let effects = &mut self.effects;
        match kind {
            0..=2 => {
                let offset = offset(draw, self.function.layout().bar0_bytes());
                let value = value(draw);
                self.function.write64(offset & !7, value, effects);
            }
            3 => {
                let mut bytes = vec![0; draw.below(9) as usize];
                draw.fill(&mut bytes);
                let bar = draw.pick(&[Bar::Registers, Bar::Portals]);
                let offset = offset(draw, self.function.layout().bar0_bytes());
                self.function.write(bar, offset, &bytes, effects);
            }
            4 => {
                let mut bytes = vec![0xa5; draw.below(9) as usize];
                let bar = draw.pick(&[Bar::Registers, Bar::Portals]);
                let offset = offset(draw, self.function.layout().bar0_bytes());
                self.function.read(bar, offset, &mut bytes);
            }
            5..=8 => {
                let operand = draw.pick(&[0_u32, 1, 3, 5, 0xf_ffff]);
                let code = draw.below(20) as u32;
                let interrupt = draw.any::<u32>() & 1 << 31;
                self.function
                    .write32(CMD, interrupt | code << 20 | operand, effects);
            }
            9..=11 => self.submit(draw),
            12..=14 => {
                let engine = draw.below(5) as u16;
                self.held.extend(self.function.take(engine, effects));
            }
            15..=17 if !self.held.is_empty() => {
                let at = draw.below(self.held.len() as u64) as usize;
                self.step(at, draw);
            }
            18 => self.outside(draw),
            _ => {}
        }
        self.settle();
        self.check(before, kind == 18);
    }

    fn submit(&mut self, draw: &mut Draw<'_>) {
        let mut d = match draw.below(3) {
            0 => Descriptor::noop(),
            1 => Descriptor::batch(0, 3),
            _ => descriptor(draw, &Scene::bare(), false),
        };
        if draw.once_in(4) {
            d.pasid_priv = draw.any();
        }
        d.completion_addr = RECORDS + 32 * self.submitted;
        let d = d.with_flags(Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_RECORD);
        let Ok(bytes) = d.as_bytes().try_into() else {
            return;
        };
        let wq = draw.below(3) as u16;
        let portal = PortalAddress {
            wq,
            limited: draw.any(),
            message_storage: draw.once_in(4),
        };
        let offset = match draw.once_in(16) {
            true => draw.any(),
            false => portal.offset(),
        };
        let answer = match wq {
            0 => self.function.post(offset, bytes, &mut self.effects),
            _ => self.function.enqueue(Bar::Portals, offset, bytes),
        };
        if answer == Submission::Accepted {
            self.submitted += 1;
        }
    }

    /// One step of the work that an engine holds: a list arrives, a member starts, work ends.
    fn step(&mut self, at: usize, draw: &mut Draw<'_>) {
        let work = self.held[at];
        let effects = &mut self.effects;
        match work.kind {
            WorkKind::FetchList { .. } => match self.function.next_member(work.id) {
                Member::Work(member) => {
                    let Some(d) = self.function.device().descriptor(member.id) else {
                        panic!("work under way has a descriptor");
                    };
                    self.books.begin_member(work.id, member.id, *d);
                    self.held.push(member);
                }
                Member::Fenced => {}
                Member::None if self.function.device().descriptor(work.id).is_none() => {
                    self.held.swap_remove(at);
                }
                Member::None => {
                    let fence = Flags::FENCE;
                    let first = Descriptor::noop().with_completion(RECORDS);
                    let list = [first, Descriptor::noop().with_flags(fence)];
                    let (list, read) = match draw.below(3) {
                        0 => (&list[..0], ListRead::until(0x1000)),
                        1 => (&list[..1], ListRead::until(0x1000)),
                        _ => (&list[..], ListRead::default()),
                    };
                    self.function.list_read(work.id, list, read, effects);
                }
            },
            WorkKind::Reject(rejection) => {
                self.held.swap_remove(at);
                self.function.done(work.id, &rejection.outcome(), effects);
            }
            _ => {
                self.held.swap_remove(at);
                let outcome = match draw.below(4) {
                    3 => self.end_without_record(&work),
                    0 => DescriptorResult::page_fault(0x2000, 1, draw.any()),
                    1 => DescriptorResult::status(recorded(draw)),
                    _ => DescriptorResult::status(Status::SUCCESS),
                };
                self.function.done(work.id, &outcome, &mut self.effects);
            }
        }
    }

    /// How work ends whose record cannot be written, if it has one that must be.
    fn end_without_record(&mut self, work: &Work) -> DescriptorResult {
        let success = DescriptorResult::status(Status::SUCCESS);
        match self.function.start(work) {
            Some(task) if task.record.is_some() && task.log_takes_record => {
                self.books.log(work.id);
                DescriptorResult {
                    record_in_log: true,
                    ..success
                }
            }
            Some(task) if task.record.is_some() => DescriptorResult::unrecorded(),
            _ => success,
        }
    }

    /// What does not come through the BARs.
    fn outside(&mut self, draw: &mut Draw<'_>) {
        let effects = &mut self.effects;
        match draw.below(5) {
            0 => {
                let kind = draw.pick(&[ResetType::Command, ResetType::FunctionLevel]);
                self.function.halt(kind, effects);
            }
            1 => {
                self.function.reset(effects);
                // Work in progress is dropped.
                self.held.clear();
            }
            2 => self.function.revoke_handles(effects),
            _ => {
                let mut pci = self.function.pci().clone();
                pci.bus_master = draw.any();
                pci.pasid = draw.any();
                pci.page_requests = draw.any();
                pci.config.ats = draw.any();
                self.function.set_pci(pci, effects);
            }
        }
    }

    /// Enters the events in the books.
    fn settle(&mut self) {
        let effects = std::mem::take(&mut self.effects);
        for effect in &effects {
            match effect {
                Effect::SoftwareError { .. } => panic!("errors have registers"),
                Effect::Log { address, .. } => assert_eq!(address % 32, 0, "entries are aligned"),
                _ => {}
            }
        }
        let steps: Vec<_> = self.function.take_lifecycle().collect();
        self.books.settle(&steps, &effects, &mut Tally::default());
    }

    /// States that follow each other, and queues that fit the device (spec 9.2.10, 9.2.24).
    fn check(&self, before: DeviceState, outside: bool) {
        use DeviceState::{Disabled, Draining, Enabled, Halted};
        let now = self.function.state();
        let allowed = match (before, now) {
            (a, b) if a == b => true,
            // Nothing that comes through the BARs halts it.
            (_, Halted) => outside,
            (_, Disabled) => true,
            (Disabled, Enabled) | (Enabled | Halted, Draining) => true,
            _ => false,
        };
        assert!(allowed, "{before:?} became {now:?}");
        for wq in 0..8 {
            let state = self.function.queue_state(wq);
            let fits = match now {
                Disabled => state == Some(WorkQueueState::Disabled),
                Draining => state != Some(WorkQueueState::Enabled),
                _ => true,
            };
            assert!(fits, "queue {wq} is {state:?} while the device is {now:?}");
        }
    }

    /// Software reads a full event log, engines end what they have, and every command ends with that.
    fn end(&mut self) {
        let none = &mut Draw::new(&[]);
        for _ in 0..10_000 {
            if self.function.is_blocked() {
                self.read_event_log();
            }
            for engine in 0..4 {
                self.held
                    .extend(self.function.take(engine, &mut self.effects));
            }
            self.settle();
            if self.held.is_empty() && !self.function.is_blocked() {
                break;
            }
            for at in (0..self.held.len()).rev() {
                self.step(at, none);
                self.settle();
            }
        }
        assert!(self.held.is_empty(), "it never ends");
        assert!(!self.function.is_blocked(), "a log that is read stays full");
        let status = CommandStatus::from(self.function.read32(CMDSTATUS));
        assert!(!status.active(), "a command never ends");
        assert!(self.books.are_closed(), "something never ends");
    }

    /// All of it: the head comes to where the tail is.
    fn read_event_log(&mut self) {
        let effects = &mut self.effects;
        let status = EvlStatus::from_bits(self.function.read64(EVLSTATUS));
        let read = EvlStatus::new().with_head(status.tail());
        self.function.write64(EVLSTATUS, read.into_bits(), effects);
    }
}

/// Anywhere in a BAR, more often where registers are.
fn offset(draw: &mut Draw<'_>, bytes: u64) -> u64 {
    match draw.below(8) {
        0 => draw.any(),
        1 => draw.below(bytes),
        2 => 0x2000 + draw.below(0x90),
        _ => draw.below(0x1a0) * 8,
    }
}

fn value(draw: &mut Draw<'_>) -> u64 {
    match draw.below(4) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << draw.below(64),
        _ => draw.any(),
    }
}
