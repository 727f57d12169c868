//! Memory that a mover works on: this process's own, or the modelled machine's.

use dray_model::World;
use dray_platform::{Cache, MemoryLocation, NodeId};

pub(crate) use dray_conformance::PAGE;

pub(crate) trait Ground {
    /// First address, page aligned.
    fn base(&self) -> u64;
    fn put(&mut self, bytes: &[u8]);
    fn get(&self) -> Vec<u8>;
}

/// Pages of this process.
pub(crate) use dray_conformance::ProcessPages as Own;

impl Ground for Own {
    fn base(&self) -> u64 {
        self.base()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.put(bytes);
    }

    fn get(&self) -> Vec<u8> {
        self.get()
    }
}

/// A region of a modelled machine.
pub(crate) struct Modelled {
    pub(crate) world: World,
    base: u64,
    len: usize,
}

impl Modelled {
    pub(crate) fn new(mut world: World, len: usize) -> Modelled {
        let place = MemoryLocation {
            node: NodeId(0),
            cache: Cache::Memory,
        };
        let region = world.memory.allocate(len as u64, place, true);
        let base = world.memory.region(region).base;
        Modelled { world, base, len }
    }
}

impl Ground for Modelled {
    fn base(&self) -> u64 {
        self.base
    }

    fn put(&mut self, bytes: &[u8]) {
        self.world.memory.write(self.base, bytes);
    }

    fn get(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.world.memory.read(self.base, &mut bytes);
        bytes
    }
}
