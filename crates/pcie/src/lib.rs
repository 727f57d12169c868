//! PCIe fabrics: topology files, a simulator of TLPs and credits, the benchmark and its checks.
//!
//! A [`Topology`] is read from a TOML file: hosts with sockets, adapters, switches, endpoints and
//! the links between them. Each link is two directed [`Edge`]s. [`Topology::route`] gives the path
//! of a flow as a list of edges.
//!
//! ```
//! use dray_pcie::Topology;
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
//! # Ok::<(), dray_pcie::PcieError>(())
//! ```

pub mod bench;
mod error;
mod import;
pub mod sim;
mod topology;

pub use error::PcieError;
pub use import::{Imported, import, import_hwloc};
pub use topology::{
    Arbiter, Credits, Edge, EdgeId, EndpointParameters, EngineParameters, HostParameters, Link,
    LinkId, LinkRate, Node, NodeId, NodeKind, QueueOrganisation, Switching, Topology, built_in,
    built_in_names, read_text,
};
