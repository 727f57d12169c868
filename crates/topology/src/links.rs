//! Links of a file, and the two edges of each.

use super::build::Builder;
use super::file::LinkEntry;
use super::rate::LinkRate;
use super::rules::Rules;
use super::{Credits, Edge, EdgeId, HostParameters, Link, LinkId, LinkKind, NodeId, NodeKind};
use crate::PcieError;

impl Builder<'_> {
    pub(super) fn link(
        &mut self,
        index: usize,
        entry: &LinkEntry,
        defaults: &LinkEntry,
    ) -> Result<(), PcieError> {
        let [upper, lower] = entry.ends.as_slice() else {
            let rule = format!(
                "`ends` has {} names; a link joins two nodes",
                entry.ends.len()
            );
            return Err(self.rules.error(format!("link {}", index + 1), rule));
        };
        let name = format!("link {} ({upper} - {lower})", index + 1);
        let rules = self.rules;
        let mut ends = [NodeId(0); 2];
        for (end, text) in ends.iter_mut().zip([upper, lower]) {
            let found = self.topology.find(text);
            *end = found.map_err(|error| rules.error(&name, error.to_string()))?;
        }
        if ends[0] == ends[1] {
            return Err(rules.error(name, "joins a node to itself"));
        }
        let kind = match entry.kind.as_ref().or(defaults.kind.as_ref()) {
            Some(word) => word.parse().map_err(|rule| rules.error(&name, rule))?,
            None => LinkKind::default(),
        };
        let value =
            |own: Option<u32>, common: Option<u32>, otherwise| own.or(common).unwrap_or(otherwise);
        let generation = value(entry.generation, defaults.generation, 3);
        let width = value(entry.width, defaults.width, 16);
        let mps = value(entry.mps, defaults.mps, 256);
        let mrrs = value(entry.mrrs, defaults.mrrs, 512);
        rules.count(&name, "generation", generation, 1, 7)?;
        if !matches!(width, 1 | 2 | 4 | 8 | 12 | 16 | 32) {
            let rule = format!("width = {width}; a PCIe link has 1, 2, 4, 8, 12, 16 or 32 lanes");
            return Err(rules.error(name, rule));
        }
        for (key, size) in [("mps", mps), ("mrrs", mrrs)] {
            if !(size.is_power_of_two() && (128..=4096).contains(&size)) {
                let rule = format!("{key} = {size}; it is a power of two from 128 to 4096");
                return Err(rules.error(name, rule));
            }
        }
        let latency_ns = entry.latency_ns.or(defaults.latency_ns).unwrap_or(5.0);
        let update = entry
            .credit_update_ns
            .or(defaults.credit_update_ns)
            .unwrap_or(20.0);
        rules.number(&name, "latency_ns", latency_ns)?;
        rules.number(&name, "credit_update_ns", update)?;
        let given_credits = entry.credits.or(defaults.credits);
        let credits = given_credits.unwrap_or_default();
        check_credits(&rules, &name, &credits, mps)?;
        let given = [
            ("down_gib_s", entry.down_gib_s.or(defaults.down_gib_s)),
            ("up_gib_s", entry.up_gib_s.or(defaults.up_gib_s)),
        ];
        for (key, value) in given {
            if let Some(value) = value {
                self.positive(&name, key, value)?;
            }
        }
        let derived = LinkRate::of(generation, width, mps).payload_gib_s(mps);
        let link = Link {
            ends,
            kind,
            generation,
            width,
            mps,
            mrrs,
            latency_ns,
            credits,
            credits_given: given_credits.is_some(),
            credit_update_ns: update,
            unread: entry.unread.clone(),
        };
        let capacity =
            given.map(|(_, value)| value.map_or((derived, false), |given| (given, true)));
        self.join(link, capacity);
        Ok(())
    }

    pub(super) fn socket_link(&mut self, ends: [NodeId; 2], timing: &HostParameters) {
        let infinite = Credits {
            posted_headers: 0,
            posted_data: 0,
            non_posted_headers: 0,
            non_posted_data: 0,
            completion_headers: 0,
            completion_data: 0,
        };
        let link = Link {
            ends,
            kind: LinkKind::Socket,
            generation: 0,
            width: 0,
            mps: 4096,
            mrrs: 4096,
            latency_ns: timing.socket_hop_ns,
            credits: infinite,
            credits_given: true,
            credit_update_ns: 0.0,
            unread: Vec::new(),
        };
        // 0: as of servers of this generation, see `derived`.
        self.join(link, [(timing.socket_gib_s, timing.socket_gib_s > 0.0); 2]);
    }

    /// Adds a link and its two edges.
    fn join(&mut self, link: Link, capacity: [(f64, bool); 2]) {
        let topology = &mut self.topology;
        let id = LinkId(topology.links.len() as u32);
        let first = topology.edges.len() as u32;
        let [upper, lower] = link.ends;
        for (index, (from, to)) in [(upper, lower), (lower, upper)].into_iter().enumerate() {
            let edge = EdgeId(first + index as u32);
            let (capacity_gib_s, capacity_given) = capacity[index];
            topology.edges.push(Edge {
                name: format!("{}>{}", topology.node(from).name, topology.node(to).name),
                from,
                to,
                link: id,
                ingress_port: topology.node(to).inputs.len() as u32,
                egress_port: topology.node(from).outputs.len() as u32,
                capacity_gib_s,
                capacity_given,
                reverse: EdgeId(first + 1 - index as u32),
            });
            topology.nodes[from.0 as usize].outputs.push(edge);
            topology.nodes[to.0 as usize].inputs.push(edge);
        }
        topology.links.push(link);
    }

    /// Endpoints have one link; the simulator's ports fit into a word.
    pub(super) fn degrees(&self) -> Result<(), PcieError> {
        for node in &self.topology.nodes {
            let entry = format!("{} `{}`", node.kind.word(), node.name);
            let links = node.inputs.len();
            if matches!(node.kind, NodeKind::Endpoint { .. }) && links != 1 {
                return Err(self
                    .rules
                    .error(entry, format!("has {links} links; an endpoint has one")));
            }
            if links > 63 {
                return Err(self
                    .rules
                    .error(entry, format!("has {links} links; the limit is 63")));
            }
        }
        Ok(())
    }
}

/// Minimum initial advertisements of the base specification: one header, one MPS of data.
fn check_credits(
    rules: &Rules<'_>,
    entry: &str,
    credits: &Credits,
    mps: u32,
) -> Result<(), PcieError> {
    for (key, value, min) in [
        ("posted_headers", credits.posted_headers, 1),
        ("posted_data", credits.posted_data, mps / 16),
        ("non_posted_headers", credits.non_posted_headers, 1),
        ("non_posted_data", credits.non_posted_data, 1),
        ("completion_headers", credits.completion_headers, 1),
        ("completion_data", credits.completion_data, mps / 16),
    ] {
        if value != 0 && !(min..=1 << 20).contains(&value) {
            let rule = format!(
                "credits.{key} = {value} is not 0 (infinite) or from {min} to {}",
                1 << 20
            );
            return Err(rules.error(entry, rule));
        }
    }
    Ok(())
}
