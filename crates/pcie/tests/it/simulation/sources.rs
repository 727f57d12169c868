//! Many sources at one node.

use super::*;

const MANY: u64 = 200;

fn source(topology: &Topology, from: &str, to: &str) -> Source {
    let node = |name| topology.find(name).unwrap();
    Source::new(&format!("{from}>{to}"), node(from), node(to))
}

#[test]
fn each_of_many_sources_starts_at_its_time() {
    let topology = Topology::resolve("validation").unwrap();
    // Far enough from each other that all are alone.
    let sources: Vec<Source> = (0..MANY)
        .map(|index| Source {
            total_bytes: 65_536,
            start_ns: index * 100_000,
            ..source(&topology, "host", "A")
        })
        .collect();
    let mut simulation =
        Simulation::new(&topology, &[], &sources, &SimulationOptions::default()).unwrap();
    simulation.run_to_end(u64::MAX / 2000).unwrap();
    let ends = simulation.sources().into_iter().map(|r| r.ended_ns);
    let taken: Vec<u64> = ends
        .zip(&sources)
        .map(|(end, source)| end.unwrap().checked_sub(source.start_ns).unwrap())
        .collect();
    assert_eq!(taken, vec![taken[0]; taken.len()]);
}

#[test]
fn many_sources_share_an_edge_alike() {
    let topology = Topology::resolve("validation").unwrap();
    let to = ["A", "B", "C", "D"];
    let sources: Vec<Source> = (0..MANY as usize)
        .map(|index| source(&topology, "host", to[index % to.len()]))
        .collect();
    let options = SimulationOptions {
        warmup_ns: 100_000,
        ..SimulationOptions::default()
    };
    let mut simulation = Simulation::new(&topology, &[], &sources, &options).unwrap();
    simulation.run_until(1_100_000).unwrap();
    simulation.audit().unwrap();
    let rates: Vec<f64> = simulation.sources().iter().map(|r| r.gib_s).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    for (index, rate) in rates.iter().enumerate() {
        assert!((rate / mean - 1.0).abs() < 0.1, "{index}: {rate} of {mean}");
    }
}

/// A GPU on an x16 port of Gen4.
const PC: &str = "name = \"pc\"\n[[host]]\nname = \"host\"\n[[endpoint]]\nname = \"gpu\"\n\
    [[link]]\nends = [\"host.0\", \"gpu\"]\ngeneration = 4\n";

/// Rates of sources, bytes per second.
fn rates(topology: &Topology, sources: &[Source]) -> Vec<f64> {
    let options = SimulationOptions {
        warmup_ns: 50_000,
        ..SimulationOptions::default()
    };
    let mut simulation = Simulation::new(topology, &[], sources, &options).unwrap();
    simulation.run_until(250_000).unwrap();
    simulation.audit().unwrap();
    let gib = f64::from(1 << 30);
    simulation.sources().iter().map(|r| r.gib_s * gib).collect()
}

#[test]
fn a_read_source_gets_completions_of_its_size_and_its_requests_go_against_them() {
    let topology = Topology::from_toml(PC, "pc.toml").unwrap();
    let tlps = dray_pcie::LinkRate::of(4, 16, 256).tlp_bytes_per_s;
    let read = |payload, is_halved| Source {
        payload,
        request: 128,
        is_halved,
        window_bytes: Some(1 << 18),
        ..source(&topology, "host", "gpu")
    };
    // A completion has 12 bytes of header and 8 of framing.
    for (payload, is_halved, whole) in [
        (64, false, 84.0 / 64.0),
        (128, false, 148.0 / 128.0),
        (128, true, 0.5 * (84.0 / 64.0 + 148.0 / 128.0)),
    ] {
        let rate = rates(&topology, &[read(payload, is_halved)])[0];
        assert!(
            (rate * whole / tlps - 1.0).abs() < 0.002,
            "{payload}: {rate}"
        );
    }
    // Writes against a read have what its requests leave: 24 bytes for each 128.
    let write = Source {
        window_bytes: Some(1 << 18),
        ..source(&topology, "gpu", "host")
    };
    let both = rates(&topology, &[read(128, false), write]);
    let used = both[0] * 24.0 / 128.0 + both[1] * 280.0 / 256.0;
    assert!((used / tlps - 1.0).abs() < 0.002, "{both:?}");
    assert!(
        (both[0] * 148.0 / 128.0 / tlps - 1.0).abs() < 0.002,
        "{both:?}"
    );
}

#[test]
fn reads_without_a_window_and_of_long_requests_are_refused() {
    let topology = Topology::from_toml(PC, "pc.toml").unwrap();
    for (request, window_bytes, what) in
        [(128, None, "without a window"), (8192, Some(65536), "4096")]
    {
        let read = Source {
            request,
            window_bytes,
            ..source(&topology, "host", "gpu")
        };
        let options = SimulationOptions::default();
        let error = Simulation::new(&topology, &[], &[read], &options).err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(what), "{error}");
    }
}
