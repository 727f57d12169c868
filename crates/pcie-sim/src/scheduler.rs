//! Which command queue a transfer is submitted to.

/// How a stream chooses queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduling {
    /// Always this queue.
    Fixed(u32),
    /// The queues in turn.
    #[default]
    RoundRobin,
    /// The queue with the fewest transfers in flight.
    LeastOutstanding,
}

/// Chooses a queue for the next transfer of a stream.
pub trait SubmissionScheduler: std::fmt::Debug {
    /// The queue for the next transfer, given the transfers in flight on each queue of the device
    /// and direction, and the cap on each; `None` to wait until one completes.
    fn pick(&mut self, in_flight: &[u32], cap: u32) -> Option<u32>;
}

impl Scheduling {
    pub(super) fn build(self) -> Box<dyn SubmissionScheduler + Send> {
        match self {
            Self::Fixed(queue) => Box::new(FixedQueue(queue)),
            Self::RoundRobin => Box::new(RoundRobin { next: 0 }),
            Self::LeastOutstanding => Box::new(LeastOutstanding),
        }
    }
}

#[derive(Debug)]
struct FixedQueue(u32);

impl SubmissionScheduler for FixedQueue {
    fn pick(&mut self, in_flight: &[u32], cap: u32) -> Option<u32> {
        let used = in_flight.get(self.0 as usize)?;
        (*used < cap).then_some(self.0)
    }
}

#[derive(Debug)]
struct RoundRobin {
    next: usize,
}

impl SubmissionScheduler for RoundRobin {
    fn pick(&mut self, in_flight: &[u32], cap: u32) -> Option<u32> {
        let count = in_flight.len();
        let queue = (0..count)
            .map(|index| (self.next + index) % count)
            .find(|queue| in_flight[*queue] < cap)?;
        self.next = queue + 1;
        Some(queue as u32)
    }
}

#[derive(Debug)]
struct LeastOutstanding;

impl SubmissionScheduler for LeastOutstanding {
    fn pick(&mut self, in_flight: &[u32], cap: u32) -> Option<u32> {
        let (queue, used) = in_flight
            .iter()
            .enumerate()
            .min_by_key(|(_, used)| **used)?;
        (*used < cap).then_some(queue as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheduler_keeps_the_limit_of_a_queue() {
        let mut fixed = Scheduling::Fixed(1).build();
        assert_eq!(fixed.pick(&[0, 3], 4), Some(1));
        assert_eq!(fixed.pick(&[0, 4], 4), None);
        assert_eq!(fixed.pick(&[0], 4), None);
        let mut turn = Scheduling::RoundRobin.build();
        assert_eq!(turn.pick(&[0, 0, 0], 1), Some(0));
        assert_eq!(turn.pick(&[1, 1, 0], 1), Some(2));
        assert_eq!(turn.pick(&[0, 1, 1], 1), Some(0));
        assert_eq!(turn.pick(&[1, 1, 1], 1), None);
        let mut least = Scheduling::LeastOutstanding.build();
        assert_eq!(least.pick(&[2, 1, 3], 4), Some(1));
        assert_eq!(least.pick(&[4, 4], 4), None);
    }
}
