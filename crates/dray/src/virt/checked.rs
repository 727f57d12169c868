//! Memory of this process that is looked at before it is accessed.

use dray_device::Access;
use dray_realtime::Translation;

use crate::populate::populate;

/// What a core of this process could access. The rest is a page fault of the device, and not a signal of
/// its thread; what is unmapped while an operation is in flight is one all the same. A system call an
/// operand; where the kernel does not have it (before Linux 5.14), every address can be accessed.
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
