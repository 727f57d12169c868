//! A copy or a fill in a lane, split between core and device.

use dray::{Completion, Progress};
use dray_placement::{Cut, Reason, Rest};
use dray_spec::Status;

use crate::deadline::Deadline;
use crate::execute::Done;
use crate::lanes::{SLOTS, Taken};
use crate::runtime::Runtime;
use crate::settings::Faults;
use crate::work::{Part, Work};

/// Times that a descriptor is submitted to a queue that is full, while nothing of this call is in
/// flight.
pub(crate) const ATTEMPTS: u32 = 4;

/// Parts that are left to the core when the lane is free again.
#[derive(Debug, Default)]
struct Left {
    parts: [(Part, Option<Reason>); 2 * SLOTS],
    count: usize,
}

impl Left {
    /// # Safety
    /// As [`Work::on_core`].
    unsafe fn push(&mut self, work: Work, part: Part, reason: Reason, runtime: &Runtime) {
        if part.len == 0 {
            return;
        }
        runtime.stats.reason(reason, part.len);
        match self.parts.get_mut(self.count) {
            Some(place) => {
                *place = (part, Some(reason));
                self.count += 1;
            }
            // SAFETY: the caller's promise.
            None => unsafe { work.on_core(part) },
        }
    }
}

/// Splits a call between the core and a lane.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn share(
    runtime: &Runtime,
    mut taken: Taken<'_>,
    work: Work,
    len: usize,
    overlap: bool,
    done: &mut Done,
) {
    let core = match overlap {
        true => 0,
        false => len / 100 * runtime.adaptation.core_percent(),
    };
    let mut left = Left::default();
    let mut transfer = Transfer {
        runtime,
        work,
        parts: [Part::default(); SLOTS],
        used: 0,
        in_flight: 0,
        looks: 0,
        deadline: Deadline::new(runtime.deadline_ns),
        done,
        left: &mut left,
    };
    // SAFETY: the caller's promise.
    unsafe { transfer.run(&mut taken, core, len) };
    drop(taken);
    for (part, _) in &left.parts[..left.count] {
        // SAFETY: the caller's promise; the device has ended.
        unsafe { work.on_core(*part) };
    }
}

/// A call in a lane.
struct Transfer<'a> {
    runtime: &'a Runtime,
    work: Work,
    parts: [Part; SLOTS],
    /// Bits: which parts are in flight.
    used: u8,
    in_flight: usize,
    /// How often nothing had ended, since the last end.
    looks: u64,
    /// Since the last end.
    deadline: Deadline,
    done: &'a mut Done,
    left: &'a mut Left,
}

impl Transfer<'_> {
    /// # Safety
    /// As the call.
    unsafe fn run(&mut self, taken: &mut Taken<'_>, core: usize, len: usize) {
        let cut = Cut::bytes(taken.capabilities().max_transfer_bytes);
        let threshold = self.runtime.adaptation.threshold();
        let mut share = (core > 0).then_some(Part {
            at: 0,
            len: core,
            resumed: false,
        });
        let mut rest = Rest::new(len as u64);
        rest.advance(core as u64);
        let mut refused = 0;
        // What a queue has not accepted yet; nothing is enqueued behind it.
        let mut waiting = false;
        loop {
            while rest.left() > 0 && self.in_flight < SLOTS && !waiting {
                let part = Part::from(rest.next(cut));
                rest.advance(part.len as u64);
                // A rest that would not have been offloaded by itself.
                if part.at > core && threshold.reason(part.len as u64).is_some() {
                    // SAFETY: the caller's promise.
                    unsafe { self.leave(part, Reason::Rest) };
                    continue;
                }
                // SAFETY: the caller's promise.
                waiting = unsafe { self.start(taken, part) };
            }
            if let Some(part) = share.take() {
                self.runtime.stats.reason(Reason::Share, part.len);
                // SAFETY: the caller's promise; the device works on other bytes.
                unsafe { self.work.on_core(part) };
            }
            if self.in_flight == 0 {
                return;
            }
            if waiting {
                waiting = taken.submit() == Progress::Pending;
            }
            if let Some(ended) = taken.poll() {
                // SAFETY: the caller's promise.
                waiting |= unsafe { self.end(taken, &ended) };
                refused = 0;
                continue;
            }
            self.looks += 1;
            if self.deadline.has_passed() {
                self.deadline.abort(taken, len);
            }
            if waiting && self.in_flight == 1 {
                refused += 1;
                if refused >= ATTEMPTS {
                    taken.cancel_queued();
                    // SAFETY: the caller's promise.
                    unsafe { self.give_up(rest) };
                    return;
                }
            }
            self.runtime.waiting.once(match waiting {
                true => None,
                false => taken.oldest_record(),
            });
        }
    }

    /// Leaves a part to the core.
    ///
    /// # Safety
    /// As the call.
    unsafe fn leave(&mut self, part: Part, reason: Reason) {
        // SAFETY: the caller's promise.
        unsafe { self.left.push(self.work, part, reason, self.runtime) };
    }

    /// The queue takes nothing: all that is left is the core's.
    ///
    /// # Safety
    /// As the call.
    unsafe fn give_up(&mut self, rest: Rest) {
        for slot in 0..SLOTS {
            if self.used >> slot & 1 == 1 {
                let part = self.parts[slot];
                // SAFETY: the caller's promise.
                unsafe { self.leave(part, Reason::QueueFull) };
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.leave(rest.next(Cut::WHOLE).into(), Reason::QueueFull) };
    }

    /// Enqueues a part. Whether the queue has yet to accept it.
    ///
    /// # Safety
    /// As the call.
    unsafe fn start(&mut self, taken: &mut Taken<'_>, part: Part) -> bool {
        // The thread of the virtual device must not take the program's faults.
        if self.runtime.populate_first && !self.work.populate(part) {
            // SAFETY: the caller's promise.
            unsafe { self.leave(part, Reason::PageFault) }
            return false;
        }
        let slot = self.used.trailing_ones() as usize;
        let capabilities = taken.capabilities();
        let mut operation = self.work.operation(part).with_user_data(slot as u64);
        if self.runtime.to_cache(capabilities.general) {
            operation = operation.with_cache_control();
        }
        if capabilities.block_on_fault {
            operation = operation.with_block_on_fault();
        }
        // SAFETY: the caller's promise; this call returns when the operation has ended.
        if slot >= SLOTS || !unsafe { taken.enqueue(&operation) } {
            // SAFETY: the caller's promise.
            unsafe { self.leave(part, Reason::Busy) };
            return false;
        }
        self.parts[slot] = part;
        self.used |= 1 << slot;
        self.in_flight += 1;
        taken.submit() == Progress::Pending
    }

    /// A part has ended. Whether what is left of it was enqueued again and not accepted yet.
    ///
    /// # Safety
    /// As the call.
    unsafe fn end(&mut self, taken: &mut Taken<'_>, completion: &Completion) -> bool {
        let slot = completion.user_data as usize % SLOTS;
        let part = self.parts[slot];
        self.used &= !(1 << slot);
        self.in_flight -= 1;
        self.done.executor = Some(completion.executor.into());
        let record = &completion.record;
        let looks = std::mem::take(&mut self.looks);
        self.deadline = Deadline::new(self.runtime.deadline_ns);
        if record.status() == Status::SUCCESS {
            self.done.device += part.len;
            if let Some(bytes) = self.runtime.adaptation.completed(looks) {
                (self.runtime.set_threshold)(self.runtime, bytes);
            }
            return false;
        }
        if record.status().code() != Status::PAGE_FAULT.0 {
            // SAFETY: the caller's promise.
            unsafe { self.leave(part, Reason::DeviceError) };
            return false;
        }
        let completed = (record.bytes_completed as usize).min(part.len);
        self.done.device += completed;
        // A move of overlapping buffers may have begun at the end (spec 8.3.4).
        let backwards = record.result & 1 == 1;
        let rest = Part {
            at: if backwards {
                part.at
            } else {
                part.at + completed
            },
            len: part.len - completed,
            resumed: true,
        };
        let again = self.runtime.faults == Faults::Resume && !part.resumed && rest.len > 0;
        self.runtime.stats.fault(again);
        if again {
            self.work.populate(rest);
            // SAFETY: the caller's promise.
            return unsafe { self.start(taken, rest) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.leave(rest, Reason::PageFault) };
        false
    }
}
