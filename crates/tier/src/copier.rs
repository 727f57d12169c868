//! Copying of pages from frame to frame, by cores or by a device.

mod cores;
mod device;
mod switch;

pub use cores::Cores;
pub use device::{DeviceCopier, HwCopier, VirtualCopier, wait_for_devices};
pub use switch::Switch;

use thiserror::Error;

/// One run of bytes to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// Where it is.
    pub src: u64,
    /// Where it goes.
    pub dst: u64,
    /// Bytes: a multiple of a page.
    pub len: u64,
}

/// Bytes by who copied them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// One core.
    pub core: u64,
    /// Several cores at once.
    pub cores: u64,
    /// A device.
    pub device: u64,
}

/// A list could not be copied as a whole; pages keep their old frames.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{copier} failed: {cause}")]
pub struct CopyError {
    /// Name of the copier.
    pub copier: &'static str,
    /// Why.
    pub cause: String,
}

/// Copies lists of pages.
pub trait PageCopier: Send {
    /// As in messages and results.
    fn name(&self) -> &'static str;

    /// Starts what the next copy needs. Here it may allocate and start threads, which may wait for
    /// memory of the program; in [`PageCopier::copy`] pages of it are out.
    ///
    /// # Errors
    /// It cannot be started; the next copy would fail.
    fn prepare(&mut self) -> Result<(), CopyError> {
        Ok(())
    }

    /// Copies a list and waits for its end; the bytes by executor.
    ///
    /// # Errors
    /// Some of it was not copied. Nothing is still being written when this returns.
    ///
    /// # Safety
    /// Sources are readable and not written, destinations writable and not accessed otherwise, and
    /// none overlaps another.
    unsafe fn copy(&mut self, list: &[Copy]) -> Result<Copied, CopyError>;
}

/// Bytes of a list.
pub(crate) fn bytes(list: &[Copy]) -> u64 {
    list.iter().map(|copy| copy.len).sum()
}
