//! What a path lets through by its credits, and how long it is.

use super::{EdgeId, NodeKind, Switching, Topology};

/// Bytes of a data credit.
pub(super) const CREDIT_BYTES: f64 = 16.0;
/// Bytes per ns that one GiB/s is.
pub(super) const PER_GIB_S: f64 = (1u64 << 30) as f64 * 1e-9;

impl Topology {
    /// What writes of `payload` bytes a TLP can reach alone on `path` with the posted credits of its links, GiB/s; infinite
    /// if no link limits them.
    ///
    /// A link carries at most its receiver's credits in one round of them: from the TLP's leaving the queue over the link, the
    /// receiver's forwarding, and back as an update (PCI Express Base Specification, section 2.6). A sender takes the
    /// credits when a TLP starts from its engine or memory, so that the way from there to the port is part of the
    /// first link's round.
    pub fn credit_limit_gib_s(&self, path: &[EdgeId], payload: u32) -> f64 {
        let limits = (0..path.len()).map(|hop| {
            let edge = self.edge(path[hop]);
            let link = self.link(edge.link);
            let data = match link.credits.posted_data {
                0 => f64::INFINITY,
                credits => (f64::from(credits) * CREDIT_BYTES / f64::from(payload)).floor(),
            };
            let headers = match link.credits.posted_headers {
                0 => f64::INFINITY,
                credits => f64::from(credits),
            };
            let bytes = data.min(headers) * f64::from(payload);
            let round_ns = self.round_ns(path, hop, payload, hop == 0);
            bytes / round_ns / PER_GIB_S
        });
        limits.fold(f64::INFINITY, f64::min)
    }

    /// One round of the credits of a path's link: of a TLP of `payload` bytes, whose sender starts it if `starts`.
    pub(super) fn round_ns(&self, path: &[EdgeId], hop: usize, payload: u32, starts: bool) -> f64 {
        let edge = self.edge(path[hop]);
        let link = self.link(edge.link);
        let sending =
            |edge: EdgeId| f64::from(payload) / (self.edge(edge).capacity_gib_s * PER_GIB_S);
        let mut round_ns = 2.0 * link.latency_ns + link.credit_update_ns;
        if starts {
            round_ns += self.agent_ns(path[hop], true);
        }
        match path.get(hop + 1) {
            None => round_ns += sending(path[hop]) + self.agent_ns(path[hop], false),
            Some(&next) => {
                let receiver = self.node(edge.to);
                round_ns += receiver.forward_ns + sending(next);
                if receiver.switching == Switching::StoreAndForward {
                    round_ns += sending(path[hop]);
                }
            }
        }
        round_ns
    }

    /// From a TLP's start in the engine or memory at one end of `path` to its arrival in that at the other, on idle links, ns.
    pub fn latency_ns(&self, path: &[EdgeId], payload: u32) -> f64 {
        let (Some(&first), Some(&last)) = (path.first(), path.last()) else {
            return 0.0;
        };
        let links = path
            .iter()
            .map(|&edge| self.link(self.edge(edge).link).latency_ns);
        let nodes = path[..path.len() - 1].iter().map(|&edge| {
            let node = self.node(self.edge(edge).to);
            node.forward_ns
        });
        let sending = f64::from(payload) / (self.edge(last).capacity_gib_s * PER_GIB_S);
        let ends = self.agent_ns(first, true) + self.agent_ns(last, false);
        ends + links.sum::<f64>() + nodes.sum::<f64>() + sending
    }

    /// From the engine or memory at one end of an edge to its port, ns.
    fn agent_ns(&self, edge: EdgeId, start: bool) -> f64 {
        let edge = self.edge(edge);
        match &self.node(if start { edge.from } else { edge.to }).kind {
            NodeKind::Socket { parameters, .. } => parameters.root_ns,
            NodeKind::Endpoint { parameters, .. } => parameters.port_ns + parameters.bus_ns,
            _ => 0.0,
        }
    }
}
