//! Books on descriptors: each that is accepted, and each member that begins, ends exactly once, and
//! that end causes what the specification says and nothing else.

use std::iter::Peekable;

use dray_device::{Effect, LifecycleEvent, WorkId};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use crate::Tally;

/// A descriptor that has not ended.
#[derive(Debug, Clone, Copy)]
struct Entry {
    id: WorkId,
    descriptor: Descriptor,
    wq: u16,
    pasid: u32,
    /// How many came before it.
    order: u64,
    member: Option<Member>,
    /// Of a batch: members that have begun, that have ended, whether one was no plain success.
    begun: u32,
    ended: u32,
    failed: bool,
    /// The event log takes its record, or the record of one of its members.
    logged: bool,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    of: WorkId,
    number: u16,
}

/// What is known of the device that decides how an end is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Errors are effects; else they have registers, and interrupts have tables.
    pub(crate) bare: bool,
    /// The first and the second traffic class are carried.
    pub(crate) classes: [bool; 2],
}

/// What has been accepted or has begun, and has not ended.
pub(crate) struct Books {
    manner: Manner,
    live: Vec<Entry>,
    entered: u64,
}

impl Books {
    pub(crate) fn new(manner: Manner) -> Books {
        Books {
            manner,
            live: Vec::new(),
            entered: 0,
        }
    }

    /// Nothing is on its way.
    pub(crate) fn are_closed(&self) -> bool {
        self.live.is_empty()
    }

    fn enter(
        &mut self,
        id: WorkId,
        descriptor: Descriptor,
        (wq, pasid): (u16, u32),
        member: Option<Member>,
    ) {
        assert!(self.find(id).is_none(), "{id:?} is there twice");
        self.entered += 1;
        self.live.push(Entry {
            id,
            descriptor,
            wq,
            pasid,
            order: self.entered,
            member,
            begun: 0,
            ended: 0,
            failed: descriptor.flags().contains(Flags::BATCH_ERROR),
            logged: false,
        });
    }

    /// The last ones are asked for most.
    fn find(&self, id: WorkId) -> Option<usize> {
        self.live.iter().rposition(|entry| entry.id == id)
    }

    /// The event log, which is on, takes the record of this one, and that of its batch then.
    pub(crate) fn log(&mut self, id: WorkId) {
        let Some(at) = self.find(id) else {
            panic!("{id:?} is not under way");
        };
        self.live[at].logged = true;
    }

    /// A batch has given out a member.
    pub(crate) fn begin_member(&mut self, batch: WorkId, id: WorkId, descriptor: Descriptor) {
        let Some(at) = self.find(batch) else {
            panic!("a member of nothing: {descriptor:?}");
        };
        let of = &mut self.live[at];
        if descriptor.flags().contains(Flags::FENCE) {
            let waits = of.begun != of.ended;
            assert!(!waits && !of.failed, "a fence is passed by {descriptor:?}");
        }
        let member = Member {
            of: batch,
            number: of.begun as u16,
        };
        of.begun += 1;
        let from = (of.wq, of.pasid);
        self.enter(id, descriptor, from, Some(member));
    }

    /// Enters an event, and compares its effects with the expected ones.
    pub(crate) fn settle(
        &mut self,
        steps: &[LifecycleEvent],
        effects: &[Effect],
        tally: &mut Tally,
    ) {
        let manner = self.manner;
        let compared = effects.iter().filter(|effect| manner.compares(effect));
        let mut effects = compared.peekable();
        for step in steps {
            match *step {
                LifecycleEvent::Accepted {
                    id,
                    wq,
                    pasid,
                    descriptor,
                } => self.enter(id, descriptor, (wq, pasid), None),
                LifecycleEvent::Ended { id, record } => {
                    let Some(at) = self.find(id) else {
                        panic!("{id:?} ends, which is not under way: {record:?}");
                    };
                    let entry = self.live.remove(at);
                    match record {
                        None => manner.check_abandoned(&entry, effects.next()),
                        Some(record) => {
                            tally.count(&entry.descriptor, record.status());
                            self.check_order(&entry, &record);
                            manner.check(&entry, &record, &mut effects);
                        }
                    }
                }
            }
        }
        let more = effects.next();
        assert!(more.is_none(), "nothing has caused {more:?}");
    }

    /// A batch ends after its members and reports them, a drain ends after what was before it.
    fn check_order(&mut self, entry: &Entry, record: &CompletionRecord) {
        let (d, status) = (&entry.descriptor, record.status());
        if let Some(of) = entry.member.and_then(|member| self.find(member.of)) {
            let of = &mut self.live[of];
            of.ended += 1;
            of.failed |= status != Status::SUCCESS;
            of.logged |= entry.logged;
        }
        match d.opcode() {
            Ok(Opcode::Batch) => {
                let runs = |other: &Entry| other.member.is_some_and(|m| m.of == entry.id);
                assert!(!self.live.iter().any(runs), "a batch ends before a member");
                let expected = match status {
                    Status::BATCH_PAGE_FAULT => status,
                    Status::SUCCESS | Status::BATCH_FAIL if entry.failed => Status::BATCH_FAIL,
                    Status::SUCCESS | Status::BATCH_FAIL => Status::SUCCESS,
                    _ => return,
                };
                let reported = (status, record.descriptors_completed());
                assert_eq!(reported, (expected, entry.ended), "{entry:?}");
            }
            Ok(Opcode::Drain) if matches!(status.code(), 0x01 | 0x1f) => {
                let waited = |other: &&Entry| {
                    let lane = (other.wq, other.pasid) == (entry.wq, entry.pasid);
                    lane && other.member.is_none() && other.order < entry.order
                };
                let before = self.live.iter().find(waited);
                assert!(before.is_none(), "{entry:?} does not wait for {before:?}");
            }
            _ => {}
        }
    }
}

impl Manner {
    fn compares(self, effect: &Effect) -> bool {
        match effect {
            Effect::Record { .. } | Effect::Abandoned { .. } => true,
            _ => self.bare,
        }
    }

    /// A descriptor that was abandoned: only a runner that counts descriptors is informed (spec 3.15).
    fn check_abandoned(self, entry: &Entry, effect: Option<&Effect>) {
        let d = &entry.descriptor;
        let addressed = d.flags().contains(Flags::COMPLETION_ADDRESS_VALID);
        let expected = Effect::Abandoned {
            wq: entry.wq,
            completion: addressed.then_some(d.completion_addr),
            member: entry.member.is_some(),
        };
        assert_eq!(effect, Some(&expected), "{entry:?} is given up");
    }

    /// The record, or the error that stands for it, and the interrupt (spec 5.8.1, 8.1.3).
    fn check<'a>(
        self,
        entry: &Entry,
        record: &CompletionRecord,
        effects: &mut Peekable<impl Iterator<Item = &'a Effect>>,
    ) {
        let (d, status) = (&entry.descriptor, record.status());
        assert_ne!(status.name(), "unknown", "{entry:?} ends with {status}");
        assert_ne!(status, Status::NONE, "a record says how it ended");
        let flags = d.flags();
        let addressed = flags.contains(Flags::COMPLETION_ADDRESS_VALID);
        let ordinary = matches!(
            status,
            Status::SUCCESS | Status::SUCCESS_PREDICATE | Status::BATCH_FAIL
        );
        let class = usize::from(flags.contains(Flags::COMPLETION_TC_SELECTOR));
        let unwritable = match status.code() {
            0x1a | 0x1b | 0x1d => true,
            0x1e => !self.classes[class],
            _ => false,
        };
        let recorded = match ordinary {
            true => addressed && flags.contains(Flags::REQUEST_COMPLETION_RECORD),
            false => addressed && !unwritable,
        };
        let next = effects.peek();
        let is_here =
            matches!(next, Some(Effect::Record { address, .. }) if *address == d.completion_addr);
        let drained = d.opcode() == Ok(Opcode::Drain) && status == Status::SUCCESS;
        let in_log = !self.bare && !is_here && (entry.logged || drained);
        if recorded && !in_log {
            let Some(Effect::Record {
                address,
                record: reported,
                pasid,
            }) = effects.next()
            else {
                panic!("{entry:?} has no record of {record:?}");
            };
            assert_eq!(address % 32, 0, "records are aligned");
            assert_eq!((*address, *pasid), (d.completion_addr, entry.pasid));
            // Not every device reports which operand it was (GENCAP bit 12).
            let fault_info = reported.fault_info;
            let expected = CompletionRecord {
                fault_info,
                ..*record
            };
            assert_eq!(reported, &expected);
            assert!(fault_info == 0 || fault_info == record.fault_info);
        }
        if !self.bare {
            return;
        }
        let interrupt_at_fault = status == Status::INTERRUPT_HANDLE;
        if !ordinary && (!recorded || interrupt_at_fault) {
            self.check_error(entry, record, effects.next());
        }
        let interrupts = flags.contains(Flags::REQUEST_COMPLETION_INTERRUPT);
        if interrupts && !interrupt_at_fault && (ordinary || !unwritable) {
            let handle = d.interrupt_handle;
            assert_eq!(effects.next(), Some(&Effect::Interrupt { handle }));
        }
    }

    /// An error is about this descriptor and no other.
    fn check_error(self, entry: &Entry, record: &CompletionRecord, effect: Option<&Effect>) {
        let Some(Effect::SoftwareError {
            status,
            wq,
            address,
            origin: Some(origin),
            ..
        }) = effect
        else {
            panic!("{entry:?} ends with {record:?}, which is reported with {effect:?}");
        };
        let expected = match record.status().code() {
            0x1a | 0x1b => entry.descriptor.completion_addr,
            0x03 | 0x04 | 0x06 | 0x1f => record.fault_address,
            _ => 0,
        };
        let reported = (*status, *wq, *address);
        assert_eq!(reported, (record.status(), entry.wq, expected), "{entry:?}");
        let of = (origin.operation, origin.pasid, origin.member);
        let number = entry.member.map(|member| member.number);
        let about = (entry.descriptor.opcode_byte(), entry.pasid, number);
        assert_eq!(of, about, "{entry:?}");
    }
}
