//! The load of one descriptor on ports, memory and links, and how long its last line takes.

use dray_clock::Duration;

use super::spread::Spread;
use super::transfer::{Stream, Transfer};
use crate::{Cache, Demand, Distance, LINE_BYTES, MemoryLocation, Parameters, Resource, Topology};

/// Resources of one device: read port, write port, read buffers.
const DEVICE_RESOURCES: u16 = 3;

/// What requests a service, and the conditions that its cost depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requester {
    /// Device of the engine.
    pub device: u16,
    /// Read buffers that the engine's group may hold.
    pub buffers: u64,
    /// Whether all pages are in the engine's translation cache.
    pub translated: bool,
    /// Whether no other device of the machine is in use: then memory that is faster than the
    /// ports can be left out, since it never decides.
    pub alone: bool,
}

/// What one descriptor costs, apart from what others at the ports make it wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// Use of the shared resources per line.
    pub demand: Demand,
    /// Time that the read port delivers data to the device.
    pub inbound: Duration,
    /// Lines of the longer direction, at least one.
    pub lines: u64,
    /// From the last line's turn to the acknowledged write of the slowest line.
    pub(super) latency: Duration,
    /// How much later than a lone line the slowest read arrives; part of `latency`.
    pub(super) late: Duration,
    /// Hold-up of the read stream by the first partial write.
    pub(super) stall: Duration,
    /// The whole payload at the rate of buffered data.
    pub(super) body: Duration,
    /// Hold-up of the write stream by the first and by the last line.
    pub(super) edges: [Duration; 2],
    /// The part of the first that its own whole lines wait for.
    pub(super) held: Duration,
    /// Time that the engine computes before it starts another descriptor.
    pub(super) transform: Duration,
    /// Time to read the destination back, in which the engine starts nothing else.
    pub(super) readback: Duration,
    /// What it keeps at the read port.
    pub outstanding: Outstanding,
}

/// Reads that a descriptor has outstanding while its lines have their turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Lines for which it holds read buffers; 0 where memory or a link limits it, and lines wait there.
    lines: u64,
    /// Lines for which its group may hold them.
    allowed: u64,
    /// Lines for which the device has read buffers; 0 if it reads nothing.
    most: u64,
    /// Time from a request to the port, femtoseconds.
    travel_fs: u64,
    /// Time of a line at the port, femtoseconds.
    line_fs: u64,
}

impl Outstanding {
    /// How long a line of this descriptor waits at the read port for those that `others` on the same device have
    /// requested already; each comes with its group, those of a group one after the other.
    ///
    /// Each of them has as many lines outstanding as it holds buffers for, those of a group together as many as that may
    /// hold. The memory needs `travel` for a line; those
    /// that the port has no turn for in that time queue at it (Little's law).
    pub fn wait(&self, others: impl Iterator<Item = (u16, Outstanding)>) -> Duration {
        let (mut lines, mut travel_fs) = (0, 0);
        let mut of_group = (None, 0);
        for (group, other) in others.filter(|(_, other)| other.lines > 0) {
            if of_group.0 != Some(group) {
                of_group = (Some(group), 0);
            }
            let more = other.lines.min(other.allowed - of_group.1);
            of_group.1 += more;
            lines += more;
            travel_fs = travel_fs.max(other.travel_fs);
        }
        let turns_fs = lines.min(self.most) * self.line_fs;
        Duration(turns_fs.saturating_sub(travel_fs) / 1000)
    }
}

/// Parameters with what follows from them, ready for use per descriptor.
#[derive(Debug, Clone)]
pub(crate) struct EngineTiming {
    read_dram: Spread,
    read_llc: Spread,
    write: Spread,
}

impl EngineTiming {
    pub(crate) fn new(p: &Parameters) -> EngineTiming {
        EngineTiming {
            read_dram: Spread::new(p.read_spread, p.port_read),
            read_llc: Spread::new(p.read_spread_llc, p.port_read),
            write: Spread::new(p.write_spread, p.port_write),
        }
    }

    /// With other parameters; what does not follow from those that changed is kept.
    pub(crate) fn with(&self, p: &Parameters) -> EngineTiming {
        EngineTiming {
            read_dram: self.read_dram.or_new(p.read_spread, p.port_read),
            read_llc: self.read_llc.or_new(p.read_spread_llc, p.port_read),
            write: self.write.or_new(p.write_spread, p.port_write),
        }
    }

    /// Cost of `transfer` for `requester`.
    pub(crate) fn service(
        &self,
        p: &Parameters,
        topology: &Topology,
        requester: Requester,
        transfer: &Transfer,
    ) -> Service {
        let Requester {
            device,
            buffers,
            translated,
            alone,
        } = requester;
        let buffers = buffers.min(p.read_buffers);
        let socket = topology.socket_of_device(device);
        let sum = |streams: &[Option<Stream>; 2]| -> u64 {
            streams.iter().flatten().map(Stream::lines).sum()
        };
        let (read_lines, write_lines) = (sum(&transfer.reads), sum(&transfer.writes));
        let lines = read_lines.max(write_lines).max(1);
        let per_line = |fs: u64| fs / lines;

        let turnaround = p.port_turnaround.0 * 1000 * read_lines.min(write_lines);
        // The descriptor itself comes through the read port, the record leaves by the write port.
        let read_port = per_line((read_lines + 1) * p.port_read + turnaround);
        let write_port =
            per_line(write_lines * p.port_write + p.port_completion.0 * 1000 + turnaround);
        let mut demand = Demand::default();
        demand.add(Resource(DEVICE_RESOURCES * device), read_port);
        demand.add(Resource(DEVICE_RESOURCES * device + 1), write_port);
        let port = read_port.max(write_port);
        let mut shared = |resource: Resource, fs: u64| {
            if !alone || fs > port {
                demand.add(resource, fs);
            }
        };

        let window = |buffers: u64| (buffers * p.read_buffer_bytes / LINE_BYTES).max(1);
        let mut read_latency = Duration::ZERO;
        let mut late = Duration::ZERO;
        let mut travel = Duration::ZERO;
        let mut occupancy_fs = 0;
        for stream in transfer.reads.iter().flatten() {
            let place = stream.place;
            let one = p.read_latency(topology.distance(socket, place.node), place.cache);
            let spread = match place.cache {
                Cache::Memory => &self.read_dram,
                Cache::Llc => &self.read_llc,
            };
            late = late.max(spread.slowest_of(read_lines));
            read_latency = read_latency.max(one + spread.slowest_of(read_lines));
            travel = travel.max(one);
            occupancy_fs += one.0 * 1000 * stream.lines();
            // What is in the last-level cache is not read from memory.
            if place.cache == Cache::Memory {
                let fs = p.node_read(topology, place) * stream.lines();
                shared(node_resource(topology, place, 0), per_line(fs));
            }
            if topology.distance(socket, place.node) == Distance::Remote {
                let link = link_resource(topology, place.node.0, socket);
                shared(link, per_line(p.socket_link * stream.lines()));
            }
        }
        let mut write_latency = Duration::ZERO;
        for stream in transfer.writes.iter().flatten() {
            let place = stream.place;
            let distance = topology.distance(socket, place.node);
            let one = p.write_ack + p.distance_extra(distance);
            write_latency = write_latency.max(one + self.write.slowest_of(write_lines));
            let fs = p.node_write(topology, place) * stream.lines();
            shared(node_resource(topology, place, 1), per_line(fs));
            if distance == Distance::Remote {
                let link = link_resource(topology, socket, place.node.0);
                shared(link, per_line(p.socket_link * stream.lines()));
            }
        }
        // Its own read buffers may limit it, and those of several together still fill the port.
        let at_ports = demand.alone_fs() <= port;
        // Little's law: a line holds its part of the read buffers for as long as its read takes.
        let buffers_fs = per_line(occupancy_fs / window(p.read_buffers));
        if !alone || buffers_fs > port {
            demand.add(Resource(DEVICE_RESOURCES * device + 2), buffers_fs);
        }
        demand.limit(per_line(occupancy_fs / window(buffers)));
        let outstanding = match read_lines {
            0 => Outstanding::default(),
            _ => Outstanding {
                lines: if at_ports {
                    window(buffers).min(read_lines)
                } else {
                    0
                },
                allowed: window(buffers),
                most: window(p.read_buffers),
                travel_fs: travel.0 * 1000,
                line_fs: p.port_read,
            },
        };

        let edges = match transfer.cache_control {
            true => [Duration::ZERO; 2],
            false => transfer.writes[0].map_or([Duration::ZERO; 2], |s| {
                p.edges(&s, topology.distance(socket, s.place.node))
            }),
        };
        // Half a line is merged while the lines behind it pass; less than half is read first.
        let halved = transfer.writes[0].is_some_and(|s| s.address % LINE_BYTES == LINE_BYTES / 2);
        let held = match halved {
            true => Duration::ZERO,
            false => edges[0],
        };
        // While a partial first line holds the writes up, reads go on until their buffers are full.
        let buffered = Duration(window(buffers) * p.port_read / 1000);
        let stall = match held > Duration::ZERO && read_lines > window(buffers) {
            true => held + read_latency_of_one(p, topology, socket, transfer) - buffered,
            false => Duration::ZERO,
        };
        // The read back follows the last write, and pushes it out (spec 3.10): the next descriptor of
        // the engine waits for it.
        let readback = match (transfer.readback, transfer.writes[0]) {
            (true, Some(s)) => {
                p.read_latency(topology.distance(socket, s.place.node), s.place.cache)
            }
            _ => Duration::ZERO,
        };
        let transform = match transfer.transforms {
            true => p.engine_transform,
            false => Duration::ZERO,
        };
        let miss = match translated {
            true => Duration::ZERO,
            false => p.translation_miss,
        };
        Service {
            demand,
            inbound: Duration(read_lines * p.port_read / 1000),
            lines,
            latency: read_latency + write_latency + miss + transform + readback,
            late,
            stall,
            body: Duration(write_lines * p.write_burst / 1000),
            edges,
            held,
            transform,
            readback,
            outstanding,
        }
    }
}

/// Latency of a single line of the first source.
fn read_latency_of_one(
    p: &Parameters,
    topology: &Topology,
    socket: u16,
    transfer: &Transfer,
) -> Duration {
    transfer.reads[0].map_or(Duration::ZERO, |s| {
        p.read_latency(topology.distance(socket, s.place.node), s.place.cache)
    })
}

/// Resources that a machine of this topology has.
pub(crate) fn resource_count(topology: &Topology) -> usize {
    let sockets = usize::from(topology.sockets);
    usize::from(DEVICE_RESOURCES * topology.devices())
        + 2 * usize::from(topology.nodes())
        + sockets * sockets
}

fn node_resource(topology: &Topology, place: MemoryLocation, direction: u16) -> Resource {
    Resource(DEVICE_RESOURCES * topology.devices() + 2 * place.node.0 + direction)
}

fn link_resource(topology: &Topology, from: u16, to: u16) -> Resource {
    let links = DEVICE_RESOURCES * topology.devices() + 2 * topology.nodes();
    Resource(links + from * topology.sockets + to)
}

impl Parameters {
    fn distance_extra(&self, distance: Distance) -> Duration {
        match distance {
            Distance::Local => Duration::ZERO,
            Distance::Remote => self.remote_extra,
            Distance::Cxl => self.cxl_extra,
        }
    }

    /// Mean latency of one line read by an engine.
    pub fn read_latency(&self, distance: Distance, cache: Cache) -> Duration {
        let here = match cache {
            Cache::Memory => self.read_dram,
            Cache::Llc => self.read_llc,
        };
        here + self.distance_extra(distance)
    }

    fn node_read(&self, topology: &Topology, place: MemoryLocation) -> u64 {
        match place.node.0 >= topology.sockets {
            true => self.cxl_read,
            false => self.node_read,
        }
    }

    fn node_write(&self, topology: &Topology, place: MemoryLocation) -> u64 {
        match place.node.0 >= topology.sockets {
            true => self.cxl_write,
            false => self.node_write,
        }
    }

    /// Hold-ups by the first and the last line of a destination: a part of a line is read, changed and
    /// written where the line is.
    fn edges(&self, stream: &Stream, distance: Distance) -> [Duration; 2] {
        let changed = match stream.place.cache {
            Cache::Memory => self.partial_sector + self.distance_extra(distance),
            Cache::Llc => self.read_latency(distance, Cache::Llc) + self.write_ack,
        };
        let cost = |boundary: u64| match boundary % LINE_BYTES {
            0 => Duration::ZERO,
            32 => self.partial_line,
            _ => changed,
        };
        let (start, end) = (stream.address, stream.address + stream.bytes);
        match start / LINE_BYTES == (end - 1) / LINE_BYTES {
            // One line, written once: the worse of its two ends decides.
            true => [Duration::ZERO, cost(start).max(cost(end))],
            false => [cost(start), cost(end)],
        }
    }
}
