//! Bandwidths, alone and shared.

use super::{Bed, Check, CheckRow};
use crate::PcieError;
use crate::sim::{Arrival, Operation, Phase, Simulation, SimulationOptions, Stream};

impl Bed {
    pub(super) fn bandwidths(&self) -> Result<Vec<Check>, PcieError> {
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

    pub(super) fn sharing(&self) -> Result<Vec<Check>, PcieError> {
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
    pub(super) fn orthogonal(&self) -> Result<Check, PcieError> {
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
}
