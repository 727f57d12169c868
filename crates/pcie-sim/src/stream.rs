//! What is asked of the fabric: streams of transfers, and plain sources.

use super::scheduler::Scheduling;
use dray_topology::NodeId;

/// A communication primitive of the benchmark, named as in its API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Loads of a core from device memory, one line at a time.
    MmioRead,
    /// Stores of a core into device memory.
    MmioWrite,
    /// The device reads host memory.
    H2d,
    /// The device writes host memory.
    D2h,
    /// A device reads the memory of its peer.
    DeviceRead,
    /// A device writes the memory of its peer.
    DeviceWrite,
}

impl Operation {
    /// All of them, with their names.
    pub const ALL: [(Operation, &'static str); 6] = [
        (Operation::MmioRead, "mmio_rd"),
        (Operation::MmioWrite, "mmio_wr"),
        (Operation::H2d, "h2d"),
        (Operation::D2h, "d2h"),
        (Operation::DeviceRead, "dev2dev_rd"),
        (Operation::DeviceWrite, "dev2dev_wr"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(op, _)| *op == self)
            .map_or("", |(_, name)| name)
    }

    /// The operation of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(op, _)| *op)
    }

    /// Whether it needs a second device.
    pub fn has_peer(self) -> bool {
        matches!(self, Self::DeviceRead | Self::DeviceWrite)
    }

    /// Whether a core does it by itself.
    pub fn is_mmio(self) -> bool {
        matches!(self, Self::MmioRead | Self::MmioWrite)
    }
}

/// Which memory of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Memory {
    /// The large memory: HBM or DRAM.
    #[default]
    Main,
    /// Memory on the chip: BRAM.
    OnChip,
}

/// When transfers are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arrival {
    /// The next when there is room under the cap: a closed loop.
    #[default]
    Closed,
    /// When [`Simulation::ask`](super::Simulation::ask) is called.
    OnCall,
    /// One every so many ns.
    Every {
        /// Time between two, ns.
        gap_ns: u64,
    },
    /// With exponential gaps of this mean.
    Random {
        /// Mean time between two, ns.
        mean_gap_ns: u64,
    },
    /// So many at once, every so many ns.
    Burst {
        /// Transfers of a burst.
        count: u32,
        /// From burst to burst, ns.
        gap_ns: u64,
    },
}

/// A series of transfers of one kind, asked for by one thread of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// Name in results.
    pub name: String,
    /// The primitive.
    pub operation: Operation,
    /// The socket whose core asks and whose memory takes part.
    pub host: NodeId,
    /// The device; of two, the one whose engine works.
    pub device: NodeId,
    /// The other device, for transfers between devices.
    pub peer: Option<NodeId>,
    /// Bytes of one transfer, a multiple of 64 unless it is MMIO.
    pub bytes: u64,
    /// Bytes after which the engine goes on to another queue.
    pub chunk: u32,
    /// Transfers that one doorbell submits, as a scatter-gather list; complete when all are.
    pub batch: u32,
    /// Transfers in flight at most.
    pub outstanding: u32,
    /// How a queue is chosen.
    pub scheduling: Scheduling,
    /// When transfers are asked for.
    pub arrival: Arrival,
    /// Transfers in all; 0 for no end.
    pub count: u64,
    /// When the stream starts, ns.
    pub start_ns: u64,
    /// Which device memory an MMIO operation means.
    pub memory: Memory,
}

impl Stream {
    /// A closed loop of one transfer at a time on queue 0, without end.
    pub fn new(name: &str, operation: Operation, host: NodeId, device: NodeId, bytes: u64) -> Self {
        Self {
            name: name.to_owned(),
            operation,
            host,
            device,
            peer: None,
            bytes,
            chunk: match operation {
                Operation::H2d | Operation::DeviceRead => 32 << 10,
                _ => 4 << 10,
            },
            batch: 1,
            outstanding: 1,
            scheduling: Scheduling::Fixed(0),
            arrival: Arrival::Closed,
            count: 0,
            start_ns: 0,
            memory: Memory::Main,
        }
    }
}

/// Data from a node to another, without device engine or software: what estimators call a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Name in results.
    pub name: String,
    /// Where it starts.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Bytes sent at a time: written, or asked for.
    pub packet: u32,
    /// Payload of a TLP at most, bytes; 0 for the MPS of the way.
    pub payload: u32,
    /// What the receiver asks for with one request, bytes; 0: the sender writes unasked. Reads need a window.
    pub request: u32,
    /// Whether every other request is answered in TLPs of half the payload.
    pub is_halved: bool,
    /// What it would send alone, GiB/s; `None` for as much as the fabric takes.
    pub rate_gib_s: Option<f64>,
    /// Bytes sent and not yet delivered at most; `None` for no limit but credits.
    pub window_bytes: Option<u64>,
    /// Bytes in all; 0 for no end.
    pub total_bytes: u64,
    /// When it starts, ns.
    pub start_ns: u64,
}

impl Source {
    /// The node from which its first TLP comes: the reader of a read.
    pub(super) fn starts(&self) -> NodeId {
        match self.request {
            0 => self.from,
            _ => self.to,
        }
    }

    /// A source without limits, in packets of 256 bytes.
    pub fn new(name: &str, from: NodeId, to: NodeId) -> Self {
        Self {
            name: name.to_owned(),
            from,
            to,
            packet: 256,
            payload: 0,
            request: 0,
            is_halved: false,
            rate_gib_s: None,
            window_bytes: None,
            total_bytes: 0,
            start_ns: 0,
        }
    }
}
