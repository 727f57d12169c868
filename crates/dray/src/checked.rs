//! Memory of this process that is looked at before it is accessed.

use dray_device::{Access, Translation};

use crate::populate::populate;

/// What a core of this process could access: the [`Translation`] of a device on whose threads a page that
/// cannot be accessed is a page fault, and not a signal. What is unmapped while an operation is in flight is a
/// signal all the same. System calls: one for each page of an operand on up to two pages, one for a longer
/// operand (before Linux 5.14 one for each page of it).
///
/// ```
/// use dray::Checked;
/// use dray_device::{Access, Translation};
///
/// let memory = vec![0_u8; 8192];
/// let address = memory.as_ptr().expose_provenance() as u64;
/// assert_eq!(Checked.accessible(address, 8192, Access::Write), 8192);
/// assert_eq!(Checked.accessible(8, 64, Access::Read), 0);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Checked;

impl Translation for Checked {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        match populate(addr, len, access == Access::Write) {
            Ok(()) => len,
            Err(fault) => fault - addr,
        }
    }
}
