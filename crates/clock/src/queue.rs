//! Events in order of time; events of one time in order of their scheduling.

use std::collections::VecDeque;

use crate::Time;

/// A priority queue of events whose order is a function of the calls alone.
///
/// Two events at the same time leave in the order in which they were scheduled, so a run is the
/// same on every machine. Keys are packed: time in the upper half, a sequence number in the lower one, so that one
/// comparison decides. The first few events are a sorted list, which serves a few lanes and cores without more; those behind
/// are a binary heap.
///
/// Events of one kind often come in order anyway: a link delivers in the order in which it was
/// fed. They can go through an [`EventStream`], of which only the first event is in order with the others. The order in
/// which events leave is the same, with or without streams; there are fewer to order.
#[derive(Debug, Clone)]
pub struct EventQueue<E> {
    /// The first events, the last of them first; none is after one of the heap.
    first: Vec<Entry<E>>,
    heap: Vec<Entry<E>>,
    streams: Vec<StreamState<E>>,
    scheduled: u64,
    waiting: usize,
}

/// A stream of an [`EventQueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventStream(u32);

/// Events that are kept sorted; with one more, half of them go to the heap.
const SORTED: usize = 16;

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
    /// Behind the one that is.
    behind: VecDeque<(u128, E)>,
    /// Key of the last event of the stream, while one is in order with the others.
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
            first: Vec::with_capacity(SORTED + 1),
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
        let first = self.first.last().or_else(|| self.heap.first());
        first.map(|entry| Time((entry.key >> 64) as u64))
    }

    /// Takes the first event.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let first = match self.first.pop() {
            Some(first) => first,
            None => self.pop_from_heap()?,
        };
        self.waiting -= 1;
        if first.stream != NONE {
            self.follow(first.stream);
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

    /// The first event of a stream has left: the next one comes in order with the others.
    fn follow(&mut self, stream: u32) {
        let state = &mut self.streams[stream as usize];
        match state.behind.pop_front() {
            Some((key, event)) => self.push(key, event, stream),
            None => state.last = None,
        }
    }

    /// Adds an entry where it belongs.
    #[inline]
    fn push(&mut self, key: u128, event: E, stream: u32) {
        let entry = Entry { key, event, stream };
        if self.heap.first().is_some_and(|behind| behind.key < key) {
            return self.push_to_heap(entry);
        }
        let mut place = self.first.len();
        self.first.push(entry);
        let first = &mut self.first[..];
        while place > 0 && first[place - 1].key < key {
            first[place] = first[place - 1];
            place -= 1;
        }
        first[place] = entry;
        if self.first.len() > SORTED {
            self.spill();
        }
        debug_assert!(self.invariant());
    }

    /// The later half of the sorted events goes to the heap.
    #[cold]
    fn spill(&mut self) {
        for place in 0..SORTED / 2 {
            self.push_to_heap(self.first[place]);
        }
        self.first.drain(..SORTED / 2);
    }

    /// Adds an entry from the end of the heap upwards.
    fn push_to_heap(&mut self, entry: Entry<E>) {
        let mut child = self.heap.len();
        self.heap.push(entry);
        let heap = &mut self.heap[..];
        while child > 0 {
            let parent = (child - 1) / 2;
            if heap[parent].key <= entry.key {
                break;
            }
            heap[child] = heap[parent];
            child = parent;
        }
        heap[child] = entry;
    }

    /// Takes the first entry of the heap.
    fn pop_from_heap(&mut self) -> Option<Entry<E>> {
        let first = *self.heap.first()?;
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sink(last);
        }
        Some(first)
    }

    /// The sorted events are in order, and none is after the first of the heap.
    fn invariant(&self) -> bool {
        let last = self.first.first().map(|entry| entry.key);
        let behind = self.heap.first().map(|entry| entry.key);
        self.first.is_sorted_by(|late, early| late.key > early.key)
            && (last.is_none() || behind.is_none() || last < behind)
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
