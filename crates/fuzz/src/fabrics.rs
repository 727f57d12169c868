//! Files of `dray fabric`: topologies, experiments, hwloc's XML; read, or refused with words.

use dray_pcie::bench::FabricExperiment;
use dray_pcie::{Topology, import_text};

use crate::draw::Draw;
use crate::text::text;

const TOPOLOGIES: &[&str] = &[
    include_str!("../../../fabrics/local.toml"),
    include_str!("../../../fabrics/testbed.toml"),
    include_str!("../../../fabrics/fat-tree.toml"),
];

const EXPERIMENTS: &[&str] = &[
    include_str!("../../../fabrics/experiments/arrival.toml"),
    include_str!("../../../fabrics/experiments/partition.toml"),
];

const MACHINES: &[&str] = &[include_str!(
    "../../pcie/tests/fixtures/hwloc/two-sockets.xml"
)];

/// Reads a text as one of the files. What is accepted must hold together: a topology finds routes or says which it has not, and
/// can be drawn; an imported machine is a topology that can be read.
///
/// # Panics
///
/// If the parser violates an invariant.
pub fn fabrics(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let refused =
        match draw.below(3) {
            0 => Topology::from_toml(&text(draw, TOPOLOGIES), "hostile.toml").map(|topology| {
                assert!(topology.to_text().contains(&topology.name));
                assert!(topology.to_svg().ends_with("</svg>\n"));
                let ends: Vec<_> = topology.sockets().chain(topology.endpoints()).collect();
                for to in ends.iter().skip(1).take(4) {
                    if let Ok(route) = topology.route(ends[0], *to) {
                        assert!(route.windows(2).all(|pair| {
                            topology.edge(pair[0]).to == topology.edge(pair[1]).from
                        }));
                    }
                }
            }),
            1 => FabricExperiment::parse(&text(draw, EXPERIMENTS), "hostile.toml").map(|_| ()),
            _ => import_text(&text(draw, MACHINES), "hostile.xml", "machine").map(|imported| {
                let read = Topology::from_toml(&imported.toml, "machine.toml");
                assert!(read.is_ok(), "what was imported cannot be read: {read:?}");
            }),
        };
    if let Err(error) = refused {
        assert!(!error.to_string().is_empty(), "an error without words");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unedited_fabric_files_are_valid() {
        for text in TOPOLOGIES {
            Topology::from_toml(text, "good").unwrap();
        }
        for text in EXPERIMENTS {
            FabricExperiment::parse(text, "good").unwrap();
        }
        for text in MACHINES {
            import_text(text, "good", "machine").unwrap();
        }
    }
}
