//! Shared bandwidth: the shares of flows in ports, memory nodes and links.
//!
//! A flow moves lines and uses several resources at once, each with a time per line. All flows get
//! the same rate of lines, as arbiters that serve requesters in turn give it, until a resource is
//! full; what its flows cannot use goes to the others (max-min fairness). Rates only change when
//! a flow starts or ends, so a transfer is one closed form between two such moments.

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
}

impl Default for Demand {
    fn default() -> Self {
        Demand {
            uses: [(Resource(0), 0); USES],
            len: 0,
            slowest_fs: 1,
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

    fn uses(&self) -> &[(Resource, u64)] {
        &self.uses[..usize::from(self.len)]
    }
}

#[derive(Debug, Clone, Copy)]
struct Flow {
    demand: Demand,
    remaining: u64,
    rate: u64,
    updated: Time,
    finish: Time,
}

/// All flows of a machine and the rates that they get.
#[derive(Debug, Clone)]
pub struct SharedBandwidth {
    flows: Vec<Option<Flow>>,
    active: Vec<FlowId>,
    free: Vec<u64>,
    load: Vec<u64>,
    next: Option<(Time, FlowId)>,
}

impl SharedBandwidth {
    /// For that many resources and flow slots.
    pub fn new(resources: usize, slots: usize) -> SharedBandwidth {
        SharedBandwidth {
            flows: vec![None; slots],
            active: Vec::with_capacity(slots),
            free: vec![0; resources],
            load: vec![0; resources],
            next: None,
        }
    }

    /// Starts `lines` lines in slot `id`, which must be free.
    #[inline]
    pub fn start(&mut self, now: Time, id: FlowId, lines: u64, demand: Demand) {
        debug_assert!(self.flows[id].is_none(), "flow slot {id} is taken");
        self.settle(now);
        self.flows[id] = Some(Flow {
            demand,
            remaining: lines << LINE_BITS,
            rate: 0,
            updated: now,
            finish: Time::NEVER,
        });
        self.active.push(id);
        self.share(now);
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
        self.flows[id] = None;
        self.active.retain(|other| *other != id);
        self.share(now);
    }

    /// Books what every flow has moved since its rate was set.
    #[inline]
    fn settle(&mut self, now: Time) {
        for id in &self.active {
            if let Some(flow) = &mut self.flows[*id] {
                let elapsed_fs = u128::from(now.since(flow.updated).0) * 1000;
                let moved = (elapsed_fs * u128::from(flow.rate)) >> (RATE_BITS - LINE_BITS);
                flow.remaining = flow.remaining.saturating_sub(moved as u64);
                flow.updated = now;
            }
        }
    }

    /// Shares all resources anew and finds the flow that ends first.
    #[inline]
    fn share(&mut self, now: Time) {
        self.next = None;
        match self.active[..] {
            [] => return,
            [only] => self.set_rate(only, now, 0),
            _ if self.all_alike() => self.share_evenly(now),
            _ => self.share_by_filling(now),
        }
        for id in &self.active {
            if let Some(flow) = &self.flows[*id] {
                let candidate = (flow.finish, *id);
                if self.next.is_none_or(|next| candidate < next) {
                    self.next = Some(candidate);
                }
            }
        }
    }

    /// Gives flow `id` a time per line (0: as if alone) and works out its end.
    #[inline]
    fn set_rate(&mut self, id: FlowId, now: Time, fs: u64) {
        if let Some(flow) = &mut self.flows[id] {
            let fs = fs.max(flow.demand.slowest_fs);
            flow.rate = (1 << RATE_BITS) / fs;
            let left_fs = (u128::from(flow.remaining) * u128::from(fs)) >> LINE_BITS;
            flow.finish = Time(now.0 + (left_fs as u64).div_ceil(1000));
        }
    }

    #[inline]
    fn all_alike(&self) -> bool {
        let mut demands = self.active.iter().filter_map(|id| self.flows[*id].as_ref());
        let first = demands.next().map(|flow| flow.demand);
        demands.all(|flow| Some(flow.demand) == first)
    }

    /// Several flows with the same demand: each gets an equal part of the tightest resource.
    #[inline]
    fn share_evenly(&mut self, now: Time) {
        let count = self.active.len() as u64;
        for i in 0..self.active.len() {
            let id = self.active[i];
            let tightest = self.flows[id]
                .as_ref()
                .and_then(|flow| flow.demand.uses().iter().map(|u| u.1).max())
                .unwrap_or(0);
            self.set_rate(id, now, tightest * count);
        }
    }

    /// Progressive filling: raises all rates together until something is full, freezes the flows
    /// that it stops, and goes on with the others.
    fn share_by_filling(&mut self, now: Time) {
        let mut open = self.active.clone();
        self.free.fill(1 << RATE_BITS);
        while !open.is_empty() {
            self.load.fill(0);
            for id in &open {
                if let Some(flow) = &self.flows[*id] {
                    for (resource, fs) in flow.demand.uses() {
                        self.load[usize::from(resource.0)] += fs;
                    }
                }
            }
            let full = |load: &[u64], free: &[u64], demand: &Demand| {
                demand
                    .uses()
                    .iter()
                    .map(|(r, _)| free[usize::from(r.0)] / load[usize::from(r.0)].max(1))
                    .chain([(1 << RATE_BITS) / demand.slowest_fs])
                    .min()
                    .unwrap_or(0)
            };
            let rates: Vec<u64> = open
                .iter()
                .map(|id| match &self.flows[*id] {
                    Some(flow) => full(&self.load, &self.free, &flow.demand),
                    None => 0,
                })
                .collect();
            let lowest = rates.iter().copied().min().unwrap_or(0).max(1);
            let mut still_open = Vec::with_capacity(open.len());
            for (id, rate) in open.iter().zip(rates) {
                if rate > lowest {
                    still_open.push(*id);
                    continue;
                }
                if let Some(flow) = &self.flows[*id] {
                    for (resource, fs) in flow.demand.uses() {
                        let free = &mut self.free[usize::from(resource.0)];
                        *free = free.saturating_sub(lowest.saturating_mul(*fs));
                    }
                }
                self.set_rate(*id, now, (1 << RATE_BITS) / lowest);
            }
            open = still_open;
        }
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
        shared.start(Time(5), 0, 100, demand(&[(0, 2_000_000), (1, 3_000_000)]));
        assert_eq!(shared.next_finish(), Some((Time(5 + 300_000), 0)));
    }

    #[test]
    fn four_equal_flows_take_four_times_as_long() {
        let mut shared = SharedBandwidth::new(1, 4);
        for id in 0..4 {
            shared.start(Time::ZERO, id, 1000, demand(&[(0, 2_000_000)]));
        }
        let (end, id) = shared.next_finish().unwrap();
        assert_eq!((end, id), (Time(8_000_000), 0));
    }

    #[test]
    fn a_remaining_flow_gets_the_bandwidth_of_one_that_ended() {
        let mut shared = SharedBandwidth::new(1, 2);
        shared.start(Time::ZERO, 0, 100, demand(&[(0, 1_000_000)]));
        shared.start(Time::ZERO, 1, 300, demand(&[(0, 1_000_000)]));
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
            demand(&[(0, 1_000_000), (1, 10_000_000)]),
        );
        shared.start(Time::ZERO, 1, 900, demand(&[(0, 1_000_000)]));
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
                shared.start(Time::ZERO, id, 1000, demand(&uses));
            }
            let one = (1u64 << RATE_BITS) as f64;
            let mut used = [0.0; 5];
            for flow in shared.flows.iter().flatten() {
                for (resource, fs) in flow.demand.uses() {
                    used[usize::from(resource.0)] += flow.rate as f64 * *fs as f64 / one;
                }
            }
            prop_assert!(used.iter().all(|u| *u < 1.000_01), "{:?}", used);
            for flow in shared.flows.iter().flatten() {
                let stopped = flow.demand.uses().iter().any(|(r, _)| used[usize::from(r.0)] > 0.999)
                    || flow.rate as f64 * flow.demand.slowest_fs as f64 / one > 0.999;
                prop_assert!(stopped, "a flow could go faster: {:?}", used);
            }
        }
    }
}
