//! What must hold whatever runs.

use super::{Bed, Check, CheckRow};
use crate::PcieError;
use crate::sim::{Operation, Phase, Simulation, SimulationOptions, Stream};

impl Bed {
    /// Credits, bytes and determinism on the test bed under load.
    pub(super) fn invariants(&self) -> Result<Check, PcieError> {
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
