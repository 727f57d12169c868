//! The network of a topology: ports, queues and edges as arrays.

use dray_clock::EventQueue;

use super::super::edge::{EdgeState, limit, ps};
use super::super::tlp::{NONE, TlpStore};
use super::routes::Routes;
use super::{Network, PeerStage, Port, PortQueue, SimulationOptions};
use dray_topology::{Edge, NodeId, NodeKind, QueueOrganisation, Topology};

impl Network {
    /// A network in which node `i` has `agents[i]` ports for agents.
    pub(crate) fn new(topology: &Topology, agents: &[u32], options: &SimulationOptions) -> Self {
        let queues_of = |node: NodeId| options.queues.unwrap_or(topology.node(node).queues);
        let edge_state = |edge: &Edge| EdgeState::new(topology, edge, queues_of(edge.to));
        let mut edges: Vec<EdgeState> = topology.edges().iter().map(edge_state).collect();
        let mut ports = Vec::new();
        let mut port_queues = Vec::new();
        let mut first_ports = Vec::new();
        let mut peers = Vec::new();
        let mut peer_of = vec![NONE; edges.len()];
        for (index, node) in topology.nodes().iter().enumerate() {
            let first = ports.len() as u32;
            first_ports.push(first);
            let queues = options.queues.unwrap_or(node.queues);
            let count = node.inputs.len() + agents[index] as usize;
            for port in 0..count {
                ports.push(Port {
                    fifo: queues == QueueOrganisation::Fifo && port < node.inputs.len(),
                    seq: 0,
                    staged: [(NONE, NONE); 3],
                    exposed: [NONE; 3],
                    bytes: 0,
                    watched: false,
                });
            }
            for (port, edge) in node.inputs.iter().enumerate() {
                edges[edge.0 as usize].port = first + port as u32;
            }
            for edge in &node.outputs {
                let edge = &mut edges[edge.0 as usize];
                edge.first_queue = port_queues.len() as u32;
                edge.first_port = first;
                let port_queue = PortQueue {
                    head: [NONE; 3],
                    tail: [NONE; 3],
                    served: 0,
                    last: 0,
                };
                port_queues.resize(port_queues.len() + count, port_queue);
            }
            let mut stage = PeerStage::default();
            if let NodeKind::Socket { parameters, .. } = &node.kind {
                stage.write_ps_per_byte = limit(parameters.peer_write_gib_s);
                stage.read_ps = ps(parameters.peer_read_ns);
                for edge in &node.inputs {
                    peer_of[edge.0 as usize] = index as u32;
                }
            }
            peers.push(stage);
        }
        let between_sockets = topology
            .edges()
            .iter()
            .map(|edge| topology.link(edge.link).generation == 0)
            .collect();
        let mut events = EventQueue::new();
        let arrivals = edges.iter().map(|_| events.stream()).collect();
        Self {
            now: 0,
            tlps: TlpStore::default(),
            edges,
            freed: Vec::new(),
            hops_done: 0,
            trace: options.trace.then(Vec::new),
            trace_limit: options.trace_limit,
            events,
            arrivals,
            egress: topology
                .edges()
                .iter()
                .map(|edge| edge.egress_port)
                .collect(),
            port_queues,
            ports,
            first_ports,
            inputs: topology
                .nodes()
                .iter()
                .map(|node| node.inputs.len() as u32)
                .collect(),
            peers,
            peer_of,
            between_sockets,
            routes: Routes::default(),
            arbiters: topology
                .edges()
                .iter()
                .map(|edge| options.arbiter.unwrap_or(topology.node(edge.from).arbiter))
                .collect(),
        }
    }
}
