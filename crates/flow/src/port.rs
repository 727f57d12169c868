//! How a port queues and chooses.

/// Among which waiting bytes the sender's port of an edge chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arbiter {
    /// The ingresses in turn, each as much as the others (rPCIeBench, NSDI'24, section 5.1: credits are divided evenly
    /// over the active lanes).
    #[default]
    InTurn,
    /// Whatever has waited longest, whichever ingress it came by.
    OldestFirst,
}

/// How the receiver of an edge keeps what waits for its outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Queues {
    /// A queue for each output, with a buffer for each: bytes never wait for those that leave elsewhere.
    #[default]
    PerOutput,
    /// One first-in first-out queue for all outputs.
    Fifo,
}

/// The parameters of an edge beside its capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Port {
    pub(crate) arbiter: Arbiter,
    pub(crate) queues: Queues,
    /// Bytes of one buffer of the receiver; without it as large as needed.
    pub(crate) buffer: Option<f64>,
    /// What a byte's room in the buffer is taken for beside the byte's waiting: the round of its credit.
    pub(crate) round: f64,
}
