//! Inputs and outputs of different speeds: what an arbiter leaves idle.

use super::*;
use proptest::prelude::*;

/// Hosts, switches and endpoints with endless credits: `(parent, generation, width)` of each switch and each endpoint.
type Lines = Vec<(usize, u32, u32)>;

fn tree(switches: &Lines, endpoints: &Lines) -> Topology {
    let mut text = "name = \"speeds\"\n[[host]]\nname = \"h\"\n".to_owned();
    let mut join = |upper: String, kind: &str, lower: String, (generation, width): (u32, u32)| {
        text += &format!(
            "[[{kind}]]\nname = \"{lower}\"\n[[link]]\nends = [\"{upper}\", \"{lower}\"]\ngeneration = {generation}\n\
             width = {width}\nmps = 256\ncredits = {{ posted_headers = 0, posted_data = 0 }}\n"
        );
    };
    for (index, (parent, generation, width)) in switches.iter().enumerate() {
        let parent = match index {
            0 => "h.0".to_owned(),
            _ => format!("s{}", parent % index),
        };
        join(parent, "switch", format!("s{index}"), (*generation, *width));
    }
    for (index, (parent, generation, width)) in endpoints.iter().enumerate() {
        let parent = format!("s{}", parent % switches.len());
        let speed = (*generation, *width);
        join(parent, "endpoint", format!("e{index}"), speed);
    }
    Topology::from_toml(&text, "speeds.toml").unwrap()
}

fn lines(count: std::ops::Range<usize>) -> impl Strategy<Value = Lines> {
    let width = prop::sample::select(vec![1u32, 4, 8, 16]);
    prop::collection::vec((0usize..8, 3u32..7, width), count)
}

/// Runs flows with a wide window for `END_NS`; also the bytes of each edge in the second half, when the windows are full.
fn run_flows<'t>(topology: &'t Topology, flows: &[(String, String)]) -> (Simulation<'t>, Vec<u64>) {
    let sources: Vec<Source> = flows
        .iter()
        .map(|(from, to)| {
            let node = |name: &String| topology.find(name).unwrap();
            Source {
                window_bytes: Some(1 << 18),
                ..Source::new(&format!("{from}>{to}"), node(from), node(to))
            }
        })
        .collect();
    let options = SimulationOptions {
        warmup_ns: END_NS / 2,
        queues: Some(QueueOrganisation::PerOutput),
        ..SimulationOptions::default()
    };
    let mut simulation = Simulation::new(topology, &[], &sources, &options).unwrap();
    simulation.run_until(END_NS / 2).unwrap();
    let before: Vec<u64> = simulation.edges().iter().map(|edge| edge.bytes).collect();
    simulation.run_until(END_NS).unwrap();
    simulation.audit().unwrap();
    let after = simulation.edges();
    let bytes = after
        .iter()
        .zip(before)
        .map(|(edge, before)| edge.bytes - before);
    let bytes = bytes.collect();
    (simulation, bytes)
}

const END_NS: u64 = 150_000;

#[test]
fn a_slow_input_leaves_the_rest_of_a_fast_output_to_others() {
    // Two GPUs at 16 lanes and two NVMe at 4 lanes behind one switch.
    let lanes = [16, 16, 4, 4].map(|width| (0, 5, width)).to_vec();
    let topology = tree(&vec![(0, 5, 16)], &lanes);
    let flows = [("e2", "e0"), ("e3", "e1"), ("h", "e0"), ("e0", "e1")];
    let flows = flows.map(|(from, to)| (from.to_owned(), to.to_owned()));
    let results = run_flows(&topology, &flows).0.sources();
    let capacity = |edge: &str| {
        let edges = topology.edges().iter();
        let mut named = edges.filter(|known| known.name == edge);
        named.next().unwrap().capacity_gib_s
    };
    let (narrow, wide) = (capacity("e2>s0"), capacity("s0>e0"));
    for (result, expected) in results
        .iter()
        .zip([narrow, narrow, wide - narrow, wide - narrow])
    {
        assert!(
            (result.gib_s / expected - 1.0).abs() < 0.02,
            "{result:?} {expected}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// An arbiter conserves work: a flow that neither its window nor credits hold is held by an edge that is full.
    #[test]
    fn every_flow_has_a_full_edge_on_its_path(
        switches in lines(1..4),
        endpoints in lines(2..7),
        ends in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 1..9),
    ) {
        let topology = tree(&switches, &endpoints);
        let count = endpoints.len();
        let flows: Vec<(String, String)> = ends
            .iter()
            .map(|[from, to]| {
                let from = from.index(count);
                let to = (from + 1 + to.index(count - 1)) % count;
                (format!("e{from}"), format!("e{to}"))
            })
            .collect();
        let (_, used) = run_flows(&topology, &flows);
        let seconds = (END_NS / 2) as f64 * 1e-9;
        for (from, to) in &flows {
            let path = topology.route_by_name(from, to).unwrap();
            let fullest = path.iter().map(|edge| {
                let rate = used[edge.0 as usize] as f64 / seconds / f64::from(1u32 << 30);
                rate / topology.edge(*edge).capacity_gib_s
            }).fold(0.0, f64::max);
            prop_assert!(fullest > 0.95, "{} to {}: {}", from, to, fullest);
        }
    }
}
