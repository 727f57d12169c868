//! The memory that an operation reads and writes.

use dray_ops::{BlockSize, DIF_BYTES};
use dray_spec::{Flags, Opcode};

use crate::Operation;

/// Bytes at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// It is written, not read.
    pub(crate) write: bool,
}

/// What `operation` may access, apart from its record: up to three runs of bytes. Those that it does
/// not have are empty. A comparison may end before, and a delta record may be shorter.
pub(crate) fn operands(operation: &Operation) -> [Operand; 3] {
    let d = operation.descriptor();
    let len = u64::from(d.size);
    let read = |address, bytes| Operand {
        address,
        bytes,
        write: false,
    };
    let written = |address, bytes| Operand {
        address,
        bytes,
        write: true,
    };
    let none = read(0, 0);
    let block = BlockSize::from_bits(d.dif_flags());
    let (data, protected) = (block.bytes() as u64, block.protected_bytes() as u64);
    let seed = match d.flags().contains(Flags::CRC_READ_SEED) {
        true if d.flags().contains(Flags::CRC_64) => read(d.crc_seed_address(), 8),
        true => read(d.crc_seed_address(), 4),
        false => none,
    };
    let (from, to) = (d.address1, d.address2);
    match operation.opcode() {
        Opcode::Memmove => [read(from, len), written(to, len), none],
        Opcode::Fill => [written(to, len), none, none],
        // It changes no byte (spec 8.3.26).
        Opcode::CacheFlush => [read(to, len), none, none],
        Opcode::Compare => [read(from, len), read(to, len), none],
        Opcode::ComparePattern | Opcode::DifCheck => [read(from, len), none, none],
        Opcode::CreateDelta => [
            read(from, len),
            read(to, len),
            written(d.delta_record(), d.max_delta_size().into()),
        ],
        Opcode::ApplyDelta => [
            read(from, d.delta_record_size().into()),
            written(to, len),
            none,
        ],
        Opcode::Dualcast => [
            read(from, len),
            written(to, len),
            written(d.destination2(), len),
        ],
        Opcode::CrcGenerate => [read(from, len), seed, none],
        Opcode::CopyCrc => [read(from, len), written(to, len), seed],
        Opcode::DifInsert => [read(from, len), written(to, len / data * protected), none],
        Opcode::DifStrip => [read(from, len), written(to, len / protected * data), none],
        Opcode::DifUpdate => [read(from, len), written(to, len), none],
        Opcode::DixGenerate => {
            let fields = len / data * DIF_BYTES as u64;
            [read(from, len), written(to, fields), none]
        }
        _ => [none; 3],
    }
}
