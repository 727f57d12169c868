//! Files of hwloc as Debian's `lstopo` (2.9.0) wrote them: `lstopo-no-graphics --whole-io --of xml`.

use std::path::Path;

use dray_pcie::{NodeKind, Topology, import};

fn fixture(name: &str) -> (Topology, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/hwloc")
        .join(name);
    let imported = import(&path, "machine").unwrap();
    let topology = Topology::from_toml(&imported.toml, "machine.toml").unwrap();
    (topology, imported.toml)
}

/// Written from a made-up sysfs (`HWLOC_FSROOT`): a switch with a GPU and a disk, and a NIC at the other socket.
#[test]
fn a_machine_of_two_sockets_with_a_switch_is_imported() {
    let (topology, toml) = fixture("two-sockets.xml");
    let names: Vec<&str> = topology.nodes().iter().map(|n| n.name.as_str()).collect();
    for name in [
        "host.0",
        "host.1",
        "0000:01:00.0",
        "0000:03:00.0",
        "0000:81:00.0",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(
        !names.contains(&"0000:81:00.1"),
        "a function of a device: {names:?}"
    );
    let words = |name: &str| match &topology.node(topology.find(name).unwrap()).kind {
        NodeKind::Endpoint { word, .. } => word.clone(),
        kind => kind.word().to_owned(),
    };
    assert_eq!(words("0000:03:00.0"), "gpu");
    assert_eq!(words("0000:04:00.0"), "nvme");
    assert_eq!(words("0000:01:00.0"), "switch");
    let path = |from: &str, to: &str| -> Vec<(String, f64)> {
        let path = topology.route_by_name(from, to).unwrap();
        path.iter()
            .map(|edge| topology.edge(*edge))
            .map(|edge| (edge.name.clone(), edge.capacity_gib_s))
            .collect()
    };
    // The NUMA node of each host bridge is its socket.
    assert_eq!(path("host.1", "0000:81:00.0").len(), 1);
    let disk = path("host.0", "0000:04:00.0");
    assert_eq!(disk[1].0, "0000:01:00.0>0000:04:00.0");
    // 7.876923 GB/s in the file: of Gen4 x4, 6.5 GiB/s of which are payload.
    assert!((disk[1].1 - 6.55).abs() < 0.1, "{disk:?}");
    assert!(toml.contains("unread"), "{toml}");
    assert!(topology.to_svg().contains("0000:03:00.0"));
}

/// A virtual machine: functions beside the root complex, without links.
#[test]
fn a_virtual_machine_is_imported_without_links() {
    let (topology, toml) = fixture("virtual-machine.xml");
    let endpoints: Vec<&str> = topology
        .endpoints()
        .map(|node| topology.node(node).name.as_str())
        .collect();
    assert_eq!(endpoints, ["0000:00:02.0", "0000:00:03.0"]);
    assert!(
        toml.contains("unread = [\"generation\", \"width\", \"mps\", \"mrrs\"]"),
        "{toml}"
    );
}

mod captured {
    use std::fs;

    use dray_pcie::{Topology, import};
    use proptest::prelude::*;

    fn word() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(b"0x060400\n".to_vec()),
            Just(b"0x010802\n".to_vec()),
            Just(b"8.0 GT/s PCIe\n".to_vec()),
            Just(b"Unknown\n".to_vec()),
            Just(b"-1\n".to_vec()),
            Just(b"16\n".to_vec()),
            "[0-9a-fx. ]{0,12}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..300),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Captures come from users: each gives a topology that can be read back, or an error.
        #[test]
        fn random_captures_are_imported_or_refused(
            functions in proptest::collection::vec(
                (0u8..4, 0u8..3, proptest::collection::vec((0usize..6, word()), 0..6)), 1..8)
        ) {
            let directory = tempfile::tempdir().unwrap();
            let mut path = directory.path().join("devices/pci0000:00");
            for (bus, (device, function, files)) in functions.into_iter().enumerate() {
                path = path.join(format!("0000:{bus:02x}:{device:02x}.{function}"));
                fs::create_dir_all(&path).unwrap();
                fs::write(path.join("class"), if bus % 2 == 0 { "0x060400" } else { "0x010802" }).unwrap();
                for (name, bytes) in files {
                    let names = ["class", "current_link_speed", "current_link_width", "numa_node", "config", "max_link_speed"];
                    fs::write(path.join(names[name]), bytes).unwrap();
                }
            }
            if let Ok(imported) = import(directory.path(), "machine") {
                prop_assert!(Topology::from_toml(&imported.toml, "machine.toml").is_ok());
            }
        }
    }
}
