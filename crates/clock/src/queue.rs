//! Events in order of time; events of one time in order of their scheduling.

use std::collections::VecDeque;

use crate::Time;

/// A priority queue of events whose order is a function of the calls alone.
///
/// Two events at the same time leave in the order in which they were scheduled, so a run is the
/// same on every machine. A binary heap over packed keys: time in the upper half, a sequence
/// number in the lower one, so that one comparison decides.
///
/// Events of one kind often come in order anyway: a link delivers in the order in which it was
/// fed. They can go through an [`EventStream`], of which only the first event is in the heap. The order in
/// which events leave is the same, with or without streams; the heap is smaller.
#[derive(Debug, Clone)]
pub struct EventQueue<E> {
    heap: Vec<Entry<E>>,
    streams: Vec<StreamState<E>>,
    scheduled: u64,
    waiting: usize,
}

/// A stream of an [`EventQueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventStream(u32);

/// No stream.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Entry<E> {
    key: u128,
    event: E,
    stream: u32,
}

#[derive(Debug, Clone)]
struct StreamState<E> {
    /// Behind the one in the heap.
    behind: VecDeque<(u128, E)>,
    /// Key of the last event of the stream, while one is in the heap.
    last: Option<u128>,
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
            streams: Vec::new(),
            scheduled: 0,
            waiting: 0,
        }
    }

    /// A new stream.
    pub fn stream(&mut self) -> EventStream {
        self.streams.push(StreamState {
            behind: VecDeque::new(),
            last: None,
        });
        EventStream(self.streams.len() as u32 - 1)
    }

    /// Puts `event` at `at`.
    #[inline]
    pub fn schedule(&mut self, at: Time, event: E) {
        let key = self.key(at);
        self.push(key, event, NONE);
    }

    /// Puts `event` at `at`. Faster than [`schedule`](EventQueue::schedule) if `at` is not before
    /// the other events of the stream, and the same otherwise.
    #[inline]
    pub fn schedule_in(&mut self, stream: EventStream, at: Time, event: E) {
        let key = self.key(at);
        let state = &mut self.streams[stream.0 as usize];
        match state.last {
            None => {
                state.last = Some(key);
                self.push(key, event, stream.0);
            }
            Some(last) if last < key => {
                state.last = Some(key);
                state.behind.push_back((key, event));
            }
            Some(_) => self.push(key, event, NONE),
        }
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
        let first = *self.heap.first()?;
        self.waiting -= 1;
        match self.behind(first.stream) {
            Some(next) => self.sink(next),
            None => {
                if let Some(last) = self.heap.pop()
                    && !self.heap.is_empty()
                {
                    self.sink(last);
                }
            }
        }
        Some((Time((first.key >> 64) as u64), first.event))
    }

    /// Number of events that wait.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether no event waits.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    #[inline]
    fn key(&mut self, at: Time) -> u128 {
        let key = (u128::from(at.0) << 64) | u128::from(self.scheduled);
        self.scheduled += 1;
        self.waiting += 1;
        key
    }

    /// Next entry of the stream whose first one leaves.
    #[inline]
    fn behind(&mut self, stream: u32) -> Option<Entry<E>> {
        if stream == NONE {
            return None;
        }
        let state = &mut self.streams[stream as usize];
        match state.behind.pop_front() {
            Some((key, event)) => Some(Entry { key, event, stream }),
            None => {
                state.last = None;
                None
            }
        }
    }

    /// Adds an entry from the end of the heap upwards.
    #[inline]
    fn push(&mut self, key: u128, event: E, stream: u32) {
        let entry = Entry { key, event, stream };
        let mut child = self.heap.len();
        self.heap.push(entry);
        let heap = &mut self.heap[..];
        while child > 0 {
            let parent = (child - 1) / 2;
            if heap[parent].key <= key {
                break;
            }
            heap[child] = heap[parent];
            child = parent;
        }
        heap[child] = entry;
    }

    /// Puts an entry in the place of the first one, and down to where it belongs.
    #[inline]
    fn sink(&mut self, entry: Entry<E>) {
        let heap = &mut self.heap[..];
        let mut parent = 0;
        loop {
            let left = 2 * parent + 1;
            if left >= heap.len() {
                break;
            }
            let right = left + 1;
            let lower = right < heap.len() && heap[right].key < heap[left].key;
            let child = left + usize::from(lower);
            if entry.key <= heap[child].key {
                break;
            }
            heap[parent] = heap[child];
            parent = child;
        }
        heap[parent] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn leaves_in_order_of_time_then_of_scheduling(
            // Negative numbers pop, the others schedule: few times, so that ties are common. The
            // second number is a stream, or none.
            calls in prop::collection::vec((-2i64..6, 0usize..4), 0..400)
        ) {
            let mut queue = EventQueue::new();
            let streams = [queue.stream(), queue.stream(), queue.stream()];
            let mut oracle: Vec<(Time, usize)> = Vec::new();
            for (n, (call, stream)) in calls.into_iter().enumerate() {
                if call < 0 {
                    let first = oracle.iter().copied().min();
                    oracle.retain(|entry| Some(*entry) != first);
                    prop_assert_eq!(queue.next_time(), first.map(|entry| entry.0));
                    prop_assert_eq!(queue.pop(), first);
                } else {
                    match streams.get(stream) {
                        Some(stream) => queue.schedule_in(*stream, Time(call as u64), n),
                        None => queue.schedule(Time(call as u64), n),
                    }
                    oracle.push((Time(call as u64), n));
                }
                prop_assert_eq!(queue.len(), oracle.len());
                prop_assert_eq!(queue.is_empty(), oracle.is_empty());
            }
        }
    }
}
