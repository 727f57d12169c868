//! PCIe fabrics as directed graphs: topology files, routes, and topologies of machines.
//!
//! A [`Topology`] is read from a TOML file: hosts with sockets, adapters, switches, endpoints and
//! the links between them. Each link is two directed [`Edge`]s. [`Topology::route`] gives the path
//! of a flow as a list of edges.
//!
//! ```
//! use dray_topology::Topology;
//!
//! let topology = Topology::from_toml(
//!     r#"
//!     name = "desk"
//!     [[host]]
//!     name = "pc"
//!     [[endpoint]]
//!     name = "card"
//!     [[link]]
//!     ends = ["pc.0", "card"]
//!     generation = 3
//!     width = 16
//!     "#,
//!     "desk.toml",
//! )?;
//! let path = topology.route_by_name("card", "pc.0")?;
//! assert_eq!(path.len(), 1);
//! assert_eq!(topology.edge(path[0]).name, "card>pc.0");
//! # Ok::<(), dray_topology::PcieError>(())
//! ```

mod build;
mod catalog;
mod credit;
mod derived;
mod draw;
mod error;
mod fat_tree;
mod file;
mod import;
mod layout;
mod links;
mod node;
mod payload;
mod rate;
mod route;
mod rules;
mod text;

use std::collections::HashMap;
use std::str::FromStr;

pub use catalog::{built_in, built_in_names};
pub use dray_output::read_text;
pub use error::PcieError;
pub use import::{Imported, import, import_text};
pub use node::{
    Arbiter, EndpointParameters, EngineParameters, HostParameters, Node, NodeKind,
    QueueOrganisation, Switching,
};
pub use payload::Size;
pub use rate::{COMPLETION_HEADER, LinkRate, WRITE_HEADER};

pub(crate) use file::{EndpointEntry, ForwarderEntry, HostEntry, LinkEntry, TopologyFile};

/// Index of a node in [`Topology::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// Index of a link in [`Topology::links`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// Index of a directed edge in [`Topology::edges`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeId(pub u32);

/// One direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// Both nodes, as `H>S`.
    pub name: String,
    /// The node that sends.
    pub from: NodeId,
    /// The node that receives.
    pub to: NodeId,
    /// The link that it is a direction of.
    pub link: LinkId,
    /// Index of this edge among the incoming edges of `to`: the port at which `to` receives.
    pub ingress_port: u32,
    /// Index of this edge among the outgoing edges of `from`.
    pub egress_port: u32,
    /// Payload that it carries, GiB/s: as the file gives it, or of TLPs of the link's MPS.
    pub capacity_gib_s: f64,
    /// Whether the file gives the capacity.
    pub capacity_given: bool,
    /// The direction opposite to it.
    pub reverse: EdgeId,
}

/// What a link is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkKind {
    /// A slot of a board.
    #[default]
    Slot,
    /// A cable.
    Cable,
    /// What joins the sockets of a host.
    Socket,
}

impl LinkKind {
    /// Those that a file may name.
    const OF_FILES: [(&str, LinkKind); 2] = [("slot", LinkKind::Slot), ("cable", LinkKind::Cable)];
}

impl FromStr for LinkKind {
    type Err = String;

    fn from_str(text: &str) -> Result<LinkKind, String> {
        let known = LinkKind::OF_FILES;
        let found = known.into_iter().find(|(name, _)| *name == text);
        let names = known.map(|(name, _)| name);
        found
            .map(|(_, kind)| kind)
            .ok_or_else(|| format!("kind = \"{text}\"; {}", dray_suggest::suggest(text, names)))
    }
}

/// A link: what both directions have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// The nodes at its ends, the upper one first.
    pub ends: [NodeId; 2],
    /// What it is made of.
    pub kind: LinkKind,
    /// PCIe generation, 1 to 7; 0 for a link between sockets.
    pub generation: u32,
    /// Number of lanes; 0 for a link between sockets.
    pub width: u32,
    /// Maximum payload size, bytes.
    pub mps: u32,
    /// Maximum read request size of the device below, bytes.
    pub mrrs: u32,
    /// Time of flight, ns.
    pub latency_ns: f64,
    /// Credits that each end gives to the other.
    pub credits: Credits,
    /// Whether the file gives them. If not, they are such that they do not limit the link.
    pub credits_given: bool,
    /// Time from a buffer becoming free to the sender knowing it, apart from the flight, ns.
    pub credit_update_ns: f64,
    /// What an import could not read and set to its default.
    pub unread: Vec<String>,
}

/// Flow control credits of one receiver: headers in TLPs, data in units of 16 bytes, 0 for
/// infinite. A table that has some of them has the others from cocotbext-pcie's switch ports, with infinite completion
/// headers limited to the same number; without a table they follow from rate and latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Credits {
    /// Posted headers.
    pub posted_headers: u32,
    /// Posted data.
    pub posted_data: u32,
    /// Non-posted headers.
    pub non_posted_headers: u32,
    /// Non-posted data.
    pub non_posted_data: u32,
    /// Completion headers.
    pub completion_headers: u32,
    /// Completion data.
    pub completion_data: u32,
}

impl Default for Credits {
    fn default() -> Self {
        Self {
            posted_headers: 64,
            posted_data: 1024,
            non_posted_headers: 64,
            non_posted_data: 64,
            completion_headers: 64,
            completion_data: 1024,
        }
    }
}

/// A fabric: hosts, adapters, switches and endpoints, joined by links.
#[derive(Debug, Clone)]
pub struct Topology {
    /// Name, one word.
    pub name: String,
    /// What it is, in one line.
    pub title: String,
    /// Where its numbers come from.
    pub source: String,
    /// Links of other kinds between its devices that the file does not have: `nvlink` and `xgmi` between GPUs, `c2c` between a
    /// GPU and a socket.
    pub left_out: Vec<String>,
    nodes: Vec<Node>,
    links: Vec<Link>,
    edges: Vec<Edge>,
    names: HashMap<String, NodeId>,
    routing: route::Routing,
}

impl Topology {
    /// Reads a topology; `file` names it in errors.
    ///
    /// # Errors
    ///
    /// Text that is not TOML, unknown keys, and entries that break a rule: the error names the
    /// file, the entry and the rule.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, PcieError> {
        build::build(TopologyFile::parse(text, file)?, file)
    }

    /// Reads a file, or takes the built-in topology of that name.
    ///
    /// # Errors
    ///
    /// As [`Topology::from_toml`]; a file that cannot be read; a name of nothing.
    pub fn resolve(name: &str) -> Result<Self, PcieError> {
        let (text, file) = catalog::find(name)?;
        Self::from_toml(&text, &file)
    }

    /// All nodes; a [`NodeId`] is an index into them.
    #[inline]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All links; a [`LinkId`] is an index into them.
    #[inline]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// All directed edges; an [`EdgeId`] is an index into them.
    #[inline]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// One node.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// One link.
    #[inline]
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.0 as usize]
    }

    /// One directed edge.
    #[inline]
    pub fn edge(&self, id: EdgeId) -> &Edge {
        &self.edges[id.0 as usize]
    }

    /// The node of a name. The name of a host means its first socket.
    ///
    /// # Errors
    ///
    /// No node has the name; the error has the nearest name.
    pub fn find(&self, name: &str) -> Result<NodeId, PcieError> {
        let first_socket = || self.names.get(&format!("{name}.0"));
        match self.names.get(name).or_else(first_socket) {
            Some(id) => Ok(*id),
            None => Err(PcieError::NoNode {
                topology: self.name.clone(),
                name: name.to_owned(),
                hint: self.meant(name),
            }),
        }
    }

    /// What to write instead of an unknown name: the nearest name, or one that contains it, as a PCI address without its
    /// domain does.
    fn meant(&self, name: &str) -> String {
        let names = self.nodes.iter().map(|node| node.name.as_str());
        let whole = names.clone().find(|known| known.contains(name));
        match (dray_suggest::nearest(name, names.clone()), whole) {
            (None, Some(whole)) if !name.is_empty() => format!("did you mean `{whole}`?"),
            _ => dray_suggest::suggest(name, names),
        }
    }

    /// Maximum payload size on a path: the smallest of its links, as system software sets it.
    pub fn path_mps(&self, path: &[EdgeId]) -> u32 {
        let mps = path.iter().map(|edge| self.link(self.edge(*edge).link).mps);
        mps.min().unwrap_or(128)
    }

    /// The endpoints.
    pub fn endpoints(&self) -> impl Iterator<Item = NodeId> {
        self.of_kind(|kind| matches!(kind, NodeKind::Endpoint { .. }))
    }

    /// The sockets of all hosts.
    pub fn sockets(&self) -> impl Iterator<Item = NodeId> {
        self.of_kind(|kind| matches!(kind, NodeKind::Socket { .. }))
    }

    fn of_kind(&self, wanted: fn(&NodeKind) -> bool) -> impl Iterator<Item = NodeId> {
        self.nodes
            .iter()
            .enumerate()
            .filter(move |(_, node)| wanted(&node.kind))
            .map(|(index, _)| NodeId(index as u32))
    }
}
