//! Random fabrics and streams.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Fabric {
    text: String,
    endpoints: usize,
}

/// A random tree of switches with endpoints, widths, generations and small buffers.
fn fabric() -> impl Strategy<Value = Fabric> {
    let link = (
        3u32..7,
        prop::sample::select(vec![1u32, 4, 16]),
        1u32..5,
        0u32..3,
    );
    let switches = prop::collection::vec((any::<prop::sample::Index>(), link.clone()), 1..6);
    let endpoints = prop::collection::vec((any::<prop::sample::Index>(), link), 2..8);
    (switches, endpoints, 0usize..3).prop_map(|(switches, endpoints, queues)| {
        let queues = ["fifo", "per-output", "shared-buffer"][queues];
        let mut text = "name = \"random\"\n[[host]]\nname = \"h\"\n[[device]]\nname = \"d\"\n[device.engine]\ntags = 4\n".to_owned();
        let mut links = String::new();
        let mut join = |upper: String, lower: String, (generation, width, small, mps): (u32, u32, u32, u32)| {
            let mps = 128 << mps;
            links += &format!(
                "[[link]]\nends = [\"{upper}\", \"{lower}\"]\ngeneration = {generation}\nwidth = {width}\nmps = {mps}\n\
                 credits = {{ posted_headers = {small}, posted_data = {}, non_posted_headers = 1, non_posted_data = 1, \
                 completion_headers = {small}, completion_data = {} }}\n",
                mps / 16 * small, mps / 16
            );
        };
        for (index, (parent, link)) in switches.iter().enumerate() {
            text += &format!("[[switch]]\nname = \"s{index}\"\nforward_ns = 50.0\nqueues = \"{queues}\"\n");
            let parent = match index {
                0 => "h.0".to_owned(),
                _ => format!("s{}", parent.index(index)),
            };
            join(parent, format!("s{index}"), *link);
        }
        for (index, (parent, link)) in endpoints.iter().enumerate() {
            text += &format!("[[endpoint]]\nname = \"e{index}\"\ndevice = \"d\"\n");
            join(format!("s{}", parent.index(switches.len())), format!("e{index}"), *link);
        }
        Fabric { text: text + &links, endpoints: endpoints.len() }
    })
}

#[derive(Debug, Clone)]
struct Load {
    operation: usize,
    from: prop::sample::Index,
    to: prop::sample::Index,
    lines: u64,
    outstanding: u32,
}

fn loads() -> impl Strategy<Value = Vec<Load>> {
    let load = (
        0usize..8,
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        1u64..200,
        1u32..20,
    );
    let load = load.prop_map(|(operation, from, to, lines, outstanding)| Load {
        operation,
        from,
        to,
        lines,
        outstanding,
    });
    prop::collection::vec(load, 1..10)
}

fn play(fabric: &Fabric, loads: &[Load], arbiter: Arbiter) -> (Vec<dray_pcie::sim::Hop>, u64) {
    let topology = Topology::from_toml(&fabric.text, "random.toml").unwrap();
    let endpoint = |index: usize| topology.find(&format!("e{index}")).unwrap();
    let (mut streams, mut sources) = (Vec::new(), Vec::new());
    for load in loads {
        let from = load.from.index(fabric.endpoints);
        let to = (from + 1 + load.to.index(fabric.endpoints - 1)) % fabric.endpoints;
        let host = topology.find("h").unwrap();
        let Some((operation, name)) = Operation::ALL.get(load.operation) else {
            let mut source = Source::new("source", endpoint(from), endpoint(to));
            source.total_bytes = load.lines * 777;
            source.packet = 1000;
            source.window_bytes = (load.outstanding > 9).then_some(5000);
            if load.operation > Operation::ALL.len() {
                source.window_bytes = Some(u64::from(load.outstanding) * 1000);
                source.request = 128 << (load.lines % 4);
                source.payload = 64;
                source.is_halved = load.lines % 2 == 0;
            }
            sources.push(source);
            continue;
        };
        streams.push(Stream {
            peer: operation.has_peer().then(|| endpoint(to)),
            outstanding: load.outstanding,
            scheduling: Scheduling::LeastOutstanding,
            count: 5,
            ..Stream::new(name, *operation, host, endpoint(from), load.lines * 64)
        });
    }
    let options = SimulationOptions {
        arbiter: Some(arbiter),
        trace: true,
        ..SimulationOptions::default()
    };
    let mut simulation = Simulation::new(&topology, &streams, &sources, &options).unwrap();
    for step in 1..20 {
        simulation.run_until(step * 700).unwrap();
        simulation.audit().unwrap();
    }
    simulation.run_to_end(u64::MAX / 2000).unwrap();
    simulation.audit().unwrap();
    assert_eq!(simulation.tlps_in_flight(), 0);
    for (result, stream) in simulation.streams().iter().zip(&streams) {
        assert_eq!(result.completed, 5);
        assert_eq!(result.bytes, 5 * stream.bytes);
    }
    for (result, source) in simulation.sources().iter().zip(&sources) {
        assert_eq!(
            (result.sent, result.delivered),
            (source.total_bytes, source.total_bytes)
        );
    }
    for hop in simulation.hops() {
        let link = topology.link(topology.edges()[hop.edge as usize].link);
        let rate = dray_pcie::LinkRate::of(link.generation, link.width, link.mps);
        // No header is longer than that of a write.
        let wire = u32::from(hop.payload) + 16 + rate.framing_bytes;
        let longest = f64::from(wire) / rate.tlp_bytes_per_s * 1e12;
        let taken = (hop.end_ps - hop.start_ps) as f64;
        assert!(
            taken <= longest + 1.0,
            "{hop:?} needs {longest} ps of its edge"
        );
    }
    (simulation.hops().to_vec(), simulation.now_ps())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Whatever the fabric and the load: every transfer completes, every byte arrives, credits
    /// add up on the way and at the end, no edge is idle while a TLP can go, none is held for longer than a TLP's bytes take,
    /// and the same input gives the same trace.
    #[test]
    fn all_bytes_arrive_and_credits_are_conserved(fabric in fabric(), loads in loads(), arbiter in 0usize..3) {
        let arbiter = [Arbiter::LeastServed, Arbiter::RoundRobin, Arbiter::OldestFirst][arbiter];
        let first = play(&fabric, &loads, arbiter);
        prop_assert_eq!(first, play(&fabric, &loads, arbiter));
    }
}
