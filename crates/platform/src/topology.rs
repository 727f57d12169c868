//! Which sockets, devices and memory nodes there are, and how far one is from another.

use serde::Deserialize;

/// A memory node: DRAM of a socket, or CXL memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

/// How far memory is from the core or device that accesses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// DRAM of the same socket.
    Local,
    /// DRAM of another socket.
    Remote,
    /// Memory behind a CXL link of the same socket.
    Cxl,
}

/// Sockets, devices and nodes. DRAM nodes come first, one a socket; CXL nodes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Processor sockets.
    pub sockets: u16,
    /// Data movers on each socket.
    pub devices_per_socket: u16,
    /// Cores on each socket.
    pub cores_per_socket: u16,
    /// CXL memory nodes, all on the first socket.
    pub cxl_nodes: u16,
}

impl Topology {
    /// Memory nodes.
    pub fn nodes(&self) -> u16 {
        self.sockets + self.cxl_nodes
    }

    /// Data movers of the whole machine.
    pub fn devices(&self) -> u16 {
        self.sockets * self.devices_per_socket
    }

    /// Socket of a device; devices are numbered socket by socket.
    pub fn socket_of_device(&self, device: u16) -> u16 {
        device / self.devices_per_socket.max(1)
    }

    /// First CXL node, if there is one.
    pub fn cxl_node(&self) -> Option<NodeId> {
        (self.cxl_nodes > 0).then_some(NodeId(self.sockets))
    }

    /// How far `node` is from `socket`. CXL memory of another socket counts as CXL: the link costs
    /// more than the way between the sockets, and no number for both is published.
    pub fn distance(&self, socket: u16, node: NodeId) -> Distance {
        if node.0 >= self.sockets {
            Distance::Cxl
        } else if node.0 == socket {
            Distance::Local
        } else {
            Distance::Remote
        }
    }
}
