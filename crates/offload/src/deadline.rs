//! A completion that does not come.
//!
//! What is in flight may still be carried out later. A comparison only reads the program's memory: the
//! core finishes it, and its lane is used no more. A copy or a fill may write to its destination at any
//! time, long after the program uses that memory for something else; only the kernel can prevent that, by
//! disabling the queue. Where the queue is found disabled the descriptor has ended, and the core finishes.
//! Where it is not, the program is aborted: it can neither wait for ever nor go on.

use std::fmt::Write;

use dray_interpose::Line;

use crate::execute::now;
use crate::lanes::Taken;

/// Looks between two readings of the clock.
const LOOKS: u32 = 1 << 5;
/// A longer time between two readings counts as this: the program, or the machine, was stopped meanwhile.
const GAP_NS: u64 = 250_000_000;

/// Time that a call waits for one completion.
#[derive(Debug)]
pub(crate) struct Deadline {
    limit_ns: u64,
    looks: u32,
    read_at: u64,
    waited_ns: u64,
}

impl Deadline {
    /// Of so many ns; 0: none.
    pub(crate) fn new(limit_ns: u64) -> Deadline {
        Deadline {
            limit_ns,
            looks: 0,
            read_at: 0,
            waited_ns: 0,
        }
    }

    /// Another look has found no completion. Whether the time is over.
    pub(crate) fn has_passed(&mut self) -> bool {
        self.looks = self.looks.wrapping_add(1);
        if !self.looks.is_multiple_of(LOOKS) || self.limit_ns == 0 {
            return false;
        }
        let time = now();
        if self.read_at != 0 {
            self.waited_ns += time.saturating_sub(self.read_at).min(GAP_NS);
        }
        self.read_at = time;
        self.waited_ns >= self.limit_ns
    }

    /// Says what has happened, and ends the program.
    pub(crate) fn abort(&self, taken: &Taken<'_>, len: usize) -> ! {
        // The call may come from an allocator.
        let mut line = Line::default();
        let _ = write!(line, "dray offload: ");
        match taken.path() {
            Some(path) => _ = write!(line, "{}", path.display()),
            None => _ = write!(line, "the virtual device"),
        }
        let seconds = self.limit_ns as f64 / 1e9;
        let _ = writeln!(
            line,
            ": no completion for {seconds} s of a call of {len} bytes. The device may still write to the \
             destination, so that the program cannot go on and is aborted.\n\
             hint: {} is the number of seconds to wait; 0 waits for ever",
            crate::settings::DEADLINE,
        );
        line.print();
        // SAFETY: it does not return.
        unsafe { libc::abort() }
    }
}
