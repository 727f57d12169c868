//! Ordinary loads and stores at a portal page.
//!
//! A device drops writes that are not 64 bytes at once, and answers reads with all ones, as PCI
//! devices do for what they do not implement.

use iced_x86::{Code, Instruction, MemorySize, Mnemonic, OpKind, Register};

use crate::context::Context;
use crate::decode::{decode, number};
use crate::registers::DF;

/// The bit of a page fault's error code that says write.
const WRITE: u64 = 1 << 1;

/// Carries out the instruction in `bytes`, which has faulted at a portal page. Whether it could.
pub(crate) fn access(context: &mut Context<'_>, bytes: &[u8]) -> bool {
    let Some(instruction) = decode(bytes, context.rip()) else {
        return false;
    };
    let next = instruction.next_ip();
    let write = context.error() & WRITE != 0;
    match (write, is_string(&instruction)) {
        (true, true) => {
            step_string(context, &instruction);
            return true;
        }
        (true, false) => (),
        (false, true) => return false,
        (false, false) if load_ones(context, &instruction) => (),
        (false, false) => return false,
    }
    context.set_rip(next);
    true
}

/// Carries out the instruction in `bytes` for a thread whose registers are in a signal frame but for
/// the error code, which only the kernel knows. Whether it could.
///
/// # Safety
/// The frame's floating-point state is null or there.
pub unsafe fn access_portal(frame: &mut libc::ucontext_t, bytes: &[u8]) -> bool {
    let Some(stores) = decode(bytes, 0).map(|instruction| stores(&instruction)) else {
        return false;
    };
    frame.uc_mcontext.gregs[libc::REG_ERR as usize] = if stores { WRITE as i64 } else { 0 };
    access(&mut Context(frame), bytes)
}

/// Whether an instruction writes its operand in memory.
fn stores(instruction: &Instruction) -> bool {
    let in_memory = instruction.op0_kind() == OpKind::Memory || is_string(instruction);
    let compares = matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
    in_memory && !compares
}

fn is_string(instruction: &Instruction) -> bool {
    let kind = instruction.op0_kind();
    matches!(
        kind,
        OpKind::MemoryESRDI | OpKind::MemoryESEDI | OpKind::MemoryESDI
    )
}

/// Skips one store of MOVS or STOS, and has a repeated one go on.
fn step_string(context: &mut Context<'_>, instruction: &Instruction) {
    let registers = context.registers();
    let size = match instruction.mnemonic() {
        Mnemonic::Movsb | Mnemonic::Stosb | Mnemonic::Insb => 1,
        Mnemonic::Movsw | Mnemonic::Stosw | Mnemonic::Insw => 2,
        Mnemonic::Movsq | Mnemonic::Stosq => 8,
        _ => 4u64,
    };
    let step = match registers.flags & DF {
        0 => size,
        _ => size.wrapping_neg(),
    };
    let mut move_on = |number: u8| {
        let value = registers.get(number).wrapping_add(step);
        context.set_general(number.into(), value);
    };
    const RCX: u8 = 1;
    const RSI: u8 = 6;
    const RDI: u8 = 7;
    move_on(RDI);
    if matches!(
        instruction.mnemonic(),
        Mnemonic::Movsb | Mnemonic::Movsw | Mnemonic::Movsd | Mnemonic::Movsq
    ) {
        move_on(RSI);
    }
    if instruction.has_rep_prefix() || instruction.has_repne_prefix() {
        let left = registers.get(RCX).wrapping_sub(1);
        context.set_general(RCX.into(), left);
        if left != 0 {
            return;
        }
    }
    context.set_rip(instruction.next_ip());
}

/// Loads all ones into the register that the instruction names. Whether it is such a load.
fn load_ones(context: &mut Context<'_>, instruction: &Instruction) -> bool {
    if instruction.op0_kind() != OpKind::Register || instruction.op1_kind() != OpKind::Memory {
        return false;
    }
    let register = instruction.op0_register();
    match instruction.mnemonic() {
        Mnemonic::Mov | Mnemonic::Movsx | Mnemonic::Movsxd => set(context, register, u64::MAX),
        Mnemonic::Movzx => match instruction.memory_size() {
            MemorySize::UInt8 => set(context, register, 0xff),
            _ => set(context, register, 0xffff),
        },
        Mnemonic::Movdqa | Mnemonic::Movdqu | Mnemonic::Movaps | Mnemonic::Movups => {
            let sse = matches!(
                instruction.code(),
                Code::Movdqa_xmm_xmmm128
                    | Code::Movdqu_xmm_xmmm128
                    | Code::Movaps_xmm_xmmm128
                    | Code::Movups_xmm_xmmm128
            );
            let number = (register as usize).wrapping_sub(Register::XMM0 as usize);
            sse && context.fill_xmm(number)
        }
        _ => false,
    }
}

/// Writes a register as an instruction of its width does.
fn set(context: &mut Context<'_>, register: Register, value: u64) -> bool {
    let range =
        |first: Register, last: Register| (first as u32..=last as u32).contains(&(register as u32));
    // A byte register keeps the rest of its full one; AH to BH are the second byte of the first four.
    if range(Register::AL, Register::R15L) {
        let index = register as u32 - Register::AL as u32;
        let (number, shift) = match index {
            0..4 => (index, 0),
            4..8 => (index - 4, 8),
            _ => (index - 4, 0),
        };
        let mask = 0xff << shift;
        let old = context.registers().get(number as u8);
        context.set_general(number as usize, old & !mask | value << shift & mask);
        return true;
    }
    let Some(number) = number(register) else {
        return false;
    };
    let value = if range(Register::AX, Register::R15W) {
        context.registers().get(number) & !0xffff | value & 0xffff
    } else if range(Register::EAX, Register::R15D) {
        value & u64::from(u32::MAX)
    } else {
        value
    };
    context.set_general(number.into(), value);
    true
}
