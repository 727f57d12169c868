//! What a ring lets in: the mode and the size of its queue, as the queue was last enabled.

use dray_spec::WorkQueueMode;

/// Mode, size and threshold of a queue, in one word that writers read. Zero: a queue that was never
/// enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gate {
    /// Posted writes are taken, and no deferrable ones.
    pub dedicated: bool,
    /// Entries that may be occupied.
    pub size: u16,
    /// Entries that deferrable writes through the limited page may fill.
    pub threshold: u16,
}

/// Kind of a write: the instruction, and the page of the portal that it goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// A posted write.
    Posted,
    /// A deferrable write through the page that stops at the threshold.
    Limited,
    /// A deferrable write through the other page.
    Unlimited,
}

impl WriteKind {
    /// A deferrable write through either page.
    pub fn deferrable(limited: bool) -> WriteKind {
        match limited {
            true => WriteKind::Limited,
            false => WriteKind::Unlimited,
        }
    }
}

impl Gate {
    /// The mode of the queue.
    #[inline]
    pub fn mode(self) -> WorkQueueMode {
        match self.dedicated {
            true => WorkQueueMode::Dedicated,
            false => WorkQueueMode::Shared,
        }
    }

    #[inline]
    pub(crate) fn word(self) -> u64 {
        u64::from(self.size) | u64::from(self.threshold) << 16 | u64::from(self.dedicated) << 32
    }

    #[inline]
    pub(crate) fn from_word(word: u64) -> Gate {
        Gate {
            dedicated: word >> 32 & 1 == 1,
            size: word as u16,
            threshold: (word >> 16) as u16,
        }
    }

    /// Occupancy at which there is no more room; `None` where the queue takes no such writes.
    #[inline]
    pub(crate) fn limit(self, kind: WriteKind) -> Option<u64> {
        let limit = match (self.dedicated, kind) {
            (true, WriteKind::Posted) | (false, WriteKind::Unlimited) => self.size,
            (false, WriteKind::Limited) => self.threshold.min(self.size),
            (true, _) | (false, WriteKind::Posted) => return None,
        };
        Some(limit.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_holds_a_gate() {
        for dedicated in [false, true] {
            let gate = Gate {
                dedicated,
                size: 0x8001,
                threshold: 0xfffe,
            };
            assert_eq!(Gate::from_word(gate.word()), gate);
        }
        assert_eq!(Gate::from_word(0), Gate::default());
    }

    #[test]
    fn a_queue_takes_what_its_mode_takes_up_to_its_limits() {
        let gate = |dedicated| Gate {
            dedicated,
            size: 8,
            threshold: 6,
        };
        let limits = |gate: Gate| {
            [WriteKind::Posted, WriteKind::Limited, WriteKind::Unlimited].map(|w| gate.limit(w))
        };
        assert_eq!(limits(gate(true)), [Some(8), None, None]);
        assert_eq!(limits(gate(false)), [None, Some(6), Some(8)]);
        assert_eq!(limits(Gate::default()), [None, Some(0), Some(0)]);
    }
}
