//! What a patched site jumps to: machine code for one site, and the code that all share.
//!
//! A site's stub makes room below the red zone, saves rax, and enters the [`trampoline`] with the
//! address of its [`Site`]. That saves the rest, calls [`submit`], restores, and leaves by a jump to
//! one of the two ends of the stub: back behind the site, or, where anything is out of the ordinary,
//! into an invalid instruction with the program's registers restored, so that the signal handler
//! does it again as if the site had trapped. Nothing returns to an address that was pushed by hand,
//! which shadow stacks would refuse, and what is jumped to begins with ENDBR64.

use std::arch::naked_asm;
use std::mem::offset_of;

use crate::emulate::{LineWrite, write_line};
use crate::registers::{Registers, ZF};
use crate::site::Site;
use crate::submit::Caller;

/// Bytes of a stub.
pub(crate) const STUB: usize = 96;
/// Where in it the end lies that goes on behind the site.
const DONE: usize = 32;
/// Where in it the end lies that traps.
const SLOW: usize = 56;
/// Where in it the invalid instruction lies.
pub(crate) const TRAP: usize = SLOW + 16;
/// Where in it the address of the trampoline lies.
const TARGET: usize = 80;

/// Not an instruction in 64-bit mode (it was PUSH ES).
pub(crate) const INVALID: u8 = 0x06;
/// JMP rel32.
const JUMP: u8 = 0xe9;
/// Its length.
pub(crate) const JUMP_BYTES: usize = 5;

/// What lies on the program's stack meanwhile.
#[repr(C)]
struct Frame {
    registers: Registers,
    /// Keeps what follows aligned, and where in the stub to go on.
    pad: u64,
    xmm: [[u64; 2]; 16],
}

/// The red zone, and the frame below it.
const ROOM: usize = 128 + size_of::<Frame>();
const FLAGS: usize = offset_of!(Frame, registers) + offset_of!(Registers, flags);
const PAD: usize = offset_of!(Frame, pad);
const XMM: usize = offset_of!(Frame, xmm);
const _: () = assert!(offset_of!(Frame, registers) == 0 && XMM == 144);

/// JMP rel32 at `from` to `to`; `None` if it is too far.
pub(crate) fn jump(from: u64, to: u64) -> Option<[u8; JUMP_BYTES]> {
    let distance = to.wrapping_sub(from.wrapping_add(JUMP_BYTES as u64)) as i64;
    let [a, b, c, d] = i32::try_from(distance).ok()?.to_le_bytes();
    Some([JUMP, a, b, c, d])
}

/// The stub at `address` for `site`; `None` if it is too far away.
pub(crate) fn stub(address: u64, site: &'static Site, next: u64) -> Option<[u8; STUB]> {
    const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let room = (ROOM as i32).to_le_bytes();
    let room_below = (-(ROOM as i32)).to_le_bytes();
    let mut code = [0xcc; STUB];
    let mut at = 0;
    let mut put = |at: &mut usize, bytes: &[u8]| {
        code[*at..*at + bytes.len()].copy_from_slice(bytes);
        *at += bytes.len();
    };
    put(&mut at, &[0x48, 0x8d, 0xa4, 0x24]); // lea rsp, [rsp - ROOM]
    put(&mut at, &room_below);
    put(&mut at, &[0x48, 0x89, 0x04, 0x24]); // mov [rsp], rax
    put(&mut at, &[0x48, 0xb8]); // mov rax, site
    put(&mut at, &(&raw const *site).addr().to_le_bytes());
    put(&mut at, &[0xff, 0x25]); // jmp [rip + ...]
    let distance = (TARGET - at - 4) as i32;
    put(&mut at, &distance.to_le_bytes());
    for end in [DONE, SLOW] {
        at = end;
        put(&mut at, &ENDBR64);
        put(&mut at, &[0x48, 0x8b, 0x04, 0x24]); // mov rax, [rsp]
        put(&mut at, &[0x48, 0x8d, 0xa4, 0x24]); // lea rsp, [rsp + ROOM]
        put(&mut at, &room);
        let back = jump(address + at as u64, next)?;
        match end {
            DONE => put(&mut at, &back),
            _ => put(&mut at, &[INVALID]),
        }
    }
    at = TARGET;
    let target = trampoline as *const () as usize;
    put(&mut at, &target.to_le_bytes());
    Some(code)
}

/// Common to all stubs: rax holds the site, the program's is in the frame at rsp.
///
/// Of the vector registers the sixteen of SSE are saved; [`submit`] and what it calls are compiled
/// for those alone.
#[unsafe(naked)]
unsafe extern "C" fn trampoline() {
    naked_asm!(
        "endbr64",
        "mov [rsp + 8], rcx",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rbx",
        "lea rcx, [rsp + {room}]",
        "mov [rsp + 32], rcx",
        "mov [rsp + 40], rbp",
        "mov [rsp + 48], rsi",
        "mov [rsp + 56], rdi",
        "mov [rsp + 64], r8",
        "mov [rsp + 72], r9",
        "mov [rsp + 80], r10",
        "mov [rsp + 88], r11",
        "mov [rsp + 96], r12",
        "mov [rsp + 104], r13",
        "mov [rsp + 112], r14",
        "mov [rsp + 120], r15",
        "pushfq",
        "pop qword ptr [rsp + {flags}]",
        // As the C calling convention wants it.
        "test dword ptr [rsp + {flags}], {direction}",
        "jz 2f",
        "cld",
        "2:",
        "movups [rsp + {xmm}], xmm0",
        "movups [rsp + {xmm} + 16], xmm1",
        "movups [rsp + {xmm} + 32], xmm2",
        "movups [rsp + {xmm} + 48], xmm3",
        "movups [rsp + {xmm} + 64], xmm4",
        "movups [rsp + {xmm} + 80], xmm5",
        "movups [rsp + {xmm} + 96], xmm6",
        "movups [rsp + {xmm} + 112], xmm7",
        "movups [rsp + {xmm} + 128], xmm8",
        "movups [rsp + {xmm} + 144], xmm9",
        "movups [rsp + {xmm} + 160], xmm10",
        "movups [rsp + {xmm} + 176], xmm11",
        "movups [rsp + {xmm} + 192], xmm12",
        "movups [rsp + {xmm} + 208], xmm13",
        "movups [rsp + {xmm} + 224], xmm14",
        "movups [rsp + {xmm} + 240], xmm15",
        "mov rdi, rsp",
        "mov rsi, rax",
        "mov rbp, rsp",
        "and rsp, -16",
        "call {submit}",
        "mov rsp, rbp",
        "movups xmm0, [rsp + {xmm}]",
        "movups xmm1, [rsp + {xmm} + 16]",
        "movups xmm2, [rsp + {xmm} + 32]",
        "movups xmm3, [rsp + {xmm} + 48]",
        "movups xmm4, [rsp + {xmm} + 64]",
        "movups xmm5, [rsp + {xmm} + 80]",
        "movups xmm6, [rsp + {xmm} + 96]",
        "movups xmm7, [rsp + {xmm} + 112]",
        "movups xmm8, [rsp + {xmm} + 128]",
        "movups xmm9, [rsp + {xmm} + 144]",
        "movups xmm10, [rsp + {xmm} + 160]",
        "movups xmm11, [rsp + {xmm} + 176]",
        "movups xmm12, [rsp + {xmm} + 192]",
        "movups xmm13, [rsp + {xmm} + 208]",
        "movups xmm14, [rsp + {xmm} + 224]",
        "movups xmm15, [rsp + {xmm} + 240]",
        "mov [rsp + {pad}], rax",
        // Nothing above has changed other flags than these. POPF would cost more than all the rest:
        // it serializes what follows.
        "mov ecx, [rsp + {flags}]",
        "test ecx, {direction}",
        "jz 3f",
        "std",
        "3:",
        "mov eax, ecx",
        "shr eax, {overflow}",
        "and eax, 1",
        "mov ah, cl",
        // 0x80 overflows.
        "add al, 0x7f",
        "sahf",
        // rbx and r12 to r15 are as the program left them: a call keeps them.
        "mov rcx, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "mov rbp, [rsp + 40]",
        "mov rsi, [rsp + 48]",
        "mov rdi, [rsp + 56]",
        "mov r8, [rsp + 64]",
        "mov r9, [rsp + 72]",
        "mov r10, [rsp + 80]",
        "mov r11, [rsp + 88]",
        "jmp qword ptr [rsp + {pad}]",
        room = const ROOM,
        flags = const FLAGS,
        pad = const PAD,
        direction = const 1 << 10,
        overflow = const 11,
        xmm = const XMM,
        submit = sym submit,
    )
}

/// Carries the site's instruction out. Where in the stub to go on.
unsafe extern "C" fn submit(frame: &mut Frame, site: &'static Site) -> u64 {
    let registers = &mut frame.registers;
    let (stub, decoded) = site.entered();
    let slow = stub + SLOW as u64;
    let Some(source) = decoded.source else {
        return slow;
    };
    let (to, from) = (decoded.operand(registers), source.address(registers));
    let caller = Caller {
        site: site.address(),
        registers,
    };
    // SAFETY: sites are patched when handlers are installed; the program executes this one.
    let written = unsafe { write_line(decoded.kind, to, from, caller) };
    match written {
        LineWrite::Silent => (),
        LineWrite::Answered { accepted } => registers.set_arithmetic(if accepted { 0 } else { ZF }),
        LineWrite::Fault(_) => return slow,
    }
    stub + DONE as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    #[test]
    fn jumps_reach_up_to_two_gibibytes() {
        assert_eq!(jump(0x1000, 0x1005), Some([0xe9, 0, 0, 0, 0]));
        assert_eq!(jump(0x1000, 0x0ffb), Some([0xe9, 0xf6, 0xff, 0xff, 0xff]));
        assert!(jump(0x1000, 0x1005 + 0x7fff_ffff).is_some());
        assert!(jump(0x1000, 0x1005 + 0x8000_0000).is_none());
        assert!(jump(0x9000_0000, 0x1000_0005).is_some());
        assert!(jump(0x9000_0000, 0x1000_0004).is_none());
    }

    #[test]
    fn the_offsets_of_a_stub_point_to_its_instructions() {
        let site = crate::site::tests::site();
        let code = stub(0x10_0000, site, 0x20_0000).expect("near");
        let at = |offset: usize| {
            let ip = 0x10_0000 + offset as u64;
            let mut decoder = Decoder::with_ip(64, &code[offset..], ip, DecoderOptions::NONE);
            (0..4).map(|_| decoder.decode()).collect::<Vec<_>>()
        };
        let begin = at(0);
        assert_eq!(begin[0].memory_displacement64() as i64, -(ROOM as i64));
        assert_eq!(begin[2].immediate64(), (&raw const *site).addr() as u64);
        assert_eq!(begin[3].memory_displacement64(), 0x10_0000 + TARGET as u64);
        for end in [DONE, SLOW] {
            let end = at(end);
            assert_eq!(end[0].mnemonic(), Mnemonic::Endbr64);
            assert_eq!(end[2].memory_displacement64(), ROOM as u64);
        }
        assert_eq!(at(DONE)[3].near_branch64(), 0x20_0000);
        assert_eq!(code[TRAP], INVALID);
        assert!(at(TRAP)[0].is_invalid());
        assert!(stub(0x2_0000_0000, site, 0x20_0000).is_none());
    }
}
