//! The virtual device in real time as copier: its threads write the frames.

use dray::virt::{Engines, Idle, Options, VirtualDevice, VirtualMover};
use dray::{Completion, Mover, Operation, Progress};
use dray_device::{Capabilities, DeviceConfig, GroupConfig, WorkQueueConfig, WorkQueueMode};
use std::time::Duration;

use super::{Copied, Copy, CopyError, PageCopier};
use crate::TierError;

/// Largest copy in one descriptor: a huge page.
const LONGEST: u64 = 2 << 20;
/// Entries of the work queue of each channel.
const ENTRIES: u16 = 16;
/// Queues of a device, and so channels.
const MOST_CHANNELS: usize = 8;

/// Copies by a virtual device of its own; a channel is a work queue with an engine, and a huge page
/// is spread over all of them.
#[derive(Debug)]
pub struct VirtualCopier {
    channels: Vec<VirtualMover>,
}

impl VirtualCopier {
    /// With 1 to 8 channels.
    ///
    /// # Errors
    /// No threads.
    pub fn start(channels: usize) -> Result<VirtualCopier, TierError> {
        let channels = channels.clamp(1, MOST_CHANNELS);
        let failed = |cause: String| TierError::Mover {
            mover: "virtual",
            cause,
        };
        let options = Options {
            idle: Idle::Park {
                after: Duration::from_micros(20),
            },
            engines: Engines::Dispatcher,
            ..Options::default()
        };
        let device = VirtualDevice::start(config(channels as u16), options)
            .map_err(|error| failed(error.to_string()))?;
        let channels = (0..channels as u16)
            .map(|wq| device.open(wq, ENTRIES.into()))
            .collect::<Result<_, _>>()
            .map_err(|error| failed(error.to_string()))?;
        Ok(VirtualCopier { channels })
    }
}

/// A device of the first generation (the capabilities of Sapphire Rapids), with as many dedicated
/// queues as channels.
fn config(channels: u16) -> DeviceConfig {
    let groups = channels.min(4);
    DeviceConfig {
        capabilities: Capabilities {
            version: 0x100,
            gen_cap: 0x40_915f_0107,
            op_cap: [0x1_003f_03ff, 0, 0, 0],
            max_groups: 4,
            max_work_queues: 8,
            max_engines: 4,
            work_queue_size: 128,
            max_read_buffers: 96,
            max_batch_size: 1024,
            max_transfer_size: 1 << 31,
            ..Capabilities::default()
        },
        work_queues: (0..channels)
            .map(|id| WorkQueueConfig {
                id,
                group: id % groups,
                mode: WorkQueueMode::Dedicated,
                size: ENTRIES,
                priority: 10,
                pasid: Some(0),
                max_batch_size: 1024,
                max_transfer_size: LONGEST,
                ..WorkQueueConfig::default()
            })
            .collect(),
        groups: (0..groups)
            .map(|id| GroupConfig {
                id,
                engines: vec![id],
                ..GroupConfig::default()
            })
            .collect(),
        ..DeviceConfig::default()
    }
}

impl PageCopier for VirtualCopier {
    fn name(&self) -> &'static str {
        "virtual"
    }

    unsafe fn copy(&mut self, list: &[Copy]) -> Result<Copied, CopyError> {
        // A run for each channel, but no less than a page.
        let count = self.channels.len() as u64;
        let pieces = list.iter().flat_map(|copy| {
            let copy = *copy;
            let share = (copy.len.div_ceil(count))
                .next_multiple_of(4096)
                .min(LONGEST);
            (0..copy.len).step_by(share as usize).map(move |at| {
                let len = share.min(copy.len - at);
                Operation::memmove(copy.src + at, copy.dst + at, len as u32)
            })
        });
        let mut pieces = pieces.peekable();
        let mut seen = [Completion::default(); ENTRIES as usize];
        let (mut in_flight, mut device, mut failure) = (0usize, 0u64, None);
        while in_flight > 0 || (pieces.peek().is_some() && failure.is_none()) {
            for channel in &mut self.channels {
                while failure.is_none() {
                    let Some(operation) = pieces.peek() else {
                        break;
                    };
                    // SAFETY: the caller's promise; this returns when all have ended.
                    if unsafe { channel.enqueue(operation) }.is_err() {
                        break;
                    }
                    device += u64::from(operation.len());
                    in_flight += 1;
                    pieces.next();
                }
                let _: Progress = channel.submit();
                let ended = channel.poll(&mut seen);
                in_flight -= ended;
                let bad = seen[..ended].iter().find(|end| !end.status().is_success());
                if let Some(bad) = bad {
                    failure = Some(format!("a descriptor ended with {:?}", bad.status()));
                }
            }
            std::thread::yield_now();
        }
        match failure {
            None => Ok(Copied {
                device,
                ..Copied::default()
            }),
            Some(cause) => Err(CopyError {
                copier: self.name(),
                cause,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_copied_by_all_channels() {
        let mut copier = VirtualCopier::start(8).expect("threads");
        let src: Vec<u8> = (0..100 * 4096).map(|at| (at / 7) as u8).collect();
        let mut dst = vec![0u8; src.len()];
        let (from, to) = (
            src.as_ptr().expose_provenance(),
            dst.as_mut_ptr().expose_provenance(),
        );
        let list: Vec<Copy> = [(0u64, 3u64), (3, 1), (4, 96)]
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
