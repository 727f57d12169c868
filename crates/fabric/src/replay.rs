//! Schedules and patterns in the simulator: what leaves when, and when it arrives.

use dray_flow::Packets;
use dray_pcie::sim::{Simulation, SimulationOptions, Source};
use dray_pcie::{NodeId, Topology};

use crate::{FabricError, PACKET};

/// Bytes that leave at a time, and how fast.
#[derive(Debug, Clone, PartialEq)]
pub struct Send {
    /// Which of the replay's ends it counts for.
    pub job: usize,
    /// The node where they start.
    pub from: NodeId,
    /// The node where they end.
    pub to: NodeId,
    /// How many.
    pub bytes: u64,
    /// When they may leave.
    pub start_ns: u64,
    /// What its sender keeps to, GiB/s.
    pub rate_gib_s: Option<f64>,
    /// Bytes in flight at most.
    pub window_bytes: u64,
    /// The TLPs that they are cut into.
    pub packets: Packets,
}

/// When each job has arrived, ns; `None` for a job without a send.
pub type Ends = Vec<Option<u64>>;

/// The simulator's clock counts ps in 64 bits; a replay of more virtual time is refused.
const LIMIT_NS: u64 = 10_000_000_000_000_000;
/// Replays of more packets, each counted on each edge of its way, need seconds.
const LARGE: u64 = 20_000_000;
/// Events between two words on how far a replay is.
const EVENTS: u32 = 1 << 16;

/// How many packets `sends` are, requests too, each counted on each edge of its way.
fn packet_hops(topology: &Topology, sends: &[Send]) -> Result<u64, FabricError> {
    let hops = sends.iter().map(|send| {
        let edges = topology.route(send.from, send.to)?.len() as u64;
        let Packets {
            payload,
            request,
            is_halved,
        } = send.packets;
        let payload = if payload == 0 { PACKET } else { payload };
        let mut packets = send.bytes.div_ceil(u64::from(payload));
        if is_halved {
            packets += packets / 2;
        }
        if request > 0 {
            packets += send.bytes.div_ceil(u64::from(request));
        }
        Ok(packets.saturating_mul(edges))
    });
    hops.sum()
}

/// Several replays of one topology. Those that send the same run once.
#[derive(Debug)]
pub struct Replays<'t> {
    topology: &'t Topology,
    /// Each with the packets on their edges; none sends what another does.
    distinct: Vec<(Vec<Send>, u64)>,
    /// By replay asked for: which of the distinct ones it is.
    which: Vec<usize>,
}

impl<'t> Replays<'t> {
    /// No replay yet.
    pub fn new(topology: &'t Topology) -> Self {
        Self {
            topology,
            distinct: Vec::new(),
            which: Vec::new(),
        }
    }

    /// Adds what one replay sends.
    ///
    /// # Errors
    /// Ends between which there is no way.
    pub fn push(&mut self, sends: Vec<Send>) -> Result<(), FabricError> {
        let known = self.distinct.iter().position(|(known, _)| *known == sends);
        let place = match known {
            Some(place) => place,
            None => {
                let hops = packet_hops(self.topology, &sends)?;
                self.distinct.push((sends, hops));
                self.distinct.len() - 1
            }
        };
        self.which.push(place);
        Ok(())
    }

    /// How many differ: that many simulations run.
    pub fn distinct(&self) -> usize {
        self.distinct.len()
    }

    /// Packets on all edges of all distinct replays.
    pub fn hops(&self) -> u64 {
        let each = self.distinct.iter().map(|(_, hops)| *hops);
        each.fold(0, u64::saturating_add)
    }

    /// Whether the simulator needs seconds.
    pub fn are_large(&self) -> bool {
        self.hops() > LARGE
    }

    /// Runs them: for each replay, in the order of [`Replays::push`], when each of `jobs` jobs has arrived. `progress` is
    /// told now and then how many of the [packets on edges](Replays::hops) are behind it.
    ///
    /// # Errors
    /// What the simulator refuses, and a send of which nothing arrives.
    pub fn run(
        &self,
        jobs: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Vec<Ends>, FabricError> {
        let mut before = 0;
        let each = self.distinct.iter().map(|(sends, hops)| {
            // A part of a packet counts as one, so that there may be some more.
            let mut within = |done: u64| progress(before + done.min(*hops));
            let ends = replay(self.topology, sends, jobs, &mut within)?;
            before += hops;
            Ok(ends)
        });
        let ends = each.collect::<Result<Vec<Ends>, FabricError>>()?;
        let of = |place: &usize| ends[*place].clone();
        Ok(self.which.iter().map(of).collect())
    }
}

fn replay(
    topology: &Topology,
    sends: &[Send],
    jobs: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Ends, FabricError> {
    let sources: Vec<Source> = sends
        .iter()
        .map(|send| Source {
            packet: PACKET,
            payload: send.packets.payload,
            request: send.packets.request,
            is_halved: send.packets.is_halved,
            rate_gib_s: send.rate_gib_s,
            window_bytes: Some(send.window_bytes),
            total_bytes: send.bytes,
            start_ns: send.start_ns,
            ..Source::new(&send.job.to_string(), send.from, send.to)
        })
        .collect();
    let mut simulation = Simulation::new(topology, &[], &sources, &SimulationOptions::default())?;
    while (0..EVENTS).all(|_| simulation.step(LIMIT_NS)) {
        progress(simulation.tlp_hops());
    }
    // Nothing is left to do; this checks that all has arrived.
    simulation.run_to_end(LIMIT_NS)?;
    let mut ends = vec![None; jobs];
    for (send, result) in sends.iter().zip(simulation.sources()) {
        let end = result.ended_ns.filter(|end| *end > send.start_ns);
        let end = end.ok_or(FabricError::NothingSent { job: send.job })?;
        ends[send.job] = ends[send.job].max(Some(end));
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replays_that_send_the_same_run_once_and_their_size_is_known() {
        let topology = Topology::resolve("gpu8").unwrap();
        let send = |bytes| {
            let find = |name| topology.find(name).unwrap();
            vec![Send {
                job: 0,
                from: find("gpu0"),
                to: find("gpu1"),
                bytes,
                start_ns: 0,
                rate_gib_s: None,
                window_bytes: 65536,
                packets: Packets::default(),
            }]
        };
        let mut replays = Replays::new(&topology);
        for bytes in [1 << 16, 1 << 17, 1 << 16] {
            replays.push(send(bytes)).unwrap();
        }
        assert_eq!(replays.distinct.len(), 2);
        // Two edges, by one switch.
        assert_eq!(replays.hops(), 2 * (256 + 512));
        assert!(!replays.are_large());
        let ends = replays.run(1, &mut |_| ()).unwrap();
        assert_eq!(ends[0], ends[2]);
        assert!(ends[0] < ends[1]);
        // Every other request is answered in halves of 128 bytes.
        let mut read = send(1 << 16);
        read[0].packets = Packets {
            payload: 128,
            request: 128,
            is_halved: true,
        };
        let mut reads = Replays::new(&topology);
        reads.push(read).unwrap();
        assert_eq!(reads.hops(), 2 * (512 + 256 + 512));
        assert!(reads.run(1, &mut |_| ()).unwrap()[0] > ends[0]);
        replays.push(send(1 << 40)).unwrap();
        assert!(replays.are_large());
    }
}
