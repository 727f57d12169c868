//! A rule, the cases that break it and keep it, and how a case is tried.

use dray_device::{DeviceConfig, WorkQueueMode};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use crate::common::memory::{PAGE, Page, Pages};
use crate::common::profile::{one_group, queue};
use crate::common::runner::Runner;

const BASE: u64 = 0x10_0000;
/// Where the record of the descriptor goes.
pub(crate) const RECORD: u64 = BASE;
/// A page of readable and writable memory with a hole behind it.
pub(crate) const LIST: u64 = BASE + PAGE;
/// Four pages each; what follows the last is a hole.
pub(crate) const SRC: u64 = BASE + 3 * PAGE;
pub(crate) const DST: u64 = BASE + 7 * PAGE;
pub(crate) const DST2: u64 = BASE + 11 * PAGE;
/// First byte behind the second destination.
pub(crate) const HOLE: u64 = BASE + 15 * PAGE;
/// A page that can be read only, behind the hole, and then a hole again.
pub(crate) const READ_ONLY: u64 = BASE + 16 * PAGE;

fn memory() -> Pages {
    let mut pages = vec![Page::ReadWrite, Page::ReadWrite, Page::Hole];
    pages.extend([Page::ReadWrite; 12]);
    pages.extend([Page::Hole, Page::ReadOnly, Page::Hole]);
    Pages::new(BASE, pages)
}

/// Where the descriptor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Queue,
    /// First of two members.
    Batch,
}

/// What its submitter learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Exactly this record.
    Record(CompletionRecord),
    /// A record with this status; the rest is not looked at.
    Status(Status),
    /// A software error.
    Error(Status, u64),
    Nothing,
}

impl Told {
    pub(crate) fn status(self) -> Option<Status> {
        match self {
            Told::Record(record) => Some(record.status()),
            Told::Status(status) | Told::Error(status, _) => Some(status),
            Told::Nothing => None,
        }
    }
}

pub(crate) fn told(status: Status) -> Told {
    Told::Record(CompletionRecord::with_status(status))
}

pub(crate) fn told_flags(flags: Flags) -> Told {
    let mut record = CompletionRecord::with_status(Status::INVALID_FLAGS);
    record.set_invalid_flags(flags);
    Told::Record(record)
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) profile: fn(&mut DeviceConfig),
    pub(crate) place: Place,
    pub(crate) descriptor: Descriptor,
    pub(crate) list: Vec<Descriptor>,
    pub(crate) told: Told,
}

impl Case {
    pub(crate) fn new(descriptor: Descriptor, told: Told) -> Case {
        Case {
            profile: |_| {},
            place: Place::Queue,
            descriptor,
            list: vec![Descriptor::noop(); 64],
            told,
        }
    }

    pub(crate) fn on(self, profile: fn(&mut DeviceConfig)) -> Case {
        Case { profile, ..self }
    }

    pub(crate) fn in_batch(self) -> Case {
        Case {
            place: Place::Batch,
            ..self
        }
    }

    /// What is found where a batch descriptor says that its list is.
    pub(crate) fn with_list(self, list: &[Descriptor]) -> Case {
        Case {
            list: list.to_vec(),
            ..self
        }
    }

    fn run(&self, rule: &str) {
        let mut config = one_group(1, vec![queue(0, WorkQueueMode::Dedicated, 16)]);
        (self.profile)(&mut config);
        let mut memory = memory();
        let list_at = match self.descriptor.address1 {
            list if (LIST..LIST + PAGE).contains(&list) => list,
            _ => LIST,
        };
        let batch = match self.place {
            Place::Queue => {
                let room = ((LIST + PAGE - list_at) / 64) as usize;
                memory.poke_list(list_at, &self.list[..self.list.len().min(room)]);
                None
            }
            Place::Batch => {
                memory.poke_list(LIST, &[self.descriptor, Descriptor::noop()]);
                Some(Descriptor::batch(LIST, 2))
            }
        };
        let before = memory.clone();
        let mut runner = Runner::new(config, memory);
        runner.submit(0, batch.as_ref().unwrap_or(&self.descriptor));
        runner.run();

        let records: Vec<_> = runner.records.iter().filter(|r| r.0 == RECORD).collect();
        let told = match (&records[..], &runner.errors[..]) {
            ([], []) => Told::Nothing,
            ([(_, record)], []) => match self.told {
                Told::Status(_) => Told::Status(record.status()),
                _ => Told::Record(*record),
            },
            ([], [(status, address)]) => Told::Error(*status, *address),
            more => panic!("{rule}: told more than once: {more:?}"),
        };
        assert_eq!(told, self.told, "{rule}: {:?}", self.descriptor);
        if self.told.status().is_some_and(|s| s.code() >= 0x10) {
            let mut after = runner.memory.clone();
            after.poke(RECORD, before.peek(RECORD, 32));
            assert_eq!(after, before, "{rule}: a refused descriptor has written");
        }
    }
}

pub(crate) struct Rule {
    pub(crate) name: String,
    /// Section of the specification.
    pub(crate) section: &'static str,
    pub(crate) broken: Vec<Case>,
    pub(crate) legal: Vec<Case>,
}

impl Rule {
    pub(crate) fn new(section: &'static str, name: impl Into<String>) -> Rule {
        Rule {
            name: name.into(),
            section,
            broken: Vec::new(),
            legal: Vec::new(),
        }
    }

    pub(crate) fn broken_by(mut self, case: Case) -> Rule {
        self.broken.push(case);
        self
    }

    pub(crate) fn kept_by(mut self, case: Case) -> Rule {
        self.legal.push(case);
        self
    }

    /// Kept by a descriptor that succeeds.
    pub(crate) fn allows(self, descriptor: Descriptor) -> Rule {
        self.kept_by(Case::new(descriptor, Told::Status(Status::SUCCESS)))
    }

    pub(crate) fn check(&self) {
        assert!(
            !self.broken.is_empty() && !self.legal.is_empty(),
            "{}",
            self.name
        );
        for case in self.broken.iter().chain(&self.legal) {
            case.run(&format!("{} (spec {})", self.name, self.section));
        }
    }
}

/// One descriptor of each executed operation that breaks no rule on a queue.
pub(crate) fn valid() -> Vec<Descriptor> {
    let all = [
        Descriptor::noop(),
        Descriptor::batch(LIST, 2),
        Descriptor::drain(),
        Descriptor::memmove(SRC, DST, 64),
        Descriptor::fill(0x1122_3344_5566_7788, DST, 64),
        Descriptor::compare(SRC, DST, 64),
        Descriptor::compare_pattern(SRC, 0, 64),
        Descriptor::dualcast(SRC, DST, DST2, 64),
        Descriptor::crc(SRC, 64, 0),
        Descriptor::copy_crc(SRC, DST, 64, 0),
    ];
    all.map(|d| d.with_completion(RECORD)).to_vec()
}

/// The one of these with this operation.
pub(crate) fn valid_one(opcode: Opcode) -> Descriptor {
    let found = valid().into_iter().find(|d| d.opcode() == Ok(opcode));
    found.expect("an executed operation")
}

/// Sets a capability bit of the device.
pub(crate) fn with_gen_cap(config: &mut DeviceConfig, bit: u32) {
    config.capabilities.gen_cap |= 1 << bit;
}

/// Clears a capability bit of the device.
pub(crate) fn without_gen_cap(config: &mut DeviceConfig, bit: u32) {
    config.capabilities.gen_cap &= !(1 << bit);
}
