//! What a thread does between two looks at a completion record.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::settings::{Settings, Wait};

/// A way to wait that this processor has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    way: Wait,
    cycles: u64,
}

impl Waiting {
    /// The wait method of the settings, or else PAUSE, and whether it is the one of the settings: UMWAIT and
    /// TPAUSE need WAITPKG.
    pub(crate) fn new(settings: &Settings) -> (Waiting, bool) {
        let needs = matches!(settings.wait, Wait::Umwait | Wait::Tpause);
        let has = !needs || dray::WaitPolicy::Umwait.is_supported();
        let waiting = Waiting {
            way: if has { settings.wait } else { Wait::Busypoll },
            cycles: match settings.wait {
                // The processor's counter runs at 1 to 4 GHz.
                Wait::Tpause => Settings::TPAUSE.as_nanos() as u64 * 2,
                _ => settings.umwait_cycles,
            },
        };
        (waiting, has)
    }

    /// Waits a little, or until `record` is written.
    pub(crate) fn once(self, record: Option<u64>) {
        match (self.way, record) {
            (Wait::Umwait, Some(record)) => umwait(record, self.cycles),
            (Wait::Tpause, _) => tpause(self.cycles),
            (Wait::Yield, _) => {
                // SAFETY: a system call without arguments.
                unsafe { libc::sched_yield() };
            }
            _ => std::hint::spin_loop(),
        }
    }
}

fn until(cycles: u64) -> (u32, u32) {
    // SAFETY: the processor has a time stamp counter.
    let until = unsafe { core::arch::x86_64::_rdtsc() }.wrapping_add(cycles);
    (until as u32, (until >> 32) as u32)
}

fn umwait(record: u64, cycles: u64) {
    let status: *const AtomicU8 = std::ptr::with_exposed_provenance(record as usize);
    // SAFETY: the instruction is there, and monitors the address without accessing it.
    unsafe {
        core::arch::asm!("umonitor {0}", in(reg) status, options(nostack, preserves_flags));
    }
    // SAFETY: a record of the mover, whose status byte is an atomic.
    if unsafe { (*status).load(Ordering::Acquire) } != 0 {
        return;
    }
    let (low, high) = until(cycles);
    // SAFETY: the instruction is there. State 0 is C0.2.
    unsafe {
        core::arch::asm!("umwait {0:e}", in(reg) 0_u32, in("eax") low, in("edx") high,
                         options(nostack));
    }
}

fn tpause(cycles: u64) {
    let (low, high) = until(cycles);
    // SAFETY: the instruction is there. State 0 is C0.2.
    unsafe {
        core::arch::asm!("tpause {0:e}", in(reg) 0_u32, in("eax") low, in("edx") high,
                         options(nostack));
    }
}
