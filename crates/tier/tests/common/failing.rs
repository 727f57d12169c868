//! A copier with errors.

use dray_tier::PageCopier;
use dray_tier::copier::{Copied, Copy, CopyError, Cores};

/// Fails in the middle of every third list.
#[derive(Debug, Default)]
pub(crate) struct Failing {
    cores: Cores,
    calls: u64,
}

impl PageCopier for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    unsafe fn copy(&mut self, list: &[Copy]) -> Result<Copied, CopyError> {
        self.calls += 1;
        let fails = self.calls.is_multiple_of(3);
        let part = match fails {
            true => &list[..list.len() / 2],
            false => list,
        };
        // SAFETY: the caller's promise.
        let copied = unsafe { self.cores.copy(part) }?;
        match fails {
            true => Err(CopyError {
                copier: "failing",
                cause: "as the test wants".to_owned(),
            }),
            false => Ok(copied),
        }
    }
}
