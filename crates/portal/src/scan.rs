//! Finds the instructions in the program's code when it maps a portal, and has them patched before they are
//! executed: on hardware a submission delivers no signal.
//!
//! The opcode's bytes may stand in data or within another instruction, so a site counts only where the decoder
//! arrives at it from the beginning of its function, as the unwind tables give it. What is not found that way
//! (code without unwind tables, made later, or loaded later) traps once.

use std::ffi::{c_int, c_void};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

use iced_x86::{Decoder, DecoderOptions, Instruction};
use memchr::memmem;

use crate::chain::SYNCHRONOUS;
use crate::decode::{Decoded, LONGEST, Mnemonic};
use crate::guarded::read_to;
use crate::process::is_guest;
use crate::scratch;
use crate::syscall::mask_signals;
use crate::trap::remember;

/// Opcode of MOVDIR64B, ENQCMD and ENQCMDS behind their prefixes (SDM, volume 2).
const SUBMISSION: [u8; 3] = [0x0f, 0x38, 0xf8];
/// The first two bytes of UMONITOR, UMWAIT and TPAUSE behind their prefixes, and of fences without. The third
/// names a register.
const WAIT: [u8; 2] = [0x0f, 0xae];
const WAITS: RangeInclusive<u8> = 0xf0..=0xf7;
/// Bytes of either, without prefixes.
const OPCODE: usize = 3;
/// Before the opcode and what may be between them, REX.
const PREFIXES: [u8; 3] = [0x66, 0xf2, 0xf3];
/// Bytes of code that are read at a time, and as many of them once more as an instruction has.
const PART: usize = 1 << 16;
/// Longer functions are not decoded: generated tables of code, which take no descriptors.
const LONGEST_FUNCTION: usize = 1 << 22;

/// How many objects the linker had loaded and unloaded at the last scan, in 32 bits each.
static SCANNED: AtomicU64 = AtomicU64::new(0);

/// Executable bytes of an object.
#[derive(Debug, Clone, Copy)]
struct Code {
    begin: u64,
    end: u64,
}

/// Objects that are loaded.
#[derive(Debug, Default)]
struct Objects {
    /// As [`SCANNED`].
    version: u64,
    code: Vec<Code>,
}

/// Patches what the objects contain that are loaded, unless they are those of the last time. After
/// [`trap::install`](crate::trap::install).
pub(crate) fn patch_loaded_code() {
    // The other process of vfork has executed what it shares.
    if is_guest() {
        return;
    }
    let objects = loaded();
    if SCANNED.swap(objects.version, Ordering::Relaxed) == objects.version {
        return;
    }
    // A handler of the program that came while a site is patched would wait for ever.
    let mask = mask_signals(libc::SIG_SETMASK, !SYNCHRONOUS);
    let mut sites = Vec::new();
    for code in &objects.code {
        find(*code, &mut sites);
    }
    for (address, bytes) in sites {
        if let Some(decoded) = Decoded::new(&bytes, address) {
            remember(address, &decoded, &bytes);
        }
    }
    mask_signals(libc::SIG_SETMASK, mask);
}

/// The objects that the dynamic linker has loaded, without this library.
fn loaded() -> Objects {
    unsafe extern "C" fn one(
        info: *mut libc::dl_phdr_info,
        _: usize,
        objects: *mut c_void,
    ) -> c_int {
        // SAFETY: the linker's, for the time of the call.
        let info = unsafe { &*info };
        // SAFETY: the pointer that `loaded` gives.
        let objects = unsafe { &mut *objects.cast::<Objects>() };
        objects.version = info.dlpi_adds << 32 | info.dlpi_subs & u64::from(u32::MAX);
        // SAFETY: the object has so many program headers.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let wanted = libc::PF_X | libc::PF_R;
        let code = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & wanted == wanted)
            .map(|header| {
                let begin = info.dlpi_addr.wrapping_add(header.p_vaddr);
                let end = begin.saturating_add(header.p_memsz);
                Code { begin, end }
            });
        let own = scratch::entry as *const () as u64;
        objects
            .code
            .extend(code.filter(|code| !(code.begin..code.end).contains(&own)));
        0
    }
    let mut objects = Objects::default();
    // SAFETY: the function takes what it is given.
    unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut objects).cast()) };
    objects
}

/// Finds the instructions in a part of the code.
fn find(code: Code, sites: &mut Vec<(u64, [u8; LONGEST])>) {
    let submissions = memmem::Finder::new(&SUBMISSION);
    let waits = memmem::Finder::new(&WAIT);
    // A processor that has the waits executes them.
    let has_waits = has_waits();
    let mut part = Vec::new();
    let mut begin = code.begin;
    while begin < code.end {
        let length = (PART + OPCODE).min((code.end - begin) as usize);
        // SAFETY: the handlers are installed.
        if unsafe { read_to(begin, length, &mut part) }.is_ok() {
            let submissions = submissions.find_iter(&part);
            let waits = waits.find_iter(&part);
            let waits = waits.filter(|at| !has_waits && may_wait(&part, *at));
            for found in submissions.chain(waits) {
                sites.extend(instruction_around(begin + found as u64));
            }
        }
        begin += PART as u64;
    }
    // What lies across two parts was found twice.
    sites.sort_unstable();
    sites.dedup_by_key(|(address, _)| *address);
}

/// Whether the bytes at `at` may be those of a wait, and not a fence. What precedes the part may be a prefix.
fn may_wait(part: &[u8], at: usize) -> bool {
    let prefix = |back: usize| {
        let before = at.checked_sub(back).map(|before| part[before]);
        before.is_none_or(|byte| PREFIXES.contains(&byte))
    };
    let names = part.get(at + WAIT.len());
    names.is_some_and(|byte| WAITS.contains(byte)) && (prefix(1) || prefix(2))
}

/// Whether the processor has UMONITOR, UMWAIT and TPAUSE (WAITPKG; SDM, CPUID leaf 7).
fn has_waits() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx & 1 << 5 != 0
}

/// The instruction that has its opcode at this address: where it begins, and its bytes.
fn instruction_around(opcode: u64) -> Option<(u64, [u8; LONGEST])> {
    let function = function_of(opcode).filter(|begin| *begin <= opcode)?;
    let length = (opcode - function) as usize;
    if length > LONGEST_FUNCTION {
        return None;
    }
    let mut code = Vec::new();
    // SAFETY: the handlers are installed.
    if unsafe { read_to(function, length + LONGEST, &mut code) }.is_err() {
        // The last function of its pages.
        let least = length + OPCODE + 1;
        // SAFETY: as above.
        unsafe { read_to(function, least, &mut code) }.ok()?;
    }
    let mut decoder = Decoder::with_ip(64, &code, function, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            return None;
        }
        if instruction.next_ip() > opcode {
            break;
        }
    }
    let begin = instruction.ip();
    let at = (begin - function) as usize;
    let decoded = Decoded::new(code.get(at..)?, begin)?;
    let emulated = decoded.kind != Mnemonic::Enqcmds;
    let mut bytes = [0; LONGEST];
    let known = code.len().min(at + LONGEST) - at;
    bytes[..known].copy_from_slice(&code[at..at + known]);
    emulated.then_some((begin, bytes))
}

/// Where the function begins that contains this address, by the unwind tables.
fn function_of(address: u64) -> Option<u64> {
    /// `struct dwarf_eh_bases` of GCC's `unwind-dw2-fde.h`.
    #[repr(C)]
    struct Bases {
        text: usize,
        data: usize,
        function: usize,
    }
    unsafe extern "C" {
        /// The entry of the unwind tables for an address (libgcc, since 3.0).
        fn _Unwind_Find_FDE(address: *const c_void, bases: *mut Bases) -> *const c_void;
    }
    let mut bases = Bases {
        text: 0,
        data: 0,
        function: 0,
    };
    // SAFETY: it looks the address up, and writes the bases.
    let entry = unsafe { _Unwind_Find_FDE(address as *const c_void, &raw mut bases) };
    (!entry.is_null()).then_some(bases.function as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::arch::{asm, naked_asm};

    /// Both submissions, and the bytes of one inside another instruction; the waits, and a fence.
    #[unsafe(naked)]
    unsafe extern "C" fn submissions() {
        naked_asm!(
            ".cfi_startproc",
            "nop",
            ".byte 0x66, 0x0f, 0x38, 0xf8, 0x02", // movdir64b rax, [rdx]
            "mov rax, 0x1234f8380f66",
            ".byte 0xf2, 0x44, 0x0f, 0x38, 0xf8, 0x02", // enqcmd r8, [rdx]
            ".byte 0xf3, 0x0f, 0xae, 0xf0",             // umonitor rax
            "mfence",
            ".byte 0xf2, 0x41, 0x0f, 0xae, 0xf0", // umwait r8d
            ".byte 0x66, 0x0f, 0xae, 0xf1",       // tpause ecx
            "ret",
            ".cfi_endproc",
        )
    }

    #[test]
    fn only_bytes_that_are_executed_as_submissions_are_found() {
        crate::trap::install().expect("handlers");
        let begin = submissions as *const () as u64;
        let mut sites = Vec::new();
        find(
            Code {
                begin,
                end: begin + 39,
            },
            &mut sites,
        );
        let places: Vec<u64> = sites.iter().map(|(address, _)| address - begin).collect();
        let waits: &[u64] = if has_waits() { &[] } else { &[22, 29, 34] };
        assert_eq!(places, [&[1, 16], waits].concat());
    }

    #[test]
    fn code_without_unwind_tables_has_no_function() {
        let mut data = [0x66u8, 0x0f, 0x38, 0xf8, 0x02];
        // SAFETY: an address of ours, which no code has.
        unsafe { asm!("/* {} */", in(reg) data.as_mut_ptr()) };
        assert_eq!(instruction_around(data.as_ptr().addr() as u64 + 1), None);
    }

    #[test]
    fn this_program_is_among_the_loaded_objects_without_its_own_code() {
        let objects = loaded();
        assert!(objects.version != 0 && !objects.code.is_empty());
        let own = scratch::entry as *const () as u64;
        assert!(
            objects
                .code
                .iter()
                .all(|code| !(code.begin..code.end).contains(&own))
        );
    }
}
