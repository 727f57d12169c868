//! Records each call of the program in the file of a session. Nothing here allocates or locks.

mod thread_state;

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::{io, process};

use dray_recording::{
    Alignment, Cursor, Log, Operands, Region, Request, cycles, thread_cpu_ns, time,
};
use dray_spec::Opcode;

use crate::calls::Call;
use thread_state::{State, with_state};

/// Pages that are remembered.
const PAGES: usize = 1 << 16;
/// Of so many calls of a thread, the recording of one is timed.
const TIMED: u32 = 64;
/// After a shorter pause a thread has been running all the time: to sleep and to wake takes longer.
const RUNNING_NS: u64 = 4000;

/// The recorder of a process, and of its children by fork.
pub(crate) struct Record {
    log: Log,
    /// Page, and the stream whose request named it last.
    pages: Box<[AtomicU64]>,
    /// Number of the process; the kernel wipes it in a child.
    process: &'static AtomicU32,
    /// The process that this was made in, and the CPU time of its first thread then.
    began: (u32, u64),
}

/// A call that has begun.
pub(crate) struct Begun {
    /// In cycles.
    at: u64,
    think_ns: u64,
    idle_ns: u64,
    /// Cycles that the recorder has taken until then, if that is measured.
    timed: Option<u64>,
}

/// A call, as its end records it.
pub(crate) struct Done {
    pub(crate) call: Call,
    /// Of what it writes, or of the second operand of a comparison.
    pub(crate) to: usize,
    /// Of what it reads; `None` for a fill.
    pub(crate) from: Option<usize>,
    pub(crate) len: usize,
}

fn operation(call: Call) -> u8 {
    match call {
        Call::Memcpy | Call::Memmove => Opcode::Memmove,
        Call::Memset => Opcode::Fill,
        Call::Memcmp => Opcode::Compare,
    }
    .into()
}

/// A thread of this process that has recorded nothing.
fn enter(state: &mut State, process: u32) {
    // SAFETY: a system call without arguments.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    state.process = process;
    state.cursor = Cursor::new(process, tid as u32);
    state.count = 0;
    state.last_end = 0;
}

impl Record {
    /// # Errors
    /// The file cannot be opened, or is no recording; the kernel wipes no pages in children (before 4.14).
    pub(crate) fn new(path: &Path) -> io::Result<Record> {
        let log = Log::open(path)?;
        let wiped = dray::wiped_on_fork();
        let process = wiped.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        process.store(process::id(), Ordering::Relaxed);
        log.begun();
        Ok(Record {
            began: (process::id(), thread_cpu_ns()),
            log,
            pages: (0..PAGES).map(|_| AtomicU64::new(0)).collect(),
            process,
        })
    }

    /// CPU time that a thread had when this program began: its clock goes on through exec.
    fn used_before(&self, cursor: &Cursor) -> u64 {
        let (process, cpu_ns) = self.began;
        match cursor.is_of(process, process) {
            true => cpu_ns,
            false => 0,
        }
    }

    /// The smallest call that is recorded.
    pub(crate) fn min_bytes(&self) -> usize {
        usize::try_from(self.log.min_bytes().max(1)).unwrap_or(usize::MAX)
    }

    /// This process: in a child of fork, a new one.
    fn process(&self) -> u32 {
        match self.process.load(Ordering::Relaxed) {
            0 => {
                // SAFETY: a system call without arguments.
                let pid = unsafe { libc::syscall(libc::SYS_getpid) } as u32;
                self.process.store(pid, Ordering::Relaxed);
                self.log.begun();
                pid
            }
            pid => pid,
        }
    }

    /// A call begins. `None`: a signal handler calls while its thread records another call; the call is counted as lost.
    #[inline]
    pub(crate) fn begin(&self) -> Option<Begun> {
        let begun = with_state(|state| {
            let entered = cycles();
            let process = self.process();
            if state.process != process {
                enter(state, process);
            }
            state.count = state.count.wrapping_add(1);
            let timed = state.count.is_multiple_of(TIMED);
            let gap_ns = self.log.ns(entered.wrapping_sub(state.last_end));
            let (think_ns, idle_ns, at) = match state.last_end {
                0 => {
                    let cpu = thread_cpu_ns();
                    (state.cpu_ns, state.cpu_at) = (cpu, entered);
                    (
                        cpu.saturating_sub(self.used_before(&state.cursor)),
                        0,
                        cycles(),
                    )
                }
                _ if gap_ns < RUNNING_NS => (gap_ns, 0, entered),
                last_end => {
                    let cpu = thread_cpu_ns();
                    // It was running from the last reading to its last end.
                    let before = self.log.ns(last_end.wrapping_sub(state.cpu_at));
                    let used = match cpu {
                        // A program may forbid itself the call (seccomp): then all of the gap is taken as used.
                        0 => gap_ns,
                        cpu => cpu.wrapping_sub(state.cpu_ns).saturating_sub(before),
                    };
                    (state.cpu_ns, state.cpu_at) = (cpu, entered);
                    let think = used.min(gap_ns);
                    (think, gap_ns - think, cycles())
                }
            };
            Begun {
                at,
                think_ns,
                idle_ns,
                timed: timed.then(|| cycles().wrapping_sub(entered)),
            }
        });
        if begun.is_none() {
            self.log.lose(1);
        }
        begun
    }

    /// It has ended, at `ended` in cycles.
    #[inline]
    pub(crate) fn end(&self, begun: &Begun, ended: u64, done: &Done) {
        let written = with_state(|state| {
            let stream = state.cursor.stream().max(1);
            let from = done.from;
            let operands = Operands {
                alignment: [
                    from.map_or(Alignment::Page, |from| Alignment::of(from as u64)),
                    Alignment::of(done.to as u64),
                ],
                region: [
                    from.map_or(Region::None, |from| self.region(from, stream)),
                    self.region(done.to, stream),
                ],
            };
            let request = Request {
                operation: operation(done.call),
                operands,
                seen: u32::from(state.cursor.stream() != 0),
                think: time::from_ns(begun.think_ns),
                idle: time::from_ns(begun.idle_ns),
                took: time::from_ns(self.log.ns(ended.wrapping_sub(begun.at))),
                ..Request::default()
            }
            .with_bytes(done.len as u64);
            // What has no room is counted as lost.
            let _ = self.log.append(&mut state.cursor, begun.at, &request);
            state.last_end = cycles();
            if let Some(before) = begun.timed {
                let after = cycles().wrapping_sub(ended);
                self.log.timed(self.log.ns(before.wrapping_add(after)));
            }
        });
        if written.is_none() {
            self.log.lose(1);
        }
    }

    /// What is known of the memory at an address, which the stream's request names now.
    fn region(&self, address: usize, stream: u32) -> Region {
        let page = (address >> 12) as u64;
        let at = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        let entry = page << 16 | u64::from(stream & 0xffff);
        let before = self.pages[at as usize % PAGES].swap(entry, Ordering::Relaxed);
        match before {
            before if before == entry => Region::Reused,
            before if before >> 16 == page => Region::Shared,
            _ => Region::Fresh,
        }
    }
}
