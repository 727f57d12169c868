//! Why a network or a flow was refused.

/// A rule that an edge or a flow breaks, or a solution that was not found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FlowError {
    /// A capacity that no link has.
    #[error("edge `{edge}`: capacity {value} must be a number from {min:e} to {max:e}")]
    Capacity {
        /// Name of the edge.
        edge: String,
        /// The capacity given.
        value: f64,
        /// Least capacity.
        min: f64,
        /// Greatest capacity.
        max: f64,
    },
    /// A buffer that no port has.
    #[error("edge `{edge}`: buffer {value} must be a number of bytes from {min:e} to {max:e}")]
    Buffer {
        /// Name of the edge.
        edge: String,
        /// The size given.
        value: f64,
        /// Least size.
        min: f64,
        /// Greatest size.
        max: f64,
    },
    /// A round of credits that takes no time.
    #[error("edge `{edge}`: a credit's round of {value} must be a number from 0 to {max:e}")]
    Round {
        /// Name of the edge.
        edge: String,
        /// The time given.
        value: f64,
        /// Greatest time.
        max: f64,
    },
    /// Two edges of one name.
    #[error("edge `{edge}`: the name is taken by an earlier edge; names of edges are unique")]
    DuplicateEdge {
        /// The name.
        edge: String,
    },
    /// An edge that ends where it starts.
    #[error("edge `{edge}`: it starts and ends at node `{node}`; an edge connects two nodes")]
    Loop {
        /// Name of the edge.
        edge: String,
        /// The node.
        node: String,
    },
    /// More edges than an `EdgeId` counts.
    #[error("a network has at most {limit} edges")]
    TooManyEdges {
        /// The limit.
        limit: usize,
    },
    /// More flows or hops than a `FlowId` counts.
    #[error("a set of flows has at most {limit} flows and {limit} hops in all")]
    TooManyFlows {
        /// The limit.
        limit: usize,
    },
    /// A flow without a path.
    #[error("flow {flow}: the path is empty; a flow takes at least one edge")]
    NoPath {
        /// Index of the flow.
        flow: usize,
    },
    /// A path over an edge that the network does not have.
    #[error("flow {flow}: the path names edge {edge}, but the network has {edges} edges")]
    UnknownEdge {
        /// Index of the flow.
        flow: usize,
        /// The edge named.
        edge: usize,
        /// How many edges there are.
        edges: usize,
    },
    /// A path that takes an edge twice.
    #[error("flow {flow}: the path takes edge `{edge}` twice; a path takes an edge once")]
    RepeatedEdge {
        /// Index of the flow.
        flow: usize,
        /// Name of the edge.
        edge: String,
    },
    /// A path with a gap.
    #[error(
        "flow {flow}: edge `{edge}` starts at node `{starts}`, but the edge before it, `{before}`, \
         ends at node `{ends}`; a path is connected"
    )]
    Gap {
        /// Index of the flow.
        flow: usize,
        /// The edge after the gap.
        edge: String,
        /// Where it starts.
        starts: String,
        /// The edge before the gap.
        before: String,
        /// Where that one ends.
        ends: String,
    },
    /// A demand, a weight or an outstanding size out of range.
    #[error("flow {flow}: {field} {value} must be a number from {min:e} to {max:e}")]
    Value {
        /// Index of the flow.
        flow: usize,
        /// `demand`, `weight` or `outstanding_bytes`.
        field: &'static str,
        /// The value given.
        value: f64,
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
    },
    /// A flow that is not there (any more).
    #[error("flow {flow}: no such flow; it has left or was never added")]
    NoSuchFlow {
        /// Its number.
        flow: usize,
    },
    /// A bound on the error that makes no sense.
    #[error("error bound {value} must be a number above 0 and at most 0.1")]
    ErrorBound {
        /// The bound given.
        value: f64,
    },
    /// The iteration of `ingress` did not settle.
    #[error(
        "`ingress` did not settle after {rounds} rounds: rates still change by {change:e} of \
         themselves; use `maxmin`"
    )]
    NotSettled {
        /// Rounds done.
        rounds: usize,
        /// Largest relative change of the last round.
        change: f64,
    },
    /// A job that waits for itself.
    #[error("job {job}: it waits for jobs that wait for it; the order of jobs has no cycle")]
    Cycle {
        /// Index of a job of the cycle, or behind it.
        job: usize,
    },
    /// A share that is none.
    #[error("share {value} must be a number above 0 and at most 1")]
    Share {
        /// The share given.
        value: f64,
    },
    /// An estimator that gives a job less when it is alone than it said before.
    #[error(
        "job {job}: it is not admitted although nothing runs; the estimator contradicts itself"
    )]
    NeverAdmitted {
        /// Index of the job.
        job: usize,
    },
    /// What an estimator from outside this crate says.
    #[error("{estimator}: {reason}")]
    Estimator {
        /// Name of the estimator.
        estimator: String,
        /// What went wrong.
        reason: String,
    },
}
