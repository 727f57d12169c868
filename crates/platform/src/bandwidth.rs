//! Shared bandwidth: the shares of flows in ports, memory nodes and links.
//!
//! A flow moves lines and uses several resources at once, each with a time per line. All flows get
//! the same rate of lines, as arbiters that serve requesters in turn give it, until a resource is
//! full; what its flows cannot use goes to the others (max-min fairness). Rates only change when
//! a flow starts or ends, so a transfer is one closed form between two such moments.

use std::collections::VecDeque;

use dray_clock::Time;

/// Something with limited bandwidth. Its index is the caller's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource(pub u16);

/// Slot of a flow: one for each engine, since an engine moves one descriptor's data at a time.
pub type FlowId = usize;

/// Resources that one flow may use at most.
const USES: usize = 12;

/// Rates are lines per femtosecond with this many fraction bits.
const RATE_BITS: u32 = 62;

/// Remaining lines are kept with this many fraction bits.
const LINE_BITS: u32 = 20;

/// What a flow needs for each of its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    uses: [(Resource, u64); USES],
    len: u8,
    slowest_fs: u64,
    /// The most time of a resource.
    tightest_fs: u64,
}

impl Default for Demand {
    fn default() -> Self {
        Demand {
            uses: [(Resource(0), 0); USES],
            len: 0,
            slowest_fs: 1,
            tightest_fs: 0,
        }
    }
}

impl Demand {
    /// Adds `fs` femtoseconds of `resource` per line; nothing if `fs` is 0. A flow has at most
    /// two source and two destination streams, so the fixed room suffices.
    pub fn add(&mut self, resource: Resource, fs: u64) {
        if fs == 0 || usize::from(self.len) == USES {
            return;
        }
        self.uses[usize::from(self.len)] = (resource, fs);
        self.len += 1;
        self.slowest_fs = self.slowest_fs.max(fs);
        self.tightest_fs = self.tightest_fs.max(fs);
    }

    /// Limits the flow alone to one line per `fs` femtoseconds.
    pub fn limit(&mut self, fs: u64) {
        self.slowest_fs = self.slowest_fs.max(fs);
    }

    /// Femtoseconds per line with no other flow about.
    #[inline]
    pub fn alone_fs(&self) -> u64 {
        self.slowest_fs
    }

    #[inline]
    fn uses(&self) -> &[(Resource, u64)] {
        &self.uses[..usize::from(self.len)]
    }

    /// Whether it is the same demand; quicker than a look at the unused places.
    #[inline]
    fn equals(&self, other: &Demand) -> bool {
        self.slowest_fs == other.slowest_fs && self.uses() == other.uses()
    }
}

/// Flows of one demand. They always have the same rate, so one clock counts the lines that each of them has moved, and
/// a flow ends when the clock shows its end: a start or an end elsewhere changes the clock's rate and no flow.
#[derive(Debug, Clone)]
struct Class {
    demand: Demand,
    /// Lines that a flow has moved which was always there; wraps.
    clock: u64,
    /// Of the clock, since the last settling.
    rate: u64,
    /// Femtoseconds per line: the rate's other form.
    fs: u64,
    /// Where the clock stands when a flow ends, and the flow; in order.
    ends: VecDeque<(u64, FlowId)>,
}

impl Class {
    fn new(demand: Demand) -> Class {
        Class {
            demand,
            clock: 0,
            rate: 0,
            fs: 0,
            ends: VecDeque::new(),
        }
    }

    /// What is left of a flow that ends there, with [`LINE_BITS`].
    #[inline]
    fn left(&self, end: u64) -> u64 {
        (end.wrapping_sub(self.clock) as i64).max(0) as u64
    }

    /// Puts a flow of `lines` lines where it belongs; most end last.
    #[inline]
    fn insert(&mut self, id: FlowId, lines: u64) {
        let left = lines << LINE_BITS;
        let end = self.clock.wrapping_add(left);
        let mut at = self.ends.len();
        while at > 0 && self.left(self.ends[at - 1].0) > left {
            at -= 1;
        }
        match at == self.ends.len() {
            true => self.ends.push_back((end, id)),
            false => self.ends.insert(at, (end, id)),
        }
    }

    /// Gives its flows a time per line; 0: as if alone.
    #[inline]
    fn set_rate(&mut self, fs: u64) {
        self.fs = fs.max(self.demand.slowest_fs);
        self.rate = (1 << RATE_BITS) / self.fs;
    }

    /// When a flow ends at this rate.
    #[inline]
    fn finish(&self, now: Time, end: u64) -> Time {
        let left_fs = (u128::from(self.left(end)) * u128::from(self.fs)) >> LINE_BITS;
        Time(now.0 + (left_fs as u64).div_ceil(1000))
    }

    /// The flow that ends first, and when. Of those that end in one picosecond, the one of the lowest slot.
    #[inline]
    fn first(&self, now: Time) -> Option<(Time, FlowId)> {
        let mut ends = self.ends.iter();
        let (end, mut id) = *ends.next()?;
        let at = self.finish(now, end);
        for (end, other) in ends {
            if self.finish(now, *end) > at {
                break;
            }
            id = id.min(*other);
        }
        Some((at, id))
    }
}

/// All flows of a machine and the rates that they get.
#[derive(Debug, Clone)]
pub struct SharedBandwidth {
    /// Those without flows are used again.
    classes: Vec<Class>,
    /// Class of each slot's flow.
    class_of: Vec<Option<u32>>,
    settled: Time,
    free: Vec<u64>,
    load: Vec<u64>,
    next: Option<(Time, FlowId)>,
}

impl SharedBandwidth {
    /// For that many resources and flow slots.
    pub fn new(resources: usize, slots: usize) -> SharedBandwidth {
        SharedBandwidth {
            classes: Vec::new(),
            class_of: vec![None; slots],
            settled: Time::ZERO,
            free: vec![0; resources],
            load: vec![0; resources],
            next: None,
        }
    }

    /// Starts `lines` lines in slot `id`, which must be free.
    #[inline]
    pub fn start(&mut self, now: Time, id: FlowId, lines: u64, demand: &Demand) {
        debug_assert!(self.class_of[id].is_none(), "flow slot {id} is taken");
        self.settle(now);
        let class = self.class(demand);
        self.class_of[id] = Some(class as u32);
        self.classes[class].insert(id, lines);
        self.share(now);
        debug_assert!(self.invariant());
    }

    /// The flow that ends first, and when. Ties go to the lowest slot.
    #[inline]
    pub fn next_finish(&self) -> Option<(Time, FlowId)> {
        self.next
    }

    /// Ends the flow in slot `id`.
    #[inline]
    pub fn finish(&mut self, now: Time, id: FlowId) {
        self.settle(now);
        if let Some(class) = self.class_of[id].take() {
            let ends = &mut self.classes[class as usize].ends;
            match ends.front() {
                Some((_, first)) if *first == id => {
                    ends.pop_front();
                }
                _ => ends.retain(|(_, other)| *other != id),
            }
        }
        self.share(now);
        debug_assert!(self.invariant());
    }

    /// Index of the class of flows like this one.
    #[inline]
    fn class(&mut self, demand: &Demand) -> usize {
        let alike = |class: &Class| class.demand.equals(demand);
        if let Some(class) = self.classes.iter().position(alike) {
            return class;
        }
        let new = Class::new(*demand);
        match self.classes.iter().position(|class| class.ends.is_empty()) {
            Some(class) => {
                self.classes[class] = new;
                class
            }
            None => {
                self.classes.push(new);
                self.classes.len() - 1
            }
        }
    }

    /// Books what all flows have moved since rates were set.
    #[inline]
    fn settle(&mut self, now: Time) {
        let elapsed_fs = u128::from(now.since(self.settled).0) * 1000;
        self.settled = now;
        for class in &mut self.classes {
            if !class.ends.is_empty() {
                let moved = (elapsed_fs * u128::from(class.rate)) >> (RATE_BITS - LINE_BITS);
                class.clock = class.clock.wrapping_add(moved as u64);
            }
        }
    }

    /// Shares all resources anew and finds the flow that ends first.
    #[inline]
    fn share(&mut self, now: Time) {
        let mut taken = self.classes.iter_mut().filter(|c| !c.ends.is_empty());
        self.next = match (taken.next(), taken.next()) {
            (None, _) => None,
            (Some(only), None) => {
                // Each of several gets an equal part of the tightest resource.
                only.set_rate(match only.ends.len() as u64 {
                    1 => 0,
                    count => only.demand.tightest_fs * count,
                });
                only.first(now)
            }
            _ => {
                self.share_by_filling();
                let classes = self.classes.iter();
                classes.filter_map(|class| class.first(now)).min()
            }
        };
    }

    /// Progressive filling: raises all rates together until something is full, freezes the classes
    /// that it stops, and goes on with the others.
    fn share_by_filling(&mut self) {
        let taken = |index: &usize| !self.classes[*index].ends.is_empty();
        let mut open: Vec<usize> = (0..self.classes.len()).filter(taken).collect();
        self.free.fill(1 << RATE_BITS);
        while !open.is_empty() {
            self.load.fill(0);
            for index in &open {
                let class = &self.classes[*index];
                for (resource, fs) in class.demand.uses() {
                    self.load[usize::from(resource.0)] += fs * class.ends.len() as u64;
                }
            }
            let full = |index: &usize| {
                let demand = &self.classes[*index].demand;
                let shares = demand.uses().iter().map(|(resource, _)| {
                    let resource = usize::from(resource.0);
                    self.free[resource] / self.load[resource].max(1)
                });
                shares.fold((1 << RATE_BITS) / demand.slowest_fs, u64::min)
            };
            let rates: Vec<u64> = open.iter().map(full).collect();
            let lowest = rates.iter().copied().min().unwrap_or(0).max(1);
            let mut still_open = Vec::with_capacity(open.len());
            for (index, rate) in open.iter().zip(rates) {
                if rate > lowest {
                    still_open.push(*index);
                    continue;
                }
                let class = &mut self.classes[*index];
                let each = lowest.saturating_mul(class.ends.len() as u64);
                for (resource, fs) in class.demand.uses() {
                    let free = &mut self.free[usize::from(resource.0)];
                    *free = free.saturating_sub(each.saturating_mul(*fs));
                }
                class.set_rate((1 << RATE_BITS) / lowest);
            }
            open = still_open;
        }
    }

    /// Each flow is in the class of its slot, and classes are in the order of their flows' ends.
    fn invariant(&self) -> bool {
        let flows: usize = self.classes.iter().map(|class| class.ends.len()).sum();
        let ordered = |class: &Class| class.ends.iter().is_sorted_by_key(|e| class.left(e.0));
        let placed = |(index, class): (usize, &Class)| {
            let mut ids = class.ends.iter().map(|end| end.1);
            ids.all(|id| self.class_of[id] == Some(index as u32))
        };
        flows == self.class_of.iter().flatten().count()
            && self.next.is_some() == (flows > 0)
            && self.classes.iter().all(ordered)
            && self.classes.iter().enumerate().all(placed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn demand(uses: &[(u16, u64)]) -> Demand {
        let mut demand = Demand::default();
        for (resource, fs) in uses {
            demand.add(Resource(*resource), *fs);
        }
        demand
    }

    #[test]
    fn a_flow_alone_takes_its_lines_at_the_slowest_resource() {
        let mut shared = SharedBandwidth::new(2, 1);
        shared.start(Time(5), 0, 100, &demand(&[(0, 2_000_000), (1, 3_000_000)]));
        assert_eq!(shared.next_finish(), Some((Time(5 + 300_000), 0)));
    }

    #[test]
    fn four_equal_flows_take_four_times_as_long() {
        let mut shared = SharedBandwidth::new(1, 4);
        for id in 0..4 {
            shared.start(Time::ZERO, id, 1000, &demand(&[(0, 2_000_000)]));
        }
        let (end, id) = shared.next_finish().unwrap();
        assert_eq!((end, id), (Time(8_000_000), 0));
    }

    #[test]
    fn a_remaining_flow_gets_the_bandwidth_of_one_that_ended() {
        let mut shared = SharedBandwidth::new(1, 2);
        shared.start(Time::ZERO, 0, 100, &demand(&[(0, 1_000_000)]));
        shared.start(Time::ZERO, 1, 300, &demand(&[(0, 1_000_000)]));
        assert_eq!(shared.next_finish(), Some((Time(200_000), 0)));
        shared.finish(Time(200_000), 0);
        let (end, id) = shared.next_finish().unwrap();
        assert_eq!(id, 1);
        assert!(end.0.abs_diff(400_000) <= 1, "{end}");
    }

    #[test]
    fn a_flow_limited_elsewhere_leaves_its_share_to_the_other() {
        // Flow 0 is held to a tenth by resource 1, so flow 1 gets nine tenths of resource 0.
        let mut shared = SharedBandwidth::new(2, 2);
        shared.start(
            Time::ZERO,
            0,
            100,
            &demand(&[(0, 1_000_000), (1, 10_000_000)]),
        );
        shared.start(Time::ZERO, 1, 900, &demand(&[(0, 1_000_000)]));
        let (end, _) = shared.next_finish().unwrap();
        assert!(end.0.abs_diff(1_000_000) <= 10, "{end}");
    }

    proptest! {
        #[test]
        fn no_resource_is_overloaded_and_a_full_one_limits_every_flow(
            flows in prop::collection::vec(
                prop::collection::btree_map(0u16..5, 500_000u64..5_000_000, 1..4), 1..8)
        ) {
            let mut shared = SharedBandwidth::new(5, flows.len());
            for (id, uses) in flows.iter().enumerate() {
                let uses: Vec<(u16, u64)> = uses.iter().map(|(r, fs)| (*r, *fs)).collect();
                shared.start(Time::ZERO, id, 1000, &demand(&uses));
            }
            let one = (1u64 << RATE_BITS) as f64;
            let mut used = [0.0; 5];
            for class in &shared.classes {
                for (resource, fs) in class.demand.uses() {
                    let rate = (class.rate * class.ends.len() as u64) as f64;
                    used[usize::from(resource.0)] += rate * *fs as f64 / one;
                }
            }
            prop_assert!(used.iter().all(|u| *u < 1.000_01), "{:?}", used);
            for flow in &shared.classes {
                let stopped = flow.demand.uses().iter().any(|(r, _)| used[usize::from(r.0)] > 0.999)
                    || flow.rate as f64 * flow.demand.slowest_fs as f64 / one > 0.999;
                prop_assert!(stopped, "a flow could go faster: {:?}", used);
            }
        }
    }
}
