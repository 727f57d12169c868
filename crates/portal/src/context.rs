//! What a signal handler gets: the interrupted registers and the cause.

use crate::guarded::Fault;
use crate::registers::Registers;

/// Places of the general registers in the kernel's frame, by their number in the encoding
/// (`REG_RAX` and so on of `sys/ucontext.h`).
const PLACES: [usize; 16] = [13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7];
const RIP: usize = libc::REG_RIP as usize;
const FLAGS: usize = libc::REG_EFL as usize;
const ERROR: usize = libc::REG_ERR as usize;
const EXCEPTION: usize = libc::REG_TRAPNO as usize;
const CR2: usize = libc::REG_CR2 as usize;

/// `siginfo_t` of a fault.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct SignalInfo {
    /// The signal.
    pub signal: i32,
    errno: i32,
    /// Above 0: from the kernel.
    pub code: i32,
    pad: i32,
    /// The address, of a fault.
    pub address: u64,
    rest: [u64; 12],
    /// Of no meaning in a fault; the signal mask of the program's handler until that begins.
    pub mask: u64,
}

const _: () = assert!(size_of::<SignalInfo>() == size_of::<libc::siginfo_t>());

impl SignalInfo {
    /// What the kernel says of a fault.
    pub(crate) fn of(fault: &Fault) -> SignalInfo {
        SignalInfo {
            signal: libc::SIGSEGV,
            errno: 0,
            code: fault.code,
            pad: 0,
            address: fault.address,
            rest: [0; 12],
            mask: 0,
        }
    }
}

/// The interrupted thread; what is changed here it finds changed.
#[derive(Debug)]
pub(crate) struct Context<'a>(pub(crate) &'a mut libc::ucontext_t);

impl Context<'_> {
    fn place(&mut self, index: usize) -> &mut i64 {
        &mut self.0.uc_mcontext.gregs[index]
    }

    fn at(&self, index: usize) -> u64 {
        self.0.uc_mcontext.gregs[index] as u64
    }

    /// Address of the instruction.
    pub(crate) fn rip(&self) -> u64 {
        self.at(RIP)
    }

    /// Goes on somewhere else.
    pub(crate) fn set_rip(&mut self, rip: u64) {
        *self.place(RIP) = rip as i64;
    }

    /// Number of the exception.
    pub(crate) fn exception(&self) -> u64 {
        self.at(EXCEPTION)
    }

    /// Error code of the exception.
    pub(crate) fn error(&self) -> u64 {
        self.at(ERROR)
    }

    /// Sets one general register, by number.
    pub(crate) fn set_general(&mut self, number: usize, value: u64) {
        *self.place(PLACES[number & 15]) = value as i64;
    }

    /// A copy of the registers.
    pub(crate) fn registers(&self) -> Registers {
        Registers {
            general: PLACES.map(|place| self.at(place)),
            flags: self.at(FLAGS),
        }
    }

    /// Takes the registers over.
    pub(crate) fn set_registers(&mut self, registers: &Registers) {
        for (number, value) in registers.general.iter().enumerate() {
            self.set_general(number, *value);
        }
        *self.place(FLAGS) = registers.flags as i64;
    }

    /// Sets an SSE register to all ones. Whether there is one.
    pub(crate) fn fill_xmm(&mut self, number: usize) -> bool {
        // SAFETY: the kernel points at the state that it saved, for the time of the handler.
        let saved = unsafe { self.0.uc_mcontext.fpregs.as_mut() };
        let xmm = saved.and_then(|state| state._xmm.get_mut(number));
        xmm.map(|xmm| xmm.element = [u32::MAX; 4]).is_some()
    }

    /// Says what the processor would have said.
    pub(crate) fn set_fault(&mut self, fault: &Fault) {
        *self.place(EXCEPTION) = fault.exception as i64;
        *self.place(ERROR) = fault.error as i64;
        *self.place(CR2) = fault.address as i64;
    }

    /// Signals that were blocked.
    pub(crate) fn mask(&self) -> u64 {
        let mask = &raw const self.0.uc_sigmask;
        // SAFETY: the kernel's mask is the first 64 bits of libc's.
        unsafe { mask.cast::<u64>().read() }
    }
}
