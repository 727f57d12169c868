//! Nodes and their parameters.

use serde::{Deserialize, Serialize};

use super::EdgeId;

/// A node of the fabric.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Name, each once; a socket is `host.0`.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Time from the first bytes of a TLP at an input to its being ready at an output, ns.
    pub forward_ns: f64,
    /// When a TLP is ready to leave.
    pub switching: Switching,
    /// How it queues TLPs.
    pub queues: QueueOrganisation,
    /// How its outputs choose.
    pub arbiter: Arbiter,
    /// Incoming edges; the index is the ingress port.
    pub inputs: Vec<EdgeId>,
    /// Outgoing edges; the index is the egress port.
    pub outputs: Vec<EdgeId>,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// A socket of a host: cores, memory and the root complex.
    Socket {
        /// Name of the host.
        host: String,
        /// Which socket.
        index: u32,
        /// Timing of the host.
        parameters: HostParameters,
    },
    /// A card in a host that leads to the fabric through a non-transparent bridge.
    HostAdapter,
    /// A switch.
    Switch,
    /// A chassis' card or board that leads from the fabric to endpoints.
    EndpointAdapter,
    /// A device.
    Endpoint {
        /// What it is, in a word: `fpga`, `gpu`, `nic` ...
        word: String,
        /// Its ports and memories.
        parameters: Box<EndpointParameters>,
    },
}

impl NodeKind {
    /// Whether it is a socket of a host.
    pub fn is_socket(&self) -> bool {
        matches!(self, NodeKind::Socket { .. })
    }

    /// One word for tables.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Socket { .. } => "socket",
            Self::HostAdapter => "host adapter",
            Self::Switch => "switch",
            Self::EndpointAdapter => "endpoint adapter",
            Self::Endpoint { .. } => "endpoint",
        }
    }

    /// Whether it is an endpoint of the kind `gpu`.
    pub fn is_gpu(&self) -> bool {
        matches!(self, Self::Endpoint { word, .. } if word == "gpu")
    }

    /// Whether TLPs pass through it on their way to another node.
    pub fn forwards(&self) -> bool {
        !matches!(self, Self::Endpoint { .. })
    }
}

/// How a node keeps TLPs that wait for an output. Each kind has queues of its own for posted,
/// non-posted and completion TLPs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueOrganisation {
    /// One FIFO per input: a TLP that cannot leave holds up all behind it.
    Fifo,
    /// One queue per input and output (virtual output queues), each with the credits of the link
    /// for itself, so that a TLP never waits for one that goes elsewhere.
    #[default]
    PerOutput,
    /// One queue per input and output, which share the credits of the link.
    SharedBuffer,
}

/// How an output chooses among the inputs that wait for it. TLPs are never cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arbiter {
    /// The input that has been given least, counted in 64 bytes; of equal ones the one served
    /// longest ago.
    #[default]
    LeastServed,
    /// One TLP from each input in turn, whatever its length.
    RoundRobin,
    /// The TLP that has waited longest, whatever its input.
    OldestFirst,
}

/// When a TLP that arrives may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switching {
    /// From its first bytes on, if the output is not faster than the input.
    #[default]
    CutThrough,
    /// When all of it is there.
    StoreAndForward,
}

/// Timing of a host.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostParameters {
    /// Core or memory to the root port, one way, ns.
    pub root_ns: f64,
    /// From a socket to the next, one way, ns.
    pub socket_hop_ns: f64,
    /// Payload between sockets per direction, GiB/s; 0 for that of servers of the generation of the links.
    pub socket_gib_s: f64,
    /// Links that these are divided into, each transfer over one of them; 0 or 1 for one.
    pub socket_links: u32,
    /// Software from the call to the doorbell's store, ns.
    pub submit_ns: f64,
    /// Software from the completion word in memory to the program's knowing it, ns.
    pub poll_ns: f64,
    /// Largest completion that the root complex makes of a read, bytes; 0 for the MPS in the simulator of engines, and for that
    /// of its generation in estimates, see [`Topology::payload`](crate::Topology::payload).
    pub completion_bytes: u32,
    /// Peer-to-peer writes that the root complex forwards, GiB/s; 0 for no limit.
    pub peer_write_gib_s: f64,
    /// Payload of the TLPs in which it forwards them, bytes; 0 for TLPs as they come.
    pub peer_write_bytes: u32,
    /// Time between peer-to-peer reads that the root complex forwards, ns.
    pub peer_read_ns: f64,
}

impl Default for HostParameters {
    fn default() -> Self {
        Self {
            root_ns: 149.0,
            socket_hop_ns: 33.5,
            socket_gib_s: 0.0,
            socket_links: 0,
            submit_ns: 75.0,
            poll_ns: 75.0,
            completion_bytes: 0,
            peer_write_gib_s: 0.0,
            peer_write_bytes: 0,
            peer_read_ns: 0.0,
        }
    }
}

/// Timing of an endpoint.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct EndpointParameters {
    /// The PCIe core, one way, ns.
    pub port_ns: f64,
    /// From the PCIe core to the DMA engine or the main memory, one way, ns.
    pub bus_ns: f64,
    /// From the PCIe core to the on-chip memory, one way, ns.
    pub on_chip_bus_ns: f64,
    /// Time to read either memory, ns.
    pub memory_read_ns: f64,
    /// Writes from outside into the memory, GiB/s; 0 for no limit.
    pub inbound_write_gib_s: f64,
    /// Reads of the memory from outside, GiB/s; 0 for no limit.
    pub inbound_read_gib_s: f64,
    /// Size of the memory, bytes.
    pub memory_bytes: u64,
    /// Largest payload of the TLPs with data that it sends, bytes; 0 for that of its kind, see [`Topology::payload`](crate::Topology::payload).
    pub payload_bytes: u32,
    /// The DMA engine; without it the endpoint starts no transfer. In a file it is the table
    /// `[device.engine]`.
    #[serde(skip)]
    pub engine: Option<EngineParameters>,
}

impl Default for EndpointParameters {
    fn default() -> Self {
        Self {
            port_ns: 100.0,
            bus_ns: 120.0,
            on_chip_bus_ns: 59.0,
            memory_read_ns: 12.0,
            inbound_write_gib_s: 0.0,
            inbound_read_gib_s: 0.0,
            memory_bytes: 16 << 30,
            payload_bytes: 0,
            engine: None,
        }
    }
}

/// A DMA engine: command queues, chunks, issue intervals and the read window. Defaults are those
/// of the FPGA design of rPCIeBench.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineParameters {
    /// Clock of the engine, MHz.
    pub clock_mhz: f64,
    /// Command queues per direction.
    pub queues: u32,
    /// Commands that each queue holds.
    pub queue_depth: u32,
    /// Latency from a command's arrival to its first TLP, apart from queueing, ns.
    pub overhead_ns: f64,
    /// Bytes that the data path carries per clock.
    pub datapath_bytes: u32,
    /// Cycles between two write commands.
    pub write_issue_cycles: u32,
    /// Cycles between two read commands, apart from their requests.
    pub read_issue_cycles: u32,
    /// Cycles for each read request of a command.
    pub read_request_cycles: u32,
    /// Cycles that the memory write of a read command holds the data path at its end.
    pub memory_hold_cycles: u32,
    /// Rate at which read data is written to the memory, GiB/s.
    pub memory_gib_s: f64,
    /// Reads that are in flight at most (tags).
    pub tags: u32,
    /// Read commands that are in flight at most.
    pub read_commands: u32,
    /// Buffer in front of the PCIe core per direction, bytes.
    pub data_fifo_bytes: u32,
    /// Longest write command, bytes.
    pub write_split_bytes: u32,
    /// Longest read command, bytes.
    pub read_split_bytes: u32,
}

impl Default for EngineParameters {
    fn default() -> Self {
        Self {
            clock_mhz: 300.0,
            queues: 16,
            queue_depth: 64,
            overhead_ns: 418.0,
            datapath_bytes: 64,
            write_issue_cycles: 14,
            read_issue_cycles: 27,
            read_request_cycles: 6,
            memory_hold_cycles: 14,
            memory_gib_s: 13.4,
            tags: 32,
            read_commands: 16,
            data_fifo_bytes: 32 << 10,
            write_split_bytes: 4 << 10,
            read_split_bytes: 32 << 10,
        }
    }
}
