//! Sizes of TLPs by kind and generation.

use dray_topology::{Size, Topology};

fn machine(generation: u32, more: &str) -> Topology {
    let text = format!(
        "name = \"m\"\n[link_defaults]\ngeneration = {generation}\n\
         [[host]]\nname = \"pc\"\n{more}\n\
         [[endpoint]]\nname = \"gpu\"\nkind = \"gpu\"\n[[endpoint]]\nname = \"disk\"\nkind = \"nvme\"\n\
         [[link]]\nends = [\"pc.0\", \"gpu\"]\n[[link]]\nends = [\"pc.0\", \"disk\"]\nwidth = 4\n"
    );
    Topology::from_toml(&text, "m.toml").unwrap()
}

/// Least, usual and greatest payload of what `from` sends to `to`, and what `to` asks for.
fn sizes(topology: &Topology, from: &str, to: &str) -> [[u32; 3]; 2] {
    let path = topology.route_by_name(from, to).unwrap();
    let node = |name| topology.find(name).unwrap();
    let all = |size: Size| [size.least, size.usual, size.most];
    let sent = topology.payload(node(from), &path);
    [all(sent), all(topology.request(node(to), &path))]
}

#[test]
fn usual_sizes_follow_kind_and_generation() {
    for (generation, gpu, completion) in [(3, 128, 128), (4, 128, 128), (5, 256, 256)] {
        let topology = machine(generation, "");
        assert_eq!(sizes(&topology, "gpu", "pc")[0], [128, gpu, 256]);
        assert_eq!(
            sizes(&topology, "pc", "gpu"),
            [[64, completion, 256], [128, gpu, 512]]
        );
        assert_eq!(
            sizes(&topology, "pc", "disk"),
            [[64, completion, 256], [512; 3]]
        );
        assert_eq!(sizes(&topology, "disk", "pc")[0], [128, 256, 256]);
        // Completions of a root complex are of this size every other time.
        let path = topology.route_by_name("pc", "gpu").unwrap();
        let [host, gpu] = ["pc", "gpu"].map(|name| topology.find(name).unwrap());
        assert!(topology.payload(host, &path).is_halved);
        assert!(!topology.payload(gpu, &path).is_halved);
    }
}

#[test]
fn what_a_file_says_has_no_range_and_the_mps_limits_all() {
    let topology = machine(3, "[host.timing]\ncompletion_bytes = 512");
    assert_eq!(sizes(&topology, "pc", "gpu")[0], [256; 3]);
    let small = Topology::from_toml(
        "name = \"m\"\n[link_defaults]\nmps = 128\n[[host]]\nname = \"pc\"\n[[device]]\nname = \"wide\"\n\
         [device.timing]\npayload_bytes = 256\n[[endpoint]]\nname = \"gpu\"\nkind = \"gpu\"\ndevice = \"wide\"\n\
         [[link]]\nends = [\"pc.0\", \"gpu\"]\n",
        "m.toml",
    );
    assert_eq!(sizes(&small.unwrap(), "gpu", "pc")[0], [128; 3]);
    let odd = "name = \"m\"\n[[device]]\nname = \"d\"\n[device.timing]\npayload_bytes = 100\n";
    let error = Topology::from_toml(odd, "m.toml").unwrap_err();
    assert!(error.to_string().contains("payload_bytes = 100"), "{error}");
}
