//! The simulator beside every published number: target, result, tolerance, verdict.

mod estimates;
mod invariants;
mod latency;
mod sharing;

use super::pcie_model;
pub use estimates::{PublishedFlow, TABLE_2};
use estimates::{counter_example, table_2};

use crate::PcieError;
use crate::sim::{Memory, Operation, Phase, Scheduling, Simulation, SimulationOptions, Stream};
use crate::{NodeKind, Topology};

/// What came out of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Met,
    /// Outside it.
    Missed,
}

/// One number beside its target.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckRow {
    /// What is measured.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// The published value, lowest and highest where it is a range.
    pub target: (f64, f64),
    /// What the simulator gives.
    pub result: f64,
    /// Allowed deviation from the target.
    pub tolerance: Tolerance,
}

/// How far a result may be off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// Percent of the target.
    Percent(f64),
    /// In the unit of the row.
    Absolute(f64),
}

impl CheckRow {
    pub(super) fn new(
        name: impl Into<String>,
        unit: &'static str,
        target: f64,
        result: f64,
        percent: f64,
    ) -> Self {
        Self {
            name: name.into(),
            unit,
            target: (target, target),
            result,
            tolerance: Tolerance::Percent(percent),
        }
    }

    fn within(mut self, low: f64, high: f64) -> Self {
        self.target = (low, high);
        self
    }

    fn absolute(mut self, allowed: f64) -> Self {
        self.tolerance = Tolerance::Absolute(allowed);
        self
    }

    /// Deviation from the nearest end of the target: percent, or in the unit of the row.
    pub fn deviation(&self) -> f64 {
        let nearest = self.result.clamp(self.target.0, self.target.1);
        match self.tolerance {
            Tolerance::Percent(_) => (self.result / nearest - 1.0) * 100.0,
            Tolerance::Absolute(_) => self.result - nearest,
        }
    }

    /// Whether it is within its tolerance.
    pub fn verdict(&self) -> Verdict {
        let (Tolerance::Percent(allowed) | Tolerance::Absolute(allowed)) = self.tolerance;
        // Written so that a result that is no number is missed.
        if self.deviation().abs() <= allowed {
            Verdict::Met
        } else {
            Verdict::Missed
        }
    }
}

/// A group of rows with the parameters that they used.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Its number in the list of checks.
    pub number: u32,
    /// What it is about.
    pub title: String,
    /// Where the targets come from.
    pub source: String,
    /// The topology, and what is not its default.
    pub parameters: String,
    /// The numbers.
    pub rows: Vec<CheckRow>,
}

impl Check {
    /// Rows that are outside their tolerance.
    pub fn missed(&self) -> usize {
        self.rows
            .iter()
            .filter(|row| row.verdict() == Verdict::Missed)
            .count()
    }
}

/// The parameters of a topology that decide the checks, in one line.
pub fn parameters(topology: &Topology) -> String {
    let mut parts = vec![format!("topology {}", topology.name)];
    for node in topology.nodes() {
        match &node.kind {
            NodeKind::Socket {
                parameters: p,
                index: 0,
                host,
            } => {
                parts.push(format!(
                    "{host}: root {} ns, socket hop {} ns, submit {} ns, poll {} ns",
                    p.root_ns, p.socket_hop_ns, p.submit_ns, p.poll_ns
                ));
            }
            NodeKind::Endpoint { parameters: p, .. } => {
                let mut text = format!("{}: port {} ns, bus {} ns", node.name, p.port_ns, p.bus_ns);
                if let Some(e) = &p.engine {
                    text += &format!(
                        ", {} MHz, {} tags, engine {} ns, write issue {} cycles, read issue {} + {} a request, memory {} GiB/s + {} cycles",
                        e.clock_mhz,
                        e.tags,
                        e.overhead_ns,
                        e.write_issue_cycles,
                        e.read_issue_cycles,
                        e.read_request_cycles,
                        e.memory_gib_s,
                        e.memory_hold_cycles
                    );
                }
                parts.push(text);
                // Devices of a shipped topology are alike.
                break;
            }
            _ => {}
        }
    }
    let links: Vec<String> = topology
        .links()
        .iter()
        .filter(|link| link.generation > 0)
        .map(|link| {
            format!(
                "Gen{} x{} MPS {} MRRS {}",
                link.generation, link.width, link.mps, link.mrrs
            )
        })
        .collect();
    if let Some(first) = links.first() {
        parts.push(first.clone());
    }
    let given = topology
        .edges()
        .iter()
        .filter(|edge| edge.capacity_given && !edge.name.contains(".1"));
    let given: Vec<String> = given
        .filter(|edge| topology.link(edge.link).generation > 0)
        .map(|edge| format!("{} {}", edge.name, edge.capacity_gib_s))
        .collect();
    if !given.is_empty() {
        parts.push(format!("capacities given, GiB/s: {}", given.join(", ")));
    }
    parts.join("; ")
}

/// All checks, in order.
///
/// # Errors
///
/// A built-in topology or stream that cannot be, which the tests exclude.
pub fn check_all() -> Result<Vec<Check>, PcieError> {
    let bed = Bed::new("testbed")?;
    let mut checks = bed.latencies()?;
    checks.extend(bed.bandwidths()?);
    checks.extend(bed.sharing()?);
    checks.push(counter_example()?);
    checks.push(bed.orthogonal()?);
    checks.push(table_2()?);
    checks.push(pcie_model::check()?);
    checks.push(bed.invariants()?);
    checks.sort_by_key(|check| check.number);
    Ok(checks)
}

const PAPER: &str = "Hou et al., NSDI 2024";

/// The test bed and what is measured on it.
struct Bed {
    topology: Topology,
}

/// A stream in short: operation, host, device, peer, chunk.
type Short<'s> = (Operation, &'s str, &'s str, Option<&'s str>, u32);

impl Bed {
    fn new(name: &str) -> Result<Self, PcieError> {
        Ok(Self {
            topology: Topology::resolve(name)?,
        })
    }

    fn check(&self, number: u32, title: &str, section: &str, rows: Vec<CheckRow>) -> Check {
        Check {
            number,
            title: title.to_owned(),
            source: format!("{PAPER}, {section}"),
            parameters: parameters(&self.topology),
            rows,
        }
    }

    fn stream(
        &self,
        (operation, host, device, peer, chunk): Short<'_>,
        bytes: u64,
    ) -> Result<Stream, PcieError> {
        let topology = &self.topology;
        Ok(Stream {
            peer: peer.map(|peer| topology.find(peer)).transpose()?,
            chunk,
            ..Stream::new(
                "s",
                operation,
                topology.find(host)?,
                topology.find(device)?,
                bytes,
            )
        })
    }

    /// Mean latency of single transfers with nothing else on the fabric, by phase, ns.
    fn latency(&self, short: Short<'_>, bytes: u64, memory: Memory) -> Result<[f64; 4], PcieError> {
        let stream = Stream {
            count: 8,
            memory,
            ..self.stream(short, bytes)?
        };
        let options = SimulationOptions::default();
        let mut simulation = Simulation::new(&self.topology, &[stream], &[], &options)?;
        simulation.run_to_end(1_000_000_000)?;
        let profile = simulation.streams().remove(0).profile;
        Ok(Phase::ALL.map(|phase| profile.summary(phase).mean_ns))
    }

    fn total(
        &self,
        operation: Operation,
        host: &str,
        device: &str,
        bytes: u64,
        memory: Memory,
    ) -> Result<f64, PcieError> {
        Ok(self.latency((operation, host, device, None, 32 << 10), bytes, memory)?[3])
    }

    /// Bandwidths of streams without end that run together, each on a queue of its own, GiB/s.
    fn together(&self, shorts: &[Short<'_>]) -> Result<Vec<f64>, PcieError> {
        let mut streams = Vec::new();
        for (index, short) in shorts.iter().enumerate() {
            streams.push(Stream {
                scheduling: Scheduling::Fixed(index as u32),
                ..self.stream(*short, 1 << 30)?
            });
        }
        let options = SimulationOptions {
            warmup_ns: 30_000,
            ..SimulationOptions::default()
        };
        let mut simulation = Simulation::new(&self.topology, &streams, &[], &options)?;
        simulation.run_until(330_000)?;
        Ok(simulation
            .streams()
            .iter()
            .map(|result| result.gib_s)
            .collect())
    }

    fn alone(&self, short: Short<'_>) -> Result<f64, PcieError> {
        Ok(self.together(&[short])?[0])
    }
}
