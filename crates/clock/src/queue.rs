//! Events in order of time; events of one time in order of their scheduling.

use crate::Time;

/// A priority queue of events whose order is a function of the calls alone.
///
/// Two events at the same time leave in the order in which they were scheduled, so a run is the
/// same on every machine. A binary heap over packed keys: time in the upper half, a sequence
/// number in the lower one, so that one comparison decides.
#[derive(Debug, Clone)]
pub struct EventQueue<E> {
    heap: Vec<Entry<E>>,
    scheduled: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry<E> {
    key: u128,
    event: E,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue.
    pub fn new() -> Self {
        EventQueue {
            heap: Vec::new(),
            scheduled: 0,
        }
    }

    /// Puts `event` at `at`.
    #[inline]
    pub fn schedule(&mut self, at: Time, event: E) {
        let entry = Entry {
            key: (u128::from(at.0) << 64) | u128::from(self.scheduled),
            event,
        };
        self.scheduled += 1;
        self.heap.push(entry);
        self.rise(self.heap.len() - 1);
    }

    /// Time of the first event.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        self.heap
            .first()
            .map(|entry| Time((entry.key >> 64) as u64))
    }

    /// Takes the first event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let last = self.heap.pop()?;
        let first = match self.heap.first_mut() {
            None => last,
            Some(root) => {
                let first = std::mem::replace(root, last);
                self.sink();
                first
            }
        };
        Some((Time((first.key >> 64) as u64), first.event))
    }

    /// Number of events that wait.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event waits.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn rise(&mut self, mut child: usize) {
        let entry = self.heap[child];
        while child > 0 {
            let parent = (child - 1) / 2;
            if self.heap[parent].key <= entry.key {
                break;
            }
            self.heap[child] = self.heap[parent];
            child = parent;
        }
        self.heap[child] = entry;
    }

    fn sink(&mut self) {
        let entry = self.heap[0];
        let len = self.heap.len();
        let mut parent = 0;
        loop {
            let mut child = 2 * parent + 1;
            if child >= len {
                break;
            }
            if child + 1 < len && self.heap[child + 1].key < self.heap[child].key {
                child += 1;
            }
            if entry.key <= self.heap[child].key {
                break;
            }
            self.heap[parent] = self.heap[child];
            parent = child;
        }
        self.heap[parent] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn leaves_in_order_of_time_then_of_scheduling(
            // Negative numbers pop, the others schedule: few times, so that ties are common.
            calls in prop::collection::vec(-2i64..6, 0..400)
        ) {
            let mut queue = EventQueue::new();
            let mut oracle: Vec<(Time, usize)> = Vec::new();
            for (n, call) in calls.into_iter().enumerate() {
                if call < 0 {
                    let first = oracle.iter().copied().min();
                    oracle.retain(|entry| Some(*entry) != first);
                    prop_assert_eq!(queue.next_time(), first.map(|entry| entry.0));
                    prop_assert_eq!(queue.pop(), first);
                } else {
                    queue.schedule(Time(call as u64), n);
                    oracle.push((Time(call as u64), n));
                }
                prop_assert_eq!(queue.len(), oracle.len());
            }
        }
    }
}
