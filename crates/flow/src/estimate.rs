//! What an estimator is, and what it gives.

use crate::error::FlowError;
use crate::flows::{FlowId, Flows};
use crate::network::EdgeId;

/// What keeps a flow from being faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Nothing on the fabric: it gets its demand.
    Demand,
    /// What it keeps in flight: it gets that once in the time of its path, which is less than its demand.
    Window,
    /// This edge: its bottleneck.
    Edge(EdgeId),
}

/// The rate of every flow when all run at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    rates: Vec<f64>,
    limits: Vec<Limit>,
    settled: bool,
}

impl Estimate {
    /// An estimate from the rate and the limit of each flow, in order of the flows.
    ///
    /// # Panics
    /// If a rate is not above 0: every flow gets something.
    pub fn new(rates: Vec<f64>, limits: Vec<Limit>) -> Self {
        assert_eq!(
            rates.len(),
            limits.len(),
            "a rate and a limit for each flow"
        );
        if let Some(flow) = rates.iter().position(|rate| rate.is_nan() || *rate <= 0.0) {
            panic!("flow {flow} has a rate of {}", rates[flow]);
        }
        Self {
            rates,
            limits,
            settled: true,
        }
    }

    /// The same estimate, of an estimator that ended before its rates were those that it looked for.
    pub fn unsettled(self) -> Self {
        Self {
            settled: false,
            ..self
        }
    }

    /// Whether the rates are those that the estimator looked for. If not, they are as near as it came.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Rates in the unit of the capacities, in order of the flows.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// What limits each flow, in order of the flows.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Rate of one flow.
    pub fn rate(&self, flow: FlowId) -> f64 {
        self.rates[flow.index()]
    }

    /// Load of every edge: the sum of the rates over it, in order of the edges.
    pub fn loads(&self, flows: &Flows<'_>) -> Vec<f64> {
        let mut loads = vec![0.0; flows.network().edges().len()];
        for (flow, &rate) in self.rates.iter().enumerate() {
            for &edge in flows.path(flow) {
                loads[edge as usize] += rate;
            }
        }
        loads
    }

    /// An estimate from rates alone: a flow below what it reaches alone by more than `tolerance` of it is limited by
    /// the fullest edge of its path.
    pub fn from_rates(rates: Vec<f64>, flows: &Flows<'_>, tolerance: f64) -> Self {
        let alone: Vec<(f64, Limit)> = (0..flows.len()).map(|flow| flows.alone(flow)).collect();
        let limits = alone.iter().map(|&(_, limit)| limit).collect();
        let mut estimate = Self::new(rates, limits);
        let loads = estimate.loads(flows);
        for (flow, &(reached, _)) in alone.iter().enumerate() {
            if estimate.rates[flow] >= reached * (1.0 - tolerance) {
                continue;
            }
            let fullest = flows.path(flow).iter().copied().max_by(|&a, &b| {
                let full = |edge: u32| loads[edge as usize] / flows.capacity(edge as usize);
                full(a).total_cmp(&full(b))
            });
            if let Some(edge) = fullest {
                estimate.limits[flow] = Limit::Edge(EdgeId(edge));
            }
        }
        estimate
    }
}

/// Says what each flow gets.
pub trait Estimator {
    /// The word for it on the command line and in tables.
    fn name(&self) -> &'static str;

    /// The rates of `flows` when all of them run.
    fn estimate(&self, flows: &Flows<'_>) -> Result<Estimate, FlowError>;
}
