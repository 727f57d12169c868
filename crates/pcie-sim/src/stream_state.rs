//! State of a stream and of its transfers.

use std::collections::VecDeque;

use super::edge::ps;
use super::engine::Engine;
use super::network::Network;
use super::profile::Profile;
use super::random::Gaps;
use super::scheduler::SubmissionScheduler;
use super::simulation::PORT_CORES;
use super::tlp::NONE;
use super::{Arrival, Operation, Stream};
use dray_topology::PcieError;
use dray_topology::{NodeKind, Topology};

/// Bytes of a line that a core loads or stores at a time.
pub(super) const LINE: u64 = 64;
/// Ticket of a transfer that a stream starts by itself, without a call.
pub(super) const NO_TICKET: u64 = u64::MAX;
/// Longest transfer.
const MAX_BYTES: u64 = 1 << 40;

/// A transfer in flight.
#[derive(Debug, Clone)]
pub(super) struct Transfer {
    pub(super) stream: u32,
    pub(super) queue: u32,
    /// Bytes of each element of its list, and of all.
    pub(super) bytes: u64,
    pub(super) total: u64,
    pub(super) ticket: u64,
    /// Bytes that have not arrived yet, of those a piece or a line stands for.
    pub(super) left: u64,
    pub(super) stamps: [u64; 6],
}

/// A transfer that is asked for and not yet submitted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) at: u64,
    pub(super) bytes: u64,
    pub(super) total: u64,
    pub(super) queue: Option<u32>,
    pub(super) ticket: u64,
}

/// A stream that runs.
#[derive(Debug)]
pub(super) struct StreamState {
    pub(super) stream: Stream,
    /// Index of the device's engine.
    pub(super) engine: u32,
    /// From the host to the device.
    pub(super) to_device: u32,
    /// From the device that signals completion to the host.
    pub(super) to_host: u32,
    /// The way of the engine's data or requests, and of the answers.
    pub(super) data: u32,
    pub(super) reply: u32,
    pub(super) bytes: u64,
    pub(super) completed: u64,
    pub(super) intervals: Vec<u64>,
    pub(super) profile: Profile,
    pub(super) port: u32,
    pub(super) submit: u64,
    pub(super) poll: u64,
    pub(super) backlog: VecDeque<Asked>,
    pub(super) scheduler: Box<dyn SubmissionScheduler + Send>,
    pub(super) gaps: Gaps,
    pub(super) core_free: u64,
    pub(super) in_flight: u32,
    pub(super) asked: u64,
    pub(super) submitted: u64,
    /// Transfers in flight times ps since the warm-up, and when that was last counted.
    pub(super) area: u128,
    pub(super) counted_at: u64,
}

impl StreamState {
    #[allow(
        clippy::too_many_arguments,
        reason = "what a stream is checked against"
    )]
    pub(super) fn new(
        topology: &Topology,
        network: &mut Network,
        stream: &Stream,
        index: usize,
        seed: u64,
        engine_of: &[u32],
        engines: &[Engine],
    ) -> Result<Self, PcieError> {
        let host = check(topology, stream)?;
        let fail = |rule: String| transfer_error(stream, rule);
        let engine = engine_of[stream.device.0 as usize];
        if !stream.operation.is_mmio() {
            let name = &topology.node(stream.device).name;
            let Some(engine) = engines.get(engine as usize) else {
                return Err(fail(format!(
                    "`{name}` has no DMA engine; name a [[device]] with [device.engine]"
                )));
            };
            if let super::Scheduling::Fixed(queue) = stream.scheduling
                && queue >= engine.parameters.queues
            {
                let rule = format!(
                    "queue {queue} of `{name}`, which has {}",
                    engine.parameters.queues
                );
                return Err(fail(rule));
            }
        }
        let mut between = |from, to| network.route_between(topology, from, to);
        let (host_node, device) = (stream.host, stream.device);
        let to_device = between(host_node, device)?;
        let from_device = between(device, host_node)?;
        let (data, reply, to_host) = match (stream.operation, stream.peer) {
            (Operation::DeviceWrite, Some(peer)) => {
                (between(device, peer)?, NONE, between(peer, host_node)?)
            }
            (Operation::DeviceRead, Some(peer)) => {
                (between(device, peer)?, between(peer, device)?, from_device)
            }
            _ => (from_device, to_device, from_device),
        };
        let mmio = stream.operation.is_mmio();
        Ok(Self {
            stream: stream.clone(),
            engine,
            to_device,
            to_host,
            data,
            reply,
            bytes: 0,
            completed: 0,
            intervals: Vec::new(),
            profile: Profile::default(),
            port: network.agent_port(host_node, PORT_CORES),
            submit: if mmio { 0 } else { ps(host.submit_ns) },
            poll: if mmio { 0 } else { ps(host.poll_ns) },
            backlog: VecDeque::new(),
            scheduler: stream.scheduling.build(),
            gaps: Gaps::new(seed, index as u64),
            core_free: 0,
            in_flight: 0,
            asked: 0,
            submitted: 0,
            area: 0,
            counted_at: 0,
        })
    }

    /// Transfers that a stream with an end has still to submit.
    pub(super) fn not_submitted(&self) -> u64 {
        match self.stream.count {
            0 => self.backlog.len() as u64,
            count => count - self.submitted,
        }
    }

    /// A transfer as the stream describes it.
    pub(super) fn one(&self, at: u64) -> Asked {
        Asked {
            at,
            bytes: self.stream.bytes,
            total: self.stream.bytes * u64::from(self.stream.batch),
            queue: None,
            ticket: NO_TICKET,
        }
    }

    pub(super) fn change_in_flight(&mut self, change: i32, now: u64, warmup: u64) {
        let from = self.counted_at.max(warmup);
        self.area += u128::from(now.saturating_sub(from)) * u128::from(self.in_flight);
        self.counted_at = now;
        let in_flight = self.in_flight.checked_add_signed(change);
        self.in_flight = in_flight.expect("a transfer ends once");
    }

    pub(super) fn mean_in_flight(&self, warmup: u64, end: u64) -> f64 {
        let rest = end.saturating_sub(self.counted_at.max(warmup));
        let area = self.area + u128::from(rest) * u128::from(self.in_flight);
        area as f64 / end.saturating_sub(warmup).max(1) as f64
    }
}

pub(super) fn transfer_error(stream: &Stream, rule: String) -> PcieError {
    PcieError::Transfer {
        transfer: format!("{} `{}`", stream.operation.name(), stream.name),
        rule,
    }
}

/// The rules of the benchmark's calls.
pub(super) fn check<'a>(
    topology: &'a Topology,
    stream: &Stream,
) -> Result<&'a dray_topology::HostParameters, PcieError> {
    let fail = |rule: String| Err(transfer_error(stream, rule));
    let name = |node| &topology.node(node).name;
    let NodeKind::Socket { parameters, .. } = &topology.node(stream.host).kind else {
        return fail(format!("`{}` is not a host", name(stream.host)));
    };
    for node in [Some(stream.device), stream.peer].into_iter().flatten() {
        if !matches!(topology.node(node).kind, NodeKind::Endpoint { .. }) {
            return fail(format!("`{}` is not an endpoint", name(node)));
        }
    }
    match (stream.operation.has_peer(), stream.peer) {
        (true, None) => return fail("needs a second device".to_owned()),
        (true, Some(peer)) if peer == stream.device => {
            return fail(format!("`{}` is both devices", name(peer)));
        }
        _ => {}
    }
    let bytes = stream.bytes;
    if bytes == 0 {
        return fail("a length of 0 bytes; the shortest is 64".to_owned());
    }
    let short_mmio = stream.operation.is_mmio() && matches!(bytes, 8 | 16 | 32);
    if !bytes.is_multiple_of(LINE) && !short_mmio {
        return fail(format!("a length of {bytes} bytes is no multiple of 64"));
    }
    if bytes.saturating_mul(u64::from(stream.batch)) > MAX_BYTES {
        return fail(format!(
            "{} transfers of {bytes} bytes are more than 1 TiB",
            stream.batch
        ));
    }
    if stream.chunk == 0 || !stream.chunk.is_multiple_of(LINE as u32) {
        return fail(format!(
            "a chunk of {} bytes is no multiple of 64",
            stream.chunk
        ));
    }
    if stream.batch == 0 || stream.outstanding == 0 {
        return fail("batch and outstanding are at least 1".to_owned());
    }
    match stream.arrival {
        Arrival::Every { gap_ns: 0 }
        | Arrival::Random { mean_gap_ns: 0 }
        | Arrival::Burst { gap_ns: 0, .. }
        | Arrival::Burst { count: 0, .. } => fail("a gap or burst of 0".to_owned()),
        _ => Ok(parameters),
    }
}
