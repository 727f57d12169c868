//! Movers of the backends: which there are, and why one cannot be opened.

use dray::hw::HwError;
use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};

use crate::error::Refusal;

/// Why a work queue cannot be used, as a code.
pub(crate) fn refused(error: HwError) -> Refusal {
    let code = match &error {
        HwError::NoQueues { .. } | HwError::NoSuchQueue { .. } => libc::ENODEV,
        HwError::Open { source, .. } if source.raw_os_error() == Some(libc::EBUSY) => libc::EBUSY,
        HwError::Slots { .. } => libc::EINVAL,
        _ => libc::EIO,
    };
    Refusal::of(code, &error)
}

/// A device as of Sapphire Rapids, with one engine and so many dedicated queues, up to 8.
pub(crate) fn virtual_device(queues: u16) -> DeviceConfig {
    let queue = |id| WorkQueueConfig {
        block_on_fault: true,
        max_batch_size: 1024,
        max_transfer_size: 1 << 31,
        ..WorkQueueConfig::new(id, WorkQueueMode::Dedicated, 128 / queues)
    };
    DeviceConfig {
        user_interrupts: false,
        ..DeviceConfig::sapphire_rapids(1, (0..queues).map(queue).collect())
    }
}
