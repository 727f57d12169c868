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
