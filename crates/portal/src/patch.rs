//! Replaces an instruction by a jump to its stub, while other threads execute it.
//!
//! A submission has five bytes or more, so a near jump fits in; a wait is replaced by instructions of its
//! length. First its first byte becomes an invalid instruction, which any thread that comes by traps at; when every
//! processor has seen that (membarrier SYNC_CORE), the other bytes are written, and then the first. The text
//! is written through `/proc/self/mem`, which needs no writable text. Where that is refused, as for
//! shared mappings or by a policy, the site keeps trapping.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::process::Process;
use crate::site::{Site, State};
use crate::stub::{INVALID, STUB, stub};
use crate::syscall::{close, syscall};

/// Stubs are placed in chunks.
const CHUNK: u64 = 1 << 16;
const CHUNKS: usize = 64;
/// A chunk is sought so far from its site, in steps.
const REACH: u64 = 0x7000_0000;
const STEP: u64 = 1 << 20;

static REGISTERED: AtomicU32 = AtomicU32::new(0);

/// A chunk: its address, and how much of it is in use. Changed by the patching thread alone.
struct Chunk {
    address: AtomicU64,
    used: AtomicU64,
}

static PLACES: [Chunk; CHUNKS] = [const {
    Chunk {
        address: AtomicU64::new(0),
        used: AtomicU64::new(0),
    }
}; CHUNKS];

/// Patches `site`, unless another thread is patching. With all asynchronous signals blocked: a handler
/// of the program that executed the site meanwhile would wait for ever.
pub(crate) fn patch(process: &Process, site: &'static Site) {
    let order = Ordering::Acquire;
    let lock = &process.patching;
    if lock.compare_exchange(0, 1, order, order).is_err() {
        return;
    }
    // A child that was forked meanwhile finds the lock free and the site as it was left: it begins
    // again. A site of which only the state was lost is patched to what it is.
    if matches!(site.state(), State::Fresh | State::Changing) {
        let state = match change(site) {
            Some(()) => State::Patched,
            None => State::Refused,
        };
        site.set_state(state);
    }
    lock.store(0, Ordering::Release);
}

/// Whether the site is replaced now; `None` if its text is as it was.
fn change(site: &'static Site) -> Option<()> {
    let memory = Memory::open()?;
    register()?;
    if site.needs_stub() && site.stub() == 0 {
        let (address, place) = place(site.address())?;
        let code = stub(address, site, site.next())?;
        memory.write(address, &code)?;
        place.used.fetch_add(STUB as u64, Ordering::Relaxed);
        site.set_stub(address);
    }
    let address = site.address();
    let replacement = site.replacement()?;
    let text = replacement.bytes();
    site.set_state(State::Changing);
    memory.write(address, &[INVALID])?;
    let tail = || {
        synchronise()?;
        memory.write(address + 1, &text[1..])?;
        synchronise()
    };
    if tail().is_none() {
        // The tail is whole or untouched: a few bytes are written at once or not at all.
        memory.write(address + 1, &site.bytes()[1..text.len()]);
        memory.write(address, &site.bytes()[..1]);
        return None;
    }
    memory.write(address, &text[..1])?;
    // A thread that has not seen it yet traps once more.
    Some(())
}

/// A place for a stub near `address`.
fn place(address: u64) -> Option<(u64, &'static Chunk)> {
    let near = |chunk: u64| chunk.abs_diff(address) < REACH;
    for place in &PLACES {
        let used = place.used.load(Ordering::Relaxed);
        match place.address.load(Ordering::Relaxed) {
            0 => {
                let chunk = map_near(address)?;
                place.address.store(chunk, Ordering::Relaxed);
                return Some((chunk, place));
            }
            chunk if near(chunk) && used + STUB as u64 <= CHUNK => {
                return Some((chunk + used, place));
            }
            _ => (),
        }
    }
    None
}

/// Maps a chunk as near as there is room.
fn map_near(address: u64) -> Option<u64> {
    let protection = (libc::PROT_READ | libc::PROT_EXEC) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE) as usize;
    let bytes = CHUNK as usize;
    let base = address & !(STEP - 1);
    for step in 1..REACH / STEP {
        for wanted in [base.checked_sub(step * STEP), base.checked_add(step * STEP)] {
            // Nothing is mapped at the very bottom.
            let Some(wanted) = wanted.filter(|wanted| *wanted >= STEP) else {
                continue;
            };
            let arguments = [wanted as usize, bytes, protection, flags, usize::MAX, 0];
            // SAFETY: it replaces no mapping.
            match unsafe { syscall(libc::SYS_mmap, arguments) } {
                Ok(got) if got as u64 == wanted => return Some(wanted),
                Ok(got) => {
                    // A kernel before 4.17 takes the address for a hint.
                    // SAFETY: it was mapped just now.
                    let _ = unsafe { syscall(libc::SYS_munmap, [got, bytes, 0, 0, 0, 0]) };
                }
                Err(libc::EEXIST | libc::EPERM | libc::ENOMEM | libc::EINVAL) => (),
                Err(_) => return None,
            }
        }
    }
    None
}

/// The program's own memory as a file.
pub(crate) struct Memory(i32);

impl Memory {
    pub(crate) fn open() -> Option<Memory> {
        let flags = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
        let path = c"/proc/self/mem".as_ptr().addr();
        let arguments = [libc::AT_FDCWD as usize, path, flags, 0, 0, 0];
        // SAFETY: the path is a string that stays.
        let fd = unsafe { syscall(libc::SYS_openat, arguments) }.ok()?;
        Some(Memory(fd as i32))
    }

    /// Writes code of the program, or nothing.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Option<()> {
        let arguments = [
            self.0 as usize,
            bytes.as_ptr().addr(),
            bytes.len(),
            address as usize,
            0,
            0,
        ];
        // SAFETY: the protocol above says why threads may execute what is written.
        let written = unsafe { syscall(libc::SYS_pwrite64, arguments) };
        (written == Ok(bytes.len())).then_some(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        close(self.0);
    }
}

const SYNC_CORE: usize = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE as usize;
const REGISTER: usize = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE as usize;

fn membarrier(command: usize) -> Result<usize, i32> {
    // SAFETY: it changes no memory.
    unsafe { syscall(libc::SYS_membarrier, [command, 0, 0, 0, 0, 0]) }
}

fn register() -> Option<()> {
    if REGISTERED.load(Ordering::Relaxed) == 0 {
        membarrier(REGISTER).ok()?;
        REGISTERED.store(1, Ordering::Relaxed);
    }
    Some(())
}

/// Has every thread of the process see what was written as code.
fn synchronise() -> Option<()> {
    match membarrier(SYNC_CORE) {
        Ok(_) => Some(()),
        // A child of before 5.x does not inherit what its parent has registered.
        Err(libc::EPERM) => {
            membarrier(REGISTER).ok()?;
            membarrier(SYNC_CORE).ok().map(|_| ())
        }
        Err(_) => None,
    }
}
