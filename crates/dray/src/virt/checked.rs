//! Memory of this process that is looked at before it is accessed.

use dray_device::Access;
use dray_realtime::Translation;

use crate::populate::populate;

/// What a core of this process could access. The rest is a page fault of the device, and not a signal of
/// its thread; what is unmapped while an operation is in flight is one all the same. A system call an
/// operand; where the kernel does not have it (before Linux 5.14), every address can be accessed.
///
/// ```
/// use dray::virt::{Checked, Options, VirtualDevice};
/// use dray::{Completion, Failure, Mover, Operation, WaitPolicy, wait};
/// use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};
///
/// let queue = WorkQueueConfig::new(0, WorkQueueMode::Shared, 16);
/// let config = DeviceConfig::sapphire_rapids(1, vec![queue]);
/// let device = VirtualDevice::start_in(config, Options::default(), Checked, |_| {})?;
/// let mut mover = device.open(0, 1)?;
/// let fill = Operation::fill(0, 8, 64);
/// // SAFETY: the device looks at the address.
/// unsafe { mover.enqueue(&fill) }?;
/// let mut ended = [Completion::default()];
/// wait(&mut mover, &mut ended, WaitPolicy::Yield, None)?;
/// assert!(matches!(ended[0].output(&fill), Err(Failure::PageFault { write: true, .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
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
