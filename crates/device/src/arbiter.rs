//! Which work queue of a group an engine serves next (spec 4.1).

/// Each queue may be served as often as its priority says before all start anew, in turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arbiter {
    /// Queue index and priority.
    queues: Vec<(usize, u8)>,
    credit: Vec<u8>,
    next: usize,
}

impl Arbiter {
    pub(crate) fn new(queues: Vec<(usize, u8)>) -> Arbiter {
        Arbiter {
            credit: queues.iter().map(|q| q.1).collect(),
            queues,
            next: 0,
        }
    }

    /// The queue to serve, of those that have something pending; its credit is charged.
    pub(crate) fn pick(&mut self, mut pending: impl FnMut(usize) -> bool) -> Option<usize> {
        let count = self.queues.len();
        if count == 1 {
            let queue = self.queues[0].0;
            return pending(queue).then_some(queue);
        }
        // At most two rounds: one with the credit there is, one after all credit is renewed.
        for _ in 0..2 {
            for offset in 0..count {
                let i = (self.next + offset) % count;
                if self.credit[i] > 0 && pending(self.queues[i].0) {
                    self.credit[i] -= 1;
                    self.next = (i + 1) % count;
                    return Some(self.queues[i].0);
                }
            }
            for (credit, queue) in self.credit.iter_mut().zip(&self.queues) {
                *credit = queue.1.max(1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_served_by_priority_and_nobody_starves() {
        let mut arbiter = Arbiter::new(vec![(0, 1), (1, 3)]);
        let mut served = [0; 2];
        for _ in 0..400 {
            served[arbiter.pick(|_| true).unwrap()] += 1;
        }
        assert_eq!(served, [100, 300]);
    }

    #[test]
    fn an_empty_queue_leaves_its_turns_to_the_others() {
        let mut arbiter = Arbiter::new(vec![(0, 15), (1, 1), (2, 1)]);
        let picks: Vec<_> = (0..4).map(|_| arbiter.pick(|q| q != 0).unwrap()).collect();
        assert_eq!(picks, [1, 2, 1, 2]);
        assert_eq!(arbiter.pick(|_| false), None);
    }
}
