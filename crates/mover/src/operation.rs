//! What can be offloaded.

use dray_spec::{Descriptor, Flags, Opcode};

/// A memory operation, not yet bound to who executes it. Addresses are those of the mover's memory:
/// the process's own for the CPU and the hardware, the modelled machine's for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    descriptor: Descriptor,
}

impl Operation {
    /// Does nothing, which takes its time.
    pub fn noop() -> Operation {
        Operation::from(Descriptor::noop())
    }

    /// Copies `len` bytes.
    pub fn memmove(src: u64, dst: u64, len: u32) -> Operation {
        Operation::from(Descriptor::memmove(src, dst, len))
    }

    /// Fills `len` bytes with an 8-byte pattern.
    pub fn fill(pattern: u64, dst: u64, len: u32) -> Operation {
        Operation::from(Descriptor::fill(pattern, dst, len))
    }

    /// Compares two runs of `len` bytes.
    pub fn compare(a: u64, b: u64, len: u32) -> Operation {
        Operation::from(Descriptor::compare(a, b, len))
    }

    /// Compares `len` bytes with an 8-byte pattern.
    pub fn compare_pattern(src: u64, pattern: u64, len: u32) -> Operation {
        Operation::from(Descriptor::compare_pattern(src, pattern, len))
    }

    /// Copies `len` bytes to two destinations whose address bits 11:0 are equal.
    pub fn dualcast(src: u64, dst1: u64, dst2: u64, len: u32) -> Operation {
        Operation::from(Descriptor::dualcast(src, dst1, dst2, len))
    }

    /// CRC32C of `len` bytes.
    pub fn crc(src: u64, len: u32, seed: u32) -> Operation {
        Operation::from(Descriptor::crc(src, len, seed))
    }

    /// Copies `len` bytes and takes their CRC32C.
    pub fn copy_crc(src: u64, dst: u64, len: u32, seed: u32) -> Operation {
        Operation::from(Descriptor::copy_crc(src, dst, len, seed))
    }

    /// Writes go to the cache instead of memory.
    pub fn with_cache_control(self) -> Operation {
        self.with_flags(Flags::CACHE_CONTROL)
    }

    /// The device waits for a page that is not present, if the queue allows it.
    pub fn with_block_on_fault(self) -> Operation {
        self.with_flags(Flags::BLOCK_ON_FAULT)
    }

    /// Its descriptor, without completion address.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Its opcode.
    pub fn opcode(&self) -> Opcode {
        // Built from a valid opcode, and nothing changes it.
        self.descriptor.opcode().unwrap_or(Opcode::Noop)
    }

    /// Bytes that it is asked to process.
    pub fn len(&self) -> u32 {
        self.descriptor.size
    }

    /// Whether it has no bytes to process.
    pub fn is_empty(&self) -> bool {
        self.descriptor.size == 0
    }

    fn with_flags(self, flags: Flags) -> Operation {
        Operation::from(self.descriptor.with_flags(flags))
    }
}

impl From<Descriptor> for Operation {
    fn from(descriptor: Descriptor) -> Operation {
        Operation { descriptor }
    }
}
