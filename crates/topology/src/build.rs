//! From a file to a topology: every rule is checked here, and each error names its entry.

use std::collections::HashMap;

use super::file::{DeviceEntry, ForwarderEntry, TopologyFile};
use super::route::Routing;
use super::rules::Rules;
use super::{
    Arbiter, EndpointParameters, HostParameters, Node, NodeId, NodeKind, QueueOrganisation,
    Switching, Topology, derived, fat_tree,
};
use crate::PcieError;

/// Nodes that a file may have.
/// Links of other kinds that a file may say it does not have.
const LEFT_OUT: [&str; 3] = ["nvlink", "xgmi", "c2c"];
const MAX_NODES: usize = 100_000;

pub(super) fn build(mut file: TopologyFile, file_name: &str) -> Result<Topology, PcieError> {
    let rules = Rules { file: file_name };
    rules.word("name", &file.name)?;
    for kind in &file.left_out {
        if !LEFT_OUT.contains(&kind.as_str()) {
            let kind = kind.escape_debug();
            let rule = format!("left_out: `{kind}` is none of {}", LEFT_OUT.join(", "));
            return Err(rules.error("file", rule));
        }
    }
    if let Some(tree) = file.fat_tree.take() {
        fat_tree::expand(&tree, &mut file, &rules)?;
    }
    let mut builder = Builder {
        rules,
        topology: Topology {
            name: file.name.clone(),
            title: file.title.clone(),
            source: file.source.clone(),
            left_out: file.left_out.clone(),
            nodes: Vec::new(),
            links: Vec::new(),
            edges: Vec::new(),
            names: HashMap::new(),
            routing: Routing::default(),
        },
        arbiter: file.arbiter.unwrap_or_default(),
        levels: Vec::new(),
    };
    builder.hosts(&file)?;
    for (list, kind, what) in [
        (&file.host_adapters, NodeKind::HostAdapter, "host_adapter"),
        (&file.switches, NodeKind::Switch, "switch"),
        (
            &file.endpoint_adapters,
            NodeKind::EndpointAdapter,
            "endpoint_adapter",
        ),
    ] {
        for entry in list {
            builder.forwarder(entry, &kind, what)?;
        }
    }
    builder.endpoints(&file)?;
    let defaults = file.link_defaults.clone().unwrap_or_default();
    if !defaults.ends.is_empty() {
        return Err(rules.error(
            "link_defaults",
            "has `ends`; only a [[link]] joins two nodes",
        ));
    }
    for (index, entry) in file.links.iter().enumerate() {
        builder.link(index, entry, &defaults)?;
    }
    builder.degrees()?;
    let Builder {
        mut topology,
        levels,
        ..
    } = builder;
    derived::complete(&mut topology);
    topology.routing = Routing::new(&topology, &levels, &file.routes, &rules)?;
    Ok(topology)
}

/// A topology as far as its file has been read.
pub(super) struct Builder<'a> {
    pub(super) rules: Rules<'a>,
    pub(super) topology: Topology,
    /// Of nodes that do not say.
    arbiter: Arbiter,
    /// Level of each node, where given.
    levels: Vec<Option<u32>>,
}

impl Builder<'_> {
    fn node(&mut self, entry: &str, node: Node, level: Option<u32>) -> Result<(), PcieError> {
        self.rules.word(entry, &node.name)?;
        if self.topology.nodes.len() == MAX_NODES {
            return Err(self
                .rules
                .error(entry, format!("more than {MAX_NODES} nodes")));
        }
        let id = NodeId(self.topology.nodes.len() as u32);
        if self.topology.names.insert(node.name.clone(), id).is_some() {
            let rule = format!(
                "the name `{}` is taken; each node has a name of its own",
                node.name
            );
            return Err(self.rules.error(entry, rule));
        }
        self.topology.nodes.push(node);
        self.levels.push(level);
        Ok(())
    }

    fn hosts(&mut self, file: &TopologyFile) -> Result<(), PcieError> {
        for host in &file.hosts {
            let entry = format!("host `{}`", host.name);
            self.rules.count(&entry, "sockets", host.sockets, 1, 64)?;
            self.check_host(&entry, &host.timing)?;
            let first = self.topology.nodes.len() as u32;
            for index in 0..host.sockets {
                let node = Node {
                    name: format!("{}.{index}", host.name),
                    kind: NodeKind::Socket {
                        host: host.name.clone(),
                        index,
                        parameters: host.timing.clone(),
                    },
                    forward_ns: 0.0,
                    switching: Switching::CutThrough,
                    queues: QueueOrganisation::PerOutput,
                    arbiter: self.arbiter,
                    inputs: Vec::new(),
                    outputs: Vec::new(),
                };
                self.node(&entry, node, None)?;
                if index > 0 {
                    let ends = [NodeId(first + index - 1), NodeId(first + index)];
                    self.socket_link(ends, &host.timing);
                }
            }
        }
        Ok(())
    }

    fn check_host(&self, entry: &str, timing: &HostParameters) -> Result<(), PcieError> {
        for (key, value) in [
            ("root_ns", timing.root_ns),
            ("socket_hop_ns", timing.socket_hop_ns),
            ("submit_ns", timing.submit_ns),
            ("poll_ns", timing.poll_ns),
            ("peer_write_gib_s", timing.peer_write_gib_s),
            ("peer_read_ns", timing.peer_read_ns),
        ] {
            self.rules.number(entry, key, value)?;
        }
        self.rules
            .number(entry, "socket_gib_s", timing.socket_gib_s)?;
        self.rules
            .count(entry, "socket_links", timing.socket_links, 0, 64)?;
        self.payload(entry, "peer_write_bytes", timing.peer_write_bytes)?;
        self.payload(entry, "completion_bytes", timing.completion_bytes)
    }

    fn payload(&self, entry: &str, key: &str, bytes: u32) -> Result<(), PcieError> {
        if bytes == 0 || bytes.is_power_of_two() && (64..=4096).contains(&bytes) {
            return Ok(());
        }
        let rule = format!("{key} = {bytes} is neither 0 nor a power of two from 64 to 4096");
        Err(self.rules.error(entry, rule))
    }

    pub(super) fn positive(&self, entry: &str, key: &str, value: f64) -> Result<(), PcieError> {
        if (1e-3..=1e6).contains(&value) {
            Ok(())
        } else {
            let rule = format!(
                "{key} = {value} is not a capacity; write GiB/s above 0, as in {key} = 11.55"
            );
            Err(self.rules.error(entry, rule))
        }
    }

    fn forwarder(
        &mut self,
        entry: &ForwarderEntry,
        kind: &NodeKind,
        what: &str,
    ) -> Result<(), PcieError> {
        let name = format!("{what} `{}`", entry.name);
        for (key, value) in [
            ("ntb_ns", entry.ntb_ns),
            ("forward_ns", entry.forward_ns),
            ("host_side_ns", entry.host_side_ns),
        ] {
            self.rules.number(&name, key, value)?;
        }
        let node = Node {
            name: entry.name.clone(),
            kind: kind.clone(),
            forward_ns: entry.ntb_ns + entry.forward_ns + entry.host_side_ns,
            switching: entry.switching,
            queues: entry.queues,
            arbiter: entry.arbiter.unwrap_or(self.arbiter),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        self.node(&name, node, entry.level)
    }

    fn endpoints(&mut self, file: &TopologyFile) -> Result<(), PcieError> {
        let mut devices: HashMap<&str, EndpointParameters> = HashMap::new();
        for device in &file.devices {
            let entry = format!("device `{}`", device.name);
            self.rules.word(&entry, &device.name)?;
            let parameters = self.device(&entry, device)?;
            if devices.insert(&device.name, parameters).is_some() {
                return Err(self
                    .rules
                    .error(entry, "the name is taken by another [[device]]"));
            }
        }
        for endpoint in &file.endpoints {
            let entry = format!("endpoint `{}`", endpoint.name);
            let parameters = match &endpoint.device {
                None => EndpointParameters::default(),
                Some(name) => match devices.get(name.as_str()) {
                    Some(parameters) => parameters.clone(),
                    None => {
                        let rule = format!(
                            "device = \"{name}\" names no [[device]] of this file; {}",
                            dray_suggest::suggest(
                                name,
                                file.devices.iter().map(|d| d.name.as_str())
                            )
                        );
                        return Err(self.rules.error(entry, rule));
                    }
                },
            };
            let word = match endpoint.kind.as_str() {
                "" => "device",
                word => word,
            };
            let node = Node {
                name: endpoint.name.clone(),
                kind: NodeKind::Endpoint {
                    word: word.to_owned(),
                    parameters: Box::new(parameters),
                },
                forward_ns: 0.0,
                switching: Switching::CutThrough,
                queues: QueueOrganisation::PerOutput,
                arbiter: self.arbiter,
                inputs: Vec::new(),
                outputs: Vec::new(),
            };
            self.node(&entry, node, None)?;
        }
        Ok(())
    }

    fn device(&self, entry: &str, device: &DeviceEntry) -> Result<EndpointParameters, PcieError> {
        let timing = &device.timing;
        for (key, value) in [
            ("port_ns", timing.port_ns),
            ("bus_ns", timing.bus_ns),
            ("on_chip_bus_ns", timing.on_chip_bus_ns),
            ("memory_read_ns", timing.memory_read_ns),
            ("inbound_write_gib_s", timing.inbound_write_gib_s),
            ("inbound_read_gib_s", timing.inbound_read_gib_s),
        ] {
            self.rules.number(entry, key, value)?;
        }
        self.payload(entry, "payload_bytes", timing.payload_bytes)?;
        if let Some(engine) = &device.engine {
            let rules = &self.rules;
            for (key, value, min, max) in [
                ("queues", engine.queues, 1, 4096),
                ("queue_depth", engine.queue_depth, 1, 1 << 16),
                ("datapath_bytes", engine.datapath_bytes, 1, 4096),
                ("write_issue_cycles", engine.write_issue_cycles, 0, 100_000),
                ("read_issue_cycles", engine.read_issue_cycles, 0, 100_000),
                (
                    "read_request_cycles",
                    engine.read_request_cycles,
                    0,
                    100_000,
                ),
                ("memory_hold_cycles", engine.memory_hold_cycles, 0, 100_000),
                ("tags", engine.tags, 1, 1 << 14),
                ("read_commands", engine.read_commands, 1, 1 << 14),
                ("data_fifo_bytes", engine.data_fifo_bytes, 4096, 1 << 30),
                ("write_split_bytes", engine.write_split_bytes, 64, 1 << 30),
                ("read_split_bytes", engine.read_split_bytes, 64, 1 << 30),
            ] {
                rules.count(entry, &format!("engine.{key}"), value, min, max)?;
            }
            rules.number(entry, "engine.overhead_ns", engine.overhead_ns)?;
            self.positive(entry, "engine.memory_gib_s", engine.memory_gib_s)?;
            if !(engine.clock_mhz.is_finite() && (1.0..=1e5).contains(&engine.clock_mhz)) {
                let rule = format!(
                    "engine.clock_mhz = {} is not between 1 and 1e5",
                    engine.clock_mhz
                );
                return Err(rules.error(entry, rule));
            }
        }
        Ok(EndpointParameters {
            engine: device.engine.clone(),
            ..timing.clone()
        })
    }
}
