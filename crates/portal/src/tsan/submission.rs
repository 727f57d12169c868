//! What the device does with a descriptor, in the name of a fiber.

use std::ffi::c_void;
use std::fmt;

use dray_device::Accesses;
use dray_spec::{Descriptor, Opcode};
use zerocopy::transmute;

use super::callers::Callers;
use super::fibers::{self, Slot};
use super::records::{self, RECORD};
use super::runtime::{NO_ORDER, Runtime};
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
    if is_quiet() || is_guest() {
        return None;
    }
    let vectors = Vectors::save();
    // A signal would be noted for the fiber, which does not run again.
    let mask = mask_signals(libc::SIG_BLOCK, !SYNCHRONOUS);
    // SAFETY: `Told` ends it.
    unsafe { (runtime.ignore)() };
    let descriptor: Descriptor = transmute!(*words);
    let operation = descriptor.opcode().map_or("descriptor", Opcode::name);
    let (slot, submission) = fibers::claim(runtime, queue.key(), &format!("{queue} {operation}"));
    let mut steps = Steps {
        submission,
        steps: Vec::new(),
    };
    steps.execute(&descriptor, queue);
    steps.steps.push(Step::Release(slot.token()));
    let callers = Callers::of(caller);
    execute(runtime, slot, &steps.steps, callers.as_ref(), caller.site);
    slot.set_busy();
    mask_signals(libc::SIG_SETMASK, mask);
    vectors.restore();
    Some(Told {
        runtime,
        slot,
        submission,
    })
}

/// Has the fiber do all steps. Nothing here calls a function of the C library, which the runtime would look at as the fiber's.
#[inline(never)]
fn execute(runtime: &Runtime, slot: &Slot, steps: &[Step], callers: Option<&Callers>, site: u64) {
    let callers = callers.map_or(&[][..], Callers::innermost_first);
    // An address of what comes next, as those of callers are.
    let next = pointer(site + 1);
    // SAFETY: this thread is known to the runtime, and none of its own.
    let thread = unsafe { (runtime.current_fiber)() };
    // SAFETY: this thread alone has the fiber.
    unsafe { (runtime.switch_to_fiber)(slot.fiber(), 0) };
    for address in callers.iter().rev() {
        // SAFETY: where the program is.
        unsafe { (runtime.enter)(pointer(*address)) };
    }
    for step in steps {
        match *step {
            // SAFETY: memory of the program's, here and below.
            Step::Read(at, bytes) => unsafe { (runtime.read_range)(pointer(at), bytes, next) },
            // SAFETY: as above.
            Step::Write(at, bytes) => unsafe { (runtime.write_range)(pointer(at), bytes, next) },
            // SAFETY: an address of our own, here and below.
            Step::Acquire(token) => unsafe { (runtime.acquire)(pointer(token)) },
            // SAFETY: as above.
            Step::Release(token) => unsafe { (runtime.release)(pointer(token)) },
        }
    }
    for _ in callers {
        // SAFETY: it leaves what was entered above.
        unsafe { (runtime.leave)() };
    }
    // SAFETY: back to this thread.
    unsafe { (runtime.switch_to_fiber)(thread, NO_ORDER) };
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
    steps: Vec<Step>,
}

impl Steps {
    fn execute(&mut self, descriptor: &Descriptor, queue: Queue) {
        match descriptor.opcode() {
            // Before it completes, all that was submitted to the queue earlier (spec 8.3.2).
            Ok(Opcode::Drain) => {
                let earlier = fibers::in_flight(queue.key()).map(|(token, _)| Step::Acquire(token));
                self.steps.extend(earlier);
            }
            Ok(Opcode::Batch) => {
                for member in 0..descriptor.size.min(MEMBERS) {
                    let mut words: Words = [0; 8];
                    let from = descriptor.address1.wrapping_add(u64::from(member) * 64);
                    // SAFETY: the words are ours; the handlers are installed where there are portals.
                    if unsafe { copy_line((&raw mut words).addr() as u64, from) }.is_err() {
                        break;
                    }
                    self.operate(&transmute!(words));
                }
            }
            _ => (),
        }
        self.operate(descriptor);
    }

    fn operate(&mut self, descriptor: &Descriptor) {
        let accesses = Accesses::of(descriptor);
        let known = |(at, bytes): (u64, u64)| {
            let range = (at, bytes.min(OPERAND));
            is_mapped(range).then_some((at, range.1 as usize))
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
            let record = records::enter(at, self.submission);
            self.steps
                .extend(record.map(|record| Step::Release(record.token())));
        }
    }
}

fn pointer(address: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// Whether all pages of a range of at most [`OPERAND`] bytes are mapped: what is not has no state in the runtime.
fn is_mapped((address, bytes): (u64, u64)) -> bool {
    let mut states = [0u8; (OPERAND / PAGE) as usize + 1];
    let first = address & !(PAGE - 1);
    let Some(end) = address.checked_add(bytes).filter(|end| end >> 47 == 0) else {
        return false;
    };
    let place = states.as_mut_ptr().addr();
    let arguments = [first as usize, (end - first) as usize, place, 0, 0, 0];
    // SAFETY: there is a byte for each page.
    unsafe { syscall(libc::SYS_mincore, arguments) }.is_ok()
}
