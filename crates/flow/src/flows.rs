//! Flows and their paths.

use crate::error::FlowError;
use crate::estimate::Limit;
use crate::network::{EdgeId, MAX, MIN, Network};

/// Index of a flow in its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId(pub u32);

impl FlowId {
    /// The index as a `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A stream of bytes along a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The edges it takes, in order.
    pub path: Vec<EdgeId>,
    /// The bandwidth that it reaches alone, in the unit of all rates. Infinite if only the fabric limits it.
    pub demand: f64,
    /// Bytes that it keeps in flight.
    pub outstanding_bytes: f64,
    /// How long a byte takes along the path if nothing waits, as bytes over a rate: seconds, if rates are bytes a second.
    /// With 0, only the ratios between outstanding bytes and buffers count.
    pub latency: f64,
    /// Its share at an edge against the others', for `ecr` and `maxmin`.
    pub weight: f64,
    /// Flows of one source enter their first edge through one ingress. `None`: an ingress of its own.
    pub source: Option<u32>,
    /// By edge of the path: what it takes there for each unit of its rate. Empty: 1 everywhere.
    pub costs: Vec<f64>,
    /// Edges beside the path, and what it takes there for each unit of its rate: requests of reads, against their data. It does not
    /// wait there; others have that much less.
    pub sides: Vec<(EdgeId, f64)>,
    /// How its bytes are packed, for estimators that simulate packets.
    pub packets: Packets,
}

/// How the bytes of a flow are packed. Numbers are bytes; 0 leaves them to the estimator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// Payload of a packet at most.
    pub payload: u32,
    /// What the receiver asks for at a time; 0: the sender writes unasked.
    pub request: u32,
    /// Whether every other request is answered with half of the payload in each packet.
    pub is_halved: bool,
}

impl Flow {
    /// A flow of weight 1 with an ingress of its own that keeps as many bytes in flight as others.
    pub fn new(path: Vec<EdgeId>, demand: f64) -> Self {
        Self {
            path,
            demand,
            outstanding_bytes: 1.0,
            latency: 0.0,
            weight: 1.0,
            source: None,
            costs: Vec::new(),
            sides: Vec::new(),
            packets: Packets::default(),
        }
    }

    /// The edges of the path, and what it takes of each for each unit of its rate.
    pub(crate) fn uses(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let edges = self.path.iter().enumerate();
        edges.map(|(hop, edge)| (edge.index(), self.costs.get(hop).copied().unwrap_or(1.0)))
    }

    pub(crate) fn check(&self, network: &Network, index: usize) -> Result<(), FlowError> {
        network.check_path(index, &self.path)?;
        let refuse = |field, value| {
            Err(FlowError::Value {
                flow: index,
                field,
                value,
                min: MIN,
                max: MAX,
            })
        };
        if !(MIN..=MAX).contains(&self.demand) && self.demand != f64::INFINITY {
            return refuse("demand", self.demand);
        }
        if !(MIN..=MAX).contains(&self.weight) {
            return refuse("weight", self.weight);
        }
        if !(MIN..=MAX).contains(&self.outstanding_bytes) {
            return refuse("outstanding_bytes", self.outstanding_bytes);
        }
        if !(MIN..=MAX).contains(&self.latency) && self.latency != 0.0 {
            return refuse("latency", self.latency);
        }
        let costs = self.costs.len();
        if costs > 0 && costs != self.path.len() {
            return refuse("number of costs", costs as f64);
        }
        let edges = network.edges().len();
        if let Some((edge, _)) = self.sides.iter().find(|(edge, _)| edge.index() >= edges) {
            let edge = edge.index();
            return Err(FlowError::UnknownEdge {
                flow: index,
                edge,
                edges,
            });
        }
        let sides = self.sides.iter().map(|(_, cost)| *cost);
        let mut all = self.costs.iter().copied().chain(sides);
        match all.find(|cost| !(MIN..=MAX).contains(cost)) {
            Some(cost) => refuse("cost", cost),
            None => Ok(()),
        }
    }
}

/// Part of an edge that what flows take beside their paths leaves at least.
const LEFT: f64 = 1e-3;

/// Flows over one network, checked as they are added. Paths lie one after the other.
#[derive(Clone, Debug)]
pub struct Flows<'n> {
    network: &'n Network,
    starts: Vec<u32>,
    hops: Vec<u32>,
    demands: Vec<f64>,
    outstanding: Vec<f64>,
    latencies: Vec<f64>,
    weights: Vec<f64>,
    sources: Vec<Option<u32>>,
    /// By hop; empty while all are 1.
    costs: Vec<f64>,
    /// Flows with edges beside their paths, in order.
    sides: Vec<(u32, EdgeId, f64)>,
    packets: Vec<Packets>,
    /// By edge: what flows take there that do not have it in their paths. Empty: nothing.
    taken: Vec<f64>,
}

impl<'n> Flows<'n> {
    /// No flows yet, over `network`.
    pub fn new(network: &'n Network) -> Self {
        Self {
            network,
            starts: vec![0],
            hops: Vec::new(),
            demands: Vec::new(),
            outstanding: Vec::new(),
            latencies: Vec::new(),
            weights: Vec::new(),
            sources: Vec::new(),
            costs: Vec::new(),
            sides: Vec::new(),
            taken: Vec::new(),
            packets: Vec::new(),
        }
    }

    /// Adds a flow, or says which rule it breaks.
    pub fn push(&mut self, flow: &Flow) -> Result<FlowId, FlowError> {
        flow.check(self.network, self.len())?;
        self.append(flow, 1.0)
    }

    /// Adds as many as `count` flows that are alike as one; they have been checked.
    pub(crate) fn append(&mut self, flow: &Flow, count: f64) -> Result<FlowId, FlowError> {
        let index = self.len();
        let end = u32::try_from(self.hops.len() + flow.path.len())
            .ok()
            .filter(|&end| end < u32::MAX)
            .ok_or(FlowError::TooManyFlows {
                limit: u32::MAX as usize,
            })?;
        if !flow.costs.is_empty() || !self.costs.is_empty() {
            self.costs.resize(self.hops.len(), 1.0);
            self.costs.extend(&flow.costs);
            self.costs.resize(end as usize, 1.0);
        }
        let sides = flow.sides.iter();
        self.sides
            .extend(sides.map(|&(edge, cost)| (index as u32, edge, cost)));
        self.hops.extend(flow.path.iter().map(|edge| edge.0));
        self.starts.push(end);
        self.demands.push(flow.demand * count);
        self.outstanding.push(flow.outstanding_bytes);
        self.latencies.push(flow.latency);
        self.weights.push(flow.weight * count);
        self.sources.push(flow.source);
        self.packets.push(flow.packets);
        // Every flow has a hop, and hops are counted.
        Ok(FlowId(index as u32))
    }

    /// The network that the paths lie in.
    pub fn network(&self) -> &'n Network {
        self.network
    }

    /// How many flows.
    pub fn len(&self) -> usize {
        self.demands.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.demands.is_empty()
    }

    /// The flow `id` as it was added.
    ///
    /// # Panics
    /// If the id is of another set and too large.
    pub fn get(&self, id: FlowId) -> Flow {
        let index = id.index();
        Flow {
            path: self.path(index).iter().copied().map(EdgeId).collect(),
            demand: self.demands[index],
            outstanding_bytes: self.outstanding[index],
            latency: self.latencies[index],
            weight: self.weights[index],
            source: self.sources[index],
            costs: self.costs(index).to_vec(),
            sides: self.sides_of(index).collect(),
            packets: self.packets[index],
        }
    }

    /// By edge of the path of `flow`: what it takes for each unit of its rate; empty if that is 1 everywhere.
    pub(crate) fn costs(&self, flow: usize) -> &[f64] {
        match self.costs.is_empty() {
            true => &[],
            false => &self.costs[self.span(flow)],
        }
    }

    /// What `flow` takes of the edge that is the `hop`-th of its path, for each unit of its rate.
    pub(crate) fn cost(&self, flow: usize, hop: usize) -> f64 {
        self.costs(flow).get(hop).copied().unwrap_or(1.0)
    }

    /// The edges of the path of `flow`, and what it takes of each for each unit of its rate.
    pub(crate) fn uses(&self, flow: usize) -> impl Iterator<Item = (usize, f64)> + Clone + '_ {
        let edges = self.path(flow).iter().enumerate();
        edges.map(move |(hop, &edge)| (edge as usize, self.cost(flow, hop)))
    }

    /// The most that `flow` takes of an edge for each unit of its rate.
    pub(crate) fn greatest_cost(&self, flow: usize) -> f64 {
        match self.costs(flow) {
            [] => 1.0,
            costs => costs.iter().copied().fold(0.0, f64::max),
        }
    }

    fn sides_of(&self, flow: usize) -> impl Iterator<Item = (EdgeId, f64)> + '_ {
        let first = self.sides.partition_point(|side| (side.0 as usize) < flow);
        let own = self.sides[first..].iter();
        own.take_while(move |side| side.0 as usize == flow)
            .map(|&(_, edge, cost)| (edge, cost))
    }

    /// Whether flows take something beside their paths.
    pub(crate) fn has_sides(&self) -> bool {
        !self.sides.is_empty()
    }

    /// By edge: what flows of `rates` take there beside their paths.
    pub(crate) fn beside(&self, rates: &[f64]) -> Vec<f64> {
        let mut taken = vec![0.0; self.network.edges().len()];
        for &(flow, edge, cost) in &self.sides {
            taken[edge.index()] += cost * rates[flow as usize];
        }
        taken
    }

    /// The same flows, of which `taken` by edge is gone beside what their paths take.
    pub(crate) fn with_taken(&self, taken: Vec<f64>) -> Self {
        Self {
            taken,
            ..self.clone()
        }
    }

    pub(crate) fn path(&self, flow: usize) -> &[u32] {
        &self.hops[self.span(flow)]
    }

    /// Where the path of `flow` lies among all hops.
    pub(crate) fn span(&self, flow: usize) -> std::ops::Range<usize> {
        self.starts[flow] as usize..self.starts[flow + 1] as usize
    }

    pub(crate) fn hops(&self) -> &[u32] {
        &self.hops
    }

    pub(crate) fn demand(&self, flow: usize) -> f64 {
        self.demands[flow]
    }

    /// What `flow` reaches if nothing waits, and whether demand or window says so.
    pub(crate) fn alone(&self, flow: usize) -> (f64, Limit) {
        let window = self.outstanding[flow] / self.latencies[flow];
        if window < self.demands[flow] {
            (window, Limit::Window)
        } else {
            (self.demands[flow], Limit::Demand)
        }
    }

    pub(crate) fn weight(&self, flow: usize) -> f64 {
        self.weights[flow]
    }

    pub(crate) fn outstanding(&self, flow: usize) -> f64 {
        self.outstanding[flow]
    }

    pub(crate) fn latency(&self, flow: usize) -> f64 {
        self.latencies[flow]
    }

    pub(crate) fn source(&self, flow: usize) -> Option<u32> {
        self.sources[flow]
    }

    /// What an edge has for paths.
    pub(crate) fn capacity(&self, edge: usize) -> f64 {
        let capacity = self.network.edges()[edge].capacity();
        let taken = self.taken.get(edge).copied().unwrap_or(0.0);
        (capacity - taken).max(capacity * LEFT)
    }
}
