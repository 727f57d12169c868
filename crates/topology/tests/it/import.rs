//! Machines as their tools describe them.

use std::fs;
use std::path::Path;

use dray_topology::{Imported, NodeKind, Topology, import, import_text};

fn topology(imported: &Imported) -> Topology {
    Topology::from_toml(&imported.toml, "imported.toml").unwrap()
}

/// Each endpoint: its word, the node above it, and the link between them.
fn endpoints(topology: &Topology) -> Vec<String> {
    let endpoints = topology.nodes().iter().filter_map(|node| {
        let NodeKind::Endpoint { word, .. } = &node.kind else {
            return None;
        };
        let edge = topology.edge(node.inputs[0]);
        let link = topology.link(edge.link);
        let (upper, speed) = (
            &topology.node(edge.from).name,
            (link.generation, link.width),
        );
        Some(format!(
            "{} {word} {upper} Gen{} x{}",
            node.name, speed.0, speed.1
        ))
    });
    endpoints.collect()
}

fn has_note(imported: &Imported, words: &str) -> bool {
    imported.notes.iter().any(|note| note.contains(words))
}

/// Files of a function in sysfs.
fn function(directory: &Path, class: &str, numa: u32, link: Option<(&str, &str, u32)>) {
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("class"), class).unwrap();
    fs::write(directory.join("numa_node"), numa.to_string()).unwrap();
    let Some((now, most, width)) = link else {
        return;
    };
    fs::write(directory.join("current_link_speed"), now).unwrap();
    fs::write(directory.join("max_link_speed"), most).unwrap();
    fs::write(directory.join("current_link_width"), width.to_string()).unwrap();
}

const GEN5: Option<(&str, &str, u32)> = Some(("32.0 GT/s PCIe", "32.0 GT/s PCIe", 16));

#[test]
fn an_idle_gpu_has_the_speed_that_its_link_can_do() {
    let root = tempfile::tempdir().unwrap();
    let idle = Some(("2.5 GT/s PCIe", "32.0 GT/s PCIe", 16));
    for (port, class) in [("0000:00:01.0", "0x030200"), ("0000:00:02.0", "0x010802")] {
        let port = root.path().join("devices/pci0000:00").join(port);
        function(&port, "0x060400", 0, idle);
        let bus = if class == "0x030200" { "01" } else { "02" };
        function(&port.join(format!("0000:{bus}:00.0")), class, 0, idle);
    }
    let imported = import(root.path(), "machine").unwrap();
    // What holds an NVMe back is not idleness: the file has what it runs at.
    let expected = [
        "0000:01:00.0 gpu host.0 Gen5 x16",
        "0000:02:00.0 nvme host.0 Gen1 x16",
    ];
    assert_eq!(endpoints(&topology(&imported)), expected);
    assert!(has_note(
        &imported,
        "0000:01:00.0 runs at Gen1 now, as idle devices do; its link can do Gen5"
    ));
    assert!(has_note(
        &imported,
        "0000:02:00.0 runs at Gen1, which the file has; its link can do Gen5"
    ));
}

#[test]
fn functions_share_a_port_and_root_ports_hide_in_places() {
    let root = tempfile::tempdir().unwrap();
    let devices = root.path().join("devices");
    let port = devices.join("pci0000:3a/0000:3a:01.0");
    function(&port, "0x060400", 0, GEN5);
    for address in [
        "0000:3b:00.1",
        "0000:3b:00.0",
        "0000:3b:01.0",
        "0000:3b:1f.7",
    ] {
        function(&port.join(address), "0x020000", 0, GEN5);
    }
    // A volume management device, and the disk behind it.
    let volume = devices.join("pci0000:64/0000:64:05.5");
    function(&volume, "0x010400", 0, None);
    let port = volume.join("pci10000:80/10000:80:02.0");
    function(
        &port,
        "0x060400",
        0,
        Some(("16.0 GT/s PCIe", "16.0 GT/s PCIe", 4)),
    );
    function(
        &port.join("10000:81:00.0"),
        "0x010802",
        0,
        Some(("16.0 GT/s PCIe", "16.0 GT/s PCIe", 4)),
    );
    // A virtual machine's bus.
    let bus = devices.join("LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-0001/pci0001:00");
    function(&bus.join("0001:00:00.0"), "0x030200", 0, GEN5);
    // A data mover of the root complex, and something else of it.
    for (address, device) in [
        ("0000:6a:01.0", "0x0b25"),
        ("0000:6a:02.0", "0x0cfe"),
        ("0000:6a:00.0", "0x09a2"),
    ] {
        let path = devices.join("pci0000:6a").join(address);
        function(&path, "0x088000", 0, None);
        fs::write(path.join("vendor"), "0x8086").unwrap();
        fs::write(path.join("device"), device).unwrap();
    }
    let imported = import(root.path(), "machine").unwrap();
    let found = endpoints(&topology(&imported));
    let mut words: Vec<&str> = found
        .iter()
        .map(|line| line.split(" Gen").next().unwrap())
        .collect();
    words.sort_unstable();
    let expected = [
        "0000:3b:00.0 nic host.0",
        "0000:6a:01.0 dsa host.0",
        "0000:6a:02.0 iaa host.0",
        "0001:00:00.0 gpu host.0",
        "10000:81:00.0 nvme host.0",
    ];
    assert_eq!(words, expected);
    assert!(has_note(
        &imported,
        "3 functions that share the port of another"
    ));
    assert!(
        found
            .iter()
            .any(|line| line == "10000:81:00.0 nvme host.0 Gen4 x4"),
        "{found:?}"
    );
}

#[test]
fn numa_nodes_of_one_package_are_one_socket() {
    let root = tempfile::tempdir().unwrap();
    let devices = root.path().join("devices");
    for node in 0..4u32 {
        let port = devices.join(format!("pci0000:{node}0/0000:{node}0:01.0"));
        function(&port, "0x060400", node, GEN5);
        function(
            &port.join(format!("0000:{node}1:00.0")),
            "0x030200",
            node,
            GEN5,
        );
        let system = devices.join("system");
        let place = system.join(format!("node/node{node}"));
        fs::create_dir_all(&place).unwrap();
        fs::write(
            place.join("cpulist"),
            format!("{}-{}", 8 * node, 8 * node + 7),
        )
        .unwrap();
        let cpu = system.join(format!("cpu/cpu{}/topology", 8 * node));
        fs::create_dir_all(&cpu).unwrap();
        fs::write(cpu.join("physical_package_id"), (node / 2).to_string()).unwrap();
    }
    let imported = import(root.path(), "machine").unwrap();
    let sockets: Vec<String> = endpoints(&topology(&imported))
        .iter()
        .map(|line| line.split(' ').nth(2).unwrap().to_owned())
        .collect();
    assert_eq!(sockets, ["host.0", "host.0", "host.1", "host.1"]);
    assert!(has_note(&imported, "4 NUMA nodes share 2 sockets"));
}

const NCCL: &str = r#"<system version="1">
  <cpu numaid="1" affinity="ffff" arch="x86_64">
    <pci busid="0000:11:00.0" class="0x060400" link_speed="16 GT/s" link_width="16">
      <pci busid="0000:13:00.0" class="0x060400" link_speed="16 GT/s" link_width="16">
        <pci busid="0000:17:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
          <gpu dev="0" sm="90"><nvlink target="0000:e7:00.0" count="18" tclass="0x068000"/></gpu>
        </pci>
      </pci>
      <pci busid="0000:1c:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"><nic><net name="mlx5_0"/></nic></pci>
      <pci busid="0000:1c:00.1" class="0x020700" link_speed="16 GT/s" link_width="16"><nic><net name="mlx5_1"/></nic></pci>
    </pci>
    <pci busid="0000:20:00.0" class="0x060400" link_speed="" link_width="0"><gpu dev="1"/></pci>
    <nic><net name="eth0"/></nic>
  </cpu>
</system>"#;

#[test]
fn nccl_has_switches_without_their_ports() {
    let imported = import_text(NCCL, "nccl.xml", "machine").unwrap();
    let expected = [
        "0000:17:00.0 gpu 0000:13:00.0 Gen5 x16",
        "0000:1c:00.0 nic 0000:11:00.0 Gen4 x16",
        "0000:20:00.0 gpu host.0 Gen3 x16",
    ];
    assert_eq!(endpoints(&topology(&imported)), expected);
    assert!(has_note(&imported, "1 link of NVLink"));
    assert!(has_note(&imported, "1 device without a PCI address"));
    assert!(has_note(
        &imported,
        "generation of 1 link could not be read"
    ));
}

/// As in a file of RCCL's: what is below either is below the one.
#[test]
fn a_switch_that_is_named_twice_is_one() {
    let half = |gpu: u32| {
        format!(
            "<pci busid=\"0000:c5:00.0\" class=\"0x060400\" link_speed=\"8 GT/s\" link_width=\"16\">\
             <pci busid=\"0000:d{gpu}:00.0\" class=\"0x038000\" link_speed=\"8 GT/s\" link_width=\"16\"/></pci>"
        )
    };
    let text = format!(
        "<system><cpu numaid=\"0\">{}{}</cpu></system>",
        half(0),
        half(1)
    );
    let imported = import_text(&text, "nccl.xml", "machine").unwrap();
    let expected = [
        "0000:d0:00.0 gpu 0000:c5:00.0 Gen3 x16",
        "0000:d1:00.0 gpu 0000:c5:00.0 Gen3 x16",
    ];
    assert_eq!(endpoints(&topology(&imported)), expected);
}

#[test]
fn lspci_and_a_matrix_are_told_apart_by_what_they_say() {
    let lspci = "00:01.0 PCI bridge: Intel\n\tBus: primary=00, secondary=01, subordinate=01\n\
        01:00.0 Ethernet controller: Intel\n\t\tLnkSta:\tSpeed 8GT/s, Width x8\n";
    let imported = import_text(lspci, "lspci.txt", "machine").unwrap();
    assert_eq!(
        endpoints(&topology(&imported)),
        ["0000:01:00.0 nic host.0 Gen3 x8"]
    );
    let matrix = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-31\nGPU1\tPIX\t X \t0-31\n";
    let imported = import_text(matrix, "topo.txt", "machine").unwrap();
    let found = endpoints(&topology(&imported));
    assert!(
        found.iter().all(|line| line.contains("gpu switch0.0")),
        "{found:?}"
    );
    let many = format!("<system>{}</system>", "<pci/>".repeat(10_000));
    assert!(
        import_text(&many, "x", "machine")
            .unwrap_err()
            .to_string()
            .contains("functions")
    );
    for other in ["", "hello\n", "<html></html>"] {
        let error = import_text(other, "x", "machine").unwrap_err().to_string();
        assert!(error.starts_with("x: "), "{other:?}: {error}");
    }
}

const LSPCI: &str = "\
00:01.0 PCI bridge [0604]: Advanced Micro Devices Device [1022:1483]
\tBus: primary=00, secondary=01, subordinate=03
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16
\t\tLnkSta:\tSpeed 2.5GT/s, Width x8
01:00.0 PCI bridge [0604]: Advanced Micro Devices Navi 10 XL Upstream Port [1002:1478]
\tBus: primary=01, secondary=02, subordinate=03
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16
\t\tLnkSta:\tSpeed 2.5GT/s, Width x8
02:00.0 PCI bridge [0604]: Advanced Micro Devices Navi 10 XL Downstream Port [1002:1479]
\tBus: primary=02, secondary=03, subordinate=03
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16
\t\tLnkSta:\tSpeed 16GT/s, Width x16
03:00.0 VGA compatible controller [0300]: Advanced Micro Devices Navi 21 [1002:73bf]
\tFlags: bus master, fast devsel, latency 0, IRQ 72, NUMA node 1, IOMMU group 3
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16
\t\tLnkSta:\tSpeed 16GT/s, Width x16
03:00.1 Audio device [0403]: Advanced Micro Devices Navi 21 HDMI Audio [1002:ab28]
00:1f.0 ISA bridge [0601]: Intel Corporation Device [8086:a30c]
00:1f.2 SATA controller [0106]: Intel Corporation Device [8086:a352]
00:1f.3 SATA controller [0106]: Intel Corporation Device [8086:a353]
";

#[test]
fn a_card_with_a_switch_of_its_own_idles_at_the_switch() {
    let imported = import_text(LSPCI, "lspci.txt", "machine").unwrap();
    let topology = topology(&imported);
    let edge = topology
        .node(topology.find("0000:01:00.0").unwrap())
        .inputs
        .clone();
    let link = topology.link(topology.edge(edge[0]).link);
    assert_eq!((link.generation, link.width), (4, 8));
    let words = "0000:01:00.0 runs at Gen1 now, as idle devices do; its link can do Gen4";
    assert!(has_note(&imported, words), "{:?}", imported.notes);
    let words = "0000:01:00.0 runs with x8, which the file has; its link can do x16";
    assert!(has_note(&imported, words), "{:?}", imported.notes);
    // A switch of another vendor leads to the card: what slows it down is not known.
    let other = LSPCI.replace("[1002:1478]", "[10b5:8747]");
    let imported = import_text(&other, "lspci.txt", "machine").unwrap();
    assert!(has_note(
        &imported,
        "0000:01:00.0 runs at Gen1, which the file has"
    ));
}

#[test]
fn functions_beside_the_root_complex_need_not_be_the_first() {
    let imported = import_text(LSPCI, "lspci.txt", "machine").unwrap();
    let names = endpoints(&topology(&imported)).join("\n");
    assert!(
        names.contains("0000:00:1f.2 storage") && !names.contains("00:1f.3"),
        "{names}"
    );
}

#[test]
fn flags_of_lspci_v_have_the_numa_node() {
    let two = "01:00.0 3D controller: NVIDIA A\n\tFlags: bus master, IRQ 5, NUMA node 0\n\
        02:00.0 3D controller: NVIDIA A\n\tFlags: bus master, IRQ 5, NUMA node 1, IOMMU group 2\n";
    let imported = import_text(two, "lspci.txt", "machine").unwrap();
    let names = endpoints(&topology(&imported)).join("\n");
    assert!(names.contains("host.1"), "{names}");
}

#[test]
fn numa_nodes_of_which_no_package_is_known_are_two_sockets() {
    let mut text = String::from("<system version=\"1\">");
    for node in 0..8 {
        text += &format!(
            "<cpu numaid=\"{node}\" vendor=\"AuthenticAMD\"><pci busid=\"0000:{node:02x}:00.0\" class=\"0x030200\" \
             link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"/></cpu>"
        );
    }
    let imported = import_text(&(text + "</system>"), "nccl.xml", "machine").unwrap();
    let topology = topology(&imported);
    assert_eq!(topology.sockets().count(), 2);
    let far = topology
        .route_by_name("0000:00:00.0", "0000:07:00.0")
        .unwrap();
    let near = topology
        .route_by_name("0000:00:00.0", "0000:03:00.0")
        .unwrap();
    assert_eq!((far.len(), near.len()), (3, 2));
    assert!(has_note(&imported, "those below 4 are taken for one"));
    // Three links of xGMI at 16 GT/s, and completions of 256 bytes.
    let NodeKind::Socket { parameters, .. } = &topology.nodes()[0].kind else {
        panic!("no socket first");
    };
    assert_eq!(
        (parameters.socket_links, parameters.completion_bytes),
        (3, 256)
    );
    assert!((parameters.socket_gib_s / 60.8 - 1.0).abs() < 0.01);
}

#[test]
fn gpus_of_amd_send_long_packets_and_nics_are_as_fast_as_their_ports() {
    let text = "<system version=\"1\"><cpu numaid=\"0\" vendor=\"GenuineIntel\">\
        <pci busid=\"0000:01:00.0\" class=\"0x038000\" vendor=\"0x1002\" device=\"0x740f\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"/>\
        <pci busid=\"0000:02:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x20b5\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"/>\
        <pci busid=\"0000:03:00.0\" class=\"0x020000\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">\
        <nic><net name=\"mlx5_0\" speed=\"100000\"/><net name=\"mlx5_1\" speed=\"100000\"/></nic></pci>\
        <pci busid=\"0000:04:00.0\" class=\"0x020000\" link_speed=\"16.0 GT/s PCIe\" link_width=\"8\">\
        <nic><net name=\"mlx5_2\" speed=\"200000\"/></nic></pci></cpu></system>";
    let imported = import_text(text, "nccl.xml", "machine").unwrap();
    let topology = topology(&imported);
    let sends = |name: &str| {
        let path = topology.route_by_name(name, "host").unwrap();
        let node = topology.find(name).unwrap();
        (
            topology.payload(node, &path).usual,
            topology.edge(path[0]).clone(),
        )
    };
    assert_eq!(sends("0000:01:00.0").0, 256);
    assert_eq!(sends("0000:02:00.0").0, 128);
    // Two ports of 100 Gbit/s: 24.6 GB/s of payload. One of 200 is faster than eight lanes of Gen4.
    let (_, edge) = sends("0000:03:00.0");
    assert!((edge.capacity_gib_s * 1.073741824 / 24.6 - 1.0).abs() < 0.001);
    assert!(edge.capacity_given && !sends("0000:04:00.0").1.capacity_given);
    assert!(has_note(&imported, "1 link is as fast as the ports"));
}

#[test]
fn the_product_of_hwloc_is_no_payload() {
    let device = |address: &str, class: &str, speed: &str| {
        format!(
            "<object type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"0000:00:{address}.0\" pci_link_speed=\"{speed}\">\
             <object type=\"PCIDev\" pci_busid=\"0000:{address}:00.0\" pci_type=\"{class} [10de:1eb8]\" \
             pci_link_speed=\"{speed}\"/></object>"
        )
    };
    let text = format!(
        "<topology><object type=\"Machine\"><object type=\"Bridge\" bridge_type=\"0-1\">{}{}{}{}</object></object></topology>",
        device("01", "0302", "63.015385"),
        device("02", "0108", "15.753846"),
        device("03", "0302", "4.000000"),
        device("04", "0200", "9.3"),
    );
    let imported = import_text(&text, "x.xml", "machine").unwrap();
    let topology = topology(&imported);
    let found = endpoints(&topology).join("\n");
    for words in [
        "01:00.0 gpu host.0 Gen5 x16",
        "02:00.0 nvme host.0 Gen5 x4",
        "03:00.0 gpu host.0 Gen1 x16",
    ] {
        assert!(found.contains(words), "{found}");
    }
    assert!(has_note(
        &imported,
        "0000:03:00.0 runs at 4.0 GB/s now, perhaps as it is idle"
    ));
    assert!(has_note(
        &imported,
        "3 links have the lowest generation that gives it"
    ));
    let width = |name: &str| {
        let path = topology.route_by_name("host", name).unwrap();
        topology.edge(path[0]).capacity_gib_s
    };
    assert!((width("0000:01:00.0") - 53.2).abs() < 0.1);
    // No link has 9.3 GB/s: a tenth less of it is payload, as of others.
    assert!(
        (width("0000:04:00.0") - 7.85).abs() < 0.03,
        "{}",
        width("0000:04:00.0")
    );
}

#[test]
fn failures_name_what_is_imported_and_what_is_read() {
    let mut crowd = String::new();
    for device in 0..32 {
        for bus in 0..3 {
            crowd += &format!("{bus:04x}:00:{device:02x}.0 Ethernet controller: X\n");
        }
    }
    for text in ["", "<a/>", "<system>", &crowd] {
        let error = import_text(text, "machine.txt", "imported").unwrap_err();
        assert!(error.to_string().starts_with("machine.txt: "), "{error}");
        assert!(
            error.hint().unwrap().contains("dray fabric import --help"),
            "{error}"
        );
        assert!(error.is_bad_input());
    }
    let missing = import(Path::new("/nowhere/at/all"), "imported").unwrap_err();
    assert!(missing.is_bad_input(), "{missing}");
}

#[test]
fn a_console_is_no_gpu_and_names_of_vendors_stand_for_their_numbers() {
    let text = "\
00:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Turin PCIe Root Port
\tBus: primary=00, secondary=01, subordinate=01
\tLnkCap:\tPort #0, Speed 32GT/s, Width x16
\tLnkSta:\tSpeed 2.5GT/s, Width x16
01:00.0 VGA compatible controller: NVIDIA Corporation GB202GL [RTX PRO 6000]
\tLnkCap:\tPort #0, Speed 32GT/s, Width x16
\tLnkSta:\tSpeed 2.5GT/s, Width x16
00:02.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Turin PCIe Root Port
\tBus: primary=00, secondary=02, subordinate=03
\tLnkSta:\tSpeed 5GT/s, Width x1
02:00.0 PCI bridge: ASPEED Technology, Inc. AST1150 PCI-to-PCI Bridge
\tBus: primary=02, secondary=03, subordinate=03
03:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family
00:03.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Turin PCIe Root Port
\tBus: primary=00, secondary=04, subordinate=04
\tLnkSta:\tSpeed 32GT/s, Width x16
04:00.0 Non-Essential Instrumentation [1300]: Advanced Micro Devices, Inc. [AMD] Device 1556
00:04.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Turin PCIe Root Port
\tBus: primary=00, secondary=05, subordinate=05
\tLnkSta:\tSpeed 32GT/s, Width x16
05:00.0 System peripheral: Broadcom / LSI Virtual PCIe Placeholder Endpoint (rev b0)
";
    let imported = import_text(text, "lspci.txt", "machine").unwrap();
    let found = endpoints(&topology(&imported));
    assert_eq!(found[0], "0000:01:00.0 gpu host.0 Gen5 x16");
    assert!(
        found[1].starts_with("0000:03:00.0 display 0000:02:00.0"),
        "{found:?}"
    );
    assert_eq!(found.len(), 2, "{found:?}");
    // The processor is AMD's: completions of two lines. Links between its sockets are as fast as its ports' generation has
    // them, whatever cards are there.
    let gib_s = |text: &str| {
        let imported = import_text(text, "lspci.txt", "machine").unwrap();
        let topology = topology(&imported);
        let NodeKind::Socket { parameters, .. } = &topology.nodes()[0].kind else {
            panic!("no socket first");
        };
        parameters.socket_gib_s
    };
    let older = text.replace("32GT/s", "16GT/s");
    let kept = text.replace("01:00.0 VGA compatible controller: NVIDIA Corporation GB202GL [RTX PRO 6000]\n\tLnkCap:\tPort #0, Speed 32GT/s",
        "01:00.0 VGA compatible controller: NVIDIA Corporation GA100 [A100]\n\tLnkCap:\tPort #0, Speed 16GT/s");
    assert_eq!(gib_s(&kept), gib_s(text));
    assert!((gib_s(text) / gib_s(&older) - 2.0).abs() < 0.01);
    assert!(
        imported.toml.contains("completion_bytes = 256"),
        "{}",
        imported.toml
    );
    let drive = "01:00.0 Non-Volatile memory controller: Samsung PM1743\n";
    let imported = import_text(drive, "lspci.txt", "machine").unwrap();
    assert_eq!(
        endpoints(&topology(&imported)),
        ["0000:01:00.0 nvme host.0 Gen3 x4"]
    );
    assert!(
        imported
            .toml
            .contains("unread = [\"generation\", \"width\"")
    );
}

#[test]
fn a_document_behind_a_prompt_is_read() {
    let system = "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\" \
        link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\"/></pci></cpu></system>";
    let whole = import_text(system, "x", "machine").unwrap();
    let pasted = format!("user@host:~$ cat topo.xml\n```xml\n{system}\n```\nThanks <you>\n");
    assert_eq!(import_text(&pasted, "x", "machine").unwrap(), whole);
    assert!(import_text("<systems></systems>", "x", "machine").is_err());
}
