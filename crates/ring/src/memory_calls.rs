//! What programs do to their mappings: the last calls that took memory away, for tools that watch programs.
//!
//! Any client may write anything here. A reader takes it for what a program says of itself.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::origin::{Moment, Origin};

/// Calls that are kept; older ones are written over.
const CALLS: usize = 64;
/// Words of the stack that are kept of each.
const STACK_WORDS: usize = 128;
/// Bytes of the stack that are kept of a call: those from its stack pointer on.
pub const CALL_STACK: usize = 8 * STACK_WORDS;

/// A call that takes memory away, or gives its addresses another use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum MemoryCall {
    /// munmap(2).
    Munmap = 1,
    /// mremap(2).
    Mremap = 2,
    /// madvise(2).
    Madvise = 3,
    /// mmap(2) with `MAP_FIXED`.
    Mmap = 4,
    /// mprotect(2).
    Mprotect = 5,
}

impl MemoryCall {
    const ALL: [MemoryCall; 5] = [
        MemoryCall::Munmap,
        MemoryCall::Mremap,
        MemoryCall::Madvise,
        MemoryCall::Mmap,
        MemoryCall::Mprotect,
    ];

    /// The name of the function.
    pub fn name(self) -> &'static str {
        match self {
            MemoryCall::Munmap => "munmap",
            MemoryCall::Mremap => "mremap",
            MemoryCall::Madvise => "madvise",
            MemoryCall::Mmap => "mmap",
            MemoryCall::Mprotect => "mprotect",
        }
    }
}

/// One of them, with where in its program it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotedCall {
    /// Which.
    pub call: MemoryCall,
    /// The address space.
    pub pasid: u32,
    /// Address of the memory, and bytes.
    pub memory: (u64, u64),
    /// Where.
    pub origin: Origin,
}

#[repr(C)]
#[derive(Debug)]
struct Slot {
    /// Twice the number of the call, from 1; less one while it is written. 0: nothing.
    state: AtomicU64,
    /// The call, and the address space above.
    call: AtomicU64,
    start: AtomicU64,
    bytes: AtomicU64,
    thread: AtomicU64,
    site: AtomicU64,
    stack: AtomicU64,
    frame: AtomicU64,
    words: [AtomicU64; STACK_WORDS],
}

/// The last of them. All zero: there are none.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct MemoryCalls {
    /// How many there were.
    count: AtomicU64,
    slots: [Slot; CALLS],
}

impl MemoryCalls {
    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Enters a call before it is made. `stack` stands at its stack pointer; of more than [`CALL_STACK`] bytes the first.
    pub(crate) fn note(&self, noted: &NotedCall, stack: &[u64]) {
        // Any process of the session may have written any number there.
        let number = self.count.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        let slot = &self.slots[number as usize % CALLS];
        let of = |value: u64, place: &AtomicU64| place.store(value, Ordering::Relaxed);
        of(number.wrapping_mul(2).wrapping_sub(1), &slot.state);
        fence(Ordering::Release);
        of(u64::from(noted.pasid) << 32 | noted.call as u64, &slot.call);
        of(noted.memory.0, &slot.start);
        of(noted.memory.1, &slot.bytes);
        of(noted.origin.thread.into(), &slot.thread);
        of(noted.origin.site, &slot.site);
        of(noted.origin.stack, &slot.stack);
        of(noted.origin.frame, &slot.frame);
        let rest = std::iter::repeat(&0);
        for (word, place) in stack.iter().chain(rest).zip(&slot.words) {
            of(*word, place);
        }
        slot.state.store(number.wrapping_mul(2), Ordering::Release);
    }

    /// The last call of an address space, behind the first `since`, that took a byte of a range away, with its stack.
    pub(crate) fn last(
        &self,
        pasid: u32,
        (start, bytes): (u64, u64),
        since: u64,
    ) -> Option<(NotedCall, Vec<u8>)> {
        let count = self.count();
        let behind = count.saturating_sub(since).min(CALLS as u64);
        let mut numbers = (0..behind).map(|back| count - back);
        numbers.find_map(|number| {
            let (noted, stack) = self.slots[number as usize % CALLS].read(number)?;
            let (from, len) = noted.memory;
            let overlaps = from < start.saturating_add(bytes) && start < from.saturating_add(len);
            (noted.pasid == pasid && overlaps).then_some((noted, stack))
        })
    }
}

impl Slot {
    /// What it has of the call with this number.
    fn read(&self, number: u64) -> Option<(NotedCall, Vec<u8>)> {
        let state = number.wrapping_mul(2);
        if self.state.load(Ordering::Acquire) != state {
            return None;
        }
        let of = |place: &AtomicU64| place.load(Ordering::Relaxed);
        let call = of(&self.call);
        let which = MemoryCall::ALL
            .into_iter()
            .find(|which| *which as u32 == call as u32);
        let noted = NotedCall {
            call: which?,
            pasid: (call >> 32) as u32,
            memory: (of(&self.start), of(&self.bytes)),
            origin: Origin {
                thread: of(&self.thread) as u32,
                site: of(&self.site),
                stack: of(&self.stack),
                frame: of(&self.frame),
                record: None,
                at: Moment::default(),
            },
        };
        let stack = self.words.iter().flat_map(|word| of(word).to_ne_bytes());
        let stack = stack.collect();
        fence(Ordering::Acquire);
        (self.state.load(Ordering::Relaxed) == state).then_some((noted, stack))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RegionLayout, SharedRegion};

    fn call(pasid: u32, start: u64, bytes: u64) -> NotedCall {
        NotedCall {
            call: MemoryCall::Madvise,
            pasid,
            memory: (start, bytes),
            origin: Origin {
                thread: 7,
                site: 8,
                stack: 9,
                frame: 10,
                record: None,
                at: Moment::default(),
            },
        }
    }

    #[test]
    fn the_last_call_that_took_a_byte_of_a_range_is_found() {
        let region = SharedRegion::new(RegionLayout {
            queues: 1,
            entries: 1,
        });
        let calls = region.memory_calls();
        assert_eq!(calls.last(1, (0, u64::MAX), 0), None);
        calls.note(&call(1, 0x1000, 0x1000), &[1, 2]);
        let since = calls.count();
        calls.note(&call(1, 0x1000, 0x2000), &[3; 2 * STACK_WORDS]);
        calls.note(&call(2, 0x1000, 0x2000), &[]);
        let (found, stack) = calls.last(1, (0x1fff, 1), 0).expect("a call");
        assert_eq!(found, call(1, 0x1000, 0x2000));
        assert_eq!(stack.len(), CALL_STACK);
        assert!(stack.chunks(8).all(|word| word == 3_u64.to_ne_bytes()));
        // Neither one before, nor one beside.
        assert_eq!(calls.last(1, (0x1000, 1), calls.count()), None);
        assert!(calls.last(1, (0x1000, 1), since).is_some());
        assert_eq!(calls.last(1, (0x3000, 1), 0), None);
        assert_eq!(calls.last(1, (0xfff, 1), 0), None);
    }

    #[test]
    fn a_count_that_a_program_has_written_harms_nobody() {
        let region = SharedRegion::new(RegionLayout {
            queues: 1,
            entries: 1,
        });
        let calls = region.memory_calls();
        calls.count.store(u64::MAX, Ordering::Release);
        for since in [0, 7, u64::MAX] {
            assert_eq!(calls.last(1, (0, u64::MAX), since), None);
        }
        calls.note(&call(1, 0x1000, 1), &[]);
        assert_eq!(calls.last(1, (0x1000, 1), u64::MAX), None);
    }

    #[test]
    fn as_many_as_there_is_room_for_are_kept() {
        let region = SharedRegion::new(RegionLayout {
            queues: 1,
            entries: 1,
        });
        let calls = region.memory_calls();
        for number in 0..2 * CALLS as u64 {
            calls.note(&call(1, number << 12, 1), &[]);
        }
        let known = |number: &u64| calls.last(1, (number << 12, 1), 0).is_some();
        let kept: Vec<u64> = (0..2 * CALLS as u64).filter(known).collect();
        assert!(kept.into_iter().eq(CALLS as u64..2 * CALLS as u64));
    }
}
