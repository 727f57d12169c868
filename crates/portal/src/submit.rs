//! What lies behind a portal.

use crate::registers::Registers;

/// The eight words of a descriptor.
pub type Words = [u64; 8];

/// Who submits: where in the program, and with which registers.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// Address of the instruction.
    pub site: u64,
    /// As the instruction finds them.
    pub registers: &'a Registers,
}

/// Takes descriptors. Called in signal handlers and between two instructions of the program: it
/// neither allocates nor locks, waits for no other thread longer than a quarter of a second, and uses no
/// register beyond SSE's.
pub trait Submit: Sync {
    /// A posted write (MOVDIR64B): what becomes of it is not reported.
    fn post(&self, words: &Words, caller: Caller<'_>);

    /// A deferrable write (ENQCMD), whose first 32 bits are still the program's: whether it was
    /// accepted, or is to be tried again.
    fn enqueue(&self, words: &Words, caller: Caller<'_>) -> bool;

    /// A mapping of it has ended.
    fn unmapped(&self) {}
}

/// A portal, kept for ever: a thread may be writing to it while another unmaps it.
pub struct Portal(&'static dyn Submit);

impl Portal {
    /// A portal for ever.
    pub fn leak(submit: &'static dyn Submit) -> &'static Portal {
        Box::leak(Box::new(Portal(submit)))
    }

    /// What is behind it.
    #[inline]
    pub fn submit(&self) -> &'static dyn Submit {
        self.0
    }
}

impl std::fmt::Debug for Portal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Portal").finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    struct Nothing;

    impl Submit for Nothing {
        fn post(&self, _: &Words, _: Caller<'_>) {}
        fn enqueue(&self, _: &Words, _: Caller<'_>) -> bool {
            true
        }
    }

    pub(crate) fn portal() -> &'static Portal {
        Portal::leak(&Nothing)
    }
}
