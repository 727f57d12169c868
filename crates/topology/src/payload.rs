//! How large the TLPs are that nodes send: bytes of payload, and bytes that a read request asks for.
//!
//! MPS and MRRS are limits. What a device or a root complex makes of them follows from the lines in which its memory is kept,
//! and decides what headers cost. Each size has a usual value and a range of what has been seen; a value that the file gives
//! has no range.

use super::{EdgeId, NodeId, NodeKind, Topology};

/// A line of a core's cache.
const CORE_LINE: u32 = 64;
/// Two of them, and a line of the second-level cache of NVIDIA's GPUs. Copies of those up to Ada are measured at 12.9 to 13.1
/// (Gen3 x16) and 25.0 to 27.1 GB/s (Gen4 x16) to the host and to each other, and this size gives 13.2 and 26.3; since Hopper
/// they send more (55 to 57 GB/s on Gen5 x16).
///
/// A root complex puts two lines into a completion if both are there when it sends, and four since Gen5. That is taken to
/// come true for every other request: copies to GPUs are then at 12.7, 25.3 and 55.9 GB/s on x16 links of Gen3 to Gen5, of which
/// 12.0 to 13.1, 23.9 to 26.4 and 55.4 to 56.4 have been measured.
const TWO_LINES: u32 = 128;
const FOUR_LINES: u32 = 256;

/// A size in bytes, and from where to where it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// The smallest that has been seen.
    pub least: u32,
    /// The usual one.
    pub usual: u32,
    /// The largest that the path allows.
    pub most: u32,
    /// Whether the usual size is that of every other request, and the rest have half of it.
    pub is_halved: bool,
}

impl Size {
    fn given(bytes: u32) -> Self {
        Self {
            least: bytes,
            usual: bytes,
            most: bytes,
            is_halved: false,
        }
    }

    fn between(least: u32, usual: u32, most: u32) -> Self {
        Self {
            least: least.min(most),
            usual: usual.min(most),
            most,
            is_halved: false,
        }
    }

    /// Half of the usual size for every other request.
    fn halved(self) -> Self {
        Self {
            is_halved: true,
            ..self
        }
    }

    /// The smaller one of both, of each value.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            usual: self.usual.min(other.usual),
            most: self.most.min(other.most),
            is_halved: self.is_halved || other.is_halved,
        }
    }
}

impl Topology {
    /// Payload of the TLPs with data that `node`, an end of `path`, sends by itself: the writes of its engine, and completions
    /// of reads from it.
    pub fn payload(&self, node: NodeId, path: &[EdgeId]) -> Size {
        let mps = self.path_mps(path);
        let generation = self.generation_at(node, path);
        match &self.node(node).kind {
            NodeKind::Socket { parameters, .. } => match parameters.completion_bytes {
                0 if generation <= 4 => Size::between(CORE_LINE, TWO_LINES, mps).halved(),
                0 => Size::between(CORE_LINE, FOUR_LINES, mps).halved(),
                given => Size::given(given.min(mps)),
            },
            NodeKind::Endpoint { word, parameters } => match parameters.payload_bytes {
                0 if word == "gpu" && generation <= 4 => Size::between(TWO_LINES, TWO_LINES, mps),
                0 => Size::between(TWO_LINES, mps, mps),
                given => Size::given(given.min(mps)),
            },
            _ => Size::given(mps),
        }
    }

    /// Payload of the TLPs in which a root complex forwards what goes over `edge` and on to another device, if it cuts them.
    pub fn forwarded(&self, edge: EdgeId) -> Option<u32> {
        match &self.node(self.edge(edge).to).kind {
            NodeKind::Socket { parameters, .. } => {
                Some(parameters.peer_write_bytes).filter(|bytes| *bytes > 0)
            }
            _ => None,
        }
    }

    /// What a read request of `node`, the end of `path` that reads, asks for: the line of a GPU, and what the MRRS of its link
    /// allows of other devices.
    pub fn request(&self, node: NodeId, path: &[EdgeId]) -> Size {
        let mrrs = |edge: &EdgeId| self.link(self.edge(*edge).link).mrrs;
        let own = self.edge_at(node, path);
        let mrrs = own.as_ref().map_or(512, mrrs);
        match &self.node(node).kind {
            NodeKind::Endpoint { word, parameters } if word == "gpu" => {
                let payload = self.payload(node, path);
                match (parameters.payload_bytes, &parameters.engine) {
                    (0, None) => Size::between(payload.least, payload.usual, mrrs),
                    _ => Size::given(mrrs),
                }
            }
            _ => Size::given(mrrs),
        }
    }

    /// The edge of `path` at `node`.
    fn edge_at(&self, node: NodeId, path: &[EdgeId]) -> Option<EdgeId> {
        let ends = [path.first(), path.last()].into_iter().flatten();
        let mut at = ends.filter(|id| {
            let edge = self.edge(**id);
            edge.from == node || edge.to == node
        });
        at.next().copied()
    }

    /// Generation of the link of `path` that is nearest to `node`; of links between sockets none counts.
    fn generation_at(&self, node: NodeId, path: &[EdgeId]) -> u32 {
        let generations = path
            .iter()
            .map(|&id| self.link(self.edge(id).link).generation);
        let mut known = generations.filter(|generation| *generation > 0);
        let starts = path.first().is_some_and(|&id| self.edge(id).from == node);
        match starts {
            true => known.next(),
            false => known.next_back(),
        }
        .unwrap_or(0)
    }
}
