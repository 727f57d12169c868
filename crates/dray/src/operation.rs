//! What can be offloaded.

use dray_ops::{DestinationDifFlags, DifFlags, SourceDifFlags};
use dray_spec::{Descriptor, DifTags, Flags, Opcode};
use thiserror::Error;

/// A memory operation, not yet bound to who executes it. Addresses are those of the mover's memory:
/// the process's own for the CPU and the hardware, the modelled machine's for the model.
///
/// ```
/// use dray::Operation;
/// let copy = Operation::memmove(0x1000, 0x2000, 64).with_user_data(7);
/// assert_eq!((copy.len(), copy.user_data()), (64, 7));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    descriptor: Descriptor,
    user_data: u64,
}

/// A descriptor that is no operation of its own.
///
/// ```
/// use dray::{NotAnOperation, Operation};
/// use dray_spec::Descriptor;
///
/// let batch = Operation::try_from(Descriptor::batch(0x1000, 2));
/// assert_eq!(batch.err(), Some(NotAnOperation::Batch));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotAnOperation {
    /// No revision of the specification has this opcode.
    #[error("opcode {opcode:#04x} is not defined")]
    Opcode {
        /// The code.
        opcode: u8,
    },
    /// A batch names descriptors with completion records of their own: movers make batches.
    #[error("a batch descriptor is made by a mover, from the operations in it")]
    Batch,
    /// ENQCMD faults where any bit of the first word is set: the kernel says who submits (spec 8.1.1).
    #[error(
        "the first 32-bit word of the descriptor is {word:#x}, and must be 0: PASID (bits 19:0) and privilege \
         (bit 31) are the kernel's, the others are reserved"
    )]
    FirstWord {
        /// The word.
        word: u32,
    },
}

impl Operation {
    /// Does nothing, which takes its time.
    pub fn noop() -> Operation {
        Operation::new(Descriptor::noop())
    }

    /// Copies `len` bytes.
    pub fn memmove(src: u64, dst: u64, len: u32) -> Operation {
        Operation::new(Descriptor::memmove(src, dst, len))
    }

    /// Fills `len` bytes with an 8-byte pattern.
    pub fn fill(pattern: u64, dst: u64, len: u32) -> Operation {
        Operation::new(Descriptor::fill(pattern, dst, len))
    }

    /// Compares two runs of `len` bytes.
    pub fn compare(a: u64, b: u64, len: u32) -> Operation {
        Operation::new(Descriptor::compare(a, b, len))
    }

    /// Compares `len` bytes with an 8-byte pattern.
    pub fn compare_pattern(src: u64, pattern: u64, len: u32) -> Operation {
        Operation::new(Descriptor::compare_pattern(src, pattern, len))
    }

    /// Copies `len` bytes to two destinations whose address bits 11:0 are equal.
    pub fn dualcast(src: u64, dst1: u64, dst2: u64, len: u32) -> Operation {
        Operation::new(Descriptor::dualcast(src, dst1, dst2, len))
    }

    /// CRC32C of `len` bytes.
    pub fn crc(src: u64, len: u32, seed: u32) -> Operation {
        Operation::new(Descriptor::crc(src, len, seed))
    }

    /// Copies `len` bytes and takes their CRC32C.
    pub fn copy_crc(src: u64, dst: u64, len: u32, seed: u32) -> Operation {
        Operation::new(Descriptor::copy_crc(src, dst, len, seed))
    }

    /// CRC-64 of `len` bytes; a device of version 2 has it.
    pub fn crc64(src: u64, len: u32, seed: u64) -> Operation {
        Operation::new(Descriptor::crc64(src, len, seed))
    }

    /// Copies `len` bytes and takes their CRC-64; a device of version 2 has it.
    pub fn copy_crc64(src: u64, dst: u64, len: u32, seed: u64) -> Operation {
        Operation::new(Descriptor::copy_crc64(src, dst, len, seed))
    }

    /// Records at `delta`, in at most `max_delta_len` bytes (80 or more), where two runs of `len`
    /// bytes differ: multiples of 8, at most 512 KiB (spec 8.3.8).
    pub fn create_delta(a: u64, b: u64, len: u32, delta: u64, max_delta_len: u32) -> Operation {
        Operation::new(Descriptor::create_delta(a, b, len, delta, max_delta_len))
    }

    /// Applies the delta record of `delta_len` bytes at `delta` to the `len` bytes at `dst`.
    pub fn apply_delta(delta: u64, dst: u64, len: u32, delta_len: u32) -> Operation {
        Operation::new(Descriptor::apply_delta(delta, dst, len, delta_len))
    }

    /// Checks the integrity fields of a source: `len` bytes with their fields.
    pub fn dif_check(
        src: u64,
        len: u32,
        flags: DifFlags,
        source: (SourceDifFlags, DifTags),
    ) -> Operation {
        let (how, tags) = source;
        let bits = (flags.into_bits(), how.into_bits());
        Operation::new(Descriptor::dif_check(src, len, bits.0, bits.1, tags))
    }

    /// Copies blocks, `len` bytes without fields, and adds a field to each.
    pub fn dif_insert(
        src: u64,
        dst: u64,
        len: u32,
        flags: DifFlags,
        destination: (DestinationDifFlags, DifTags),
    ) -> Operation {
        let (how, tags) = destination;
        let bits = (flags.into_bits(), how.into_bits());
        Operation::new(Descriptor::dif_insert(src, dst, len, bits.0, bits.1, tags))
    }

    /// Checks the fields of a source, `len` bytes with them, and copies the blocks without.
    pub fn dif_strip(
        src: u64,
        dst: u64,
        len: u32,
        flags: DifFlags,
        source: (SourceDifFlags, DifTags),
    ) -> Operation {
        let (how, tags) = source;
        let bits = (flags.into_bits(), how.into_bits());
        Operation::new(Descriptor::dif_strip(src, dst, len, bits.0, bits.1, tags))
    }

    /// Checks the fields of a source, `len` bytes with them, and copies the blocks with new ones.
    pub fn dif_update(
        src: u64,
        dst: u64,
        len: u32,
        flags: DifFlags,
        source: (SourceDifFlags, DifTags),
        destination: (DestinationDifFlags, DifTags),
    ) -> Operation {
        let (checked, made) = (
            (source.0.into_bits(), source.1),
            (destination.0.into_bits(), destination.1),
        );
        let flags = flags.into_bits();
        Operation::new(Descriptor::dif_update(src, dst, len, flags, checked, made))
    }

    /// Writes the fields of a source's blocks, `len` bytes without fields, side by side to `dst`,
    /// which is aligned to 8 bytes; a device of version 2 has it.
    pub fn dix_generate(
        src: u64,
        dst: u64,
        len: u32,
        flags: DifFlags,
        destination: (DestinationDifFlags, DifTags),
    ) -> Operation {
        let (how, tags) = destination;
        let bits = (flags.into_bits(), how.into_bits());
        let d = Descriptor::dix_generate(src, dst, len, bits.0, bits.1, tags);
        Operation::new(d)
    }

    /// Evicts `len` bytes from the processor's caches.
    pub fn cache_flush(dst: u64, len: u32) -> Operation {
        Operation::new(Descriptor::cache_flush(dst, len))
    }

    /// Writes go to the cache instead of memory.
    pub fn with_cache_control(self) -> Operation {
        self.with_flags(Flags::CACHE_CONTROL)
    }

    /// The device waits for a page that is not present, if the queue allows it.
    pub fn with_block_on_fault(self) -> Operation {
        self.with_flags(Flags::BLOCK_ON_FAULT)
    }

    /// The same with other descriptor flags: those of `clear` taken away, then those of `set` added.
    pub fn with_changed_flags(self, clear: Flags, set: Flags) -> Operation {
        let mut descriptor = self.descriptor;
        // The low 24 bits are the flags (spec 8.1.3); `with_flags` only adds.
        descriptor.flags_opcode &= !clear.bits();
        Operation {
            descriptor: descriptor.with_flags(set),
            ..self
        }
    }

    /// A batch starts it when all operations before it in the batch have succeeded (spec 3.9).
    pub fn with_fence(self) -> Operation {
        self.with_flags(Flags::FENCE)
    }

    /// The caller's own number, which the completion brings back.
    pub fn with_user_data(self, user_data: u64) -> Operation {
        Operation { user_data, ..self }
    }

    /// The caller's own number; 0 if none was given.
    pub fn user_data(&self) -> u64 {
        self.user_data
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
        Operation {
            descriptor: self.descriptor.with_flags(flags),
            ..self
        }
    }

    /// Of a descriptor whose opcode is that of an operation.
    #[inline]
    pub(crate) fn of_valid(descriptor: Descriptor, user_data: u64) -> Operation {
        Operation {
            descriptor,
            user_data,
        }
    }

    fn new(descriptor: Descriptor) -> Operation {
        Operation {
            descriptor,
            user_data: 0,
        }
    }
}

impl TryFrom<Descriptor> for Operation {
    type Error = NotAnOperation;

    /// The operation of a raw descriptor. A mover replaces its completion address.
    fn try_from(descriptor: Descriptor) -> Result<Operation, NotAnOperation> {
        match descriptor.opcode() {
            Ok(Opcode::Batch) => Err(NotAnOperation::Batch),
            Ok(_) if descriptor.pasid_priv != 0 => Err(NotAnOperation::FirstWord {
                word: descriptor.pasid_priv,
            }),
            Ok(_) => Ok(Operation::new(descriptor)),
            Err(_) => Err(NotAnOperation::Opcode {
                opcode: descriptor.opcode_byte(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each bit of the word alone, on either side of each field's end.
    #[test]
    fn a_descriptor_that_says_who_submits_is_no_operation() {
        for word in (0..32).map(|bit| 1 << bit).chain([5, u32::MAX]) {
            let mut descriptor = Descriptor::memmove(0x1000, 0x2000, 64);
            descriptor.pasid_priv = word;
            let refused = Operation::try_from(descriptor);
            assert_eq!(refused, Err(NotAnOperation::FirstWord { word }));
        }
    }
}
