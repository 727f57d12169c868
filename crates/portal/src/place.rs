//! Where the program is that has called this library.

use std::arch::asm;

use crate::syscall::{pid, syscall};

/// An instruction of this library, and the registers that its callers are found by.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) site: u64,
    pub(crate) stack: u64,
    pub(crate) frame: u64,
}

impl Place {
    /// In the function that calls this one, for as long as that runs.
    #[inline(always)]
    pub(crate) fn here() -> Place {
        let (site, stack, frame): (u64, u64, u64);
        // SAFETY: it reads registers.
        unsafe {
            asm!(
                "lea {site}, [rip]",
                "mov {stack}, rsp",
                "mov {frame}, rbp",
                site = out(reg) site,
                stack = out(reg) stack,
                frame = out(reg) frame,
                options(nomem, nostack, preserves_flags),
            );
        }
        Place { site, stack, frame }
    }

    /// Reads what stands on the stack; how many words. A stack may end anywhere.
    pub(crate) fn read_stack(&self, into: &mut [u64]) -> usize {
        let bytes = size_of_val(into);
        let [to, from] =
            [into.as_mut_ptr().addr(), self.stack as usize].map(|start| [start, bytes]);
        let arguments = [
            pid() as usize,
            to.as_ptr().addr(),
            1,
            from.as_ptr().addr(),
            1,
            0,
        ];
        // SAFETY: it writes within `into`, as far as there is a stack.
        let read = unsafe { syscall(libc::SYS_process_vm_readv, arguments) };
        read.unwrap_or(0) / size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_in_its_function_and_its_stack_can_be_read() {
        let here = Place::here();
        let near = Place::here as fn() -> Place as usize as u64;
        assert!(here.site.abs_diff(near) < 1 << 30);
        let local = std::hint::black_box(0x1234_5678_u64);
        let at = (&raw const local).addr() as u64;
        assert!(at >= here.stack);
        let mut stack = vec![0; 1 << 12];
        let read = here.read_stack(&mut stack);
        assert!(read > 0);
        assert_eq!(stack[(at - here.stack) as usize / 8], local);
        let nowhere = Place { stack: 8, ..here };
        assert_eq!(nowhere.read_stack(&mut stack), 0);
    }
}
