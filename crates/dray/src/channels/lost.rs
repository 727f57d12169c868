//! Queues that are lost, and what becomes of their operations.

use dray_device::SOFTWARE_OPERATIONS;
use dray_spec::CompletionRecord;

use super::engine::{Channels, takes};
use super::{LostQueuePolicy, QueueLost, Reason};
use crate::parts::can_repeat;
use crate::{Mover, Operation};

/// A channel that gets nothing more.
///
/// ```
/// use dray::channels::{Channels, ChannelsOptions, Excluded, Member};
/// use dray::virt::{Options, VirtualDevice};
/// use dray::{Channel, Reason, QueueLost, WaitPolicy};
/// use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};
/// use dray_spec::registers::{Command, CommandRegister};
///
/// let queue = WorkQueueConfig::new(0, WorkQueueMode::Shared, 16);
/// let device = VirtualDevice::start(DeviceConfig::sapphire_rapids(1, vec![queue]), Options::default())?;
/// let member = Member { mover: device.open(0, 16)?, numa_node: None };
/// let mut channel = Channel::new(Channels::new([member], ChannelsOptions::default())?);
/// // An administrator disables the queue.
/// device.device().command(Command::DisableWq, CommandRegister::queue(0))??;
/// channel.fill(1, vec![0; 64]).map_err(|rejected| rejected.error)?;
/// let done = channel.wait(WaitPolicy::Yield, None)?;
/// assert_eq!(done.outcome.core_reason, Some(Reason::QueueLost));
/// let excluded: Vec<Excluded> = channel.mover().excluded().collect();
/// assert_eq!(excluded, [Excluded { channel: 0, reason: QueueLost::Disabled }]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excluded {
    /// Which of the movers given to [`Channels::new`].
    pub channel: usize,
    /// Why.
    pub reason: QueueLost,
}

impl<M: Mover> Channels<M> {
    /// Channels whose queues are lost. They get nothing more, also if a queue of that name is enabled
    /// again.
    ///
    /// ```
    /// use dray::CpuMover;
    /// use dray::channels::{Channels, ChannelsOptions, Member};
    ///
    /// let member = Member { mover: CpuMover::new(16), numa_node: None };
    /// let channels = Channels::new([member], ChannelsOptions::default())?;
    /// assert_eq!(channels.excluded().count(), 0);
    /// # Ok::<(), dray::channels::ChannelsError>(())
    /// ```
    pub fn excluded(&self) -> impl Iterator<Item = Excluded> {
        self.queues.iter().filter_map(|queue| {
            let reason = queue.lost?;
            Some(Excluded {
                channel: queue.channel,
                reason,
            })
        })
    }

    /// Excludes a channel if its queue is lost: why. What the queue has not accepted comes back.
    #[cold]
    pub(super) fn exclude(&mut self, queue: usize) -> Option<QueueLost> {
        let queue = &mut self.queues[queue];
        if queue.lost.is_none() {
            queue.lost = queue.mover.lost();
            self.lost_queues += usize::from(queue.lost.is_some());
            queue.stuck = 0;
        }
        if queue.lost.is_some() {
            queue.mover.withdraw();
        }
        queue.lost
    }

    /// Why no channel executes an operation any more, where one did.
    #[inline]
    pub(super) fn cut_off(&self, operation: &Operation) -> Option<QueueLost> {
        match self.lost_queues {
            0 => None,
            _ => self.cut_off_by_loss(operation),
        }
    }

    #[cold]
    fn cut_off_by_loss(&self, operation: &Operation) -> Option<QueueLost> {
        let is_left = self.lost_queues < self.queues.len();
        if self.has_device(operation) {
            return None;
        }
        let mut lost = self.queues.iter().filter(|queue| queue.lost.is_some());
        // What no channel ever had is refused by one that is left.
        lost.find(|queue| !is_left || takes(queue, operation))?.lost
    }

    /// Whether the core may take the place of a lost queue.
    pub(super) fn core_replaces(&self, operation: &Operation) -> bool {
        self.options.lost_queue != LostQueuePolicy::Error
            && self.core_allowed
            && SOFTWARE_OPERATIONS.supports(operation.opcode() as u8)
    }

    /// The queue of a part is lost. `was_in_flight`: the device may have done some of it.
    #[cold]
    pub(super) fn when_lost(&mut self, index: u32, reason: QueueLost, was_in_flight: bool) {
        let part = *self.parts.get(index);
        let operation = part.operation;
        let again = !was_in_flight || can_repeat(&operation);
        let by_core = self.core_replaces(&operation);
        let moves = match self.options.lost_queue {
            LostQueuePolicy::Error | LostQueuePolicy::Core => false,
            LostQueuePolicy::Other => self.has_device(&operation),
        };
        if again && (moves || by_core) {
            self.slots[part.slot as usize].outcome.moved += 1;
        }
        match again {
            true if moves => self.large.push_back(index),
            true if by_core => self.finish_on_core(index, Reason::QueueLost),
            _ => self.lose(index, reason),
        }
    }

    /// A part ends because its queue is lost.
    pub(super) fn lose(&mut self, index: u32, reason: QueueLost) {
        let part = *self.parts.get(index);
        self.slots[part.slot as usize].outcome.queue_lost = Some(reason);
        let record = CompletionRecord {
            bytes_completed: part.done,
            ..CompletionRecord::default()
        };
        self.end_part(index, record);
    }
}
