//! The operations of one closed loop, by number.

use dray::Operation;
use dray_spec::Flags;

use crate::{Buffers, Shape};

/// Descriptor flags taken away and added, on every nth operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlagChange {
    /// Bits taken away.
    pub clear: u32,
    /// Bits added.
    pub set: u32,
    /// On the first of so many operations; 1: on all.
    pub every: u32,
}

/// One operation of every so many that is larger than the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargerEach {
    /// The first of so many operations.
    pub every: u64,
    /// Its bytes.
    pub size: u32,
}

/// What the operations of a loop do, and on which buffers.
#[derive(Debug, Clone)]
pub struct Operations {
    /// What one operation does.
    pub shape: Shape,
    /// Operands, taken in turn.
    pub buffers: Buffers,
    /// Writes go to the cache.
    pub cache_control: bool,
    /// The device waits for pages that are not present.
    pub block_on_fault: bool,
    /// Flags that some descriptors get instead of their own.
    pub flags: Option<FlagChange>,
    /// Operations of another size.
    pub larger: Option<LargerEach>,
    /// Order in which buffers are taken; empty: as they come.
    pub order: Vec<u32>,
}

impl Operations {
    /// Operations that are all alike.
    pub fn new(shape: Shape, buffers: Buffers) -> Operations {
        Operations {
            shape,
            buffers,
            cache_control: false,
            block_on_fault: false,
            flags: None,
            larger: None,
            order: Vec::new(),
        }
    }

    /// The operation number `index`.
    pub fn at(&self, index: u64) -> Operation {
        let buffer = match self.order.len() as u64 {
            0 => index,
            len => self.order[(index % len) as usize].into(),
        };
        let shape = match self.larger {
            Some(larger) if index.is_multiple_of(larger.every.max(1)) => Shape {
                size: larger.size,
                ..self.shape
            },
            _ => self.shape,
        };
        let mut next = shape.operation(&self.buffers, buffer, self.cache_control);
        if self.block_on_fault {
            next = next.with_block_on_fault();
        }
        match self.flags {
            Some(change) if index.is_multiple_of(u64::from(change.every.max(1))) => next
                .with_changed_flags(Flags::from_bits(change.clear), Flags::from_bits(change.set)),
            _ => next,
        }
    }
}
