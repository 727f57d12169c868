//! Memory that a mover works on: this process's own, or the modelled machine's.

use dray_model::World;
use dray_platform::{Cache, MemoryLocation, NodeId};

/// Alignment of an area; dualcast compares address bits 11:0.
pub(crate) const PAGE: u64 = 4096;

pub(crate) trait Ground {
    /// First address, page aligned.
    fn base(&self) -> u64;
    fn put(&mut self, bytes: &[u8]);
    fn get(&self) -> Vec<u8>;
}

/// Pages of this process.
pub(crate) struct Own {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Own {
    pub(crate) fn new(len: usize) -> Own {
        let memory = vec![0; len + PAGE as usize];
        let start = memory.as_ptr().align_offset(PAGE as usize);
        Own { memory, start, len }
    }
}

impl Ground for Own {
    fn base(&self) -> u64 {
        // Movers reach the memory by its address, as a device would.
        self.memory.as_ptr().expose_provenance() as u64 + self.start as u64
    }

    fn put(&mut self, bytes: &[u8]) {
        self.memory[self.start..self.start + bytes.len()].copy_from_slice(bytes);
    }

    fn get(&self) -> Vec<u8> {
        self.memory[self.start..self.start + self.len].to_vec()
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
