//! Who must end before a drain may (spec 3.12).
//!
//! A drain of a dedicated queue waits for all that left the queue before it, one of a shared queue
//! for what has its PASID. A counter counts the descriptors of one PASID; a dedicated queue has one.

use std::collections::VecDeque;

use crate::WorkId;

/// Descriptors before a drain that has left the queue, counted from the drain before it on.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    outstanding: u32,
    /// The drain that waits for them.
    drain: WorkId,
}

/// Where a descriptor is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DrainSlot {
    counter: u16,
    epoch: u32,
}

#[derive(Debug, Clone)]
struct PasidCounter {
    pasid: u32,
    /// Descriptors that no drain waits for yet.
    outstanding: u32,
    /// Number of the epoch that these are of.
    epoch: u32,
    /// The epochs before it. The first has something outstanding.
    closed: VecDeque<Epoch>,
}

impl PasidCounter {
    fn new(pasid: u32) -> PasidCounter {
        PasidCounter {
            pasid,
            outstanding: 0,
            epoch: 0,
            closed: VecDeque::new(),
        }
    }

    /// True if the first drain need not wait any more.
    #[cold]
    fn end_before_a_drain(&mut self, epoch: u32) -> bool {
        let back = self.epoch.wrapping_sub(epoch) as usize;
        let index = self.closed.len().checked_sub(back);
        let index = index.expect("an epoch is kept until all of it has ended");
        end_one(&mut self.closed[index].outstanding);
        self.closed.front().is_some_and(|e| e.outstanding == 0)
    }

    /// The first drain that waits has something to wait for.
    fn invariant(&self) -> bool {
        self.closed.front().is_none_or(|e| e.outstanding > 0)
    }

    /// Whether nothing is counted and no drain waits.
    fn is_idle(&self) -> bool {
        self.outstanding == 0 && self.closed.is_empty()
    }
}

/// A descriptor that ends twice would end a drain early, before what it waits for is in memory.
#[inline]
fn end_one(outstanding: &mut u32) {
    let left = outstanding.checked_sub(1);
    *outstanding = left.expect("a descriptor ends once");
}

/// The counters of one work queue. A counter without anything to count is used for another PASID: there
/// are never more than descriptors on their way.
#[derive(Debug, Clone)]
pub(crate) struct PasidCounters {
    by_pasid: Vec<PasidCounter>,
    last: usize,
}

impl PasidCounters {
    pub(crate) fn new() -> PasidCounters {
        PasidCounters {
            by_pasid: vec![PasidCounter::new(0)],
            last: 0,
        }
    }

    /// Counts a descriptor that leaves the queue.
    #[inline]
    pub(crate) fn begin(&mut self, pasid: u32) -> DrainSlot {
        let index = self.counter(pasid);
        let counter = &mut self.by_pasid[index];
        counter.outstanding += 1;
        DrainSlot {
            counter: index as u16,
            epoch: counter.epoch,
        }
    }

    /// A drain leaves the queue. `None` if it has nothing to wait for; else it is notified when it
    /// need not wait any more. One that has work to do then counts for the drains behind it, there.
    pub(crate) fn begin_drain(&mut self, pasid: u32, id: WorkId, works: bool) -> Option<DrainSlot> {
        let index = self.counter(pasid);
        let counter = &mut self.by_pasid[index];
        if counter.is_idle() {
            return None;
        }
        counter.closed.push_back(Epoch {
            outstanding: counter.outstanding,
            drain: id,
        });
        counter.outstanding = works.into();
        counter.epoch = counter.epoch.wrapping_add(1);
        Some(DrainSlot {
            counter: index as u16,
            epoch: counter.epoch,
        })
    }

    /// A descriptor is done. True if drains have waited for it alone: [`PasidCounters::drained`] says which.
    #[inline]
    pub(crate) fn end(&mut self, place: DrainSlot) -> bool {
        let counter = &mut self.by_pasid[usize::from(place.counter)];
        if counter.epoch != place.epoch {
            return counter.end_before_a_drain(place.epoch);
        }
        end_one(&mut counter.outstanding);
        false
    }

    /// Drains of the counter of `place` that have nothing to wait for any more, in order.
    pub(crate) fn drained(&mut self, place: DrainSlot, drains: &mut Vec<WorkId>) {
        let counter = &mut self.by_pasid[usize::from(place.counter)];
        while let Some(epoch) = counter.closed.front()
            && epoch.outstanding == 0
        {
            drains.push(epoch.drain);
            counter.closed.pop_front();
        }
        debug_assert!(counter.invariant(), "{counter:?}");
    }

    #[inline]
    fn counter(&mut self, pasid: u32) -> usize {
        if self.by_pasid[self.last].pasid != pasid {
            self.last = self.find(pasid);
        }
        self.last
    }

    #[cold]
    fn find(&mut self, pasid: u32) -> usize {
        let found = self
            .by_pasid
            .iter()
            .position(|counter| counter.pasid == pasid);
        if let Some(index) = found {
            return index;
        }
        match self.by_pasid.iter().position(PasidCounter::is_idle) {
            Some(index) => {
                self.by_pasid[index].pasid = pasid;
                index
            }
            None => {
                self.by_pasid.push(PasidCounter::new(pasid));
                self.by_pasid.len() - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Job, JobOrigin, Jobs};
    use dray_spec::Descriptor;

    /// Handles that can be distinguished.
    fn ids(count: usize) -> Vec<WorkId> {
        let mut jobs = Jobs::default();
        let job = || Job {
            descriptor: Descriptor::drain(),
            job_origin: JobOrigin::default(),
        };
        (0..count).map(|_| jobs.insert(job())).collect()
    }

    fn end(counters: &mut PasidCounters, place: DrainSlot) -> Vec<WorkId> {
        let mut drains = Vec::new();
        if counters.end(place) {
            counters.drained(place, &mut drains);
        }
        drains
    }

    #[test]
    fn a_drain_waits_for_its_pasid_alone() {
        let ids = ids(2);
        let mut counters = PasidCounters::new();
        let one = counters.begin(1);
        let two = counters.begin(2);
        assert!(counters.begin_drain(1, ids[0], false).is_some());
        assert!(counters.begin_drain(2, ids[1], false).is_some());
        let third = counters.begin_drain(3, ids[0], false);
        assert_eq!(third, None, "nothing of PASID 3 is there");
        let later = counters.begin(1);
        assert_eq!(end(&mut counters, two), [ids[1]]);
        assert_eq!(end(&mut counters, later), []);
        assert_eq!(end(&mut counters, one), [ids[0]]);
    }

    #[test]
    fn a_drain_with_work_holds_up_the_drains_behind_it() {
        let ids = ids(2);
        let mut counters = PasidCounters::new();
        let before = counters.begin(1);
        let drain = counters.begin_drain(1, ids[0], true).expect("it waits");
        assert!(counters.begin_drain(1, ids[1], false).is_some());
        assert_eq!(end(&mut counters, before), [ids[0]]);
        assert_eq!(end(&mut counters, drain), [ids[1]]);
    }

    #[test]
    #[should_panic(expected = "a descriptor ends once")]
    fn a_descriptor_that_ends_twice_ends_no_drain() {
        let mut counters = PasidCounters::new();
        let place = counters.begin(1);
        end(&mut counters, place);
        end(&mut counters, place);
    }

    #[test]
    #[should_panic(expected = "an epoch is kept until all of it has ended")]
    fn a_descriptor_that_ends_again_behind_its_drain_is_no_descriptor() {
        let ids = ids(1);
        let mut counters = PasidCounters::new();
        let place = counters.begin(1);
        assert!(counters.begin_drain(1, ids[0], false).is_some());
        assert_eq!(end(&mut counters, place), [ids[0]]);
        end(&mut counters, place);
    }

    #[test]
    fn an_idle_counter_is_used_for_another_pasid() {
        let ids = ids(1);
        let mut counters = PasidCounters::new();
        for pasid in 0..1000 {
            let place = counters.begin(pasid);
            end(&mut counters, place);
        }
        assert_eq!(counters.by_pasid.len(), 1);
        let places: Vec<DrainSlot> = (0..5).map(|pasid| counters.begin(pasid)).collect();
        assert_eq!(counters.by_pasid.len(), 5);
        assert!(counters.begin_drain(4, ids[0], false).is_some());
        for place in places {
            end(&mut counters, place);
        }
        counters.begin(7);
        assert_eq!(counters.by_pasid.len(), 5);
    }
}
