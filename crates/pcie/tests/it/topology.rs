//! Topology files: what is shipped, routes, and what is refused.

use std::path::Path;

use dray_pcie::{NodeKind, PcieError, Topology, built_in_names};

fn names(topology: &Topology, from: &str, to: &str) -> Vec<String> {
    let path = topology.route_by_name(from, to).unwrap();
    path.iter()
        .map(|edge| topology.edge(*edge).name.clone())
        .collect()
}

#[test]
fn shipped_topologies_route_every_pair() {
    for name in built_in_names() {
        let topology = Topology::resolve(name).unwrap();
        assert_eq!(topology.name, name);
        let ends: Vec<_> = topology.endpoints().chain(topology.sockets()).collect();
        for from in &ends {
            for to in ends.iter().filter(|to| *to != from) {
                let path = topology.route(*from, *to).unwrap();
                assert_eq!(topology.edge(path[0]).from, *from);
                assert_eq!(topology.edge(path[path.len() - 1]).to, *to);
                for pair in path.windows(2) {
                    assert_eq!(topology.edge(pair[0]).to, topology.edge(pair[1]).from);
                }
            }
        }
    }
}

#[test]
fn the_validation_layout_has_the_paths_and_capacities_of_table_2() {
    let topology = Topology::resolve("validation").unwrap();
    assert_eq!(
        names(&topology, "host", "C"),
        ["host.0>H", "H>S", "S>N", "N>C"]
    );
    assert_eq!(names(&topology, "C", "B"), ["C>N", "N>S", "S>M", "M>B"]);
    assert_eq!(names(&topology, "C", "D"), ["C>N", "N>D"]);
    let capacity = |name: &str| {
        let edge = topology
            .edges()
            .iter()
            .find(|edge| edge.name == name)
            .unwrap();
        assert!(edge.capacity_given);
        edge.capacity_gib_s
    };
    let expected = [
        ("H>S", 11.55),
        ("S>H", 12.25),
        ("S>M", 15.56),
        ("N>S", 15.46),
        ("M>A", 8.74),
        ("D>N", 11.7),
    ];
    for (name, value) in expected {
        assert_eq!(capacity(name), value, "{name}");
    }
}

#[test]
fn a_fat_tree_spreads_receivers_over_spines_and_keeps_a_pair_on_its_path() {
    let topology = Topology::resolve("fat-tree").unwrap();
    let spine = |to: &str| names(&topology, "e0_0", to)[1].clone();
    let spines: std::collections::BTreeSet<_> = (0..6).map(|i| spine(&format!("e1_{i}"))).collect();
    assert_eq!(spines.len(), 2);
    assert_eq!(names(&topology, "e0_0", "e3_5").len(), 4);
    assert_eq!(names(&topology, "e0_0", "e0_5").len(), 2);
    assert_eq!(spine("e1_3"), spine("e1_3"));
}

#[test]
fn ports_are_numbered_from_0_and_edges_have_their_reverse() {
    let topology = Topology::resolve("testbed").unwrap();
    for (index, edge) in topology.edges().iter().enumerate() {
        assert_eq!(
            topology.node(edge.to).inputs[edge.ingress_port as usize].0 as usize,
            index
        );
        assert_eq!(
            topology.node(edge.from).outputs[edge.egress_port as usize].0 as usize,
            index
        );
        let reverse = topology.edge(edge.reverse);
        assert_eq!((reverse.from, reverse.to), (edge.to, edge.from));
    }
    assert!(
        topology
            .nodes()
            .iter()
            .any(|node| node.kind == NodeKind::Switch)
    );
}

const TWO: &str = r#"
name = "two"
[[host]]
name = "h"
[[switch]]
name = "s"
[[endpoint]]
name = "a"
[[endpoint]]
name = "b"
[[link]]
ends = ["h.0", "s"]
[[link]]
ends = ["s", "a"]
[[link]]
ends = ["s", "b"]
"#;

#[test]
fn each_error_names_file_entry_and_rule() {
    let cases = [
        (
            "name = \"b\"",
            "name = \"a\"",
            "endpoint `a`",
            "the name `a` is taken",
        ),
        (
            "[\"s\", \"b\"]",
            "[\"s\", \"b\"]\nwidth = 3",
            "link 3 (s - b)",
            "width = 3",
        ),
        (
            "[\"s\", \"b\"]",
            "[\"s\", \"b\"]\ndown_gib_s = -1.0",
            "link 3 (s - b)",
            "down_gib_s = -1 is not a capacity",
        ),
        (
            "[\"s\", \"b\"]",
            "[\"s\", \"b\"]\nup_gib_s = nan",
            "link 3",
            "up_gib_s = NaN",
        ),
        (
            "[\"s\", \"b\"]",
            "[\"s\", \"b\"]\nkind = \"cabel\"",
            "link 3 (s - b)",
            "kind = \"cabel\"; did you mean `cable`?",
        ),
        (
            "[\"s\", \"b\"]",
            "[\"s\", \"b\"]\nmps = 300",
            "link 3",
            "mps = 300",
        ),
        (
            "[\"s\", \"b\"]",
            "[\"s\", \"b\"]\ngeneration = 9",
            "link 3",
            "generation = 9",
        ),
        (
            "[\"s\", \"b\"]",
            "[\"s\", \"c\"]",
            "link 3 (s - c)",
            "has no node `c`; known: ",
        ),
        (
            "[\"s\", \"b\"]",
            "[\"s\", \"s\"]",
            "link 3",
            "joins a node to itself",
        ),
        ("[\"s\", \"b\"]", "[\"s\"]", "link 3", "`ends` has 1 names"),
        (
            "[\"s\", \"b\"]",
            "[\"s\", \"a\"]",
            "endpoint `a`",
            "has 2 links",
        ),
        (
            "[\"s\", \"b\"]",
            "[\"s\", \"b\"]\n[[link]]\nends = [\"h.0\", \"s\"]",
            "link h.0 - s",
            "closes a cycle",
        ),
        (
            "[\"s\", \"b\"]",
            "[\"s\", \"b\"]\nlatency_ns = -5.0",
            "link 3",
            "latency_ns = -5",
        ),
        (
            "[\"s\", \"b\"]",
            "[\"s\", \"b\"]\ncredits = { posted_data = 1 }",
            "link 3",
            "credits.posted_data = 1",
        ),
        (
            "name = \"b\"",
            "name = \"b\"\ndevice = \"x\"",
            "endpoint `b`",
            "names no [[device]]",
        ),
        (
            "name = \"h\"",
            "name = \"h h\"",
            "host `h h`",
            "without blanks",
        ),
        (
            "name = \"h\"",
            "name = \"h\"\nsockets = 0",
            "host `h`",
            "sockets = 0",
        ),
    ];
    for (old, new, entry, rule) in cases {
        let text = TWO.replace(old, new);
        let error = Topology::from_toml(&text, "two.toml").unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("two.toml: "), "{message}");
        assert!(
            message.contains(entry) && message.contains(rule),
            "{message}"
        );
        assert!(error.is_bad_input() && error.hint().is_some());
    }
    let unknown = Topology::from_toml(
        &TWO.replace("name = \"s\"", "name = \"s\"\nspeed = 3"),
        "two.toml",
    );
    assert!(unknown.unwrap_err().to_string().contains("speed"));
}

#[test]
fn a_cycle_needs_routes_without_deadlock() {
    let ring = r#"
name = "ring"
[[switch]]
name = "x"
[[switch]]
name = "y"
[[switch]]
name = "z"
[[endpoint]]
name = "a"
[[endpoint]]
name = "b"
[[endpoint]]
name = "c"
[[link]]
ends = ["x", "y"]
[[link]]
ends = ["y", "z"]
[[link]]
ends = ["z", "x"]
[[link]]
ends = ["x", "a"]
[[link]]
ends = ["y", "b"]
[[link]]
ends = ["z", "c"]
"#;
    let error = Topology::from_toml(ring, "ring.toml")
        .unwrap_err()
        .to_string();
    assert!(error.contains("closes a cycle"), "{error}");
    let route = |from: &str, to: &str, via: &str| {
        format!("[[route]]\nfrom = \"{from}\"\nto = \"{to}\"\nvia = {via}\n")
    };
    let short = ring.to_owned() + &route("a", "b", r#"["x", "y"]"#);
    let topology = Topology::from_toml(&short, "ring.toml").unwrap();
    assert_eq!(names(&topology, "a", "b"), ["a>x", "x>y", "y>b"]);
    let error = topology.route_by_name("a", "c").unwrap_err().to_string();
    assert!(error.contains("no [[route]] joins them"), "{error}");
    let circle = ring.to_owned()
        + &route("a", "c", r#"["x", "y", "z"]"#)
        + &route("b", "a", r#"["y", "z", "x"]"#)
        + &route("c", "b", r#"["z", "x", "y"]"#);
    let error = Topology::from_toml(&circle, "ring.toml")
        .unwrap_err()
        .to_string();
    assert!(error.contains("wait for each other in a circle"), "{error}");
    let gap = ring.to_owned() + &route("a", "c", r#"["y", "z"]"#);
    let error = Topology::from_toml(&gap, "ring.toml")
        .unwrap_err()
        .to_string();
    assert!(error.contains("no link joins `a` and `y`"), "{error}");
}

#[test]
fn unconnected_parts_have_no_path() {
    let text = TWO.replace("[[link]]\nends = [\"h.0\", \"s\"]\n", "");
    let topology = Topology::from_toml(&text, "two.toml").unwrap();
    let error = topology.route_by_name("h", "a").unwrap_err();
    assert_eq!(
        error.to_string(),
        "two: no path from `h.0` to `a`: no chain of links joins them"
    );
    assert!(matches!(
        topology.route_by_name("a", "q"),
        Err(PcieError::NoNode { .. })
    ));
    let meant = |topology: &Topology, name| topology.find(name).unwrap_err().to_string();
    let gpus = Topology::resolve("gpu8").unwrap();
    assert!(meant(&gpus, "gup1").ends_with("did you mean `gpu1`?"));
    assert!(topology.route_by_name("a", "a").is_err());
    assert!(
        Topology::resolve("/nonexistent/x.toml")
            .unwrap_err()
            .to_string()
            .contains("testbed")
    );
}

mod random {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn random_text_is_parsed_or_refused(text in "\\PC*") {
            let _ = Topology::from_toml(&text, "any.toml");
        }

        #[test]
        fn files_with_changed_bytes_are_parsed_or_refused(
            changes in prop::collection::vec((0usize..4000, 32u8..127), 1..4)
        ) {
            let mut text = dray_pcie::built_in("testbed").unwrap().as_bytes().to_vec();
            let length = text.len();
            for (at, byte) in changes {
                text[at % length] = byte;
            }
            if let Ok(text) = String::from_utf8(text) {
                let _ = Topology::from_toml(&text, "changed.toml");
            }
        }
    }
}

/// Left, upper, right and lower sides of the boxes of a picture, and the labels of its links: place, width and text.
type Parts = (Vec<[f64; 4]>, Vec<(f64, f64, f64, String)>);

fn parts(svg: &str) -> Parts {
    let number = |line: &str, key: &str| -> f64 {
        let rest = line.split(&format!("{key}=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let boxes = svg.lines().filter(|line| line.contains("<rect x="));
    let boxes = boxes.map(|line| {
        let rect = line.split("<rect").nth(1).unwrap();
        let [x, y] = ["x", "y"].map(|key| number(rect, &format!(" {key}")));
        [
            x,
            y,
            x + number(rect, " width"),
            y + number(rect, " height"),
        ]
    });
    let labels = svg.lines().filter(|line| line.contains("paint-order"));
    let labels = labels.map(|line| {
        let text = line.split('>').nth(1).unwrap().split('<').next().unwrap();
        let width = text.chars().count() as f64 * 5.0;
        (
            number(line, " x"),
            number(line, " y"),
            width,
            text.to_owned(),
        )
    });
    (boxes.collect(), labels.collect())
}

#[test]
fn labels_and_boxes_of_pictures_do_not_overlap() {
    for name in built_in_names() {
        let svg = Topology::resolve(name).unwrap().to_svg();
        let (boxes, labels) = parts(&svg);
        assert!(!boxes.is_empty() && !labels.is_empty(), "{name}");
        for (at, a) in boxes.iter().enumerate() {
            for b in &boxes[..at] {
                let meet = a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
                assert!(!meet, "{name}: two boxes meet");
            }
        }
        for (at, (x, y, width, text)) in labels.iter().enumerate() {
            for (ox, oy, other, words) in &labels[..at] {
                let apart = (x - ox).abs() >= (width + other) / 2.0 || (y - oy).abs() >= 9.0;
                assert!(apart, "{name}: `{text}` on `{words}`");
            }
            for [left, top, right, bottom] in &boxes {
                let inside = x + width / 2.0 > *left && x - width / 2.0 < *right;
                assert!(
                    !(inside && y > top && y - 8.0 < *bottom),
                    "{name}: `{text}` on a box"
                );
            }
        }
    }
}

#[test]
fn sockets_of_a_host_are_drawn_side_by_side() {
    let svg = Topology::resolve("testbed").unwrap().to_svg();
    let place = |name: &str| svg.find(&format!("<title>{name}</title>")).unwrap();
    assert!(place("host1.0") < svg.len() && place("host2.1") < svg.len());
    let (boxes, _) = parts(&svg);
    let x = |index: usize| boxes[index][0];
    // The file has host1.0, host1.1, host2.0 and host2.1 first.
    assert!(x(0) < x(1) && x(1) < x(2) && x(2) < x(3), "{boxes:?}");
}

#[test]
fn endless_files_are_refused() {
    for device in ["/dev/zero", "/dev/full"] {
        let error = Topology::resolve(device).unwrap_err().to_string();
        assert!(error.contains("is longer than"), "{error}");
    }
    let error = dray_pcie::read_text(Path::new("/dev/zero"), 100).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
}
