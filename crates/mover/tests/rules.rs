//! The table of rules, on a device in modelled time.

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::machine::frozen;
use dray::model::{World, WorldOptions};
use dray_device::conformance::{Case, Observed, Pages, rules};
use dray_device::{Access, AddressSpace, Effect, Memory, Portal, Submission};

/// Pages that the test looks at afterwards.
#[derive(Clone)]
struct Shared {
    pages: Rc<RefCell<Pages>>,
    others: Vec<(u32, Shared)>,
}

impl Shared {
    fn new(pages: Pages) -> Shared {
        // The table's address spaces have small PASIDs.
        let other = |pasid| Some((pasid, Shared::new(pages.other(pasid)?.clone())));
        Shared {
            others: (0..16).filter_map(other).collect(),
            pages: Rc::new(RefCell::new(pages)),
        }
    }

    fn gather(&self) -> Pages {
        let mut pages = self.pages.borrow().clone();
        for (pasid, other) in &self.others {
            if let Some(place) = pages.other_mut(*pasid) {
                *place = other.gather();
            }
        }
        pages
    }
}

impl Memory for Shared {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        self.pages.borrow().accessible(addr, len, access)
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        self.pages.borrow().read(addr, into);
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        self.pages.borrow_mut().write(addr, from);
    }

    fn alternate(&mut self, space: AddressSpace) -> Option<&mut dyn Memory> {
        let pasid = space.pasid?;
        let found = self.others.iter_mut().find(|other| other.0 == pasid);
        found.map(|other| &mut other.1 as &mut dyn Memory)
    }
}

fn run(case: &Case) -> Observed {
    let config = case.device();
    let world = World::new(frozen(), vec![config], WorldOptions::default());
    let mut world = world.expect("a configuration that can be enabled");
    let memory = Shared::new(case.memory());
    world.attach(Box::new(memory.clone()));
    let portal = Portal {
        wq: 0,
        limited: true,
    };
    let answer = world.write_portal(0, portal, &case.submission());
    assert_eq!(answer, Some(Submission::Accepted));
    world.settle();
    let (mut records, mut errors) = (Vec::new(), Vec::new());
    for (_, effect) in world.take_effects() {
        match effect {
            Effect::Record {
                address, record, ..
            } => records.push((address, record)),
            Effect::SoftwareError {
                status, address, ..
            } => errors.push((status, address)),
            _ => {}
        }
    }
    Observed {
        records,
        errors,
        memory: memory.gather(),
    }
}

#[test]
fn the_table_of_rules_in_modelled_time() {
    let rules = rules();
    let (mut cases, mut wrong) = (0, Vec::new());
    for rule in &rules {
        for case in rule.cases() {
            cases += 1;
            if let Err(mismatch) = case.judge(&run(case)) {
                wrong.push(format!("{}: {mismatch}: {case:?}", rule.name));
            }
        }
    }
    println!("{} rules in {cases} cases, in modelled time", rules.len());
    let first = &wrong[..wrong.len().min(8)];
    assert!(wrong.is_empty(), "{}: {first:#?}", wrong.len());
}
