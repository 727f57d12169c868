//! The sender's side of a directed edge: its speed, the receiver's credits, the ports that wait for it.

use std::collections::VecDeque;

use super::tlp::{Class, Tlp};
use dray_topology::{
    Credits, Edge, Link, LinkRate, NodeKind, QueueOrganisation, Switching, Topology,
};

/// 2^30 bytes.
const GIB: f64 = (1u64 << 30) as f64;
/// Bits behind the point of [`ps_per_byte`].
const FRACTION: u32 = 16;
/// Stands for infinite credits.
const INFINITE: i64 = i64::MAX / 4;

/// Time for one byte at a rate, ps with 16 bits behind the point.
pub(super) fn ps_per_byte(bytes_per_s: f64) -> u64 {
    (1e12 * f64::from(1u32 << FRACTION) / bytes_per_s).round() as u64
}

/// Time for so many bytes, ps.
#[inline]
pub(super) fn span(bytes: u64, ps_per_byte: u64) -> u64 {
    (bytes * ps_per_byte) >> FRACTION
}

/// Time at a rate in GiB/s; no time without a limit.
pub(super) fn limit(gib_s: f64) -> u64 {
    if gib_s > 0.0 {
        ps_per_byte(gib_s * GIB)
    } else {
        0
    }
}

pub(super) fn ps(ns: f64) -> u64 {
    (ns * 1000.0).round() as u64
}

/// Credits on their way back.
#[derive(Debug, Clone, Copy)]
pub(super) struct CreditReturn {
    pub(super) at: u64,
    pub(super) class: Class,
    pub(super) pool: u32,
    pub(super) data: i64,
}

/// Credits for one queue of the receiver, by class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CreditPool {
    pub(super) headers: [i64; 3],
    pub(super) data: [i64; 3],
}

#[derive(Debug)]
pub(super) struct EdgeState {
    pub(super) ps_per_byte: u64,
    /// Framing of one TLP, bytes; `None` between sockets, where a TLP's header does not travel: what does instead is in
    /// the capacity.
    pub(super) framing: Option<u32>,
    /// Flight from output to input.
    pub(super) flight: u64,
    /// More flight for TLPs that start at the sender: its root complex or PCIe core.
    pub(super) source: u64,
    /// From the input to the receiver's agent, for TLPs that end there.
    pub(super) sink: u64,
    /// What on-chip memory is nearer than the rest, at either end.
    pub(super) on_chip: u64,
    /// From the input to the outputs of the receiver.
    pub(super) forward: u64,
    pub(super) store_and_forward: bool,
    /// Flight of a credit update.
    pub(super) credit_flight: u64,
    /// Index of the receiver's port.
    pub(super) port: u32,
    pub(super) busy_until: u64,
    /// Time of the wake-up that is scheduled, or `u64::MAX`.
    pub(super) wake_at: u64,
    /// Ports of the sender that have TLPs for this edge, in no order.
    pub(super) active: Vec<u32>,
    pub(super) first_queue: u32,
    pub(super) first_port: u32,
    /// Start of service of the last TLP, in arbiter units.
    pub(super) served: u64,
    /// Whether the last arbitration found only TLPs without credits.
    pub(super) blocked: bool,
    /// Credits for each queue of the receiver.
    pub(super) pools: Vec<CreditPool>,
    /// What each pool has when nothing is under way.
    pub(super) full: CreditPool,
    pub(super) returns: VecDeque<CreditReturn>,
    /// Payload that it has carried, bytes.
    pub(super) carried: u64,
    /// Time that it was busy, ps.
    pub(super) busy: u64,
}

impl EdgeState {
    pub(super) fn new(topology: &Topology, edge: &Edge, queues: QueueOrganisation) -> Self {
        let link = topology.link(edge.link);
        let (rate, framing) = rate(edge, link);
        let (source, from_chip) = agent_latency(&topology.node(edge.from).kind);
        let (sink, to_chip) = agent_latency(&topology.node(edge.to).kind);
        let receiver = topology.node(edge.to);
        let full = credits(&link.credits);
        // One for each output, and one for TLPs that end at the receiver.
        let pools = match queues {
            QueueOrganisation::PerOutput => receiver.outputs.len() + 1,
            QueueOrganisation::Fifo | QueueOrganisation::SharedBuffer => 1,
        };
        Self {
            ps_per_byte: ps_per_byte(rate),
            framing,
            flight: ps(link.latency_ns),
            source,
            sink,
            on_chip: from_chip.max(to_chip),
            forward: ps(receiver.forward_ns),
            store_and_forward: receiver.switching == Switching::StoreAndForward,
            credit_flight: ps(link.latency_ns + link.credit_update_ns),
            port: 0,
            busy_until: 0,
            wake_at: u64::MAX,
            active: Vec::new(),
            first_queue: 0,
            first_port: 0,
            served: 0,
            blocked: false,
            pools: vec![full; pools],
            full,
            returns: VecDeque::with_capacity(256),
            carried: 0,
            busy: 0,
        }
    }

    /// How long it takes to send a TLP, ps.
    #[inline]
    pub(super) fn sending(&self, tlp: &Tlp) -> u64 {
        let bytes = match (self.framing, tlp.payload) {
            (Some(framing), _) => tlp.wire + framing,
            // A request has a header alone.
            (None, 0) => tlp.wire,
            (None, payload) => payload.into(),
        };
        span(u64::from(bytes), self.ps_per_byte)
    }

    /// Takes credits that have arrived.
    #[inline]
    pub(super) fn collect(&mut self, now: u64) {
        while let Some(first) = self.returns.front()
            && first.at <= now
        {
            let pool = &mut self.pools[first.pool as usize];
            pool.headers[first.class as usize] += 1;
            pool.data[first.class as usize] += first.data;
            debug_assert!(self.invariant(first.pool, first.class), "{first:?}");
            self.returns.pop_front();
        }
    }

    #[inline]
    pub(super) fn has_credits(&self, tlp: &Tlp) -> bool {
        let class = tlp.class as usize;
        let pool = &self.pools[tlp.next_pool as usize];
        pool.headers[class] >= 1 && pool.data[class] >= tlp.data_credits()
    }

    #[inline]
    pub(super) fn take_credits(&mut self, tlp: &Tlp) {
        let class = tlp.class as usize;
        let pool = &mut self.pools[tlp.next_pool as usize];
        pool.headers[class] -= 1;
        pool.data[class] -= tlp.data_credits();
        debug_assert!(self.invariant(tlp.next_pool, tlp.class), "{tlp:?}");
    }

    /// A pool has no fewer than no credits, and no more than it was made with.
    fn invariant(&self, pool: u32, class: Class) -> bool {
        let (pool, class) = (&self.pools[pool as usize], class as usize);
        (0..=self.full.headers[class]).contains(&pool.headers[class])
            && (0..=self.full.data[class]).contains(&pool.data[class])
    }

    /// Sends credits back; they come nearly in order of time.
    #[inline]
    pub(super) fn give_back(&mut self, credit: CreditReturn) {
        let mut index = self.returns.len();
        while index > 0 && self.returns[index - 1].at > credit.at {
            index -= 1;
        }
        if index == self.returns.len() {
            self.returns.push_back(credit);
        } else {
            self.returns.insert(index, credit);
        }
    }
}

/// TLP bytes per second and framing. A capacity that is given is payload of TLPs of the link's
/// MPS, as it was measured; their headers come on top.
fn rate(edge: &Edge, link: &Link) -> (f64, Option<u32>) {
    if link.generation == 0 {
        return (edge.capacity_gib_s * GIB, None);
    }
    let derived = LinkRate::of(link.generation, link.width, link.mps);
    let rate = match edge.capacity_given {
        true => edge.capacity_gib_s / derived.payload_gib_s(link.mps) * derived.tlp_bytes_per_s,
        false => derived.tlp_bytes_per_s,
    };
    (rate, Some(derived.framing_bytes))
}

/// From the link to the agent, and how much nearer on-chip memory is.
fn agent_latency(kind: &NodeKind) -> (u64, u64) {
    match kind {
        NodeKind::Socket { parameters, .. } => (ps(parameters.root_ns), 0),
        NodeKind::Endpoint { parameters, .. } => (
            ps(parameters.port_ns + parameters.bus_ns),
            ps((parameters.bus_ns - parameters.on_chip_bus_ns).max(0.0)),
        ),
        _ => (0, 0),
    }
}

fn credits(credits: &Credits) -> CreditPool {
    let count = |value: u32| {
        if value == 0 {
            INFINITE
        } else {
            i64::from(value)
        }
    };
    CreditPool {
        headers: [
            count(credits.posted_headers),
            count(credits.non_posted_headers),
            count(credits.completion_headers),
        ],
        data: [
            count(credits.posted_data),
            count(credits.non_posted_data),
            count(credits.completion_data),
        ],
    }
}
