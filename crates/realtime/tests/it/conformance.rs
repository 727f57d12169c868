//! The table of rules, on devices that run on threads.

use std::sync::{Arc, Mutex, MutexGuard};

use dray_conformance::rules::{Case, Observed, Pages, RuleDoor, check};
use dray_device::{Access, AddressSpace, DeviceConfig, Memory, Portal, Submission};
use dray_realtime::{Engines, Event, Options, RealtimeDevice, SharedMemory, Stop};
use dray_spec::{CompletionRecord, Status};
use zerocopy::IntoBytes;

type Reported<T> = Arc<Mutex<Vec<T>>>;

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().expect("no panic while it is held")
}

/// Pages between threads, each address space for itself.
#[derive(Clone)]
struct SharedPages {
    pages: Arc<Mutex<Pages>>,
    others: Vec<(u32, SharedPages)>,
    records: Reported<(u64, CompletionRecord)>,
}

impl SharedPages {
    fn new(pages: Pages) -> SharedPages {
        // The table's address spaces have small PASIDs.
        let other = |pasid| Some((pasid, SharedPages::new(pages.other(pasid)?.clone())));
        SharedPages {
            others: (0..16).filter_map(other).collect(),
            pages: Arc::new(Mutex::new(pages)),
            records: Arc::default(),
        }
    }

    fn gather(&self) -> Pages {
        let mut pages = locked(&self.pages).clone();
        for (pasid, other) in &self.others {
            if let Some(place) = pages.other_mut(*pasid) {
                *place = other.gather();
            }
        }
        pages
    }
}

impl Memory for SharedPages {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        locked(&self.pages).accessible(addr, len, access)
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        locked(&self.pages).read(addr, into);
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        locked(&self.pages).write(addr, from);
    }

    fn alternate(&mut self, space: AddressSpace) -> Option<&mut dyn Memory> {
        let pasid = space.pasid?;
        let found = self.others.iter_mut().find(|other| other.0 == pasid);
        found.map(|other| &mut other.1 as &mut dyn Memory)
    }
}

impl SharedMemory for SharedPages {
    fn publish(&mut self, address: u64, record: &CompletionRecord) -> bool {
        self.write(address, record.as_bytes());
        locked(&self.records).push((address, *record));
        true
    }
}

/// A device on threads.
struct RealTime {
    name: &'static str,
    options: Options,
    /// Engines that serve the queue.
    engines: Vec<u16>,
}

impl RuleDoor for RealTime {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn run(&mut self, case: &Case) -> Observed {
        let mut config = case.device();
        assert!(config.capabilities.max_engines >= 2);
        config.groups[0].engines = self.engines.clone();
        run(case, config, self.options)
    }
}

fn run(case: &Case, config: DeviceConfig, options: Options) -> Observed {
    let memory = SharedPages::new(case.memory());
    let errors: Reported<(Status, u64)> = Arc::default();
    let reported = errors.clone();
    let listener = move |event| {
        if let Event::SoftwareError {
            status, address, ..
        } = event
        {
            locked(&reported).push((status, address));
        }
    };
    let device = RealtimeDevice::start(config, memory.clone(), options, listener);
    let device = device.expect("a configuration that can be enabled");
    let portal = Portal {
        wq: 0,
        limited: true,
    };
    let portal = device.map(portal).expect("the table's queue");
    assert_eq!(portal.submit(&case.submission()), Submission::Accepted);
    device.stop(Stop::Drain).expect("no failure");
    Observed {
        records: locked(&memory.records).clone(),
        errors: locked(&errors).clone(),
        memory: memory.gather(),
    }
}

fn conforms(mut door: RealTime) {
    let report = check(&mut door);
    println!("{report}");
    assert_eq!(report.failed(), 0, "{report}");
    assert!(report.left_out().is_empty());
}

#[test]
fn the_table_of_rules_on_the_dispatcher() {
    conforms(RealTime {
        name: "real time, dispatcher",
        options: Options {
            engines: Engines::Dispatcher,
            ..Options::default()
        },
        engines: vec![0],
    });
}

#[test]
fn the_table_of_rules_on_engines_with_threads() {
    conforms(RealTime {
        name: "real time, threads",
        options: Options::default(),
        engines: vec![0, 1],
    });
}

#[test]
fn the_table_of_rules_under_an_adversary() {
    for seed in 0..3 {
        let chaos = format!("{seed}:delay+record+lines+retry");
        conforms(RealTime {
            name: "real time, with an adversary",
            options: Options {
                chaos: Some(chaos.parse().expect("kinds")),
                ..Options::default()
            },
            engines: vec![0, 1],
        });
    }
}
