//! Handles of the inter-domain permissions table (spec 3.14.1).

/// By what descriptors name entries. A handle is the index of its entry in either case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Handles {
    /// Every index is a handle.
    Indexes,
    /// Those that the Request IDPT Handle command has given out, in ascending order.
    Requested(Vec<u16>),
}

impl Handles {
    /// The same with no handle out.
    pub(super) fn cleared(&self) -> Handles {
        match self {
            Handles::Indexes => Handles::Indexes,
            Handles::Requested(_) => Handles::Requested(Vec::new()),
        }
    }

    pub(super) fn are_good(&self, handle: u16) -> bool {
        match self {
            Handles::Indexes => true,
            Handles::Requested(out) => out.binary_search(&handle).is_ok(),
        }
    }

    /// Request IDPT Handle. A handle that is out already is given again.
    pub(crate) fn request(&mut self, index: u16) {
        if let Handles::Requested(out) = self
            && let Err(at) = out.binary_search(&index)
        {
            out.insert(at, index);
        }
    }

    /// Release IDPT Handle; false if the handle is not out.
    pub(crate) fn release(&mut self, handle: u16) -> bool {
        match self {
            Handles::Indexes => true,
            Handles::Requested(out) => match out.binary_search(&handle) {
                Ok(at) => {
                    out.remove(at);
                    true
                }
                Err(_) => false,
            },
        }
    }
}
