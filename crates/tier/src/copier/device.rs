//! Devices as copiers: the virtual one in real time, and those of this machine.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dray::hw::{self, HwMover, HwOptions};
use dray::pages::{PageCopy, PageList};
use dray::virt::{Options, VirtualDevice, VirtualMover};
use dray::{Application, Mover, Next};
use dray_device::{DeviceConfig, WorkQueueMode};

use super::{Copied, Copy, CopyError, PageCopier};
use crate::TierError;

/// Largest copy in one descriptor: a huge page.
const LONGEST: u64 = 2 << 20;
/// Copies in flight on each channel at most: the entries of its queue if there are eight.
const SLOTS: usize = 16;
/// Queues of the virtual device, and so channels.
const MOST_CHANNELS: usize = 8;

/// Lists that devices of this process are copying, and [`CLOSING`].
static COPYING: AtomicUsize = AtomicUsize::new(0);
/// No list begins any more.
const CLOSING: usize = 1 << 31;

/// Waits until no device copies for this process, for at most so long, and lets none begin: who ends it takes memory
/// away from what is in flight. Whether that is so.
pub fn wait_for_devices(at_most: Duration) -> bool {
    let since = Instant::now();
    COPYING.fetch_or(CLOSING, Ordering::SeqCst);
    while COPYING.load(Ordering::SeqCst) != CLOSING {
        if since.elapsed() > at_most {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    true
}

/// A list that devices are copying.
struct Copying;

impl Copying {
    /// `None` once the process is to end.
    fn begin() -> Option<Copying> {
        let before = COPYING.fetch_add(1, Ordering::SeqCst);
        let copying = Copying;
        (before & CLOSING == 0).then_some(copying)
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        COPYING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Copies by a mover on each of its channels. It touches windows of the engine alone.
#[derive(Debug)]
pub struct DeviceCopier<M> {
    name: &'static str,
    channels: Vec<M>,
}

/// The virtual device in real time.
pub type VirtualCopier = DeviceCopier<VirtualMover>;
/// Work queues of this machine.
pub type HwCopier = DeviceCopier<HwMover>;

impl DeviceCopier<VirtualMover> {
    /// A device of its own with 1 to 8 channels, each a work queue.
    ///
    /// # Errors
    /// No threads.
    pub fn start(channels: usize) -> Result<VirtualCopier, TierError> {
        let channels = channels.clamp(1, MOST_CHANNELS);
        let failed = |source| TierError::Mover {
            mover: "virtual",
            source,
        };
        let config = DeviceConfig::embedded(WorkQueueMode::Dedicated, channels as u16, LONGEST);
        let device = VirtualDevice::start(config, Options::default())
            .map_err(|error| failed(error.into()))?;
        let channels = (0..channels as u16)
            .map(|wq| device.open(wq, SLOTS))
            .collect::<Result<_, _>>()
            .map_err(|error| failed(error.into()))?;
        Ok(DeviceCopier {
            name: "virtual",
            channels,
        })
    }
}

impl DeviceCopier<HwMover> {
    /// Up to so many work queues of this machine, as a channel each.
    ///
    /// # Errors
    /// There is none that can be opened.
    pub fn open(channels: usize) -> Result<HwCopier, TierError> {
        let failed = |error: hw::HwError| TierError::Mover {
            mover: "hw",
            source: error.into(),
        };
        let mut opened = Vec::new();
        let mut refused = None;
        for queue in hw::discover().map_err(failed)? {
            if opened.len() < channels.max(1) {
                match HwMover::open(&queue, HwOptions::default()) {
                    Ok(mover) => opened.push(mover),
                    Err(error) => refused = Some(error),
                }
            }
        }
        match refused {
            Some(error) if opened.is_empty() => Err(failed(error)),
            _ => Ok(DeviceCopier {
                name: "hw",
                channels: opened,
            }),
        }
    }
}

impl<M: Mover + Send> PageCopier for DeviceCopier<M> {
    fn name(&self) -> &'static str {
        self.name
    }

    unsafe fn copy(&mut self, list: &[Copy]) -> Result<Copied, CopyError> {
        let failed = |cause: String| CopyError {
            copier: self.name,
            cause,
        };
        let Some(_copying) = Copying::begin() else {
            return Err(failed("the process is to end".to_owned()));
        };
        let entries: Vec<PageCopy> = list
            .iter()
            .map(|copy| PageCopy {
                source: copy.src,
                destination: copy.dst,
                bytes: copy.len,
            })
            .collect();
        let list = PageList::new(&entries).map_err(|error| failed(error.to_string()))?;
        let mut common = match self.channels.first() {
            Some(channel) => channel.capabilities(),
            None => return Err(failed("there is no channel".to_owned())),
        };
        for channel in &self.channels {
            let other = channel.capabilities();
            common.max_transfer_bytes = common.max_transfer_bytes.min(other.max_transfer_bytes);
            common.max_batch = common.max_batch.min(other.max_batch);
        }
        // SAFETY: the caller's promise; the shares are done when this returns.
        let mut shares = unsafe { list.plan(self.channels.len(), &common) };
        let mut running: Vec<_> = shares.iter_mut().zip(&mut self.channels).collect();
        while !running.is_empty() {
            let mut waiting = true;
            running.retain_mut(|(share, channel)| match share.step(*channel) {
                Next::Done => false,
                Next::Again => {
                    waiting = false;
                    true
                }
                Next::Wait => true,
            });
            if waiting {
                // The device may be threads that want this core.
                std::thread::yield_now();
            }
        }
        let mut fallbacks = shares.iter().flat_map(|share| share.fallbacks());
        match fallbacks.next() {
            None => Ok(Copied {
                device: list.bytes(),
                ..Copied::default()
            }),
            Some(first) => Err(failed(format!(
                "a copy of {} bytes ended with: {}",
                first.bytes, first.status
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_copied_by_all_channels() {
        let mut copier = VirtualCopier::start(8).expect("threads");
        let src: Vec<u8> = (0..600 * 4096).map(|at| (at / 7) as u8).collect();
        let mut dst = vec![0u8; src.len()];
        let (from, to) = (
            src.as_ptr().expose_provenance(),
            dst.as_mut_ptr().expose_provenance(),
        );
        let list: Vec<Copy> = [(0u64, 3u64), (4, 1), (3, 1), (5, 595)]
            .map(|(page, pages)| Copy {
                src: from as u64 + page * 4096,
                dst: to as u64 + page * 4096,
                len: pages * 4096,
            })
            .to_vec();
        // SAFETY: two vectors, of which one is read and one written.
        let copied = unsafe { copier.copy(&list) }.expect("it copies");
        assert_eq!(copied.device, src.len() as u64);
        assert!(src == dst);
    }
}
