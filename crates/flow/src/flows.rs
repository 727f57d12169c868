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
        }
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
        Ok(())
    }
}

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
        }
    }

    /// Adds a flow, or says which rule it breaks.
    pub fn push(&mut self, flow: &Flow) -> Result<FlowId, FlowError> {
        let index = self.len();
        flow.check(self.network, index)?;
        let end = u32::try_from(self.hops.len() + flow.path.len())
            .ok()
            .filter(|&end| end < u32::MAX)
            .ok_or(FlowError::TooManyFlows {
                limit: u32::MAX as usize,
            })?;
        self.hops.extend(flow.path.iter().map(|edge| edge.0));
        self.starts.push(end);
        self.demands.push(flow.demand);
        self.outstanding.push(flow.outstanding_bytes);
        self.latencies.push(flow.latency);
        self.weights.push(flow.weight);
        self.sources.push(flow.source);
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

    pub(crate) fn capacity(&self, edge: usize) -> f64 {
        self.network.edges()[edge].capacity()
    }
}
