//! Any descriptors and batches in memory with holes, on engines that go on in any order: each ends
//! exactly once and is reported as it must be, each writes the bytes that it says it has written and no
//! other, and the device is empty afterwards.

use dray_device::{
    Access, Capabilities, DescriptorResult, Device, DeviceConfig, Effect, GroupConfig, IdptEntry,
    Member, Memory, Payload, Portal, Submission, Work, WorkId, WorkKind, WorkQueueConfig,
    WorkQueueMode,
};
use dray_spec::registers::IdCap;
use dray_spec::{CompletionRecord, Descriptor, Flags, GenCap, Opcode, Status};
use zerocopy::IntoBytes;

use crate::Tally;
use crate::books::{Books, Manner};
use crate::descriptor::descriptor;
use crate::draw::Draw;
use crate::footprint::Footprint;
use crate::image::Image;
use crate::scene::{Scene, permissions};

/// Runs descriptors made of `bytes`, and counts how they end.
///
/// # Panics
///
/// If the device violates an invariant.
pub fn descriptors(bytes: &[u8], tally: &mut Tally) {
    let mut draw = Draw::new(bytes);
    let mut first = draw.block(16);
    let mut memory = Image::draw(&mut first);
    let config = config(&mut first, memory.base());
    let classes = [0, 1].map(|class| config.pci.traffic_classes >> class & 1 == 1);
    let Ok(mut device) = Device::new(config) else {
        panic!("the configuration is one that can be enabled");
    };
    device.record_lifecycle();
    let scene = Scene::lay(&mut draw, &mut memory);
    let bare = true;
    let mut world = World {
        device,
        memory,
        scene,
        held: Vec::new(),
        books: Books::new(Manner { bare, classes }),
        unasked: Vec::new(),
        tally,
    };
    while !draw.is_empty() {
        world.act(&mut draw);
    }
    world.finish();
}

/// All that a device can do, with one block of interrupt messages: tables are what takes most of the
/// time of a run. Strict ordering has no limits.
pub(crate) const EVERYTHING: GenCap = GenCap::from_bits(u64::MAX)
    .with_ims_blocks(1)
    .with_strict_ordering_limits(0);

/// Two queues and two engines, of a part that can do everything, or as a Xeon has them.
fn config(draw: &mut Draw<'_>, base: u64) -> DeviceConfig {
    let everything = !draw.once_in(4);
    let queue = |id, mode| WorkQueueConfig {
        block_on_fault: everything,
        max_batch_size: 1 << 10,
        max_transfer_size: 1 << 31,
        ..WorkQueueConfig::new(id, mode, 8)
    };
    let mut config = DeviceConfig {
        capabilities: Capabilities {
            version: if everything { 0x300 } else { 0x100 },
            gen_cap: match everything {
                true => EVERYTHING.into_bits(),
                false => Capabilities::sapphire_rapids().gen_cap,
            },
            op_cap: match everything {
                true => [u64::MAX; 4],
                false => Capabilities::sapphire_rapids().op_cap,
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
            traffic_classes: [0, 1],
            ..GroupConfig::default()
        }],
        ..DeviceConfig::default()
    };
    if everything {
        config.idpt = permissions(draw, base);
    }
    // One thing that software has not switched on.
    match draw.below(16) {
        12 => config.work_queues[0].pasid = None,
        13 => config.pci.privileged_mode = false,
        14 => config.pci.traffic_classes = 1,
        15 => config.pci.ats = false,
        _ => {}
    }
    config
}

/// What an engine has, and whether its list has come if it is a batch.
#[derive(Clone, Copy)]
struct Held {
    work: Work,
    fetched: bool,
}

struct World<'a> {
    device: Device,
    memory: Image,
    scene: Scene,
    held: Vec<Held>,
    books: Books,
    /// Records of those that may end without an engine.
    unasked: Vec<u64>,
    tally: &'a mut Tally,
}

impl World<'_> {
    fn act(&mut self, draw: &mut Draw<'_>) {
        match draw.below(8) {
            0..=2 => {
                let wq = draw.below(2) as u16;
                let d = descriptor(draw, &self.scene, false);
                self.submit(wq, &d);
            }
            3 | 4 => self.take(draw.below(2) as u16),
            _ => self.step(draw.below(256)),
        }
    }

    fn submit(&mut self, wq: u16, d: &Descriptor) {
        if matches!(d.opcode(), Ok(Opcode::Drain | Opcode::UpdateWindow)) {
            self.unasked.push(d.completion_addr);
        }
        let portal = Portal { wq, limited: true };
        let answer = match wq {
            0 => self.device.write_posted(portal, d),
            _ => self.device.enqueue(portal, d),
        };
        let errors = self.device.take_errors();
        let lost = Effect::SoftwareError {
            status: Status::WQ_OVERFLOW,
            wq,
            address: 0,
            origin: None,
            record: CompletionRecord::default(),
        };
        let expected: &[Effect] = match answer {
            Submission::Lost => &[lost],
            _ => &[],
        };
        assert_eq!(errors, expected, "{answer:?}");
        expected
            .iter()
            .for_each(|_| self.tally.count_status(Status::WQ_OVERFLOW));
        self.apply(&[]);
    }

    fn take(&mut self, engine: u16) {
        let fetched = false;
        let taken = self.device.take(engine);
        self.held.extend(taken.map(|work| Held { work, fetched }));
        self.apply(&[]);
    }

    /// Runs until no work is left. Work in progress is bounded: 16 entries, lists of 256 at most.
    fn finish(&mut self) {
        for n in 0..100_000 {
            for engine in 0..2 {
                self.take(engine);
            }
            if self.held.is_empty() {
                for wq in 0..2 {
                    assert_eq!(self.device.occupancy(wq), Some(0), "an entry is kept");
                }
                assert!(self.books.are_closed(), "something never ends");
                return;
            }
            self.step(n);
        }
        panic!("it never ends");
    }

    /// One of the works under way goes on, and then lets the others.
    fn step(&mut self, which: u64) {
        if self.held.is_empty() {
            return;
        }
        let at = which % self.held.len() as u64;
        let mut held = self.held.remove(at as usize);
        let work = held.work;
        let mut effects = Vec::new();
        match work.kind {
            WorkKind::FetchList { .. } if !held.fetched => {
                held.fetched = true;
                let Some(task) = self.device.start(&work) else {
                    panic!("work under way can be started");
                };
                let mut list = Vec::new();
                let read = task.read_list(&mut self.memory, &mut list);
                self.device.list_read(work.id, &list, read, &mut effects);
                self.held.push(held);
            }
            WorkKind::FetchList { .. } => match self.device.next_member(work.id) {
                Member::Work(member) => {
                    let Some(d) = self.device.descriptor(member.id) else {
                        panic!("work under way has a descriptor");
                    };
                    self.books.begin_member(work.id, member.id, *d);
                    let fetched = false;
                    let work = member;
                    self.held.extend([held, Held { work, fetched }]);
                }
                Member::None if self.device.descriptor(work.id).is_none() => {}
                Member::Fenced | Member::None => self.held.push(held),
            },
            _ => {
                let outcome = self.execute(&work);
                self.end(work.id, &outcome, &mut effects);
            }
        }
        self.apply(&effects);
    }

    fn end(&mut self, id: WorkId, outcome: &DescriptorResult, effects: &mut Vec<Effect>) {
        self.device.done(id, outcome, effects);
        // To say so twice changes nothing.
        let before = effects.len();
        self.device.done(id, outcome, effects);
        assert_eq!(effects.len(), before, "it ends twice");
    }

    /// Executes work, and looks at what it has written.
    fn execute(&mut self, work: &Work) -> DescriptorResult {
        let d = self.under_way(work.id);
        let Some(task) = self.device.start(work) else {
            panic!("work under way can be started");
        };
        let alternate = Flags::INTER_DOMAIN_ALTERNATE_DESTINATION;
        let through = task.domains.is_some() && d.flags().contains(alternate);
        let entry = through
            .then(|| d.destination_handle())
            .and_then(|handle| self.device.idpt_entry(handle))
            .copied();
        let outcome = task.execute(&mut self.memory, Payload::Moved);
        if let WorkKind::Execute(opcode) = work.kind {
            self.check_written(opcode, &d, &outcome, entry);
        }
        outcome
    }

    /// All queues have it, or none.
    fn has_ats(&self) -> bool {
        self.device.config().pci.ats
    }

    fn under_way(&self, id: WorkId) -> Descriptor {
        let Some(d) = self.device.descriptor(id) else {
            panic!("work under way has a descriptor");
        };
        *d
    }

    /// What was written is what the record says, and in the window through which it went.
    fn check_written(
        &mut self,
        opcode: Opcode,
        d: &Descriptor,
        outcome: &DescriptorResult,
        through: Option<IdptEntry>,
    ) {
        let written = self.memory.take_written();
        let window = through.filter(|entry| entry.access.window_enable());
        let to = match window {
            Some(entry) if entry.access.offset_mode() => entry.window_base.wrapping_add(d.address2),
            _ => d.address2,
        };
        let footprint = match self.has_ats() {
            true => Footprint::of(opcode, d, &outcome.record, to),
            false => Footprint::untranslated(opcode, d, to),
        };
        assert!(
            footprint.is(&written),
            "{written:x?} is written, {footprint:x?} is reported of {d:?}: {outcome:?}"
        );
        if let Some(entry) = through {
            let permitted = entry.access.write() || written.is_empty();
            assert!(permitted, "{d:?} writes through {entry:?}");
        }
        for (entry, run) in window
            .iter()
            .flat_map(|e| written.iter().map(move |run| (e, run)))
        {
            let inside =
                run.0 >= entry.window_base && run.1 - entry.window_base < entry.window_size;
            assert!(inside, "{d:?} leaves the window of {entry:?}");
        }
    }

    fn apply(&mut self, effects: &[Effect]) {
        let steps: Vec<_> = self.device.take_lifecycle().collect();
        self.books.settle(&steps, effects, self.tally);
        for effect in effects {
            let Effect::Record {
                address, record, ..
            } = effect
            else {
                continue;
            };
            match self.memory.accessible(*address, 32, Access::Write) {
                32 => self.memory.write(*address, record.as_bytes()),
                _ => assert!(
                    !self.has_ats() || self.unasked.contains(address),
                    "no engine has asked: {effect:?}"
                ),
            }
        }
        // Records are no doing of the next descriptor.
        self.memory.take_written();
    }
}
