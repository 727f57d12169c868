//! The calls that are taken.

/// A function of the C library. Its `_chk` form counts as the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Call {
    /// `memcpy`
    Memcpy,
    /// `memmove`
    Memmove,
    /// `memset`
    Memset,
    /// `memcmp`
    Memcmp,
}

impl Call {
    /// All, in the order of their numbers.
    pub const ALL: [Call; 4] = [Call::Memcpy, Call::Memmove, Call::Memset, Call::Memcmp];

    /// As in C.
    pub const fn name(self) -> &'static str {
        match self {
            Call::Memcpy => "memcpy",
            Call::Memmove => "memmove",
            Call::Memset => "memset",
            Call::Memcmp => "memcmp",
        }
    }
}
