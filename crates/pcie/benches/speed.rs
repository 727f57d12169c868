//! TLP-hops per second of one core: `cargo bench -p dray-pcie --bench speed`.
//!
//! Prints the time on the processor as well as the time on the wall, which other work on the
//! machine lengthens.

use std::time::Instant;

use dray_pcie::Topology;
use dray_pcie::sim::{Operation, Simulation, SimulationOptions, Source, Stream};

/// Time that this thread was on a processor, s.
fn on_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(ns / 1e9)
}

fn run(name: &str, topology: &Topology, streams: &[Stream], sources: &[Source], end_ns: u64) {
    let mut rates = Vec::new();
    for _ in 0..7 {
        let options = SimulationOptions::default();
        let Ok(mut simulation) = Simulation::new(topology, streams, sources, &options) else {
            println!("{name}: the simulation cannot be");
            return;
        };
        let (wall, processor) = (Instant::now(), on_processor());
        if let Err(error) = simulation.run_until(end_ns) {
            println!("{name}: {error}");
            return;
        }
        let wall = wall.elapsed().as_secs_f64();
        let used = match (processor, on_processor()) {
            (Some(before), Some(after)) => after - before,
            _ => wall,
        };
        let hops = simulation.tlp_hops() as f64 / 1e6;
        rates.push((hops / used, hops / wall, hops));
    }
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (low, median, high) = (rates[1], rates[3], rates[5]);
    println!(
        "{name}: {:.2} million TLP-hops per second on the processor (quartiles {:.2} to {:.2}), {:.2} on the wall; {:.2} million a run",
        median.0, low.0, high.0, median.1, median.2
    );
}

fn main() {
    let (Ok(bed), Ok(tree)) = (Topology::resolve("testbed"), Topology::resolve("fat-tree")) else {
        println!("a built-in topology cannot be read");
        return;
    };
    let (Ok(host), endpoints) = (bed.find("host1"), tree.endpoints().collect::<Vec<_>>()) else {
        return;
    };
    let mut streams = Vec::new();
    for (device, operation) in [
        ("A", Operation::H2d),
        ("B", Operation::D2h),
        ("C", Operation::H2d),
        ("D", Operation::D2h),
    ] {
        if let Ok(device) = bed.find(device) {
            streams.push(Stream::new(
                device_name(operation),
                operation,
                host,
                device,
                1 << 30,
            ));
        }
    }
    run("test bed, four streams", &bed, &streams, &[], 10_000_000);
    let paced = |share: f64| -> Vec<Source> {
        (0..endpoints.len())
            .map(|index| Source {
                rate_gib_s: Some(share),
                ..Source::new(
                    "s",
                    endpoints[index],
                    endpoints[(index + 7) % endpoints.len()],
                )
            })
            .collect()
    };
    run(
        "fat tree, 24 sources at 10 GiB/s",
        &tree,
        &[],
        &paced(10.0),
        1_000_000,
    );
    run(
        "fat tree, 24 sources, saturated",
        &tree,
        &[],
        &paced(100.0),
        500_000,
    );
}

fn device_name(operation: Operation) -> &'static str {
    operation.name()
}
