//! Movers that have made each copy when they are asked first.

use dray::{
    BatchError, Capabilities, Completion, Executor, Full, Mover, Operation, Progress, Ticket,
    Timestamp,
};
use dray_spec::Status;
use dray_vhost::copy::{Copy, CopyEngine, Done};

const SLOTS: usize = 1 << 16;

/// Makes copies when they are submitted; or none at all, to leave the bookkeeping alone.
pub struct Immediate {
    copies: bool,
    done: Vec<Done>,
}

impl Immediate {
    pub fn new(copies: bool) -> Immediate {
        Immediate {
            copies,
            done: Vec::new(),
        }
    }
}

/// Copies; 64 bytes without a call, as the core does on the synchronous path.
///
/// # Safety
/// The addresses are valid, and the bytes that are written are used by no one else of this process.
#[inline]
unsafe fn carry_out(source: u64, destination: u64, len: u32) {
    let (from, to) = (source as *const u8, destination as *mut u8);
    if len == 64 {
        // SAFETY: the caller's promise is the same.
        let bytes = unsafe { from.cast::<[u8; 64]>().read_unaligned() };
        // SAFETY: as above.
        unsafe { to.cast::<[u8; 64]>().write_unaligned(bytes) };
        return;
    }
    // SAFETY: the caller's promise is the same.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len as usize) };
}

impl CopyEngine for Immediate {
    fn executor(&self) -> &'static str {
        "immediate"
    }

    fn room(&self) -> usize {
        SLOTS
    }

    unsafe fn submit(&mut self, copies: &[Copy]) {
        for copy in copies {
            if self.copies {
                // SAFETY: the caller promises that the addresses are valid.
                unsafe { carry_out(copy.source, copy.destination, copy.len) };
            }
            self.done.push(Done {
                token: copy.token,
                status: Status::SUCCESS,
            });
        }
    }

    fn poll(&mut self, into: &mut [Done]) -> usize {
        let count = self.done.len().min(into.len());
        into[..count].copy_from_slice(&self.done[..count]);
        self.done.drain(..count);
        count
    }
}

/// The same behind the trait of the library `dray`: an operation and a completion for each copy.
#[derive(Default)]
pub struct ImmediateMover {
    ended: Vec<Completion>,
    next: u32,
}

// SAFETY: copies are made within `enqueue`, and complete afterwards.
unsafe impl Mover for ImmediateMover {
    fn slots(&self) -> usize {
        SLOTS
    }

    fn in_flight(&self) -> usize {
        self.ended.len()
    }

    unsafe fn enqueue(&mut self, operation: &Operation) -> Result<Ticket, Full> {
        let d = operation.descriptor();
        // SAFETY: the caller promises that the addresses are valid.
        unsafe { carry_out(d.address1, d.address2, d.size) };
        let ticket = Ticket(self.next);
        self.next = self.next.wrapping_add(1);
        self.ended.push(Completion {
            ticket,
            user_data: operation.user_data(),
            record: dray_spec::CompletionRecord::with_status(dray_spec::Status::SUCCESS),
            executor: Executor::Cpu,
        });
        Ok(ticket)
    }

    unsafe fn enqueue_batch(&mut self, operations: &[Operation]) -> Result<Ticket, BatchError> {
        let first = Ticket(self.next);
        for operation in operations {
            // SAFETY: the caller's promise is the same.
            unsafe { self.enqueue(operation) }?;
        }
        Ok(first)
    }

    fn submit(&mut self) -> Progress {
        Progress::Done
    }

    fn poll(&mut self, into: &mut [Completion]) -> usize {
        let count = self.ended.len().min(into.len());
        into[..count].copy_from_slice(&self.ended[..count]);
        self.ended.drain(..count);
        count
    }

    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_batch: 1024,
            ..Capabilities::software()
        }
    }

    unsafe fn touch(&mut self, _: u64, _: bool) {}
}
