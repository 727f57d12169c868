//! A fat tree from parameters.

use super::file::{EndpointEntry, FatTree, ForwarderEntry, HostEntry, LinkEntry, TopologyFile};
use super::rules::Rules;
use super::{HostParameters, Switching};
use crate::PcieError;

/// Adds the nodes and links of the tree to the file.
///
/// Leaf `i` is `leafI`, spine `spineI`; the hosts and endpoints of a leaf are `hI_J` and `eI_J`.
pub(super) fn expand(
    tree: &FatTree,
    file: &mut TopologyFile,
    rules: &Rules<'_>,
) -> Result<(), PcieError> {
    for (key, value, max) in [
        ("spines", tree.spines, 63),
        ("leaves", tree.leaves, 63),
        ("endpoints_per_leaf", tree.endpoints_per_leaf, 62),
    ] {
        if !(1..=max).contains(&value) {
            return Err(rules.error(
                "fat_tree",
                format!("{key} = {value} is not between 1 and {max}"),
            ));
        }
    }
    let ports = tree.spines + tree.hosts_per_leaf.min(64) + tree.endpoints_per_leaf;
    if ports > 63 {
        return Err(rules.error(
            "fat_tree",
            format!("a leaf has {ports} links; the limit is 63"),
        ));
    }
    let switch = |name: String, level| ForwarderEntry {
        name,
        ntb_ns: tree.ntb_ns,
        forward_ns: tree.forward_ns,
        host_side_ns: 0.0,
        queues: tree.queues,
        switching: Switching::CutThrough,
        arbiter: None,
        level: Some(level),
    };
    let link = |upper: &str, lower: &str, width| LinkEntry {
        ends: vec![upper.to_owned(), lower.to_owned()],
        width,
        ..LinkEntry::default()
    };
    for spine in 0..tree.spines {
        file.switches.push(switch(format!("spine{spine}"), 2));
    }
    for leaf in 0..tree.leaves {
        let leaf_name = format!("leaf{leaf}");
        file.switches.push(switch(leaf_name.clone(), 1));
        for spine in 0..tree.spines {
            let width = Some(tree.uplink_width);
            file.links
                .push(link(&format!("spine{spine}"), &leaf_name, width));
        }
        for index in 0..tree.hosts_per_leaf {
            let name = format!("h{leaf}_{index}");
            file.links
                .push(link(&format!("{name}.0"), &leaf_name, None));
            file.hosts.push(HostEntry {
                name,
                sockets: 1,
                timing: HostParameters::default(),
            });
        }
        for index in 0..tree.endpoints_per_leaf {
            let name = format!("e{leaf}_{index}");
            file.links.push(link(&leaf_name, &name, None));
            file.endpoints.push(EndpointEntry {
                name,
                kind: "device".to_owned(),
                device: tree.device.clone(),
            });
        }
    }
    Ok(())
}
