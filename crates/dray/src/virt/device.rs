//! A virtual device for movers of this process.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use dray_device::{DeviceConfig, Portal};
use dray_realtime::{
    AllAccessible, Event, Failure, Options, ProcessMemory, RealtimeDevice, StartError, Translation,
};
use thiserror::Error;

use super::VirtualMover;
use super::memories::{Memories, WithMemories};
use crate::{Capabilities, Home};

/// Why a mover could not be opened.
///
/// ```
/// use dray::virt::{OpenError, Options, VirtualDevice};
/// use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};
///
/// let queue = WorkQueueConfig::new(0, WorkQueueMode::Shared, 16);
/// let config = DeviceConfig::sapphire_rapids(1, vec![queue]);
/// let device = VirtualDevice::start(config, Options::default())?;
/// assert_eq!(device.open(5, 8).err(), Some(OpenError::NoQueue { wq: 5 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OpenError {
    /// There is no such work queue, or it was never enabled.
    #[error("the device has no work queue {wq}")]
    NoQueue {
        /// Queue asked for.
        wq: u16,
    },
    /// This process is a child of the one that has started the device.
    #[error("the device is in the process that has forked this one")]
    Inherited,
    /// A mover has at most so many slots.
    #[error("a mover has at most {most} slots")]
    Slots {
        /// Slots that there can be.
        most: u32,
    },
}

/// Lives as long as any mover.
#[derive(Debug)]
pub(crate) struct Inner {
    // Dropped first: its threads write to the movers' blocks.
    pub(crate) device: ManuallyDrop<RealtimeDevice>,
    pub(crate) memories: Arc<Memories>,
    pub(crate) home: Home,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.home.is_inherited() {
            // It would wait for threads that are not in this process.
            return;
        }
        // SAFETY: dropped here alone, and not used any more.
        unsafe { ManuallyDrop::drop(&mut self.device) };
    }
}

/// A virtual device in real time, for movers of this process.
///
/// It ends with the last handle and mover.
///
/// ```
/// use dray::virt::{Options, VirtualDevice};
/// use dray::{Channel, Executor, WaitPolicy};
/// use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};
///
/// let queue = WorkQueueConfig::new(0, WorkQueueMode::Dedicated, 16);
/// let config = DeviceConfig::sapphire_rapids(1, vec![queue]);
/// let device = VirtualDevice::start(config, Options::default())?;
/// let mut channel = Channel::new(device.open(0, 16)?);
/// channel.copy(vec![7; 64], vec![0; 64]).map_err(|rejected| rejected.error)?;
/// let done = channel.wait(WaitPolicy::Yield, None)?;
/// assert_eq!((done.executor, done.buffers.destination), (Executor::Virtual, Some(vec![7; 64])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct VirtualDevice {
    inner: Arc<Inner>,
}

impl VirtualDevice {
    /// A device that may access whatever its operations name, as [`Mover::enqueue`] has its callers
    /// promise.
    ///
    /// [`Mover::enqueue`]: crate::Mover::enqueue
    ///
    /// # Errors
    /// A configuration that cannot be enabled; no threads.
    pub fn start(config: DeviceConfig, options: Options) -> Result<VirtualDevice, StartError> {
        VirtualDevice::start_in(config, options, AllAccessible, |_| {})
    }

    /// A device that takes page faults where `space` says so; `listener` receives interrupts and
    /// software errors, on a thread of the device.
    ///
    /// # Errors
    /// A configuration that cannot be enabled; no threads.
    pub fn start_in(
        config: DeviceConfig,
        options: Options,
        space: impl Translation,
        mut listener: impl FnMut(Event) + Send + 'static,
    ) -> Result<VirtualDevice, StartError> {
        let memories = Arc::new(Memories::default());
        let space = WithMemories {
            memories: memories.clone(),
            space,
        };
        // SAFETY: descriptors come from movers alone. Their operands are vouched for by the callers
        // of `enqueue`, within what `space` has mapped; their records are in the movers' blocks,
        // which live until all descriptors that name them have ended.
        let memory = unsafe { ProcessMemory::new(Arc::new(space)) };
        let aborted = memories.clone();
        let listener = move |event| {
            if let Event::Abandoned {
                completion: Some(address),
                ..
            } = event
            {
                aborted.abandon(address);
            }
            listener(event);
        };
        let device = RealtimeDevice::start(config, memory, options, listener)?;
        Ok(VirtualDevice {
            inner: Arc::new(Inner {
                device: ManuallyDrop::new(device),
                memories,
                home: Home::here(),
            }),
        })
    }

    /// A mover on a work queue, through its limited portal, with `slots` slots. A dedicated queue
    /// should have one mover: several may together fill it, and what is lost then is submitted
    /// again.
    ///
    /// # Errors
    /// No such queue; not enough slots.
    pub fn open(&self, wq: u16, slots: usize) -> Result<VirtualMover, OpenError> {
        if self.inner.home.is_inherited() {
            return Err(OpenError::Inherited);
        }
        let portal = Portal { wq, limited: true };
        let portal = self.inner.device.map(portal);
        let enabled = portal.filter(|portal| portal.size() > 0);
        let portal = enabled.ok_or(OpenError::NoQueue { wq })?;
        let config = self.inner.device.config();
        let queue = config.work_queues.iter().find(|queue| queue.id == wq);
        let queue = queue.ok_or(OpenError::NoQueue { wq })?;
        let all = u32::MAX >> 1;
        let slots = u32::try_from(slots).ok().filter(|slots| *slots <= all);
        let slots = slots.ok_or(OpenError::Slots { most: all })?;
        let capabilities = Capabilities::of_queue(config, queue);
        Ok(VirtualMover::new(
            self.inner.clone(),
            portal,
            capabilities,
            self.inner.memories.add(slots),
        ))
    }

    /// The device itself.
    pub fn device(&self) -> &RealtimeDevice {
        &self.inner.device
    }

    /// Why the device has halted, if it has.
    pub fn failure(&self) -> Option<&Failure> {
        self.inner.device.failure()
    }
}
