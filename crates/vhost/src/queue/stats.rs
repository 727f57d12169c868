//! What a queue counts.

use dray_placement::Reason;
use serde::Serialize;

/// Upper bounds of the size bins, in bytes; the last bin has what is longer.
pub const SIZE_BINS: [usize; 7] = [64, 127, 255, 511, 1023, 1518, usize::MAX];

/// Why a packet did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropCause {
    /// The driver's buffer breaks a rule.
    Descriptor,
    /// The virtio-net header breaks a rule.
    Header,
    /// Shorter than a header, or longer than any packet.
    Length,
    /// The queue is disabled, draining or not started.
    Disabled,
    /// The receiver has no buffer.
    NoBuffer,
    /// The receiver's buffers are too small.
    Small,
}

/// Dropped packets by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Drops {
    pub descriptor: u64,
    pub header: u64,
    pub length: u64,
    pub disabled: u64,
    pub no_buffer: u64,
    pub small_buffer: u64,
}

impl Drops {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.descriptor
            + self.header
            + self.length
            + self.disabled
            + self.no_buffer
            + self.small_buffer
    }
}

/// What a queue has counted since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueStats {
    /// Packets that went through.
    pub packets: u64,
    /// Their bytes, without virtio-net headers.
    pub bytes: u64,
    /// Packets by size: see [`SIZE_BINS`].
    pub sizes: [u64; SIZE_BINS.len()],
    /// Packets that did not.
    pub drops: Drops,
    /// Notifications to the driver.
    pub notifications_sent: u64,
    /// Notifications that the driver did not want.
    pub notifications_suppressed: u64,
    /// Notifications that the kernel refused.
    pub notifications_failed: u64,
    /// Packets with a copy handed to a channel.
    pub submitted: u64,
    /// Packets whose copies by channels have all ended.
    pub completed: u64,
    /// Copies handed to channels.
    pub copies_channel: u64,
    /// Packets copied by the core because they are below the threshold.
    pub copies_small: u64,
    /// Packets copied by the core because no channel had room.
    pub copies_no_room: u64,
    /// Copies that failed and were repeated by the core.
    pub copies_repeated: u64,
    /// Packets copied by the core because that is how the queue works.
    pub copies_core: u64,
    /// Pages written that the front end's log is too small for.
    pub pages_not_logged: u64,
    /// Rings stopped because the driver broke a rule.
    pub ring_faults: u64,
    /// Drains that missed their deadline.
    pub drain_timeouts: u64,
    /// Calls that moved a packet.
    pub polls_busy: u64,
    /// Calls that moved none.
    pub polls_empty: u64,
    /// Time stamp counter ticks of calls that moved a packet.
    pub busy_cycles: u64,
}

impl QueueStats {
    /// Counts a packet that goes through.
    #[inline]
    pub(crate) fn count_packet(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
        // Above 64 bytes a bin is a power of two, but that the last but one ends at 1518.
        let bin = match bytes {
            0..=64 => 0,
            65..=1518 => bytes.ilog2() as usize - 5,
            _ => SIZE_BINS.len() - 1,
        };
        self.sizes[bin] += 1;
    }

    /// Counts packets that the CPU has copied, or copies that it has repeated, by why.
    #[inline]
    pub(crate) fn count_by_core(&mut self, reason: Reason, count: u64) {
        let counter = match reason {
            Reason::BelowThreshold => &mut self.copies_small,
            Reason::QueueFull => &mut self.copies_no_room,
            Reason::DeviceError => &mut self.copies_repeated,
            _ => &mut self.copies_core,
        };
        *counter += count;
    }

    /// Counts packets that do not.
    pub fn count_drops(&mut self, cause: DropCause, count: u64) {
        let counter = match cause {
            DropCause::Descriptor => &mut self.drops.descriptor,
            DropCause::Header => &mut self.drops.header,
            DropCause::Length => &mut self.drops.length,
            DropCause::Disabled => &mut self.drops.disabled,
            DropCause::NoBuffer => &mut self.drops.no_buffer,
            DropCause::Small => &mut self.drops.small_buffer,
        };
        *counter += count;
    }
}
