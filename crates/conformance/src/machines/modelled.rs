//! The device in modelled time.

use std::sync::Arc;

use dray::{Application, Capabilities, Executor, Mover, Next};
use dray_device::WorkQueueMode::{Dedicated, Shared};
use dray_device::{DeviceConfig, Payload};
use dray_model::{ChannelOptions, World, WorldOptions};
use dray_platform::{Cache, MemoryLocation, NodeId, PlatformFile, RegionId, builtin};

use crate::movers::{Column, Door, LARGEST_BATCH, PAGE, Part, tabulate};

/// A queue of either mode, on a device of either version.
pub(super) fn columns() -> Vec<Column> {
    [("model v1 dwq", 1, Dedicated), ("model v2 swq", 2, Shared)]
        .map(|(name, version, mode)| {
            let door = |batch| ModelDoor {
                name,
                platform: Arc::new(builtin("spr-2s").expect("built in")),
                config: super::virtually::config(version, mode),
                batch,
                memory: None,
            };
            let mut column = tabulate(&mut door(1));
            // A channel gives descriptors one by one, or gathers them into batches.
            column.complete_with(&tabulate(&mut door(LARGEST_BATCH)));
            column
        })
        .into()
}

/// A channel of a modelled machine as a door.
struct ModelDoor {
    name: &'static str,
    platform: Arc<PlatformFile>,
    config: DeviceConfig,
    /// Operations in a batch; 1: no batches.
    batch: u32,
    memory: Option<Modelled>,
}

/// A modelled machine with memory.
struct Modelled {
    world: World,
    region: RegionId,
    base: u64,
    len: usize,
    forbidden: Option<u64>,
}

/// Looks at a mover, and is done.
struct Look(Option<(Capabilities, usize)>);

impl Application for Look {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        self.0 = Some((mover.capabilities(), mover.slots()));
        Next::Done
    }
}

/// Makes pages present.
struct Touch(Vec<u64>);

impl Application for Touch {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        for page in &self.0 {
            // SAFETY: modelled memory checks itself.
            unsafe { mover.touch(*page, true) };
        }
        Next::Done
    }
}

impl ModelDoor {
    fn world(&self) -> World {
        let options = WorldOptions {
            payload: Payload::Moved,
            ..WorldOptions::default()
        };
        let world = World::new(self.platform.clone(), vec![self.config.clone()], options);
        let mut world = world.expect("a device that can be enabled");
        let options = ChannelOptions {
            batch: self.batch,
            depth: 8,
            ..ChannelOptions::default()
        };
        world.open(options).expect("the only queue");
        world
    }

    fn look(&self) -> (Capabilities, usize) {
        let mut looks = [Look(None)];
        self.world().run(&mut looks).expect("it only looks");
        looks[0].0.expect("it has looked")
    }

    fn memory(&mut self) -> &mut Modelled {
        self.memory.as_mut().expect("memory was prepared")
    }
}

impl Door for ModelDoor {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn executor(&self) -> Executor {
        Executor::Model
    }

    fn capabilities(&mut self) -> Capabilities {
        self.look().0
    }

    fn slots(&mut self) -> usize {
        self.look().1
    }

    fn gathers(&self) -> bool {
        self.batch > 1
    }

    fn prepare(&mut self, bytes: &[u8]) -> u64 {
        let mut world = self.world();
        let place = MemoryLocation {
            node: NodeId(0),
            cache: Cache::Memory,
        };
        let len = bytes.len();
        let region = world.memory.allocate(len as u64, place, true);
        let base = world.memory.region(region).base;
        world.memory.write(base, bytes);
        self.memory = Some(Modelled {
            world,
            region,
            base,
            len,
            forbidden: None,
        });
        base
    }

    fn forbid(&mut self, page: usize) -> bool {
        let memory = self.memory();
        memory.world.memory.evict(memory.region);
        let pages = (0..memory.len.div_ceil(PAGE as usize)).filter(|other| *other != page);
        let address = |page: usize| memory.base + page as u64 * PAGE;
        let others: Vec<u64> = pages.map(address).collect();
        memory.forbidden = Some(address(page));
        self.run(&mut Touch(others));
        true
    }

    fn allow(&mut self) {
        if let Some(page) = self.memory().forbidden.take() {
            self.run(&mut Touch(vec![page]));
        }
    }

    fn refusal(&self, part: Part) -> &'static str {
        match part {
            Part::Batches => "the channel gives descriptors one by one",
            Part::Faults => "a modelled device reports every fault",
            Part::Held => "a modelled device ends whatever it has: time passes until then",
            Part::Disruptions => {
                "a modelled device takes no commands: it is never disabled or reset"
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let memory = self.memory.as_ref().expect("memory was prepared");
        let mut bytes = vec![0; memory.len];
        memory.world.memory.read(memory.base, &mut bytes);
        bytes
    }

    fn run<A: Application>(&mut self, application: &mut A) {
        let world = &mut self.memory().world;
        let applications = std::slice::from_mut(application);
        world.run(applications).expect("all end");
        let channel = world.channels().next().expect("a channel");
        assert_eq!(channel.counters().lost, 0);
    }
}
