//! What the device does with a descriptor, in the name of a fiber.

use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use dray_spec::Accesses;
use dray_spec::{Descriptor, Opcode};
use zerocopy::transmute;

use super::callers::Callers;
use super::fibers::{self, Slot};
use super::is_blind;
use super::pending;
use super::records::{self, Owner, RECORD, Reach};
use super::runtime::{Fiber, NO_ORDER, OfRange, Runtime};
use super::vectors::Vectors;
use crate::chain::SYNCHRONOUS;
use crate::guarded::copy_line;
use crate::process::is_guest;
use crate::quiet::is_quiet;
use crate::submit::{Caller, Submit, Words};
use crate::syscall::{mask_signals, syscall};

/// Of each operand as many bytes are looked at.
const OPERAND: u64 = 4 << 20;
/// Members of a batch that are looked at.
const MEMBERS: u32 = 1 << 10;
const PAGE: u64 = 4096;
/// Bytes of an operand that are looked at first, and at a time; of operands before signals are delivered.
const FIRST_PIECE: usize = 512;
const PIECE: usize = 4096;
const TURN: usize = 64 << 10;
/// Nanoseconds for a piece in which races are found. One without takes some microseconds, where the runtime's own memory is
/// new some hundreds.
const SLOW: u64 = 2_000_000;

/// A work queue, as nodes are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) device: u32,
    pub(crate) wq: u16,
}

impl Queue {
    fn key(self) -> u64 {
        u64::from(self.device) << 16 | u64::from(self.wq)
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wq{}.{}", self.device, self.wq)
    }
}

/// A queue's portal in a program with ThreadSanitizer.
struct Watched {
    portal: &'static dyn Submit,
    queue: Queue,
}

/// The portal of `queue`, whose submissions are reported.
pub(crate) fn watched(portal: &'static dyn Submit, queue: Queue) -> &'static dyn Submit {
    Box::leak(Box::new(Watched { portal, queue }))
}

impl Submit for Watched {
    fn post(&self, words: &Words, caller: Caller<'_>) {
        let _told = tell(words, caller, self.queue);
        self.portal.post(words, caller);
    }

    fn enqueue(&self, words: &Words, caller: Caller<'_>) -> bool {
        let told = tell(words, caller, self.queue);
        let accepted = self.portal.enqueue(words, caller);
        if let (false, Some(told)) = (accepted, told) {
            told.rejected();
        }
        accepted
    }

    fn unmapped(&self) {
        self.portal.unmapped();
    }
}

/// A submission that ThreadSanitizer knows. Until this ends it is not to look at what this library does itself.
#[derive(Debug)]
struct Told {
    runtime: &'static Runtime,
    slot: &'static Slot,
    submission: u64,
}

impl Told {
    /// The queue did not accept the descriptor: nothing happens, and what the program does next comes after it.
    fn rejected(&self) {
        // SAFETY: an address of our own.
        unsafe { (self.runtime.acquire)(pointer(self.slot.token())) };
        for (_, record) in records::of(self.submission) {
            record.seen();
        }
        fibers::complete(self.submission);
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // SAFETY: it ends what `tell` has begun.
        unsafe { (self.runtime.heed)() };
    }
}

/// Reports what a descriptor does. Between two instructions of the program, which are not the runtime's.
fn tell(words: &Words, caller: Caller<'_>, queue: Queue) -> Option<Told> {
    let runtime = Runtime::get()?;
    // What follows calls the kernel, and a child of vfork(2) has its parent's fibers.
    if is_quiet() || is_guest() || is_blind() {
        return None;
    }
    pending::resolve(0);
    // SAFETY: `Told` ends it.
    unsafe { (runtime.ignore)() };
    let vectors = Vectors::save();
    let descriptor: Descriptor = transmute!(*words);
    let operation = descriptor.opcode().map_or("descriptor", Opcode::name);
    let (slot, submission) = fibers::claim(runtime, &format!("{queue} {operation}"));
    let mut steps = Steps {
        submission,
        queue: queue.key(),
        steps: Vec::new(),
    };
    steps.execute(&descriptor);
    let ends = [slot.token(), fibers::token_of(queue.key())];
    steps.steps.extend(ends.map(Step::Release));
    let callers = Callers::of(caller);
    execute(runtime, slot, &steps.steps, callers.as_ref(), caller.site);
    slot.set_busy();
    vectors.restore();
    Some(Told {
        runtime,
        slot,
        submission,
    })
}

/// Has the fiber do all steps.
#[inline(never)]
fn execute(runtime: &Runtime, slot: &Slot, steps: &[Step], callers: Option<&Callers>, site: u64) {
    let mut turn = Turn {
        runtime,
        slot,
        callers: callers.map_or(&[][..], Callers::innermost_first),
        next: pointer(site + 1),
        thread: std::ptr::null_mut(),
        mask: 0,
        bytes: 0,
    };
    turn.begin();
    for step in steps {
        match *step {
            Step::Read(at, bytes) => turn.look(runtime.read_range, at, bytes),
            Step::Write(at, bytes) => turn.look(runtime.write_range, at, bytes),
            // SAFETY: an address of our own, here and below.
            Step::Acquire(token) => unsafe { (runtime.acquire)(pointer(token)) },
            // SAFETY: as above.
            Step::Release(token) => unsafe { (runtime.release)(pointer(token)) },
        }
    }
    turn.end();
}

/// This thread is a fiber. Nothing meanwhile calls a function of the C library, which the runtime would look at as the fiber's.
struct Turn<'a> {
    runtime: &'a Runtime,
    slot: &'a Slot,
    callers: &'a [u64],
    /// An address of what comes next, as those of callers are.
    next: *mut c_void,
    thread: Fiber,
    /// Signals that are blocked otherwise.
    mask: u64,
    /// Bytes of operands that were looked at.
    bytes: usize,
}

impl Turn<'_> {
    fn begin(&mut self) {
        // A signal would be noted for the fiber, which does not run again.
        self.mask = mask_signals(libc::SIG_BLOCK, !SYNCHRONOUS);
        self.bytes = 0;
        // SAFETY: this thread is known to the runtime, and none of its own.
        self.thread = unsafe { (self.runtime.current_fiber)() };
        // SAFETY: this thread alone has the fiber.
        unsafe { (self.runtime.switch_to_fiber)(self.slot.fiber(), 0) };
        for address in self.callers.iter().rev() {
            // SAFETY: where the program is.
            unsafe { (self.runtime.enter)(pointer(*address)) };
        }
    }

    fn end(&mut self) {
        for _ in self.callers {
            // SAFETY: it leaves what was entered before.
            unsafe { (self.runtime.leave)() };
        }
        // SAFETY: back to this thread.
        unsafe { (self.runtime.switch_to_fiber)(self.thread, NO_ORDER) };
        mask_signals(libc::SIG_SETMASK, self.mask);
    }

    /// Looks at an operand, as far as nothing is found: the runtime collects both sides of a race for each 8 bytes, also where
    /// it has reported the two places before, and that takes it some thousand times as long.
    fn look(&mut self, look: OfRange, at: u64, bytes: usize) {
        let (mut done, mut piece) = (0, FIRST_PIECE);
        let mut before = processor_time();
        while done < bytes {
            if self.bytes >= TURN {
                self.end();
                self.begin();
            }
            let size = piece.min(bytes - done);
            // SAFETY: memory of the program's.
            unsafe { look(pointer(at + done as u64), size, self.next) };
            done += size;
            self.bytes += size;
            piece = (2 * piece).min(PIECE);
            let now = processor_time();
            if now.saturating_sub(before) > SLOW {
                break;
            }
            before = now;
        }
    }
}

/// Nanoseconds that this thread has run.
fn processor_time() -> u64 {
    let mut time = [0u64; 2];
    let clock = libc::CLOCK_THREAD_CPUTIME_ID as usize;
    let arguments = [clock, (&raw mut time).addr(), 0, 0, 0, 0];
    // SAFETY: there is room for seconds and nanoseconds.
    let _ = unsafe { syscall(libc::SYS_clock_gettime, arguments) };
    time[0] * 1_000_000_000 + time[1]
}

/// What a fiber does.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Address and bytes.
    Read(u64, usize),
    Write(u64, usize),
    /// What was released at this address comes before the following steps.
    Acquire(u64),
    /// What was done so far comes before what acquires from this address.
    Release(u64),
}

/// What the fiber of a submission does.
#[derive(Debug)]
struct Steps {
    submission: u64,
    queue: u64,
    steps: Vec<Step>,
}

impl Steps {
    fn execute(&mut self, descriptor: &Descriptor) {
        let mut reach = Reach::Submission;
        match descriptor.opcode() {
            // Before it completes, all that was submitted to the queue earlier (spec 8.3.2).
            Ok(Opcode::Drain) => {
                reach = Reach::Drain;
                self.steps.push(Step::Acquire(fibers::token_of(self.queue)));
            }
            Ok(Opcode::Batch) => {
                reach = Reach::Batch;
                for member in 0..descriptor.size.min(MEMBERS) {
                    let mut words: Words = [0; 8];
                    let from = descriptor.address1.wrapping_add(u64::from(member) * 64);
                    // SAFETY: the words are ours; the handlers are installed where there are portals.
                    if unsafe { copy_line((&raw mut words).addr() as u64, from) }.is_err() {
                        break;
                    }
                    self.operate(&transmute!(words), Reach::Member);
                }
            }
            _ => (),
        }
        self.operate(descriptor, reach);
    }

    fn operate(&mut self, descriptor: &Descriptor, reach: Reach) {
        let accesses = Accesses::of(descriptor);
        let known = |(at, bytes): (u64, u64)| {
            let range = (at, bytes.min(OPERAND));
            is_known(range).then_some((at, range.1 as usize))
        };
        let reads = accesses.read().filter_map(known);
        self.steps
            .extend(reads.map(|(at, bytes)| Step::Read(at, bytes)));
        let writes = accesses.written().filter_map(known);
        self.steps
            .extend(writes.map(|(at, bytes)| Step::Write(at, bytes)));
        // The device refuses a record that is not aligned.
        let record = accesses
            .record_range()
            .filter(|(at, _)| at.is_multiple_of(RECORD));
        if let Some((at, bytes)) = record.and_then(known) {
            self.steps.push(Step::Write(at, bytes));
            let owner = Owner {
                submission: self.submission,
                queue: self.queue,
                reach,
            };
            let record = records::enter(at, owner);
            self.steps
                .extend(record.map(|record| Step::Release(record.token())));
        }
    }
}

fn pointer(address: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// Whether the runtime has a state for a range: it lies where programs have memory on x86-64, and something is mapped near its
/// ends. A page of it that is not mapped has a state, too.
fn is_known((address, bytes): (u64, u64)) -> bool {
    bytes > 0
        && address
            .checked_add(bytes - 1)
            .is_some_and(|last| [address, last].into_iter().all(is_of_program))
}

/// Memory is mapped at an address, or was in the same [region](REGION) before.
fn is_of_program(address: u64) -> bool {
    /// Smaller than what the runtime divides the address space by (`tsan_platform.h`, x86-64 Linux).
    const REGION: u64 = 1 << 30;
    static REGIONS: [AtomicU64; 64] = [const { AtomicU64::new(u64::MAX) }; 64];
    let below = |end: u64| address < end << 40;
    // The rest is the runtime's, or the kernel's.
    let programs = address < 1 << 39 || !below(0x55) && below(0x5a) || !below(0x72) && below(0x80);
    let region = address / REGION;
    let known = &REGIONS[region as usize % REGIONS.len()];
    if !programs || known.load(Ordering::Relaxed) == region {
        return programs;
    }
    let mut state = 0u8;
    let page = (address & !(PAGE - 1)) as usize;
    let arguments = [page, 1, (&raw mut state).addr(), 0, 0, 0];
    // SAFETY: there is a byte for the page.
    let mapped = unsafe { syscall(libc::SYS_mincore, arguments) }.is_ok();
    if mapped {
        known.store(region, Ordering::Relaxed);
    }
    mapped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trap;

    #[test]
    fn memory_of_the_program_is_known_and_other_addresses_are_not() {
        let memory = vec![0u8; 1 << 16];
        let at = memory.as_ptr().addr() as u64;
        assert!(is_known((at, memory.len() as u64)));
        for range in [
            (at, 0),
            (0x10, 8),
            (u64::MAX - 7, 64),
            // Where the runtime has its own.
            (0x2000_0000_0000, 64),
            (0x7fff_ffff_f000, 1 << 20),
        ] {
            assert!(!is_known(range), "{range:x?}");
        }
    }

    #[test]
    fn a_batch_is_its_members_in_order_and_its_record_last() {
        trap::install().expect("handlers");
        let (from, to) = (vec![0u8; 64], vec![0u8; 64]);
        let at = |bytes: &[u8]| bytes.as_ptr().addr() as u64;
        let member = |n: u64| Descriptor::memmove(at(&from), at(&to) + n, 8);
        let list = [member(0), member(8)];
        let list: &[Words; 2] = zerocopy::transmute_ref!(&list);
        let record = [0u64; 8];
        let record = (record.as_ptr().addr() as u64).next_multiple_of(RECORD);
        let batch = Descriptor::batch(list.as_ptr().addr() as u64, 2).with_completion(record);
        let mut steps = Steps {
            submission: 1,
            queue: 0,
            steps: Vec::new(),
        };
        steps.execute(&batch);
        let writes = steps.steps.iter().filter_map(|step| match step {
            Step::Write(at, bytes) => Some((*at, *bytes)),
            _ => None,
        });
        let expected = [(at(&to), 8), (at(&to) + 8, 8), (record, RECORD as usize)];
        assert_eq!(writes.collect::<Vec<_>>(), expected);
        assert!(matches!(steps.steps.last(), Some(Step::Release(_))));
        // Another test may want its place in the table.
        records::forget_within(record, RECORD);
    }
}
