//! The instructions that this library carries out: what they are and where their operands lie.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind, Register};

use crate::registers::Registers;
use crate::segment;

/// The longest instruction.
pub const LONGEST: usize = 15;

/// An instruction of the six.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mnemonic {
    /// 64 bytes written at once, posted.
    Movdir64b,
    /// 64 bytes written at once, answered in the zero flag.
    Enqcmd,
    /// The same with the privilege of the kernel.
    Enqcmds,
    /// Arms the monitor of a line.
    Umonitor,
    /// Waits for a store to the line, or for a time.
    Umwait,
    /// Waits for a time.
    Tpause,
}

/// The segment whose base is added to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// One with base 0.
    Flat,
    /// The thread's own memory.
    Fs,
    /// The other one.
    Gs,
}

/// An operand in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Number of the base register.
    pub base: Option<u8>,
    /// Number of the index register, and by how many bits it is shifted.
    pub index: Option<(u8, u8)>,
    /// Sign-extended; the address itself where it is relative to RIP.
    pub displacement: u64,
    /// Whose base is added.
    pub segment: Segment,
    /// The effective address has 32 bits (prefix 67h).
    pub narrow: bool,
}

/// One of the six, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Which.
    pub kind: Mnemonic,
    /// Bytes.
    pub length: u8,
    /// Number of the register that holds the destination, the monitored address or the wanted state.
    pub register: u8,
    /// 32 bits of that register count: an address with prefix 67h, a wanted state.
    pub narrow: bool,
    /// The source, of those that have one.
    pub source: Option<Memory>,
}

impl Memory {
    /// The linear address.
    #[inline]
    pub fn address(&self, registers: &Registers) -> u64 {
        self.address_with(registers, segment::base)
    }

    /// The linear address in a thread whose segments have these bases.
    #[inline]
    pub fn address_with(&self, registers: &Registers, base: impl FnOnce(Segment) -> u64) -> u64 {
        let mut address = self.displacement;
        if let Some(base) = self.base {
            address = address.wrapping_add(registers.get(base));
        }
        if let Some((index, shift)) = self.index {
            address = address.wrapping_add(registers.get(index) << shift);
        }
        if self.narrow {
            address &= u64::from(u32::MAX);
        }
        match self.segment {
            Segment::Flat => address,
            segment => address.wrapping_add(base(segment)),
        }
    }
}

impl Decoded {
    /// What [`register`](Self::register) holds. Destinations are in ES, whose base is 0; no prefix
    /// overrides it.
    #[inline]
    pub fn operand(&self, registers: &Registers) -> u64 {
        let address = registers.get(self.register);
        match self.narrow {
            true => address & u64::from(u32::MAX),
            false => address,
        }
    }

    /// Decodes what lies at `address`; `None` if it is none of the six.
    pub fn new(bytes: &[u8], address: u64) -> Option<Decoded> {
        let instruction = decode(bytes, address)?;
        let (kind, narrow) = match instruction.code() {
            Code::Movdir64b_r64_m512 => (Mnemonic::Movdir64b, false),
            Code::Movdir64b_r32_m512 => (Mnemonic::Movdir64b, true),
            Code::Enqcmd_r64_m512 => (Mnemonic::Enqcmd, false),
            Code::Enqcmd_r32_m512 => (Mnemonic::Enqcmd, true),
            Code::Enqcmds_r64_m512 => (Mnemonic::Enqcmds, false),
            Code::Enqcmds_r32_m512 => (Mnemonic::Enqcmds, true),
            Code::Umonitor_r64 => (Mnemonic::Umonitor, false),
            Code::Umonitor_r32 => (Mnemonic::Umonitor, true),
            Code::Umwait_r32 | Code::Umwait_r64 => (Mnemonic::Umwait, true),
            Code::Tpause_r32 | Code::Tpause_r64 => (Mnemonic::Tpause, true),
            _ => return None,
        };
        Some(Decoded {
            kind,
            length: instruction.len() as u8,
            register: number(instruction.op0_register())?,
            narrow,
            source: memory(&instruction),
        })
    }
}

/// Decodes one instruction of 64-bit code; `None` if it is none or cut off.
pub(crate) fn decode(bytes: &[u8], address: u64) -> Option<Instruction> {
    let mut decoder = Decoder::try_with_ip(64, bytes, address, DecoderOptions::NONE).ok()?;
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// Number of a general register, whatever its width.
pub(crate) fn number(register: Register) -> Option<u8> {
    let from = |first: Register, last: Register| {
        let number = register as u32;
        (first as u32..=last as u32)
            .contains(&number)
            .then(|| (number - first as u32) as u8)
    };
    from(Register::RAX, Register::R15)
        .or_else(|| from(Register::EAX, Register::R15D))
        .or_else(|| from(Register::AX, Register::R15W))
}

fn memory(instruction: &Instruction) -> Option<Memory> {
    if instruction.op_count() < 2 || instruction.op1_kind() != OpKind::Memory {
        return None;
    }
    let base = instruction.memory_base();
    let narrow = [base, instruction.memory_index()]
        .iter()
        .any(|r| (Register::EAX as u32..=Register::R15D as u32).contains(&(*r as u32)))
        || base == Register::EIP
        || instruction.memory_displ_size() == 4;
    let segment = match instruction.memory_segment() {
        Register::FS => Segment::Fs,
        Register::GS => Segment::Gs,
        _ => Segment::Flat,
    };
    Some(Memory {
        base: number(base),
        index: number(instruction.memory_index()).map(|index| {
            (
                index,
                instruction.memory_index_scale().trailing_zeros() as u8,
            )
        }),
        displacement: instruction.memory_displacement64(),
        segment,
        narrow,
    })
}
