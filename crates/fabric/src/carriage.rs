//! How the data of a flow goes: written or read, in TLPs of which payload, and what they take of the edges.

use dray_flow::{EdgeId, Packets};
use dray_pcie::{
    COMPLETION_HEADER, LinkKind, LinkRate, Node, NodeKind, Size, Topology, WRITE_HEADER,
};
use serde::{Deserialize, Serialize};

use crate::network::{PACKET, TIME_OF_NS, topology_edges};

/// Who moves the data of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// The node where it starts writes it.
    Write,
    /// The node where it ends reads it.
    Read,
    /// A core stores it by lines, or loads it, one line after the other.
    Mmio,
}

/// Which values of what is not known exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Those with which rates are least.
    Least,
    /// The usual ones.
    Usual,
    /// Those with which rates are greatest.
    Greatest,
}

/// Bytes that a core stores or loads at a time.
const LINE: u32 = 64;
/// What links between sockets carry, if no file says so: of what those of servers of their generation carry. One link of two is
/// not in use on some, and four of three on others.
const SOCKETS: [f64; 3] = [0.5, 1.0, 4.0 / 3.0];
/// The generation of the links of today's servers.
const FASTEST: u32 = 5;
/// The least part of its links that a root complex has been measured to forward between devices: 9.9 GB/s on Gen4 x16.
const PEERS: f64 = 0.35;

/// What a flow takes of the network.
pub(crate) struct Carriage {
    pub(crate) costs: Vec<f64>,
    pub(crate) sides: Vec<(EdgeId, f64)>,
    pub(crate) packets: Packets,
    /// From asking for a byte, or sending it, to its arrival, in the unit of a flow's latency.
    pub(crate) latency: f64,
    /// Bytes that the reader has tags for, if the topology says so, or that a core waits for.
    pub(crate) window: Option<f64>,
    /// Part of the narrowest edge that is not exceeded.
    pub(crate) part: f64,
    /// What one of several links between sockets carries, if the path takes one, GiB/s.
    pub(crate) socket_link: Option<f64>,
    /// The place in the path behind the first root complex that cuts its TLPs.
    pub(crate) cut_at: Option<usize>,
}

/// What a device or a core does to have data go from one end of `path` to the other: devices read what is in memory, and
/// write to memory and to each other.
pub(crate) fn usual(topology: &Topology, path: &[EdgeId]) -> Operation {
    let path = topology_edges(topology, path);
    let (Some(&first), Some(&last)) = (path.first(), path.last()) else {
        return Operation::Write;
    };
    let (from, to) = (topology.edge(first).from, topology.edge(last).to);
    match topology.node(from).kind.is_socket() && !topology.node(to).kind.is_socket() {
        true => Operation::Read,
        false => Operation::Write,
    }
}

impl Carriage {
    pub(crate) fn new(
        topology: &Topology,
        path: &[EdgeId],
        operation: Operation,
        values: Values,
    ) -> Self {
        let edges = topology_edges(topology, path);
        let back: Vec<_> = edges
            .iter()
            .rev()
            .map(|&id| topology.edge(id).reverse)
            .collect();
        let packets = sizes(topology, &edges, operation, values);
        let Packets {
            payload,
            request,
            is_halved,
        } = packets;
        let header = match request {
            0 => WRITE_HEADER,
            _ => COMPLETION_HEADER,
        };
        // Behind a root complex that cuts what one device writes to another.
        let (mut cut, mut cut_at) = (None, None);
        let is_written = request == 0 && !begins_in_memory(topology, &edges);
        let cost = |(hop, id): (usize, &EdgeId)| {
            if id.index() >= topology.edges().len() {
                return 1.0;
            }
            let id = dray_pcie::EdgeId(id.0);
            let of = |each: u32| cost(topology, id, header, each, values);
            let cost = match (cut, is_halved) {
                (Some(bytes), _) => cost_of_cut(topology, id, payload.min(bytes), values),
                (None, true) => 0.5 * (of(payload) + of(payload / 2)),
                (None, false) => of(payload),
            };
            // The greatest rates are those of a root complex that does not.
            if is_written && values != Values::Greatest {
                cut = topology.forwarded(id).or(cut);
                cut_at = cut_at.or(cut.filter(|bytes| *bytes < payload).map(|_| hop + 1));
            }
            cost
        };
        let mut costs: Vec<f64> = path.iter().enumerate().map(cost).collect();
        let cut_at = cut_at.filter(|_| !ends_in_memory(topology, &edges));
        if costs.iter().all(|cost| *cost == 1.0) {
            costs.clear();
        }
        let mut sides = Vec::new();
        let mut latency = topology.latency_ns(&edges, PACKET);
        let mut window = None;
        if request > 0 {
            let asked = back.iter().filter_map(|&id| {
                let share = requests(topology, id, request)?;
                Some((EdgeId(id.0), share))
            });
            sides.extend(asked);
            latency += topology.latency_ns(&back, 0);
            window = match operation {
                Operation::Mmio => Some(f64::from(LINE)),
                _ => tags(topology, &edges, request),
            };
        }
        let part = match values {
            Values::Least if !forwarders(topology, &edges).is_empty() => PEERS,
            _ => 1.0,
        };
        Self {
            costs,
            sides,
            packets,
            latency: latency * TIME_OF_NS,
            window,
            part,
            socket_link: socket_link(topology, &edges),
            cut_at,
        }
    }
}

/// Whether a path begins in a host's memory.
fn begins_in_memory(topology: &Topology, path: &[dray_pcie::EdgeId]) -> bool {
    let first = path.first();
    first.is_some_and(|&first| topology.node(topology.edge(first).from).kind.is_socket())
}

/// Whether a path ends in a host's memory.
fn ends_in_memory(topology: &Topology, path: &[dray_pcie::EdgeId]) -> bool {
    let last = path.last();
    last.is_some_and(|&last| topology.node(topology.edge(last).to).kind.is_socket())
}

/// How the data is packed.
fn sizes(
    topology: &Topology,
    path: &[dray_pcie::EdgeId],
    operation: Operation,
    values: Values,
) -> Packets {
    let packets = |payload, request| Packets {
        payload,
        request,
        is_halved: false,
    };
    // A capacity that the file gives is that of TLPs of the MPS, in the simulator, too.
    let is_measured = path.iter().any(|&id| {
        let edge = topology.edge(id);
        edge.capacity_given && topology.link(edge.link).kind != LinkKind::Socket
    });
    let of = |size: Size| match values {
        _ if is_measured => size.most,
        Values::Least => size.least,
        Values::Usual => size.usual,
        Values::Greatest => size.most,
    };
    let (Some(&first), Some(&last)) = (path.first(), path.last()) else {
        return packets(PACKET, 0);
    };
    let (from, to) = (topology.edge(first).from, topology.edge(last).to);
    let is_socket = topology.node(from).kind.is_socket();
    match operation {
        // Whose engine it is, the topology does not say.
        Operation::Write if is_socket => packets(topology.path_mps(path), 0),
        Operation::Write => packets(of(topology.payload(from, path)), 0),
        Operation::Read => {
            let request = topology.request(to, path);
            let size = topology.payload(from, path).and(request);
            Packets {
                payload: of(size),
                request: of(request),
                is_halved: size.is_halved && values == Values::Usual && !is_measured,
            }
        }
        Operation::Mmio if is_socket => packets(LINE, 0),
        Operation::Mmio => packets(LINE, LINE),
    }
}

/// What a byte of payload takes of an edge, in bytes of TLPs with as much payload as the MPS of the link, of which its capacity is.
fn cost(
    topology: &Topology,
    id: dray_pcie::EdgeId,
    header: u32,
    payload: u32,
    values: Values,
) -> f64 {
    let edge = topology.edge(id);
    let link = topology.link(edge.link);
    // A capacity that the file gives is payload of what goes there.
    if edge.capacity_given {
        return 1.0;
    }
    if link.kind == LinkKind::Socket {
        return 1.0 / SOCKETS[values as usize];
    }
    // Of a link whose generation no file has, at most that of the fastest machines.
    let is_unread = link.unread.iter().any(|key| key == "generation");
    let faster = match values {
        Values::Greatest if is_unread && link.generation < FASTEST => {
            let rate =
                |generation| LinkRate::of(generation, link.width, link.mps).payload_gib_s(link.mps);
            rate(link.generation) / rate(FASTEST)
        }
        _ => 1.0,
    };
    let framing = LinkRate::of(link.generation, link.width, link.mps).framing_bytes;
    let whole =
        |payload: u32, header: u32| f64::from(payload + framing + header) / f64::from(payload);
    if header == WRITE_HEADER && payload == link.mps {
        return faster;
    }
    faster * whole(payload, header) / whole(link.mps, WRITE_HEADER)
}

/// As [`cost`] of a write that a root complex has cut. A capacity that a file gives is of whole TLPs: where the link, as far as
/// it was read, carries less in small ones, that counts.
fn cost_of_cut(topology: &Topology, id: dray_pcie::EdgeId, payload: u32, values: Values) -> f64 {
    let edge = topology.edge(id);
    let link = topology.link(edge.link);
    match edge.capacity_given && link.kind != LinkKind::Socket {
        true => {
            let rate = LinkRate::of(link.generation, link.width, link.mps);
            (edge.capacity_gib_s / rate.payload_gib_s(payload)).max(1.0)
        }
        false => cost(topology, id, WRITE_HEADER, payload, values),
    }
}

/// What the requests for a byte take of an edge, as [`cost`]; nothing between sockets.
fn requests(topology: &Topology, id: dray_pcie::EdgeId, request: u32) -> Option<f64> {
    let link = topology.link(topology.edge(id).link);
    if link.kind == LinkKind::Socket {
        return None;
    }
    let framing = LinkRate::of(link.generation, link.width, link.mps).framing_bytes;
    let mps = f64::from(link.mps);
    let header = f64::from(framing + WRITE_HEADER);
    Some(header / f64::from(request) * mps / (mps + header))
}

/// Bytes that the engine of the reader has tags for, where the file has its engine.
fn tags(topology: &Topology, path: &[dray_pcie::EdgeId], request: u32) -> Option<f64> {
    let to = topology.edge(*path.last()?).to;
    match &topology.node(to).kind {
        NodeKind::Endpoint { parameters, .. } => {
            let engine = parameters.engine.as_ref()?;
            Some(f64::from(engine.tags) * f64::from(request))
        }
        _ => None,
    }
}

/// What one of the links between the sockets on a path carries, where a transfer takes one of several.
fn socket_link(topology: &Topology, path: &[dray_pcie::EdgeId]) -> Option<f64> {
    let links = path.iter().filter_map(|&id| {
        let edge = topology.edge(id);
        let is_between = topology.link(edge.link).kind == LinkKind::Socket;
        match &topology.node(edge.from).kind {
            NodeKind::Socket { parameters, .. } if is_between && parameters.socket_links > 1 => {
                Some(edge.capacity_gib_s / f64::from(parameters.socket_links))
            }
            _ => None,
        }
    });
    links.reduce(f64::min)
}

/// The root complexes whose limit no file gives, of those that forward a path from device to device.
pub(crate) fn forwarders<'t>(topology: &'t Topology, path: &[dray_pcie::EdgeId]) -> Vec<&'t Node> {
    let (Some(&first), Some((&last, inner))) = (path.first(), path.split_last()) else {
        return Vec::new();
    };
    // From a socket to a device, too, a path may pass another socket.
    let ends = [topology.edge(first).from, topology.edge(last).to];
    if ends.iter().any(|&end| topology.node(end).kind.is_socket()) {
        return Vec::new();
    }
    let between = inner.iter().map(|&id| topology.node(topology.edge(id).to));
    let is_unlimited = |node: &&Node| matches!(&node.kind, NodeKind::Socket { parameters, .. } if parameters.peer_write_gib_s == 0.0);
    between.filter(is_unlimited).collect()
}
