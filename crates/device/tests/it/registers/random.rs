//! Writes, commands, descriptors and ends in any order.

use std::collections::BTreeSet;

use dray_device::{Bar, Effect, ListRead, Member, Submission, Work, WorkKind};
use dray_spec::registers::{CommandStatus, DeviceState, ResetType, WorkQueueState};
use dray_spec::{Descriptor, registers as at};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::driver::Driver;
use crate::common::cases;
use crate::common::manual_runner::{batch, drain, noop};

#[derive(Debug, Clone)]
enum Act {
    Write(u64, u64),
    Raw(u64, Vec<u8>),
    Command(u8, u32),
    Submit(u16, u8, u32),
    Take(u16),
    LifecycleEvent(Index),
    Halt(u8),
    Reset,
    BusMaster(bool),
}

fn act() -> impl Strategy<Value = Act> {
    let offset = prop_oneof![
        0..0xd00_u64,
        0x2000..0x2090_u64,
        0xe000..0xe010_u64,
        any::<u64>()
    ];
    let operand = prop_oneof![Just(0), Just(1), Just(3), Just(5), any::<u32>()];
    let command = prop_oneof![3 => 1..13_u8, 1 => 0..32_u8];
    prop_oneof![
        2 => (0..0x1a0_u64, any::<u64>()).prop_map(|(n, value)| Act::Write(n * 8, value)),
        1 => (offset, vec(any::<u8>(), 0..9)).prop_map(|(at, bytes)| Act::Raw(at, bytes)),
        6 => (command, operand).prop_map(|(code, operand)| Act::Command(code, operand)),
        8 => (0..3_u16, 0..3_u8, 0..3_u32).prop_map(|(wq, kind, pasid)| Act::Submit(wq, kind, pasid)),
        8 => (0..2_u16).prop_map(Act::Take),
        8 => any::<Index>().prop_map(Act::LifecycleEvent),
        1 => (0..2_u8).prop_map(Act::Halt),
        1 => Just(Act::Reset),
        1 => any::<bool>().prop_map(Act::BusMaster),
    ]
}

/// What was accepted, what engines hold, and what was reported.
struct World {
    driver: Driver,
    next: u64,
    accepted: BTreeSet<u64>,
    held: Vec<Work>,
    reported: BTreeSet<u64>,
    /// Members of batches, which may never start.
    members: BTreeSet<u64>,
}

impl World {
    fn perform(&mut self, act: &Act) {
        let before = self.driver.function.state();
        match act {
            Act::Write(offset, value) => {
                self.driver
                    .function
                    .write64(*offset, *value, &mut self.driver.effects);
            }
            Act::Raw(offset, bytes) => {
                let effects = &mut self.driver.effects;
                self.driver
                    .function
                    .write(Bar::Registers, *offset, bytes, effects);
            }
            Act::Command(code, operand) => {
                let value = u32::from(*code & 31) << 20 | operand & 0xf_ffff;
                self.driver.write(at::CMD, value);
            }
            Act::Submit(wq, kind, pasid) => self.submit(*wq, *kind, *pasid),
            Act::Take(engine) => {
                let effects = &mut self.driver.effects;
                self.held
                    .extend(self.driver.function.take(*engine, effects));
            }
            Act::LifecycleEvent(_) if self.held.is_empty() => {}
            Act::LifecycleEvent(which) => self.step(which.index(self.held.len())),
            Act::Halt(kind) => {
                let kind = [ResetType::Command, ResetType::FunctionLevel][usize::from(*kind)];
                self.driver.function.halt(kind, &mut self.driver.effects);
            }
            Act::Reset => self.driver.function.reset(&mut self.driver.effects),
            Act::BusMaster(on) => {
                let mut pci = self.driver.function.pci().clone();
                pci.bus_master = *on;
                self.driver.function.set_pci(pci, &mut self.driver.effects);
            }
        }
        self.watch();
        self.check_state(before, act);
    }

    fn submit(&mut self, wq: u16, kind: u8, pasid: u32) {
        self.next += 1;
        let descriptor = match kind {
            0 => noop(self.next),
            1 => drain(self.next),
            _ => batch(self.next, 2),
        };
        let descriptor = Descriptor {
            pasid_priv: pasid,
            ..descriptor
        };
        if self.driver.submit(wq, &descriptor) == Submission::Accepted {
            self.accepted.insert(self.next);
        }
    }

    /// Something that an engine holds goes on: a list arrives, a member starts, work ends.
    fn step(&mut self, at: usize) {
        let work = self.held[at];
        let function = &mut self.driver.function;
        if !matches!(work.kind, WorkKind::FetchList { .. }) {
            self.held.swap_remove(at);
            match work.kind {
                WorkKind::Reject(rejection) => {
                    let outcome = rejection.outcome();
                    function.done(work.id, &outcome, &mut self.driver.effects);
                }
                _ => self.driver.done(&work),
            }
            return;
        }
        match function.next_member(work.id) {
            Member::Work(member) => self.held.push(member),
            Member::Fenced => {}
            Member::None if function.device().descriptor(work.id).is_none() => {
                self.held.swap_remove(at);
            }
            Member::None => {
                let first = self.next + 1;
                self.next += 2;
                self.accepted.extend([first, first + 1]);
                self.members.extend([first, first + 1]);
                let list = [noop(first), noop(first + 1)];
                self.driver.list_read(work.id, &list, ListRead::default());
            }
        }
    }

    fn watch(&mut self) {
        let end = |effect: &Effect| match effect {
            Effect::Record { address, .. } => Some(address / 32),
            Effect::Abandoned { completion, .. } => completion.map(|address| address / 32),
            _ => None,
        };
        let effects = std::mem::take(&mut self.driver.effects);
        for n in effects.iter().filter_map(end) {
            assert!(self.accepted.contains(&n), "{n} was never accepted");
            assert!(self.reported.insert(n), "{n} ended twice");
        }
        let error = |e: &Effect| matches!(e, Effect::SoftwareError { .. });
        assert!(!effects.iter().any(error), "errors have registers");
    }

    /// States that follow each other, and queues that fit the device (spec 9.2.10, 9.2.24).
    fn check_state(&self, before: DeviceState, act: &Act) {
        use DeviceState::{Disabled, Draining, Enabled, Halted};
        let now = self.driver.function.state();
        let allowed = match (before, now) {
            (a, b) if a == b => true,
            (_, Halted) => matches!(act, Act::Halt(_) | Act::BusMaster(_)),
            (_, Disabled) => true,
            (Disabled, Enabled) | (Enabled | Halted, Draining) => true,
            _ => false,
        };
        assert!(allowed, "{before:?} became {now:?} by {act:?}");
        for wq in 0..8 {
            let state = self.driver.function.queue_state(wq);
            let fits = match now {
                Disabled => state == Some(WorkQueueState::Disabled),
                Draining => state != Some(WorkQueueState::Enabled),
                _ => true,
            };
            assert!(fits, "queue {wq} is {state:?} while the device is {now:?}");
        }
        let status = CommandStatus::from(self.driver.read(at::CMDSTATUS));
        let idle = self.held.is_empty() && self.driver.function.config().work_queues.is_empty();
        assert!(!(idle && status.active()), "a command waits for nothing");
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn whatever_software_does_each_descriptor_ends_once(acts in vec(act(), 0..150)) {
        let mut world = World {
            driver: Driver::ready(),
            next: 0,
            accepted: BTreeSet::new(),
            held: Vec::new(),
            reported: BTreeSet::new(),
            members: BTreeSet::new(),
        };
        for act in &acts {
            world.perform(act);
        }
        // Engines end what they have, and every command ends with that.
        for _ in 0..10_000 {
            for engine in 0..2 {
                world.perform(&Act::Take(engine));
            }
            if world.held.is_empty() {
                break;
            }
            for at in (0..world.held.len()).rev() {
                world.step(at);
                world.watch();
            }
        }
        let status = CommandStatus::from(world.driver.read(at::CMDSTATUS));
        prop_assert!(!status.active(), "a command never ends");
        let ended: BTreeSet<u64> = world.reported.union(&world.members).copied().collect();
        prop_assert!(world.accepted.is_subset(&ended), "some never ended");
    }
}
