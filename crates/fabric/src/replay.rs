//! Schedules and patterns in the simulator: what leaves when, and when it arrives.

use std::time::{Duration, Instant};

use anyhow::Context;
use dray_bench::Gauge;
use dray_fabric::PACKET;
use dray_flow::Packets;
use dray_pcie::sim::{Simulation, SimulationOptions, Source};
use dray_pcie::{NodeId, Topology};

use crate::progress;

/// Bytes that leave at a time, and how fast.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Send {
    /// Which of the replay's ends it counts for.
    pub(super) job: usize,
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) bytes: u64,
    pub(super) start_ns: u64,
    /// What its sender keeps to, GiB/s.
    pub(super) rate_gib_s: Option<f64>,
    pub(super) window_bytes: u64,
    pub(super) packets: Packets,
}

/// When each job has arrived, ns; `None` for a job without a send.
pub(super) type Ends = Vec<Option<u64>>;

/// The simulator's clock counts ps in 64 bits; a replay of more virtual time is refused.
const LIMIT_NS: u64 = 10_000_000_000_000_000;
/// A replay of more packets, each counted on each edge of its way, is announced: the simulator needs seconds for them.
const LARGE: u64 = 20_000_000;
/// Events between two looks at the clock.
const EVENTS: u32 = 1 << 16;
/// After so long it is said how long the rest takes, if that is long.
const SAID_AFTER: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(10);

/// How many packets `sends` are, requests too, each counted on each edge of its way.
fn packet_hops(topology: &Topology, sends: &[Send]) -> anyhow::Result<u64> {
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
pub(super) struct Replays<'t> {
    topology: &'t Topology,
    /// Each with the packets on their edges; none sends what another does.
    distinct: Vec<(Vec<Send>, u64)>,
    /// By replay asked for: which of the distinct ones it is.
    which: Vec<usize>,
}

impl<'t> Replays<'t> {
    /// No replay yet.
    pub(super) fn new(topology: &'t Topology) -> Self {
        Self {
            topology,
            distinct: Vec::new(),
            which: Vec::new(),
        }
    }

    /// Adds what one replay sends.
    pub(super) fn push(&mut self, sends: Vec<Send>) -> anyhow::Result<()> {
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

    /// Packets on all edges of all distinct replays.
    fn hops(&self) -> u64 {
        let each = self.distinct.iter().map(|(_, hops)| *hops);
        each.fold(0, u64::saturating_add)
    }

    /// Whether the simulator needs seconds.
    pub(super) fn are_large(&self) -> bool {
        self.hops() > LARGE
    }

    /// Runs them: for each replay, in the order of [`Replays::push`], when each of `jobs` jobs has arrived. Large ones are
    /// announced on stderr, with a bar from the third second on.
    pub(super) fn run(&self, jobs: usize) -> anyhow::Result<Vec<Ends>> {
        let all = self.hops();
        if self.are_large() {
            let count = dray_output::counted(self.distinct.len(), "simulation");
            eprintln!(
                "note: {count} to run, of {:.0} million packets over an edge in all",
                all as f64 * 1e-6
            );
        }
        let gauge = Gauge::default();
        gauge.start(all);
        let mut watch = Watch {
            gauge: &gauge,
            shown: 0,
            begun: Instant::now(),
            done: 0,
            this: 0,
            all,
            said: false,
        };
        let ends = progress::watch(&gauge, "simulating", || {
            let each = self.distinct.iter().map(|(sends, hops)| {
                watch.this = *hops;
                let ends = replay(self.topology, sends, jobs, &mut watch)?;
                watch.done += hops;
                Ok(ends)
            });
            each.collect::<anyhow::Result<Vec<Ends>>>()
        })?;
        Ok(self
            .which
            .iter()
            .map(|&place| ends[place].clone())
            .collect())
    }
}

/// How far the replays are.
struct Watch<'g> {
    gauge: &'g Gauge,
    shown: u64,
    begun: Instant,
    /// Of the replays before.
    done: u64,
    /// Of this one.
    this: u64,
    all: u64,
    said: bool,
}

impl Watch<'_> {
    fn look(&mut self, hops: u64) {
        // A part of a packet counts as one, so that there may be some more.
        let done = self.done + hops.min(self.this);
        self.gauge.add(done - self.shown);
        self.shown = done;
        let time = self.begun.elapsed();
        if self.said || time < SAID_AFTER || done == 0 {
            return;
        }
        self.said = true;
        let left = time.as_secs_f64() * (self.all - done) as f64 / done as f64;
        if left > LONG.as_secs_f64() {
            let left = Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX);
            eprintln!(
                "note: the simulator needs about {}",
                dray_output::rough(left)
            );
        }
    }
}

fn replay(
    topology: &Topology,
    sends: &[Send],
    jobs: usize,
    watch: &mut Watch<'_>,
) -> anyhow::Result<Ends> {
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
        watch.look(simulation.tlp_hops());
    }
    // Nothing is left to do; this checks that all has arrived.
    simulation.run_to_end(LIMIT_NS)?;
    let mut ends = vec![None; jobs];
    for (send, result) in sends.iter().zip(simulation.sources()) {
        let end = result.ended_ns.filter(|end| *end > send.start_ns);
        let end = end.with_context(|| format!("job {} ends before it starts", send.job))?;
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
        let ends = replays.run(1).unwrap();
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
        assert!(reads.run(1).unwrap()[0] > ends[0]);
        replays.push(send(1 << 40)).unwrap();
        assert!(replays.are_large());
    }
}
