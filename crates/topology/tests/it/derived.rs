//! What a file does not give.

use dray_topology::{NodeKind, Topology};
use proptest::prelude::*;

/// Hosts, a chain of switches with delays, and endpoints: `(generation, width, ns)` of each link.
fn tree(switches: &[(u32, u32, f64)], endpoints: &[(u32, u32, f64)]) -> Topology {
    let mut text = "name = \"derived\"\n[[host]]\nname = \"h\"\nsockets = 2\n".to_owned();
    let mut join = |upper: String,
                    kind: &str,
                    lower: String,
                    more: String,
                    link: (u32, u32, f64)| {
        let (generation, width, latency_ns) = link;
        text += &format!(
            "[[{kind}]]\nname = \"{lower}\"\n{more}[[link]]\nends = [\"{upper}\", \"{lower}\"]\n\
             generation = {generation}\nwidth = {width}\nlatency_ns = {latency_ns:.1}\n"
        );
    };
    for (index, link) in switches.iter().enumerate() {
        let upper = match index {
            0 => "h.0".to_owned(),
            _ => format!("s{}", index - 1),
        };
        let more = format!(
            "forward_ns = {:.1}\nswitching = \"store-and-forward\"\n",
            10.0 * link.2
        );
        join(upper, "switch", format!("s{index}"), more, *link);
    }
    for (index, link) in endpoints.iter().enumerate() {
        let upper = format!("s{}", index % switches.len());
        join(upper, "endpoint", format!("e{index}"), String::new(), *link);
    }
    Topology::from_toml(&text, "derived.toml").unwrap()
}

fn links(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(u32, u32, f64)>> {
    let width = prop::sample::select(vec![1u32, 4, 8, 16]);
    prop::collection::vec((1u32..7, width, 0.0..200.0), count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Buffers that no file gives limit no path below its narrowest edge.
    #[test]
    fn credits_that_nobody_asked_for_limit_nothing(
        switches in links(1..4),
        endpoints in links(2..6),
    ) {
        let topology = tree(&switches, &endpoints);
        let nodes = |endpoint: bool| {
            let nodes = topology.nodes().iter();
            nodes.filter(move |node| matches!(node.kind, NodeKind::Endpoint { .. }) || !endpoint && node.name == "h.1")
        };
        for from in nodes(false) {
            for to in nodes(false).filter(|to| to.name != from.name) {
                let path = topology.route_by_name(&from.name, &to.name).unwrap();
                let widths = path.iter().map(|edge| topology.edge(*edge).capacity_gib_s);
                let narrowest = widths.fold(f64::INFINITY, f64::min);
                let limit = topology.credit_limit_gib_s(&path, 256);
                prop_assert!(limit > narrowest, "{} > {}: {limit} of {narrowest}", from.name, to.name);
            }
        }
    }
}

#[test]
fn credits_of_a_file_are_kept_and_sockets_follow_the_generation() {
    let text = |generation: u32, more: &str| {
        format!(
            "name = \"x\"\n[[host]]\nname = \"h\"\nsockets = 2\n[[endpoint]]\nname = \"e\"\n[[link]]\n\
             ends = [\"h.0\", \"e\"]\ngeneration = {generation}\n{more}"
        )
    };
    let read = |text: &str| Topology::from_toml(text, "x.toml").unwrap();
    let given = read(&text(5, "credits = { posted_data = 64 }\n"));
    let link = given.links().last().unwrap();
    assert_eq!((link.credits.posted_data, link.credits_given), (64, true));
    let derived = read(&text(5, ""));
    let link = derived.links().last().unwrap();
    assert!(link.credits.posted_data > 1024 && !link.credits_given);
    let between = |topology: &Topology| {
        let mut edges = topology.edges().iter();
        edges
            .find(|edge| edge.name == "h.0>h.1")
            .unwrap()
            .capacity_gib_s
    };
    let rates = [3, 4, 5].map(|generation| between(&read(&text(generation, ""))));
    assert!(
        (rates[0] - 38.7).abs() < 0.1 && rates[0] < rates[1] && rates[1] < rates[2],
        "{rates:?}"
    );
}
