//! `dray fabric show`, `import` and `bench`.

use std::fs;
use std::path::Path;

use crate::common::{directory, dray, output};

fn error(dir: &Path, arguments: &str, code: i32) -> String {
    let assert = dray(dir, arguments).assert().code(code);
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

#[test]
fn the_test_bed_is_shown_as_a_tree_a_picture_and_a_file() {
    let dir = directory();
    let tree = output(dir.path(), "fabric show testbed --svg testbed.svg");
    assert!(
        tree.contains("host1.0 [socket]") && tree.contains("        A [fpga, 32 tags]"),
        "{tree}"
    );
    assert!(tree.contains("11.55 GiB/s down, 12.25 up"), "{tree}");
    let picture = fs::read_to_string(dir.path().join("testbed.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
    assert!(picture.contains("endpoint adapter"));
    let file = output(dir.path(), "fabric show testbed --toml");
    fs::write(
        dir.path().join("mine.toml"),
        file.replace("\"testbed\"", "\"mine\""),
    )
    .unwrap();
    assert!(output(dir.path(), "fabric show mine.toml").starts_with("mine: "));
}

#[test]
fn bad_files_name_file_entry_and_rule() {
    let dir = directory();
    let file = output(dir.path(), "fabric show local --toml");
    fs::write(
        dir.path().join("bad.toml"),
        file.replace("width = 16", "width = 3"),
    )
    .unwrap();
    let message = error(dir.path(), "fabric show bad.toml", 2);
    assert!(
        message.contains("bad.toml: link 1 (host.0 - card0): width = 3"),
        "{message}"
    );
    assert!(message.contains("hint: "));
    assert!(error(dir.path(), "fabric show nowhere", 2).contains("known: local, testbed"));
    let message = error(dir.path(), "fabric bench --only nothing", 2);
    assert!(
        message.contains("no experiment is named `nothing`"),
        "{message}"
    );
    assert!(error(dir.path(), "fabric import empty", 2).contains("empty"));
}

/// A built-in file, changed: nothing of it has been published.
#[test]
fn an_experiment_of_ones_own_begins_with_a_built_in_one() {
    let dir = directory();
    let file = output(dir.path(), "fabric bench --toml packet-rate");
    let own = |line: &&str| !line.starts_with("published");
    let mine: Vec<&str> = file.lines().filter(own).collect();
    assert!(mine.len() < file.lines().count());
    fs::write(dir.path().join("mine.toml"), mine.join("\n")).unwrap();
    let run = "fabric bench --file mine.toml --out report --format csv";
    assert!(output(dir.path(), run).starts_with("# packet-rate"));
    let page = fs::read_to_string(dir.path().join("report/index.html")).unwrap();
    assert!(!page.contains("Published:"));
    let message = error(dir.path(), "fabric bench --toml packet-rates", 2);
    assert!(message.contains("did you mean"), "{message}");
}

#[test]
fn experiments_make_a_report_and_a_trace() {
    let dir = directory();
    let csv = output(
        dir.path(),
        "fabric bench --only mmio,arrival --format csv --out report",
    );
    assert!(csv.contains("read.mean_ns"), "{csv}");
    let page = fs::read_to_string(dir.path().join("report/index.html")).unwrap();
    assert!(page.contains("MMIO reads, a line at a time") && page.contains("published"));
    for name in [
        "mmio.csv",
        "mmio.json",
        "mmio-latency.svg",
        "arrival-time.svg",
    ] {
        assert!(dir.path().join("report").join(name).is_file(), "{name}");
    }
    dray(dir.path(), "fabric bench --only mmio --trace t.json")
        .assert()
        .success();
    let trace: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(dir.path().join("t.json")).unwrap()).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 10);
    assert!(error(dir.path(), "fabric bench --trace t.json", 2).contains("one experiment"));
    assert!(output(dir.path(), "fabric bench --list").contains("host-adapter"));
}

#[test]
fn a_captured_machine_becomes_a_topology() {
    let dir = directory();
    let functions = [
        ("pci0000:00/0000:00:01.0", "0x060400", "8.0 GT/s PCIe", "16"),
        (
            "pci0000:00/0000:00:01.0/0000:01:00.0",
            "0x060400",
            "8.0 GT/s PCIe",
            "16",
        ),
        (
            "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0",
            "0x060400",
            "8.0 GT/s PCIe",
            "8",
        ),
        (
            "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0",
            "0x010802",
            "8.0 GT/s PCIe",
            "4",
        ),
        (
            "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0",
            "0x060400",
            "Unknown",
            "63",
        ),
        (
            "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0",
            "0x030200",
            "Unknown",
            "0",
        ),
        (
            "pci0000:80/0000:80:01.0",
            "0x060400",
            "16.0 GT/s PCIe",
            "16",
        ),
        (
            "pci0000:80/0000:80:01.0/0000:81:00.0",
            "0x020000",
            "16.0 GT/s PCIe",
            "16",
        ),
        (
            "pci0000:80/0000:80:01.0/0000:81:00.1",
            "0x020000",
            "16.0 GT/s PCIe",
            "16",
        ),
    ];
    for (path, class, speed, width) in functions {
        let path = dir.path().join("sys/devices").join(path);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("class"), format!("{class}\n")).unwrap();
        fs::write(path.join("current_link_speed"), format!("{speed}\n")).unwrap();
        fs::write(path.join("current_link_width"), format!("{width}\n")).unwrap();
        let node = i32::from(path.to_string_lossy().contains("pci0000:80"));
        fs::write(path.join("numa_node"), format!("{node}\n")).unwrap();
    }
    let mut config = vec![0u8; 256];
    config[0x34] = 0x40;
    config[0x40] = 0x10;
    config[0x48..0x4a].copy_from_slice(&0x2020u16.to_le_bytes());
    let disk = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0/config";
    fs::write(dir.path().join(disk), config).unwrap();
    output(dir.path(), "fabric import sys --name rack --out rack.toml");
    let tree = output(dir.path(), "fabric show rack.toml");
    assert!(tree.contains("0000:01:00.0 [switch]"), "{tree}");
    assert!(
        tree.contains("0000:03:00.0 [nvme]") && tree.contains("Gen3 x4 MPS 256 MRRS 512"),
        "{tree}"
    );
    assert!(
        tree.contains("not read: generation width mps mrrs"),
        "{tree}"
    );
    assert!(
        tree.contains("0000:81:00.0 [nic]") && !tree.contains("0000:81:00.1"),
        "{tree}"
    );
    assert!(tree.contains("host.1 [socket]"), "{tree}");
}
