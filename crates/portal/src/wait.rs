//! UMONITOR, UMWAIT and TPAUSE, where the processor lacks them.

use std::arch::x86_64::_rdtsc;
use std::cell::Cell;

use crate::guarded::{Fault, read};
use crate::registers::{CF, Registers};
use crate::syscall::give_way;

/// The longest wait that Linux allows, in ticks of the time stamp counter
/// (`arch/x86/kernel/cpu/umwait.c`).
const MAXIMUM: u64 = 100_000;
/// After so many polls others may run: it may be the device that waits for this processor.
const POLLS: u32 = 64;
const LINE: usize = 64;

/// A line and what it held.
#[derive(Clone, Copy)]
struct Armed {
    line: u64,
    held: [u8; LINE],
}

thread_local! {
    static ARMED: Cell<Option<Armed>> = const { Cell::new(None) };
}

/// UMONITOR: arms the monitor of the line that contains `address`.
///
/// # Errors
/// The line cannot be read.
///
/// # Safety
/// [`trap::install`](crate::trap::install) was called.
pub(crate) unsafe fn monitor(address: u64) -> Result<(), Fault> {
    let line = address & !(LINE as u64 - 1);
    let mut held = [0; LINE];
    // The address itself first: it is what a fault names.
    // SAFETY: as the caller promises.
    unsafe { read(address, &mut held[..1]) }?;
    // SAFETY: as the caller promises.
    unsafe { read(line, &mut held) }?;
    ARMED.set(Some(Armed { line, held }));
    Ok(())
}

/// UMWAIT: waits for a store to the armed line, for the deadline in EDX:EAX, or as long as the
/// system allows. Without an armed monitor it does not wait.
///
/// # Errors
/// `state` has reserved bits.
///
/// # Safety
/// [`trap::install`](crate::trap::install) was called.
pub(crate) unsafe fn umwait(registers: &mut Registers, state: u64) -> Result<(), Fault> {
    let armed = ARMED.take();
    wait(registers, state, || match armed {
        None => true,
        Some(Armed { line, held }) => {
            let mut holds = [0; LINE];
            // SAFETY: as the caller promises. A line that has gone will not be stored to.
            let gone = unsafe { read(line, &mut holds) }.is_err();
            gone || holds != held
        }
    })
}

/// TPAUSE: waits for the deadline in EDX:EAX, or as long as the system allows.
///
/// # Errors
/// `state` has reserved bits.
pub(crate) fn tpause(registers: &mut Registers, state: u64) -> Result<(), Fault> {
    wait(registers, state, || false)
}

fn now() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { _rdtsc() }
}

fn wait(registers: &mut Registers, state: u64, woken: impl Fn() -> bool) -> Result<(), Fault> {
    if state >> 1 != 0 {
        return Err(Fault::PROTECTION);
    }
    let half = |number| registers.get(number) & u64::from(u32::MAX);
    let wanted = half(2) << 32 | half(0);
    let allowed = now().saturating_add(MAXIMUM);
    let mut polls = 0;
    let mut expired = false;
    while !woken() {
        let now = now();
        if now >= wanted.min(allowed) {
            expired = allowed < wanted;
            break;
        }
        polls += 1;
        match polls < POLLS {
            true => std::hint::spin_loop(),
            false => give_way(),
        }
    }
    // Carry: the system's limit has ended the wait. The other flags are cleared.
    registers.set_arithmetic(if expired { CF } else { 0 });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registers::ARITHMETIC;

    fn until(deadline: u64) -> Registers {
        let mut registers = Registers::default();
        registers.general[0] = deadline & 0xffff_ffff | 7 << 40;
        registers.general[2] = deadline >> 32;
        registers.flags = ARITHMETIC | 2;
        registers
    }

    #[test]
    fn tpause_sets_carry_only_at_the_deadline_of_the_system() {
        let mut registers = until(now() + 1000);
        let deadline = registers.get(0) & 0xffff_ffff | registers.get(2) << 32;
        assert_eq!(tpause(&mut registers, 1), Ok(()));
        assert!(now() >= deadline);
        assert_eq!(registers.flags, 2);

        let begin = now();
        let mut registers = until(u64::MAX);
        assert_eq!(tpause(&mut registers, 0), Ok(()));
        assert!(now() - begin >= MAXIMUM);
        assert_eq!(registers.flags, CF | 2);
    }

    #[test]
    fn reserved_states_are_refused() {
        let mut registers = until(0);
        assert_eq!(tpause(&mut registers, 2), Err(Fault::PROTECTION));
        assert_eq!(registers.flags, ARITHMETIC | 2);
    }

    #[test]
    fn a_store_ends_the_wait_and_disarms_the_monitor() {
        crate::trap::install().expect("handlers");
        let mut line = [0u8; 128];
        let address = (&raw mut line).addr() as u64 + 64;
        // SAFETY: handlers are installed.
        unsafe { monitor(address) }.expect("the line can be read");
        // SAFETY: a byte of the line.
        unsafe { (address as *mut u8).write_volatile(1) };
        let mut registers = until(u64::MAX);
        // SAFETY: handlers are installed.
        unsafe { umwait(&mut registers, 0) }.expect("no reserved bit");
        assert_eq!(registers.flags, 2, "ended by the store");
        // SAFETY: handlers are installed.
        unsafe { umwait(&mut registers, 0) }.expect("no reserved bit");
        assert_eq!(registers.flags, 2, "not armed");
        // SAFETY: handlers are installed.
        let missed = unsafe { monitor(0x10) }.expect_err("nothing is there");
        assert_eq!((missed.address, missed.code), (0x10, 1));
    }
}
