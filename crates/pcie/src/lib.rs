//! PCIe fabrics: topology files, a simulator of TLPs and credits, the benchmark and its checks.
//!
//! Three crates make it up: `dray-topology` reads and routes, `dray-pcie-sim` simulates, and this one has the
//! [benchmark](mod@bench), and both others under the names that users know.

pub mod bench;

pub use dray_pcie_sim as sim;
pub use dray_topology::{
    Arbiter, COMPLETION_HEADER, Credits, Edge, EdgeId, EndpointParameters, EngineParameters,
    HostParameters, Imported, Link, LinkId, LinkKind, LinkRate, Node, NodeId, NodeKind, PcieError,
    QueueOrganisation, Size, Switching, Topology, WRITE_HEADER, built_in, built_in_names, import,
    import_text, read_text,
};
