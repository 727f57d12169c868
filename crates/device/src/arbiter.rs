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
    /// One queue more. Queues are in the order of their indexes, whenever they come.
    pub(crate) fn insert(&mut self, queue: usize, priority: u8) {
        self.remove(queue);
        let at = self.queues.partition_point(|q| q.0 < queue);
        self.queues.insert(at, (queue, priority));
        self.credit.insert(at, priority);
        self.next = 0;
    }

    /// One queue less.
    pub(crate) fn remove(&mut self, queue: usize) {
        if let Some(at) = self.queues.iter().position(|q| q.0 == queue) {
            self.queues.remove(at);
            self.credit.remove(at);
            self.next = 0;
        }
    }

    /// Whether a queue has something pending.
    pub(crate) fn any(&self, pending: impl Fn(usize) -> bool) -> bool {
        self.queues.iter().any(|queue| pending(queue.0))
    }

    /// The queue to serve, of those that have something pending; its credit is charged.
    #[inline]
    pub(crate) fn pick(&mut self, mut pending: impl FnMut(usize) -> bool) -> Option<usize> {
        let count = self.queues.len();
        if count == 1 {
            let queue = self.queues[0].0;
            return pending(queue).then_some(queue);
        }
        // The first pending queue with credit; failing that, the first pending one, for which all
        // credit is renewed. Where nothing is pending, credit stays as it is: how often an idle
        // engine asks must not matter.
        let mut without_credit = None;
        let mut i = self.next;
        for _ in 0..count {
            let credit = self.credit[i] > 0;
            if (credit || without_credit.is_none()) && pending(self.queues[i].0) {
                if credit {
                    return Some(self.serve(i));
                }
                without_credit = Some(i);
            }
            i = if i + 1 == count { 0 } else { i + 1 };
        }
        let first = without_credit?;
        for (credit, queue) in self.credit.iter_mut().zip(&self.queues) {
            *credit = queue.1.max(1);
        }
        Some(self.serve(first))
    }

    fn serve(&mut self, i: usize) -> usize {
        self.credit[i] -= 1;
        self.next = if i + 1 == self.queues.len() { 0 } else { i + 1 };
        self.queues[i].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arbiter(queues: &[(usize, u8)]) -> Arbiter {
        let mut arbiter = Arbiter::default();
        for (queue, priority) in queues {
            arbiter.insert(*queue, *priority);
        }
        arbiter
    }

    #[test]
    fn queues_come_and_go_and_the_order_is_that_of_their_indexes() {
        let mut arbiter = arbiter(&[(2, 1), (0, 1), (1, 1)]);
        let mut order = || [(); 3].map(|()| arbiter.pick(|_| true).unwrap());
        assert_eq!(order(), [0, 1, 2]);
        arbiter.remove(1);
        arbiter.remove(7);
        let mut order = || [(); 4].map(|()| arbiter.pick(|_| true).unwrap());
        assert_eq!(order(), [0, 2, 0, 2]);
        arbiter.insert(2, 3);
        let mut order = || [(); 4].map(|()| arbiter.pick(|_| true).unwrap());
        // Queue 0 has had its turn.
        assert_eq!(order(), [2, 2, 2, 0]);
    }

    #[test]
    fn queues_are_served_by_priority_and_nobody_starves() {
        let mut arbiter = arbiter(&[(0, 1), (1, 3)]);
        let mut served = [0; 2];
        for _ in 0..400 {
            served[arbiter.pick(|_| true).unwrap()] += 1;
        }
        assert_eq!(served, [100, 300]);
    }

    #[test]
    fn an_empty_queue_leaves_its_turns_to_the_others() {
        let mut arbiter = arbiter(&[(0, 15), (1, 1), (2, 1)]);
        let picks: Vec<_> = (0..4).map(|_| arbiter.pick(|q| q != 0).unwrap()).collect();
        assert_eq!(picks, [1, 2, 1, 2]);
        assert_eq!(arbiter.pick(|_| false), None);
    }

    #[test]
    fn asking_in_vain_renews_nothing() {
        let mut arbiter = arbiter(&[(0, 1), (1, 3)]);
        let mut served = [0; 2];
        for _ in 0..400 {
            served[arbiter.pick(|_| true).unwrap()] += 1;
            assert_eq!(arbiter.pick(|_| false), None);
        }
        assert_eq!(served, [100, 300]);
    }

    #[test]
    fn a_group_without_queues_has_nothing_to_serve() {
        assert_eq!(arbiter(&[]).pick(|_| true), None);
    }
}
