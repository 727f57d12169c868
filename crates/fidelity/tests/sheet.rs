//! The sheet has what the driver and the specification have, and its tests exist.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too, fail by panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dray_device::Fidelity;
use dray_fidelity::{AREAS, page, sheet};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The text of all sources below a directory.
fn sources(directory: &Path, text: &mut String) {
    let mut entries: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *text += &fs::read_to_string(&path).unwrap();
        }
    }
}

#[test]
fn every_entry_that_is_there_names_a_test_that_exists() {
    let all = sheet();
    let packages: BTreeSet<&str> = all.iter().filter_map(|e| Some(e.test?.package)).collect();
    for package in packages {
        let mut text = String::new();
        sources(&Path::new(ROOT).join("crates").join(package), &mut text);
        for entry in all
            .iter()
            .filter(|e| e.test.is_some_and(|t| t.package == package))
        {
            let function = entry.test.unwrap().function;
            // Tables of cases, whose names a macro makes into functions, have them without `fn`.
            let found = text.contains(&format!("fn {function}("))
                || text.contains(&format!("\n    {function}"));
            assert!(found, "{}: {package} has no {function}", entry.name);
        }
    }
    for entry in &all {
        assert!(AREAS.contains(&entry.area), "{entry:?}");
        match entry.fidelity {
            Fidelity::Exact => {
                assert!(entry.test.is_some() && entry.missing.is_none(), "{entry:?}")
            }
            Fidelity::Approximate => {
                assert!(entry.test.is_some() && entry.missing.is_some(), "{entry:?}")
            }
            Fidelity::Unsupported => assert!(entry.missing.is_some(), "{entry:?}"),
        }
    }
}

#[test]
fn names_are_in_the_sheet_once() {
    let mut seen = BTreeSet::new();
    for entry in sheet() {
        let name = (entry.area, entry.name.clone(), entry.of.clone());
        assert!(seen.insert(name), "{entry:?}");
    }
}

/// The attributes that the kernel documents (Documentation/ABI/stable/sysfs-driver-dma-idxd); `iaa_cap` stands there
/// with those of a DSA, and is none.
const DOCUMENTED: &[&str] = &[
    "dsaN/version",
    "dsaN/cdev_major",
    "dsaN/errors",
    "dsaN/max_batch_size",
    "dsaN/max_work_queues_size",
    "dsaN/max_engines",
    "dsaN/max_groups",
    "dsaN/max_read_buffers",
    "dsaN/max_transfer_size",
    "dsaN/max_work_queues",
    "dsaN/numa_node",
    "dsaN/op_cap",
    "dsaN/pasid_enabled",
    "dsaN/state",
    "dsaN/configurable",
    "dsaN/read_buffer_limit",
    "dsaN/cmd_status",
    "dsaN/gen_cap",
    "dsaN/clients",
    "dsaN/event_log_size",
    "wqN.M/block_on_fault",
    "wqN.M/group_id",
    "wqN.M/size",
    "wqN.M/type",
    "wqN.M/cdev_minor",
    "wqN.M/mode",
    "wqN.M/priority",
    "wqN.M/state",
    "wqN.M/threshold",
    "wqN.M/max_transfer_size",
    "wqN.M/max_batch_size",
    "wqN.M/ats_disable",
    "wqN.M/prs_disable",
    "wqN.M/occupancy",
    "wqN.M/enqcmds_retries",
    "wqN.M/op_config",
    "wqN.M/driver_name",
    "wqN.M/dsaN!wqN.M/fileN/cr_faults",
    "wqN.M/dsaN!wqN.M/fileN/cr_fault_failures",
    "wqN.M/dsaN!wqN.M/fileN/pid",
    "iaxN/iaa_cap",
    "wqN.M/name",
    "wqN.M/clients",
    "engineN.M/group_id",
    "groupN.M/use_read_buffer_limit",
    "groupN.M/read_buffers_allowed",
    "groupN.M/read_buffers_reserved",
    "groupN.M/traffic_class_a",
    "groupN.M/traffic_class_b",
    "groupN.M/desc_progress_limit",
    "groupN.M/batch_progress_limit",
    "groupN.M/engines",
    "groupN.M/work_queues",
];

#[test]
fn every_attribute_that_the_kernel_documents_is_in_the_sheet() {
    let all = sheet();
    let has = |name: &str| all.iter().any(|e| e.area == "attribute" && e.name == name);
    let lacking: Vec<&&str> = DOCUMENTED.iter().filter(|name| !has(name)).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}

#[test]
fn every_register_that_the_workspace_names_is_in_the_sheet() {
    let source = Path::new(ROOT).join("crates/spec/src/registers.rs");
    let text = fs::read_to_string(source).unwrap();
    let all = sheet();
    let mut count = 0;
    for line in text.lines() {
        let Some(name) = line
            .strip_prefix("pub const ")
            .and_then(|rest| rest.split(':').next())
        else {
            continue;
        };
        if name.ends_with("_BYTES") {
            continue;
        }
        count += 1;
        let found = all
            .iter()
            .any(|e| e.area == "register" && e.name.ends_with(&format!(" {name}")));
        assert!(found, "{name}");
    }
    assert!(count > 20, "{count}");
}

#[test]
fn the_page_of_the_guide_is_the_sheet() {
    let path = Path::new(ROOT).join("docs/fidelity.md");
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "write it anew: dray fidelity --format markdown > docs/fidelity.md"
    );
}
