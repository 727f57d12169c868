//! The simulator beside every published number: target, result, tolerance, verdict.

use super::pcie_model;
use crate::PcieError;
use crate::sim::{
    Arrival, Memory, Operation, Phase, Scheduling, Simulation, SimulationOptions, Source, Stream,
};
use crate::topology::{NodeKind, QueueOrganisation, Topology, built_in};

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

    fn latencies(&self) -> Result<Vec<Check>, PcieError> {
        use Memory::{Main, OnChip};
        use Operation::{D2h, DeviceRead, DeviceWrite, H2d, MmioRead, MmioWrite};
        let total = |operation, host: &str, device: &str, bytes| {
            self.total(operation, host, device, bytes, Main)
        };
        let one_way = vec![
            CheckRow::new(
                "local one way",
                "ns",
                379.0,
                total(MmioWrite, "host1", "L", 64)?,
                1.0,
            ),
            CheckRow::new(
                "remote one way",
                "ns",
                868.6,
                total(MmioWrite, "host1", "A", 64)?,
                1.0,
            ),
        ];
        let mmio = vec![
            CheckRow::new(
                "local",
                "ns",
                766.0,
                total(MmioRead, "host1", "L", 64)?,
                2.0,
            ),
            CheckRow::new(
                "remote",
                "ns",
                1751.0,
                total(MmioRead, "host1", "A", 64)?,
                2.0,
            ),
            CheckRow::new(
                "local, other socket",
                "ns",
                833.0,
                total(MmioRead, "host1.1", "L", 64)?,
                2.0,
            ),
            CheckRow::new(
                "remote, other socket",
                "ns",
                1803.0,
                total(MmioRead, "host1.1", "A", 64)?,
                2.0,
            ),
        ];
        let mut sizes = Vec::new();
        for (memory, name, published) in [
            (
                Main,
                "HBM",
                [
                    (8, 762.0),
                    (16, 763.0),
                    (32, 768.0),
                    (64, 766.0),
                    (128, 1551.0),
                    (256, 3091.0),
                    (512, 6055.0),
                    (1024, 11961.0),
                ],
            ),
            (
                OnChip,
                "BRAM",
                [
                    (8, 627.0),
                    (16, 632.0),
                    (32, 640.0),
                    (64, 644.0),
                    (128, 1264.0),
                    (256, 2511.0),
                    (512, 4993.0),
                    (1024, 9992.0),
                ],
            ),
        ] {
            for (bytes, target) in published {
                let result = self.total(MmioRead, "host1", "L", bytes, memory)?;
                sizes.push(CheckRow::new(
                    format!("{name}, {bytes} B"),
                    "ns",
                    target,
                    result,
                    5.0,
                ));
            }
        }
        sizes.push(CheckRow::new(
            "remote HBM, 1024 B",
            "ns",
            27_800.0,
            total(MmioRead, "host1", "A", 1024)?,
            5.0,
        ));
        // From the start of the call, but with the command in the device already: without the
        // doorbell's way.
        let dma_write = |device: &str| -> Result<f64, PcieError> {
            let parts = self.latency((D2h, "host1", device, None, 4096), 64, Main)?;
            let doorbell = self.total(MmioWrite, "host1", device, 8, Main)?;
            let word = 84.0 / 14.21;
            Ok(parts[3] - doorbell - word)
        };
        let dma = vec![
            CheckRow::new("local", "ns", 946.0, dma_write("L")?, 2.0),
            CheckRow::new("remote", "ns", 1421.4, dma_write("A")?, 2.0),
        ];
        let (d2h, h2d) = (total(D2h, "host1", "L", 64)?, total(H2d, "host1", "L", 64)?);
        let (d2h_far, h2d_far) = (total(D2h, "host1", "A", 64)?, total(H2d, "host1", "A", 64)?);
        let small = vec![
            CheckRow::new("D2H local", "ns", 1300.0, d2h, 5.0),
            CheckRow::new("H2D local", "ns", 2000.0, h2d, 5.0),
            CheckRow::new(
                "D2H remote penalty",
                "%",
                69.3,
                (d2h_far / d2h - 1.0) * 100.0,
                0.0,
            )
            .absolute(8.0),
            CheckRow::new(
                "H2D remote penalty",
                "%",
                91.5,
                (h2d_far / h2d - 1.0) * 100.0,
                0.0,
            )
            .absolute(8.0),
        ];
        let between = |operation, peer| {
            self.latency(
                (operation, "host1", "A", Some(peer), 32 << 10),
                64 << 10,
                Main,
            )
        };
        let large = vec![
            CheckRow::new(
                "D2H local",
                "ns",
                6800.0,
                total(D2h, "host1", "L", 64 << 10)?,
                10.0,
            ),
            CheckRow::new(
                "D2H remote",
                "ns",
                8000.0,
                total(D2h, "host1", "A", 64 << 10)?,
                10.0,
            ),
            CheckRow::new(
                "H2D local",
                "ns",
                7500.0,
                total(H2d, "host1", "L", 64 << 10)?,
                10.0,
            ),
            CheckRow::new(
                "H2D remote",
                "ns",
                11_100.0,
                total(H2d, "host1", "A", 64 << 10)?,
                10.0,
            ),
            CheckRow::new(
                "device read within a chassis",
                "ns",
                10_000.0,
                between(DeviceRead, "B")?[3],
                10.0,
            ),
            CheckRow::new(
                "device write within a chassis",
                "ns",
                10_800.0,
                between(DeviceWrite, "B")?[3],
                10.0,
            ),
        ];
        Ok(vec![
            self.check(
                1,
                "one-way latency, assembled from its parts",
                "section 4.2",
                one_way,
            ),
            self.check(2, "MMIO read of 64 B", "section 4.2", mmio),
            self.check(3, "MMIO read by size", "table 4", sizes),
            self.check(4, "write of 64 B by the DMA engine", "section 4.2", dma),
            self.check(5, "transfers of 64 B", "section 4.2, figure 3", small),
            self.check(
                6,
                "transfers of 64 KiB",
                "section 4.2, figures 3 and 4",
                large,
            ),
        ])
    }

    fn bandwidths(&self) -> Result<Vec<Check>, PcieError> {
        use Operation::{D2h, H2d};
        let rate = |operation, device, chunk| self.alone((operation, "host1", device, None, chunk));
        let local = vec![
            CheckRow::new("H2D", "GiB/s", 12.2, rate(H2d, "L", 32 << 10)?, 3.0),
            CheckRow::new("D2H", "GiB/s", 12.3, rate(D2h, "L", 32 << 10)?, 3.0),
        ];
        let remote = vec![
            CheckRow::new("H2D", "GiB/s", 8.5, rate(H2d, "A", 32 << 10)?, 5.0).within(8.4, 8.6),
            CheckRow::new("D2H", "GiB/s", 11.4, rate(D2h, "A", 32 << 10)?, 5.0).within(11.3, 11.5),
        ];
        let small = vec![
            CheckRow::new("D2H 64 B", "GiB/s", 1.28, rate(D2h, "A", 64)?, 5.0),
            CheckRow::new("D2H 128 B", "GiB/s", 2.54, rate(D2h, "A", 128)?, 5.0),
            CheckRow::new("H2D 64 B", "GiB/s", 0.53, rate(H2d, "A", 64)?, 5.0),
            CheckRow::new("H2D 256 B", "GiB/s", 2.2, rate(H2d, "A", 256)?, 5.0),
        ];
        Ok(vec![
            self.check(
                7,
                "peak bandwidth, local",
                "section 4.3, figures 5 and 6",
                local,
            ),
            self.check(
                8,
                "peak bandwidth, remote: it follows from latency, tags and the ports' capacity",
                "section 4.3, figures 5 and 6",
                remote,
            ),
            self.check(
                9,
                "rates of small packets",
                "section 5.1 and table 2",
                small,
            ),
        ])
    }

    fn sharing(&self) -> Result<Vec<Check>, PcieError> {
        use Operation::{D2h, DeviceRead, DeviceWrite, H2d};
        let pair = |operation, device, peer, first, second| {
            self.together(&[
                (operation, "host1", device, peer, first),
                (operation, "host1", device, peer, second),
            ])
        };
        let by_32 = pair(H2d, "L", None, 4096, 128)?;
        let even = pair(H2d, "L", None, 4096, 4096)?;
        let third = pair(D2h, "L", None, 4096, 8192)?;
        let far_third = pair(D2h, "A", None, 4096, 8192)?;
        let fifth = pair(DeviceRead, "A", Some("B"), 4096, 16384)?;
        let share = |rates: &[f64]| rates[0] / (rates[0] + rates[1]) * 100.0;
        let path = vec![
            CheckRow::new(
                "H2D 4 KiB against 128 B, ratio",
                "",
                32.0,
                by_32[0] / by_32[1],
                8.0,
            )
            .within(24.0, 33.0),
            CheckRow::new("H2D 4 KiB against 4 KiB, first", "GiB/s", 5.5, even[0], 8.0),
            CheckRow::new(
                "H2D 4 KiB against 4 KiB, second",
                "GiB/s",
                5.5,
                even[1],
                8.0,
            ),
            CheckRow::new(
                "D2H 4 KiB against 8 KiB, share",
                "%",
                100.0 / 3.0,
                share(&third),
                8.0,
            ),
            CheckRow::new(
                "D2H 4 KiB against 8 KiB, remote share",
                "%",
                100.0 / 3.0,
                share(&far_third),
                8.0,
            ),
            CheckRow::new(
                "device read 4 KiB against 16 KiB, share",
                "%",
                21.0,
                share(&fifth),
                8.0,
            )
            .within(20.0, 22.0),
        ];
        // From one host to two chassis: what they share is the host adapter.
        let adapter = |chunk| {
            self.together(&[
                (H2d, "host1", "A", None, chunk),
                (H2d, "host1", "C", None, 4096),
            ])
        };
        let (quarter, kilo, line) = (adapter(256)?, adapter(1024)?, adapter(64)?);
        // From two hosts to one chassis: what they share is the switch's port.
        let down = |chunk| {
            self.together(&[
                (H2d, "host1", "A", None, chunk),
                (H2d, "host2", "B", None, 4096),
            ])
        };
        let up = |chunk| {
            self.together(&[
                (D2h, "host1", "A", None, chunk),
                (D2h, "host2", "B", None, 4096),
            ])
        };
        let (switch_kilo, switch_line, up_line) = (down(1024)?, down(64)?, up(64)?);
        // Within one chassis: what they share is the endpoint adapter.
        let chassis = self.together(&[
            (D2h, "host1", "A", None, 4096),
            (DeviceWrite, "host1", "B", Some("A"), 4096),
        ])?;
        let alone_line = self.alone((H2d, "host1", "A", None, 64))?;
        let alone_up = self.alone((D2h, "host1", "A", None, 64))?;
        let ports = vec![
            CheckRow::new(
                "host adapter, 256 B and 4 KiB, sum",
                "GiB/s",
                10.7,
                quarter[0] + quarter[1],
                5.0,
            ),
            CheckRow::new(
                "host adapter, 1 KiB and 4 KiB, first",
                "GiB/s",
                5.6,
                kilo[0],
                5.0,
            ),
            CheckRow::new(
                "host adapter, 1 KiB and 4 KiB, second",
                "GiB/s",
                5.6,
                kilo[1],
                5.0,
            ),
            CheckRow::new(
                "host adapter, 64 B beside 4 KiB against alone",
                "GiB/s",
                alone_line,
                line[0],
                5.0,
            ),
            CheckRow::new(
                "switch, 1 KiB and 4 KiB, first",
                "GiB/s",
                5.6,
                switch_kilo[0],
                5.0,
            ),
            CheckRow::new(
                "switch, 1 KiB and 4 KiB, second",
                "GiB/s",
                5.6,
                switch_kilo[1],
                5.0,
            ),
            CheckRow::new(
                "switch down, 64 B beside 4 KiB against alone",
                "GiB/s",
                alone_line,
                switch_line[0],
                5.0,
            ),
            CheckRow::new(
                "switch up, 64 B beside 4 KiB against alone",
                "GiB/s",
                alone_up,
                up_line[0],
                5.0,
            ),
            CheckRow::new(
                "endpoint adapter up, device to host",
                "GiB/s",
                11.3,
                chassis[0],
                5.0,
            ),
            CheckRow::new(
                "endpoint adapter up, device to device",
                "GiB/s",
                8.2,
                chassis[1],
                5.0,
            ),
        ];
        Ok(vec![
            self.check(
                10,
                "two streams on one path share by outstanding bytes",
                "section 4.5, figure 10",
                path,
            ),
            self.check(
                11,
                "streams of different paths share a port max-min",
                "section 5.1, figure 13",
                ports,
            ),
        ])
    }

    /// A victim on a path that shares nothing with the load.
    fn orthogonal(&self) -> Result<Check, PcieError> {
        let victim = Stream {
            arrival: Arrival::Random {
                mean_gap_ns: 10_000,
            },
            outstanding: 16,
            ..self.stream((Operation::D2h, "host1", "A", None, 4096), 4096)?
        };
        let load = Stream {
            outstanding: 8,
            ..self.stream((Operation::H2d, "host2", "D", None, 32 << 10), 1 << 20)?
        };
        let options = SimulationOptions {
            warmup_ns: 50_000,
            ..SimulationOptions::default()
        };
        let run = |streams: &[Stream]| -> Result<(f64, f64), PcieError> {
            let mut simulation = Simulation::new(&self.topology, streams, &[], &options)?;
            simulation.run_until(3_050_000)?;
            let total = simulation.streams()[0].profile.summary(Phase::Total);
            Ok((total.mean_ns, total.p99_ns))
        };
        let alone = run(std::slice::from_ref(&victim))?;
        let beside = run(&[victim, load])?;
        let rows = vec![
            CheckRow::new(
                "mean of the victim, beside against alone",
                "ns",
                alone.0,
                beside.0,
                0.5,
            ),
            CheckRow::new(
                "P99 of the victim, beside against alone",
                "ns",
                alone.1,
                beside.1,
                0.5,
            ),
        ];
        Ok(self.check(18, "orthogonal paths do not interfere", "section 5.2", rows))
    }

    /// Credits, bytes and determinism on the test bed under load.
    fn invariants(&self) -> Result<Check, PcieError> {
        let mut streams = Vec::new();
        for (operation, device, peer) in [
            (Operation::H2d, "A", None),
            (Operation::D2h, "B", None),
            (Operation::DeviceRead, "C", Some("A")),
            (Operation::DeviceWrite, "D", Some("L")),
        ] {
            streams.push(Stream {
                count: 40,
                outstanding: 4,
                ..self.stream((operation, "host1", device, peer, 4096), 16 << 10)?
            });
        }
        let play = || -> Result<(f64, f64, String, f64), PcieError> {
            let options = SimulationOptions {
                trace: true,
                ..SimulationOptions::default()
            };
            let mut simulation = Simulation::new(&self.topology, &streams, &[], &options)?;
            let mut broken = 0.0;
            for step in 1..100 {
                simulation.run_until(step * 1000)?;
                broken += f64::from(u8::from(simulation.audit().is_err()));
            }
            simulation.run_to_end(1_000_000_000)?;
            broken += f64::from(u8::from(simulation.audit().is_err()));
            let results = simulation.streams();
            let bytes: u64 = results.iter().map(|result| result.bytes).sum();
            let end = simulation.now_ps() as f64 / 1000.0;
            let first = &results[0];
            let rate = first.completed as f64 / end;
            let law = rate * first.profile.summary(Phase::Total).mean_ns / first.mean_in_flight;
            Ok((broken, bytes as f64, simulation.to_perfetto(), law))
        };
        let (first, second) = (play()?, play()?);
        let differs = f64::from(u8::from(first.2 != second.2));
        let exact = |name: &str, unit, target: f64, result| {
            CheckRow::new(name, unit, target, result, 0.0).absolute(0.0)
        };
        let rows = vec![
            exact(
                "moments at which credits did not add up, of 100",
                "",
                0.0,
                first.0,
            ),
            exact(
                "bytes delivered of 4 x 40 x 16 KiB",
                "B",
                f64::from(4 * 40 * (16 << 10)),
                first.1,
            ),
            exact("traces of the same seed that differ", "", 0.0, differs),
            CheckRow::new(
                "Little's law: rate x time / transfers in flight",
                "",
                1.0,
                first.3,
                0.1,
            ),
        ];
        let mut check = self.check(22, "invariants", "by construction", rows);
        check.source = "what must hold; random fabrics are in the crate's tests".to_owned();
        Ok(check)
    }
}

/// C>D stays in its chassis, which frees capacity for H>A, if queues let it be used.
fn counter_example() -> Result<Check, PcieError> {
    let text = built_in("validation").unwrap_or_default();
    let run = |queues: QueueOrganisation, text: &str| -> Result<Vec<f64>, PcieError> {
        let topology = Topology::from_toml(text, "validation")?;
        let mut sources = Vec::new();
        for (from, to, rate) in [
            ("H", "A", 8.5),
            ("H", "D", 8.5),
            ("B", "D", 7.19),
            ("C", "D", 7.19),
        ] {
            sources.push(Source {
                rate_gib_s: Some(rate),
                ..Source::new(
                    &format!("{from}>{to}"),
                    topology.find(from)?,
                    topology.find(to)?,
                )
            });
        }
        let options = SimulationOptions {
            queues: Some(queues),
            warmup_ns: 50_000,
            ..SimulationOptions::default()
        };
        let mut simulation = Simulation::new(&topology, &[], &sources, &options)?;
        simulation.run_until(550_000)?;
        Ok(simulation
            .sources()
            .iter()
            .map(|source| source.gib_s)
            .collect())
    };
    let free = run(QueueOrganisation::PerOutput, text)?;
    // Buffers of 8 KiB per class.
    let small = "[link_defaults]\ncredits = { posted_data = 512, completion_data = 512 }";
    let held = run(
        QueueOrganisation::Fifo,
        &text.replace("[link_defaults]", small),
    )?;
    let rows = vec![
        CheckRow::new("H>A, a queue per output", "GiB/s", 8.5, free[0], 3.0),
        CheckRow::new(
            "H>A, one FIFO with small buffers",
            "GiB/s",
            2.2,
            held[0],
            3.0,
        ),
    ];
    Ok(Check {
        number: 14,
        title: "capacity freed elsewhere: H>A 8.5, H>D 8.5, B>D 7.19, C>D 7.19 (its estimators: dray fabric predict)".to_owned(),
        source: "section 0.3 of the project's facts: max-min gives 8.50, edge constraints 5.775".to_owned(),
        parameters: format!("{}; packets of 256 B; FIFO: 8 KiB of data credits", parameters(&Topology::resolve("validation")?)),
        rows,
    })
}

/// Both ends of a flow of table 2, its standalone rate and its published estimate, GiB/s.
type PublishedFlow = (&'static str, &'static str, f64, f64);

/// The measured flows of table 2 as paced sources: what the fabric gives each.
fn table_2() -> Result<Check, PcieError> {
    let topology = Topology::resolve("validation")?;
    let experiments: [(&str, [PublishedFlow; 5]); 3] = [
        (
            "b",
            [
                ("H", "C", 8.51, 5.78),
                ("H", "A", 7.21, 5.78),
                ("C", "B", 1.76, 1.76),
                ("B", "D", 7.19, 7.19),
                ("A", "H", 2.54, 2.54),
            ],
        ),
        (
            "c",
            [
                ("H", "C", 8.56, 8.37),
                ("H", "A", 0.53, 0.53),
                ("C", "B", 1.76, 1.76),
                ("B", "D", 7.19, 7.19),
                ("A", "H", 2.54, 2.54),
            ],
        ),
        (
            "d",
            [
                ("H", "C", 0.55, 0.55),
                ("H", "D", 8.58, 4.37),
                ("C", "B", 1.76, 1.76),
                ("B", "D", 7.19, 4.37),
                ("A", "H", 2.54, 2.54),
            ],
        ),
    ];
    let mut rows = Vec::new();
    for (name, flows) in experiments {
        let mut sources = Vec::new();
        for (from, to, rate, _) in flows {
            sources.push(Source {
                rate_gib_s: Some(rate),
                ..Source::new(from, topology.find(from)?, topology.find(to)?)
            });
        }
        let options = SimulationOptions {
            warmup_ns: 50_000,
            ..SimulationOptions::default()
        };
        let mut simulation = Simulation::new(&topology, &[], &sources, &options)?;
        simulation.run_until(550_000)?;
        for ((from, to, _, target), result) in flows.into_iter().zip(simulation.sources()) {
            rows.push(CheckRow::new(
                format!("2-{name}, {from}>{to}"),
                "GiB/s",
                target,
                result.gib_s,
                11.32,
            ));
        }
    }
    Ok(Check {
        number: 23,
        title: "the flows of table 2 in the simulator, beside the published estimates, which are themselves up to 11.32% off what was measured".to_owned(),
        source: format!("{PAPER}, table 2"),
        parameters: format!(
            "{}; sources paced at the standalone rates",
            parameters(&topology)
        ),
        rows,
    })
}
