//! What estimates of paths rest on and no file says.

use std::collections::{BTreeMap, BTreeSet};

use dray_flow::EdgeId;
use dray_pcie::Topology;

use crate::carriage::forwarders;
use crate::network::topology_edges;

/// Links and sockets that a sentence names at most.
const NAMED: usize = 3;

/// What is not known of the ways of flows, one sentence each: links whose speed an import could not read, and root
/// complexes between devices whose limit the topology does not give. `what` is the word for several flows.
pub fn caveats<'p>(
    topology: &Topology,
    what: &str,
    paths: impl Iterator<Item = &'p [EdgeId]>,
) -> Vec<String> {
    let (mut defaults, mut sockets) = (BTreeMap::new(), BTreeSet::new());
    let (mut count, mut peers, mut besides) = (0, 0, 0);
    let mut kinds = BTreeSet::new();
    for path in paths {
        count += 1;
        let path = topology_edges(topology, path);
        for &id in &path {
            let edge = topology.edge(id);
            let link = topology.link(edge.link);
            let is_speed = |key: &String| matches!(key.as_str(), "generation" | "width");
            if !edge.capacity_given && link.unread.iter().any(is_speed) {
                let speed = format!("{} (Gen{} x{})", edge.name, link.generation, link.width);
                defaults.entry(edge.link.0).or_insert(speed);
            }
        }
        let beside = links_beside(topology, &path);
        besides += usize::from(!beside.is_empty());
        kinds.extend(beside);
        let unlimited = forwarders(topology, &path);
        if !unlimited.is_empty() {
            peers += 1;
            sockets.extend(unlimited.into_iter().map(|node| node.name.clone()));
        }
    }
    let mut notes = Vec::new();
    if !defaults.is_empty() {
        let links = dray_output::counted(defaults.len(), "link");
        let names = first(defaults.values());
        notes.push(format!(
            "the speed of {links} on the way could not be read and is the default: {names}"
        ));
    }
    if besides > 0 {
        notes.push(format!(
            "{besides} of {count} {what} go over PCIe here; the machine has {}, which the topology leaves out, and where it joins \
             their ends they may be many times faster",
            kinds.into_iter().collect::<Vec<_>>().join(" and ")
        ));
    }
    if peers > 0 {
        notes.push(format!(
            "{peers} of {count} {what} go from device to device through {}, and the topology does not say how much a root complex \
             forwards (peer_write_gib_s): rates may be too high; 7 to 26 GB/s have been measured with x16 links of Gen3 and Gen4",
            first(sockets.iter())
        ));
    }
    notes
}

/// Kinds of links that the topology does not have and that may join the ends of a path.
fn links_beside<'t>(topology: &'t Topology, path: &[dray_pcie::EdgeId]) -> Vec<&'t str> {
    let (Some(&first), Some(&last)) = (path.first(), path.last()) else {
        return Vec::new();
    };
    let ends = [topology.edge(first).from, topology.edge(last).to];
    let ends = ends.map(|end| &topology.node(end).kind);
    let gpus = ends.into_iter().filter(|kind| kind.is_gpu()).count();
    let sockets = ends.into_iter().filter(|kind| kind.is_socket()).count();
    let kinds = topology.left_out.iter().map(String::as_str);
    let joins = |kind: &&str| match *kind {
        "c2c" => gpus == 1 && sockets == 1,
        _ => gpus == 2,
    };
    kinds.filter(joins).collect()
}

fn first<'n>(names: impl ExactSizeIterator<Item = &'n String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let named: Vec<&str> = names.take(NAMED).map(String::as_str).collect();
    match more {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{network, route};

    const DESK: &str = r#"
        name = "desk"
        [[host]]
        name = "pc"
        [[endpoint]]
        name = "a"
        [[endpoint]]
        name = "b"
        [[link]]
        ends = ["pc.0", "a"]
        [[link]]
        ends = ["pc.0", "b"]
        unread = ["generation", "width", "mps"]
    "#;

    fn of(text: &str, pairs: &[(&str, &str)]) -> (Vec<String>, Vec<f64>) {
        let topology = Topology::from_toml(text, "desk.toml").unwrap();
        let network = network(&topology).unwrap();
        let path = |(from, to): &(&str, &str)| route(&topology, &network, from, to).unwrap();
        let paths: Vec<_> = pairs.iter().map(path).collect();
        let narrowest = |path: &Vec<EdgeId>| {
            let widths = path.iter().map(|edge| network.edge(*edge).capacity());
            widths.fold(f64::INFINITY, f64::min)
        };
        let notes = caveats(&topology, "flows", paths.iter().map(Vec::as_slice));
        (notes, paths.iter().map(narrowest).collect())
    }

    #[test]
    fn peer_traffic_has_the_limit_of_the_root_complex_or_a_note() {
        let pairs = [("a", "b"), ("pc", "a"), ("b", "pc")];
        let (notes, _) = of(DESK, &pairs);
        assert!(
            notes[1].starts_with("1 of 3 flows go from device to device through pc.0"),
            "{notes:?}"
        );
        let limit = "[host.timing]\n        peer_write_gib_s = 4.5\n        [[endpoint]]\n        name = \"a\"";
        let limited = DESK.replacen("[[endpoint]]\n        name = \"a\"", limit, 1);
        let (notes, widths) = of(&limited, &pairs);
        assert!(
            !notes.iter().any(|note| note.contains("root complex")),
            "{notes:?}"
        );
        assert_eq!(widths[0], 4.5);
        // A core's and the memory's traffic is not forwarded.
        assert!(widths[1] > 12.0 && widths[2] > 12.0, "{widths:?}");
    }

    #[test]
    fn links_of_other_kinds_that_a_file_leaves_out_are_named() {
        let gpus = DESK.replace("name = \"a\"", "name = \"a\"\n        kind = \"gpu\"");
        let gpus = gpus.replace("name = \"b\"", "name = \"b\"\n        kind = \"gpu\"");
        let pairs = [("a", "b"), ("pc", "a")];
        let beside = |left_out: &str| {
            let (notes, _) = of(&format!("left_out = {left_out}\n{gpus}"), &pairs);
            let mut notes = notes.into_iter();
            notes.find(|note| note.contains("leaves out"))
        };
        let nvlink = beside("[\"nvlink\"]").unwrap();
        assert!(nvlink.starts_with("1 of 2 flows go over PCIe here; the machine has nvlink"));
        assert!(beside("[\"c2c\"]").unwrap().contains("1 of 2 flows"));
        assert_eq!(beside("[]"), None);
        let both = beside("[\"nvlink\", \"c2c\"]").unwrap();
        assert!(
            both.starts_with("2 of 2") && both.contains("has c2c and nvlink"),
            "{both}"
        );
        assert!(Topology::from_toml(&format!("left_out = [\"cable\"]\n{gpus}"), "x").is_err());
    }

    #[test]
    fn links_with_a_default_for_their_speed_are_named() {
        let (notes, _) = of(DESK, &[("pc", "b")]);
        assert_eq!(
            notes,
            [
                "the speed of 1 link on the way could not be read and is the default: pc.0>b (Gen3 x16)"
            ]
        );
        assert!(of(DESK, &[("pc", "a")]).0.is_empty());
        let given = DESK.replace(
            "unread",
            "down_gib_s = 7.0\n        up_gib_s = 7.0\n        unread",
        );
        assert!(of(&given, &[("pc", "b")]).0.is_empty());
    }
}
