//! What a file does not give and follows from the rest: credits of links, and the links between sockets.

use super::credit::{CREDIT_BYTES, PER_GIB_S};
use super::{Credits, EdgeId, LinkId, LinkKind, Topology};

/// A receiver has this many times the bytes that its link carries in one round of a credit.
///
/// Receivers are made so that their buffers do not limit the rate that the part is sold for ("enough to cover the round trip",
/// PCI Express Base Specification, section 2.6.1, implementation note on flow control). One round is what just does not;
/// twice of it is for a round that is longer than on idle links.
const ROUNDS: f64 = 2.0;
/// Bytes of the smallest TLPs that a receiver is made for, by which its headers are counted.
const SMALL_TLP: f64 = 64.0;
/// Bytes of a TLP's payload in a round.
const PAYLOAD: u32 = 256;

/// Sets what the file has not given, once all nodes and links are there.
pub(super) fn complete(topology: &mut Topology) {
    sockets(topology);
    for index in 0..topology.links.len() {
        if !topology.links[index].credits_given {
            let credits = credits(topology, index);
            topology.links[index].credits = credits;
        }
    }
}

/// Links between sockets are as fast as those of servers of the generation of their PCIe links: two of UPI at 10.4 GT/s
/// (Skylake, Cascade Lake), three at 11.2 GT/s (Ice Lake), three at 16 GT/s (Sapphire Rapids). A direction of a link
/// has 20 lanes, of which 16 carry data.
fn sockets(topology: &mut Topology) {
    let generation = |topology: &Topology| topology.links.iter().map(|link| link.generation).max();
    let giga_transfers = match generation(topology).unwrap_or(0) {
        ..=3 => 2.0 * 10.4,
        4 => 3.0 * 11.2,
        5.. => 3.0 * 16.0,
    };
    let gib_s = giga_transfers * 2.0 / PER_GIB_S;
    for edge in &mut topology.edges {
        let is_socket = topology.links[edge.link.0 as usize].kind == LinkKind::Socket;
        if is_socket && !edge.capacity_given {
            edge.capacity_gib_s = gib_s;
        }
    }
}

/// Credits of a link whose buffers do not limit it in either direction.
fn credits(topology: &Topology, index: usize) -> Credits {
    // A link has two edges, one after the other.
    let rounds = [2 * index, 2 * index + 1].map(|number| {
        let (id, edge) = (EdgeId(number as u32), &topology.edges[number]);
        debug_assert_eq!(edge.link, LinkId(index as u32));
        let receiver = topology.node(edge.to);
        // A TLP ends in the receiver, or leaves it by one of its outputs.
        let ends = topology.round_ns(&[id], 0, PAYLOAD, true);
        let outputs = receiver.outputs.iter().filter(|_| receiver.kind.forwards());
        let outputs = outputs.filter(|output| **output != edge.reverse);
        let rounds = outputs.map(|next| topology.round_ns(&[id, *next], 0, PAYLOAD, true));
        edge.capacity_gib_s * PER_GIB_S * rounds.fold(ends, f64::max)
    });
    let bytes = ROUNDS * rounds[0].max(rounds[1]);
    let mps = f64::from(topology.links[index].mps);
    let bytes = (bytes / mps).ceil().max(2.0) * mps;
    let (data, headers) = (
        (bytes / CREDIT_BYTES) as u32,
        (bytes / SMALL_TLP).ceil() as u32,
    );
    Credits {
        posted_headers: headers,
        posted_data: data,
        non_posted_headers: headers,
        non_posted_data: headers,
        completion_headers: headers,
        completion_data: data,
    }
}
