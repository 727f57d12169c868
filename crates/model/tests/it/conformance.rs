//! What every mover promises, written once: each operation gives the right bytes and the right
//! result, under the right name, exactly once.

use crate::common::ground::{Ground, Modelled};
use crate::common::machine::{current, device, one_queue, queue, world};
use dray::virt::{Engines, Idle, Options, VirtualDevice};
use dray::{Application, Capabilities, CpuMover, Executor, Mover, Next, NotAnOperation, Operation};
use dray_conformance::{Door, PAGE, Part, ProcessDoor, Report, Script, check};
use dray_device::{DeviceConfig, Payload, WorkQueueMode};
use dray_model::{ChannelOptions, World};
use dray_platform::{Cache, MemoryLocation, NodeId};
use dray_spec::{Descriptor, Status};

use WorkQueueMode::{Dedicated, Shared};

/// A channel of a modelled machine as a door.
struct ModelDoor {
    config: DeviceConfig,
    options: ChannelOptions,
    ground: Option<Modelled>,
    /// A page that was taken away.
    forbidden: Option<u64>,
}

impl ModelDoor {
    fn world(&self) -> World {
        let mut world = world(current(), vec![self.config.clone()], Payload::Moved);
        world.open(self.options).expect("a queue");
        world
    }

    fn ground(&mut self) -> &mut Modelled {
        self.ground.as_mut().expect("memory was prepared")
    }
}

/// An application that only reads the mover.
struct Look(Option<(Capabilities, usize)>);

impl Application for Look {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        self.0 = Some((mover.capabilities(), mover.slots()));
        Next::Done
    }
}

impl ModelDoor {
    fn look(&self) -> (Capabilities, usize) {
        let mut looks = [Look(None)];
        self.world().run(&mut looks).expect("it only looks");
        looks[0].0.expect("it has looked")
    }
}

impl Door for ModelDoor {
    fn name(&self) -> String {
        let ChannelOptions {
            queue,
            batch,
            depth,
            ..
        } = self.options;
        let who = if queue.is_some() {
            "model"
        } else {
            "modelled core"
        };
        format!("{who}, {depth} x {batch}")
    }

    fn executor(&self) -> Executor {
        match self.options.queue {
            Some(_) => Executor::Model,
            None => Executor::ModelCpu,
        }
    }

    fn capabilities(&mut self) -> Capabilities {
        self.look().0
    }

    fn slots(&mut self) -> usize {
        self.look().1
    }

    fn gathers(&self) -> bool {
        self.options.batch > 1
    }

    fn prepare(&mut self, bytes: &[u8]) -> u64 {
        let mut ground = Modelled::new(self.world(), bytes.len());
        ground.put(bytes);
        let base = ground.base();
        let place = MemoryLocation {
            node: NodeId(0),
            cache: Cache::Memory,
        };
        let memory = &mut ground.world.memory;
        let page = memory.allocate(PAGE, place, true);
        memory.evict(page);
        self.forbidden = Some(memory.region(page).base);
        self.ground = Some(ground);
        base
    }

    fn forbidden(&mut self) -> Option<u64> {
        // The modelled core makes a page present itself.
        self.forbidden.filter(|_| self.options.queue.is_some())
    }

    fn refusal(&self, part: Part) -> &'static str {
        match part {
            Part::Batches => "the channel takes no batches of four",
            Part::Faults => "the modelled core makes pages present itself",
            Part::Held => "a modelled device ends whatever it has: time passes until then",
            Part::Disruptions => {
                "a modelled device takes no commands: it is never disabled or reset"
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.ground.as_ref().expect("memory was prepared").get()
    }

    fn run<A: Application>(&mut self, application: &mut A) {
        let world = &mut self.ground().world;
        world
            .run(std::slice::from_mut(application))
            .expect("all end");
        let channel = world.channels().next().expect("a channel");
        assert_eq!(channel.counters().lost, 0);
    }
}

#[track_caller]
fn conforms<D: Door>(mut door: D) -> Report {
    match check(&mut door) {
        Ok(report) => {
            println!("{report}");
            report
        }
        Err(mismatch) => panic!("{}: {mismatch}", door.name()),
    }
}

fn cpu(slots: usize) -> Report {
    conforms(ProcessDoor::new("cpu", Executor::Cpu, CpuMover::new(slots)))
}

fn model(config: DeviceConfig, options: ChannelOptions) -> Report {
    conforms(ModelDoor {
        config,
        options,
        ground: None,
        forbidden: None,
    })
}

/// The virtual device in real time, on its only queue.
fn virtually(config: DeviceConfig, options: Options, slots: usize) -> Report {
    let device = VirtualDevice::start(config, options).expect("a device that can be enabled");
    let mover = device.open(0, slots).expect("a queue");
    let report = conforms(ProcessDoor::new("virtual", Executor::Virtual, mover));
    assert_eq!(device.device().lost(0), Some(0));
    report
}

fn options(batch: u32, depth: u32) -> ChannelOptions {
    ChannelOptions {
        batch,
        depth,
        ..ChannelOptions::default()
    }
}

#[test]
fn the_cpu_mover_conforms() {
    assert!(cpu(16).full > 0);
    assert_eq!(cpu(1000).full, 0);
}

#[test]
fn the_model_on_a_dedicated_queue_conforms() {
    let report = model(one_queue(1, Dedicated), options(1, 1));
    assert!(report.faults >= 7, "{report}");
    // Parts of the suite that the model lacks are refused by name.
    let part = |(part, reason): &(Part, &str)| {
        *part == Part::Disruptions && reason.contains("never disabled or reset")
    };
    assert!(report.refusals.iter().any(part), "{report}");
    assert!(model(one_queue(1, Dedicated), options(1, 16)).full > 0);
}

#[test]
fn the_model_on_a_shared_queue_conforms() {
    model(one_queue(1, Shared), options(1, 1));
    assert!(model(one_queue(1, Shared), options(1, 64)).full > 0);
}

#[test]
fn the_model_with_batches_conforms() {
    for mode in [Dedicated, Shared] {
        for batch in [2, 7, 64] {
            model(one_queue(1, mode), options(batch, 2));
        }
    }
}

#[test]
fn the_model_with_four_engines_conforms() {
    for mode in [Dedicated, Shared] {
        model(one_queue(4, mode), options(1, 64));
        model(one_queue(4, mode), options(5, 8));
    }
}

#[test]
fn the_virtual_device_on_either_queue_conforms() {
    for mode in [Dedicated, Shared] {
        virtually(one_queue(1, mode), Options::default(), 1);
        assert!(virtually(one_queue(1, mode), Options::default(), 16).full > 0);
        virtually(device(1, vec![queue(0, mode, 3)]), Options::default(), 200);
    }
}

#[test]
fn the_virtual_device_with_four_engines_conforms() {
    for mode in [Dedicated, Shared] {
        for engines in [Engines::Threads, Engines::Dispatcher] {
            let options = Options {
                engines,
                ..Options::default()
            };
            virtually(one_queue(4, mode), options, 64);
        }
    }
}

#[test]
fn a_virtual_device_that_parks_at_once_conforms() {
    let after = std::time::Duration::ZERO;
    let options = Options {
        idle: Idle::Park { after },
        ..Options::default()
    };
    for engines in [1, 2] {
        virtually(one_queue(engines, Shared), options, 2);
    }
}

#[test]
fn the_modelled_core_conforms() {
    for slots in [1, 16] {
        let software = ChannelOptions {
            queue: None,
            ..options(1, slots)
        };
        model(one_queue(1, Dedicated), software);
    }
}

#[test]
fn a_full_shared_queue_answers_retry_and_each_copy_ends_once() {
    let config = device(1, vec![queue(0, Shared, 2)]);
    let mut ground = Modelled::new(world(current(), vec![config], Payload::Moved), 1 << 22);
    let channel = ground.world.open(options(1, 64)).expect("a queue");
    let base = ground.base();
    // Large enough for the engine to be slower than ENQCMD.
    let copies = (0..100).map(|_| Operation::memmove(base, base + (2 << 20), 1 << 20));
    let mut applications = [Script::new(copies.collect())];
    ground.world.run(&mut applications).expect("all end");
    let counters = ground.world.channel(channel).counters();
    assert!(counters.retries > 0);
    assert_eq!((counters.submitted, counters.completed), (100, 100));
    assert!((0..100).all(|n| applications[0].status(n) == Some(Status::SUCCESS)));
}

#[test]
fn batches_and_unknown_opcodes_are_no_operations() {
    let batch = Descriptor::batch(0x1000, 2);
    assert_eq!(Operation::try_from(batch), Err(NotAnOperation::Batch));
    let mut unknown = Descriptor::noop();
    unknown.flags_opcode |= 0x7f << 24;
    let refused = NotAnOperation::Opcode { opcode: 0x7f };
    assert_eq!(Operation::try_from(unknown), Err(refused));
}
