//! The program's own handlers of the signals that this library handles.
//!
//! Once the handlers are installed, what the program says by sigaction or signal about SIGSEGV and
//! SIGILL is kept here, and what is not this library's is passed on as the kernel would.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::context::{Context, SignalInfo};
use crate::next;
use crate::scratch::Follow;
use crate::syscall::{give_way, mask_signals, pid, syscall, tid};

/// An action, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Action {
    /// Address of the handler, `SIG_DFL` or `SIG_IGN`.
    pub(crate) handler: usize,
    /// `SA_SIGINFO` and so on.
    pub(crate) flags: i32,
    /// Signals blocked meanwhile.
    pub(crate) mask: u64,
}

impl Action {
    /// What the kernel does by itself.
    pub(crate) const DEFAULT: Action = Action {
        handler: libc::SIG_DFL,
        flags: 0,
        mask: 0,
    };

    /// From libc's.
    pub(crate) fn from_libc(action: &libc::sigaction) -> Action {
        let mask = &raw const action.sa_mask;
        Action {
            handler: action.sa_sigaction,
            flags: action.sa_flags,
            // SAFETY: the kernel's mask is the first 64 bits of libc's.
            mask: unsafe { mask.cast::<u64>().read() },
        }
    }

    /// As libc's.
    pub(crate) fn to_libc(self) -> libc::sigaction {
        // SAFETY: all zero is an action.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = self.handler;
        action.sa_flags = self.flags;
        let mask = &raw mut action.sa_mask;
        // SAFETY: as above.
        unsafe { mask.cast::<u64>().write(self.mask) };
        action
    }
}

/// The bit of a signal in the kernel's masks.
pub(crate) const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Signals that a submission may raise: while one of them is blocked, the kernel would kill.
pub(crate) const SYNCHRONOUS: u64 = bit(libc::SIGSEGV) | bit(libc::SIGILL);

/// The program's action for one signal: two copies, so that the handler reads one while the other
/// is written.
struct Kept {
    signal: i32,
    /// Counts changes; the last bit says which copy holds.
    version: AtomicUsize,
    copies: [[AtomicUsize; 3]; 2],
}

static KEPT: [Kept; 2] = [Kept::new(libc::SIGSEGV), Kept::new(libc::SIGILL)];
static CHANGING: AtomicBool = AtomicBool::new(false);

impl Kept {
    const fn new(signal: i32) -> Kept {
        Kept {
            signal,
            version: AtomicUsize::new(0),
            copies: [const { [const { AtomicUsize::new(0) }; 3] }; 2],
        }
    }

    fn get(&self) -> Action {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let [handler, flags, mask] =
                [0, 1, 2].map(|i| self.copies[version & 1][i].load(Ordering::Acquire));
            if self.version.load(Ordering::Acquire) == version {
                let (flags, mask) = (flags as i32, mask as u64);
                return Action {
                    handler,
                    flags,
                    mask,
                };
            }
        }
    }

    fn set(&self, action: Action) {
        let version = self.version.load(Ordering::Relaxed).wrapping_add(1);
        let words = [action.handler, action.flags as usize, action.mask as usize];
        for (place, word) in self.copies[version & 1].iter().zip(words) {
            place.store(word, Ordering::Release);
        }
        self.version.store(version, Ordering::Release);
    }
}

fn kept(signal: i32) -> Option<&'static Kept> {
    KEPT.iter().find(|kept| kept.signal == signal)
}

/// Whether `signal` is one of ours.
pub(crate) fn is_ours(signal: i32) -> bool {
    kept(signal).is_some()
}

/// The program's action for SIGSEGV or SIGILL.
pub(crate) fn get(signal: i32) -> Action {
    kept(signal).map_or(Action::DEFAULT, Kept::get)
}

/// Stores the program's action for SIGSEGV or SIGILL and returns the former one. May be called in a
/// signal handler, as sigaction may.
pub(crate) fn replace(signal: i32, new: Option<Action>) -> Action {
    let Some(kept) = kept(signal) else {
        return Action::DEFAULT;
    };
    let Some(new) = new else {
        return kept.get();
    };
    // No signal comes between, whose handler would wait for this thread.
    let mask = mask_signals(libc::SIG_SETMASK, !SYNCHRONOUS);
    while CHANGING.swap(true, Ordering::Acquire) {
        give_way();
    }
    let old = kept.get();
    kept.set(new);
    CHANGING.store(false, Ordering::Release);
    mask_signals(libc::SIG_SETMASK, mask);
    old
}

/// In a child: a thread that was changing something is not there.
pub(crate) fn forked() {
    CHANGING.store(false, Ordering::Release);
}

/// The program's action in force: the stored one, or the one that it has set in the kernel by a call that is
/// not interposed.
fn in_force(signal: i32) -> Action {
    match next::action(signal) {
        Some(action) if !crate::trap::is_handler(action.sa_sigaction) => Action::from_libc(&action),
        _ => get(signal),
    }
}

/// What the program has set for this signal: its handler follows, or the default action of the kernel is
/// carried out.
pub(crate) fn pass(signal: i32, info: &mut SignalInfo, context: &Context<'_>) -> Follow {
    let action = in_force(signal);
    let synchronous = info.code > 0;
    match action.handler {
        libc::SIG_IGN if !synchronous => return Follow::NOTHING,
        libc::SIG_DFL | libc::SIG_IGN => {
            end(signal, info);
            return Follow::NOTHING;
        }
        _ => (),
    }
    if action.flags & libc::SA_RESETHAND != 0 {
        replace(signal, Some(Action::DEFAULT));
    }
    let own = match action.flags & libc::SA_NODEFER {
        0 => bit(signal),
        _ => 0,
    };
    // The kernel brings the mask back when the handler returns.
    info.mask = (context.mask() | action.mask | own) & !SYNCHRONOUS;
    Follow {
        handler: action.handler,
        signal: signal as usize,
    }
}

/// Ends the process as the signal does by itself: once the handler has returned, with the registers
/// of the program, so that a core dump shows its fault.
fn end(signal: i32, info: &SignalInfo) {
    next::set_action(signal, &Action::DEFAULT.to_libc());
    let info = (&raw const *info).addr();
    let (process, thread) = (pid() as usize, tid() as usize);
    let arguments = [process, thread, signal as usize, info, 0, 0];
    // SAFETY: the information is read alone.
    let _ = unsafe { syscall(libc::SYS_rt_tgsigqueueinfo, arguments) };
}
