//! Files of `dray fabric`: topologies, experiments, what tools say of machines; read, or refused with words.

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

const MACHINES: &[&str] = &[
    include_str!("../../pcie/tests/fixtures/hwloc/two-sockets.xml"),
    NCCL,
    MATRIX,
    LSPCI,
];

const NCCL: &str = r#"<system version="1"><cpu numaid="0" affinity="ffff" arch="x86_64">
<pci busid="0000:11:00.0" class="0x060400" link_speed="16 GT/s" link_width="16">
<pci busid="0000:17:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90">
<nvlink target="0000:e7:00.0" count="18" tclass="0x068000"/></gpu></pci>
<pci busid="0000:1c:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"><nic><net name="mlx5_0"/></nic></pci>
</pci></cpu></system>"#;

const MATRIX: &str = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\tSYS\t0-31\t0\n\
    GPU1\tPIX\t X \tNV4\t0-31\t0\nNIC0\tSYS\tPXB\t X \t\t\n";

const LSPCI: &str = "17:01.0 PCI bridge [0604]: Intel Corporation Device [8086:352a] (rev 30)\n\tNUMA node: 1\n\
    \tBus: primary=17, secondary=18, subordinate=19, sec-latency=0\n\
    18:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2331] (rev a1)\n\
    \t\t\tMaxPayload 256 bytes, MaxReadReq 4096 bytes\n\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16\n\
    \t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16\n6a:01.0 System peripheral: Intel Corporation Device 0b25\n";

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
            _ => import_text(&text(draw, MACHINES), "hostile", "machine").map(|imported| {
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
