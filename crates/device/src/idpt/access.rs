//! Where an inter-domain descriptor's operands are.

/// An address space that is not the descriptor's own (spec 3.14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AddressSpace {
    /// PASID of its requests; `None` for requests without one.
    pub pasid: Option<u32>,
    /// Requests are privileged.
    pub privileged: bool,
}

/// One operand in another address space, as the table had it when the descriptor started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Domain {
    /// Handle of the entry, which the record names if the access fails.
    pub handle: u16,
    /// The address space.
    pub space: AddressSpace,
    /// First byte there.
    pub address: u64,
    /// The submitter works with offsets and does not learn addresses (spec 3.14.4).
    pub hidden: bool,
    /// For an entry with many submitters: space, address and mask of the bit that must be 1. On a
    /// page that cannot be accessed it is 0 (spec 3.14.2).
    pub submitter_bit: Option<(AddressSpace, u64, u8)>,
}

/// Address spaces of the two operands of an inter-domain descriptor; `None` for its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Domains {
    /// Of address 1: source, source 1.
    pub first: Option<Domain>,
    /// Of address 2: destination, source 2.
    pub second: Option<Domain>,
}
