//! The simulator: timing against sums by hand, invariants on random fabrics.

use dray_pcie::sim::{
    Arbiter, Arrival, Memory, Operation, Phase, Scheduling, Simulation, SimulationOptions, Source,
    Stream, StreamResult,
};
use dray_pcie::{QueueOrganisation, Topology};

fn stream(topology: &Topology, operation: Operation, device: &str, bytes: u64) -> Stream {
    let (host, device) = (
        topology.find("host1").unwrap(),
        topology.find(device).unwrap(),
    );
    Stream::new("s", operation, host, device, bytes)
}

fn run(topology: &Topology, streams: &[Stream], end_ns: u64) -> Vec<StreamResult> {
    let options = SimulationOptions {
        warmup_ns: end_ns / 10,
        ..SimulationOptions::default()
    };
    let mut simulation = Simulation::new(topology, streams, &[], &options).unwrap();
    simulation.run_until(end_ns).unwrap();
    simulation.audit().unwrap();
    simulation.streams()
}

/// Mean of a few transfers, one at a time, ns.
fn latency(topology: &Topology, stream: Stream) -> f64 {
    let stream = Stream { count: 4, ..stream };
    let mut simulation =
        Simulation::new(topology, &[stream], &[], &SimulationOptions::default()).unwrap();
    simulation.run_to_end(1_000_000_000).unwrap();
    simulation.audit().unwrap();
    assert_eq!(simulation.tlps_in_flight(), 0);
    let result = simulation.streams().remove(0);
    assert_eq!(result.completed, 4);
    result.profile.summary(Phase::Total).mean_ns
}

#[test]
fn an_mmio_read_takes_both_ways_and_the_memory_latency() {
    let topology = Topology::resolve("testbed").unwrap();
    let read = stream(&topology, Operation::MmioRead, "L", 64);
    // Root 149, flight 4.6, PCIe core 100, bus 120; both ways, and 12 of memory.
    let ways = 2.0 * (149.0 + 4.6 + 100.0 + 120.0) + 12.0;
    let bytes = ((16.0 + 8.0) + (64.0 + 12.0 + 8.0)) / 14.21;
    let taken = latency(&topology, read.clone());
    assert!(
        (taken - ways - bytes).abs() < 0.5,
        "{taken} {}",
        ways + bytes
    );
    let chip = latency(
        &topology,
        Stream {
            memory: Memory::OnChip,
            ..read.clone()
        },
    );
    assert!((taken - chip - 122.0).abs() < 0.01, "{chip}");
    let far = Stream {
        host: topology.find("host1.1").unwrap(),
        ..read
    };
    let hops = latency(&topology, far) - taken;
    assert!((66.9..72.0).contains(&hops), "{hops}");
}

#[test]
fn lines_of_an_mmio_read_are_read_one_after_the_other() {
    let topology = Topology::resolve("local").unwrap();
    let read = |bytes| {
        let (host, device) = (
            topology.find("host").unwrap(),
            topology.find("card0").unwrap(),
        );
        latency(
            &topology,
            Stream::new("s", Operation::MmioRead, host, device, bytes),
        )
    };
    assert!((read(1024) / read(64) - 16.0).abs() < 0.001);
}

#[test]
fn phases_add_up_to_the_total() {
    let topology = Topology::resolve("testbed").unwrap();
    for operation in [
        Operation::H2d,
        Operation::D2h,
        Operation::DeviceRead,
        Operation::DeviceWrite,
    ] {
        let mut one = stream(&topology, operation, "A", 4096);
        one.peer = operation.has_peer().then(|| topology.find("C").unwrap());
        one.outstanding = 8;
        let result = run(&topology, &[one], 200_000).remove(0);
        let mean = |phase| result.profile.summary(phase).mean_ns;
        let parts =
            mean(Phase::HostQueueing) + mean(Phase::FabricTransit) + mean(Phase::RemoteExecution);
        assert!((parts - mean(Phase::Total)).abs() < 0.01, "{operation:?}");
        let total = result.profile.summary(Phase::Total);
        assert!(total.min_ns <= total.p50_ns && total.p50_ns <= total.p999_ns);
        // All in flight are alike, so that median and mean are near each other.
        assert!(
            (total.p50_ns / total.mean_ns - 1.0).abs() < 0.2,
            "{total:?}"
        );
        assert!(
            total.max_ns >= total.mean_ns && total.min_ns > 1000.0,
            "{total:?}"
        );
        let cdf = result.profile.cdf(Phase::Total);
        assert_eq!(cdf.last().map(|(_, share)| *share), Some(1.0));
        let counted: u64 = result
            .profile
            .buckets(Phase::Total)
            .iter()
            .map(|(_, n)| n)
            .sum();
        assert_eq!(counted, total.count);
    }
}

#[test]
fn littles_law_holds_for_each_stream() {
    let topology = Topology::resolve("testbed").unwrap();
    let mut streams = vec![];
    for (device, outstanding, bytes) in [("A", 4, 4096), ("C", 2, 65536), ("L", 1, 64)] {
        let mut one = stream(&topology, Operation::H2d, device, bytes);
        one.outstanding = outstanding;
        streams.push(one);
    }
    let end = 3_000_000;
    for (result, stream) in run(&topology, &streams, end).iter().zip(&streams) {
        let rate = result.completed as f64 / (end as f64 * 0.9);
        let product = rate * result.profile.summary(Phase::Total).mean_ns;
        // Transfers that are open at either end make a small difference.
        assert!(
            (product / result.mean_in_flight - 1.0).abs() < 0.02,
            "{product}"
        );
        assert!((result.mean_in_flight - f64::from(stream.outstanding)).abs() < 0.02);
    }
}

#[test]
fn remote_read_bandwidth_is_tags_divided_by_round_trip() {
    let text = dray_pcie::built_in("testbed").unwrap();
    let mut rates = Vec::new();
    for tags in [8, 16, 32] {
        let topology =
            Topology::from_toml(&text.replace("tags = 32", &format!("tags = {tags}")), "t")
                .unwrap();
        let one = Stream {
            outstanding: 2,
            ..stream(&topology, Operation::H2d, "A", 1 << 20)
        };
        rates.push(run(&topology, &[one], 600_000)[0].gib_s);
    }
    assert!((rates[1] / rates[0] - 2.0).abs() < 0.03, "{rates:?}");
    assert!((rates[2] / rates[1] - 2.0).abs() < 0.06, "{rates:?}");
}

#[test]
fn a_queue_holds_64_commands_and_a_batch_its_size() {
    let topology = Topology::resolve("testbed").unwrap();
    let mut one = stream(&topology, Operation::D2h, "L", 64);
    one.outstanding = 1000;
    one.scheduling = Scheduling::RoundRobin;
    let free = run(&topology, &[one.clone()], 100_000).remove(0);
    one.scheduling = Scheduling::Fixed(3);
    let fixed = run(&topology, &[one.clone()], 100_000).remove(0);
    // One queue holds 64 commands; the rest waits in software.
    assert!(fixed.mean_in_flight < 64.5 && free.mean_in_flight > 64.5);
    one.batch = 16;
    let batched = run(&topology, &[one], 100_000).remove(0);
    assert!(
        batched.gib_s > 1.5 * fixed.gib_s,
        "{} {}",
        batched.gib_s,
        fixed.gib_s
    );
}

#[test]
fn bursts_and_random_arrivals_have_the_given_rate() {
    let topology = Topology::resolve("testbed").unwrap();
    for arrival in [
        Arrival::Every { gap_ns: 1000 },
        Arrival::Random { mean_gap_ns: 1000 },
        Arrival::Burst {
            count: 8,
            gap_ns: 8000,
        },
    ] {
        let one = Stream {
            arrival,
            outstanding: 64,
            ..stream(&topology, Operation::D2h, "L", 256)
        };
        let done = run(&topology, &[one], 2_000_000)[0].completed as f64;
        assert!((done / 1800.0 - 1.0).abs() < 0.06, "{arrival:?} {done}");
    }
}

#[test]
fn invalid_transfers_are_refused_with_the_rule() {
    let topology = Topology::resolve("testbed").unwrap();
    let good = stream(&topology, Operation::H2d, "A", 64);
    let peer = topology.find("C").ok();
    let cases = [
        (
            Stream {
                bytes: 0,
                ..good.clone()
            },
            "a length of 0 bytes",
        ),
        (
            Stream {
                bytes: 100,
                ..good.clone()
            },
            "a length of 100 bytes is no multiple of 64",
        ),
        (
            Stream {
                chunk: 100,
                ..good.clone()
            },
            "a chunk of 100 bytes",
        ),
        (
            Stream {
                device: topology.find("S").unwrap(),
                ..good.clone()
            },
            "`S` is not an endpoint",
        ),
        (
            Stream {
                host: topology.find("A").unwrap(),
                ..good.clone()
            },
            "`A` is not a host",
        ),
        (
            Stream {
                operation: Operation::DeviceRead,
                ..good.clone()
            },
            "needs a second device",
        ),
        (
            Stream {
                operation: Operation::DeviceRead,
                peer: topology.find("A").ok(),
                ..good.clone()
            },
            "`A` is both devices",
        ),
        (
            Stream {
                scheduling: Scheduling::Fixed(16),
                ..good.clone()
            },
            "queue 16 of `A`, which has 16",
        ),
        (
            Stream {
                outstanding: 0,
                ..good.clone()
            },
            "at least 1",
        ),
        (
            Stream {
                arrival: Arrival::Every { gap_ns: 0 },
                ..good.clone()
            },
            "a gap or burst of 0",
        ),
    ];
    for (bad, rule) in cases {
        let made = Simulation::new(&topology, &[bad], &[], &SimulationOptions::default());
        let message = made
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(message.contains(rule), "{message}");
    }
    let two = Stream {
        operation: Operation::DeviceRead,
        peer,
        ..good
    };
    assert!(Simulation::new(&topology, &[two], &[], &SimulationOptions::default()).is_ok());
}

/// The counter-example of section 0.3 of the estimators: C>D stays in its chassis, so that H>A
/// could have its full rate.
fn counter_example(queues: QueueOrganisation) -> Vec<f64> {
    let topology = Topology::resolve("validation").unwrap();
    let source = |from: &str, to: &str, rate| Source {
        rate_gib_s: Some(rate),
        ..Source::new(
            "f",
            topology.find(from).unwrap(),
            topology.find(to).unwrap(),
        )
    };
    let sources = [
        source("H", "A", 8.5),
        source("H", "D", 8.5),
        source("B", "D", 7.19),
        source("C", "D", 7.19),
    ];
    let options = SimulationOptions {
        queues: Some(queues),
        warmup_ns: 50_000,
        ..SimulationOptions::default()
    };
    let mut simulation = Simulation::new(&topology, &[], &sources, &options).unwrap();
    simulation.run_until(400_000).unwrap();
    simulation.audit().unwrap();
    simulation
        .sources()
        .iter()
        .map(|source| source.gib_s)
        .collect()
}

#[test]
fn queues_per_output_remove_head_of_line_blocking() {
    let free = counter_example(QueueOrganisation::PerOutput);
    assert!((free[0] / 8.5 - 1.0).abs() < 0.02, "{free:?}");
    let held = counter_example(QueueOrganisation::Fifo);
    assert!((held[0] / 2.19 - 1.0).abs() < 0.05, "{held:?}");
    // Inputs share the output, not flows: C>D has an input of its own.
    for rates in [free, held] {
        let expected = [8.74 / 4.0, 8.74 / 4.0, 8.74 / 2.0];
        for (rate, expected) in rates[1..].iter().zip(expected) {
            assert!((rate / expected - 1.0).abs() < 0.03, "{rates:?}");
        }
    }
}

mod random;
mod sources;
mod speeds;
