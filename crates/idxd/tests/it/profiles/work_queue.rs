//! Each rule of a work queue, with its legal neighbour.

use dray_idxd::Profile;
use dray_idxd::driver::Personality;

use super::common::{changed, clean, findings, only};

const WQ: &str = "dsa0/groups[0]/grouped_workqueues[0] (wq0.0)";
const SHARED: (&str, &str) = ("\"dedicated\"", "\"shared\"");
/// GENCAP with bit 0 cleared.
const NO_BLOCKING: (&str, &str) = ("0x40915f0107", "0x40915f0106");
const VERSION_2: (&str, &str) = ("\"0x100\"", "\"0x200\"");

#[track_caller]
fn refused(changes: &[(&str, &str)], field: &str, value: &str) -> String {
    let finding = only(changes);
    assert_eq!(
        (finding.path.as_str(), finding.field.as_str()),
        (WQ, field),
        "{finding}"
    );
    assert_eq!(finding.value, value, "{finding}");
    finding.fix
}

#[test]
fn a_finding_reads_in_two_lines() {
    let finding = only(&[("\"priority\":10", "\"priority\":16")]);
    assert_eq!(
        finding.to_string(),
        format!("{WQ}: priority is 16; it is 1 (low) to 15 (high)\n  fix: \"priority\":10")
    );
}

#[test]
fn size() {
    clean(&[("\"size\":128", "\"size\":1")]);
    refused(&[("\"size\":128", "\"size\":-1")], "size", "-1");
    // The driver gives it 16 entries from 5.19 on; a shared queue has a threshold to compare before.
    for (change, value) in [
        (("\"size\":128", "\"size\":0"), "0"),
        (("\"size\":128,", ""), "missing"),
    ] {
        clean(&[change]);
        let profile = Profile::parse(&changed(&[change]), "test").unwrap();
        assert_eq!(profile.devices().unwrap()[0].work_queues[0].size, 16);
        let old = profile.validate(Personality::Linux5_18);
        assert_eq!(
            (old[0].field.as_str(), old[0].value.as_str()),
            ("size", value)
        );
        let shared = [change, SHARED, ("\"threshold\":0", "\"threshold\":1")];
        refused(&shared, "size", value);
    }
}

#[test]
fn size_beyond_the_device_is_wrong_for_the_queue_and_for_the_sum() {
    let found = findings(&[("\"size\":128", "\"size\":129")]);
    let places: Vec<&str> = found.iter().map(|finding| finding.path.as_str()).collect();
    assert_eq!(places, ["dsa0", WQ]);
    assert!(found[0].limit.contains("128"), "{}", found[0]);
}

#[test]
fn mode() {
    clean(&[SHARED, ("\"threshold\":0", "\"threshold\":128")]);
    let threshold = ("\"threshold\":0", "\"threshold\":128");
    refused(
        &[
            ("\"mode\":\"dedicated\"", "\"mode\":\"exclusive\""),
            threshold,
        ],
        "mode",
        "\"exclusive\"",
    );
    // Shared, as the driver's queues are.
    clean(&[("\"mode\":\"dedicated\",", ""), threshold]);
}

#[test]
fn threshold() {
    let shared = |threshold| [SHARED, ("\"threshold\":0", threshold)];
    clean(&shared("\"threshold\":1"));
    clean(&shared("\"threshold\":128"));
    refused(&shared("\"threshold\":0"), "threshold", "0");
    refused(&shared("\"threshold\":129"), "threshold", "129");
    refused(&shared("\"threshold\":-1"), "threshold", "-1");
    let fix = refused(&[SHARED, ("\"threshold\":0,", "")], "threshold", "missing");
    assert_eq!(fix, "\"threshold\":128");
    clean(&[("\"threshold\":0,", "")]);
}

/// As accel-config, which leaves it out; the driver refuses only the write.
#[test]
fn a_dedicated_queue_has_no_threshold_whatever_the_file_says() {
    let change = [("\"threshold\":0", "\"threshold\":64")];
    clean(&change);
    let profile = Profile::parse(&changed(&change), "test").unwrap();
    assert_eq!(profile.devices().unwrap()[0].work_queues[0].threshold, 0);
}

#[test]
fn priority() {
    for (priority, legal) in [(0, false), (1, true), (15, true), (16, false), (-1, false)] {
        let text = format!("\"priority\":{priority}");
        let change = [("\"priority\":10", text.as_str())];
        if legal {
            clean(&change);
        } else {
            refused(&change, "priority", &priority.to_string());
        }
    }
    refused(&[("\"priority\":10,", "")], "priority", "missing");
    let zero = only(&[("\"priority\":10", "\"priority\":0")]);
    assert!(zero.limit.contains("enabling fails"), "{zero}");
}

#[test]
fn batch_and_transfer() {
    let batch = |text| [("\"max_batch_size\":64", text)];
    clean(&batch("\"max_batch_size\":2"));
    refused(&batch("\"max_batch_size\":1"), "max_batch_size", "1");
    clean(&batch("\"max_batch_size\":1024"));
    refused(&batch("\"max_batch_size\":0"), "max_batch_size", "0");
    refused(&batch("\"max_batch_size\":1025"), "max_batch_size", "1025");
    let transfer = |text| [("\"max_transfer_size\":2097152", text)];
    clean(&transfer("\"max_transfer_size\":2147483648"));
    refused(
        &transfer("\"max_transfer_size\":2147483649"),
        "max_transfer_size",
        "2147483649",
    );
    refused(
        &transfer("\"max_transfer_size\":0"),
        "max_transfer_size",
        "0",
    );
}

#[test]
fn block_on_fault() {
    clean(&[("\"block_on_fault\":0", "\"block_on_fault\":1")]);
    clean(&[NO_BLOCKING]);
    refused(
        &[
            NO_BLOCKING,
            ("\"block_on_fault\":0", "\"block_on_fault\":1"),
        ],
        "block_on_fault",
        "1",
    );
    refused(
        &[("\"block_on_fault\":0", "\"block_on_fault\":2")],
        "block_on_fault",
        "2",
    );
}

#[test]
fn page_requests_and_translation() {
    let at = "\"ats_disable\":-2";
    clean(&[(at, "\"prs_disable\":-2,\"ats_disable\":0")]);
    clean(&[VERSION_2, (at, "\"prs_disable\":1,\"ats_disable\":1")]);
    // Version 1 has no such attributes, and what a file says of them is left out ...
    clean(&[(at, "\"prs_disable\":1,\"ats_disable\":1")]);
    // ... but before 6.2 one of them is there and refuses.
    let text = changed(&[(at, "\"ats_disable\":1")]);
    let old = Profile::parse(&text, "test").unwrap();
    assert_eq!(old.validate(Personality::Linux5_18)[0].field, "ats_disable");
    refused(&[VERSION_2, (at, "\"ats_disable\":2")], "ats_disable", "2");
    refused(&[VERSION_2, (at, "\"prs_disable\":2")], "prs_disable", "2");
    refused(
        &[
            VERSION_2,
            (at, "\"prs_disable\":1"),
            ("\"block_on_fault\":0", "\"block_on_fault\":1"),
        ],
        "prs_disable",
        "1",
    );
}

#[test]
fn operations() {
    let at = "\"ats_disable\":-2";
    let all =
        "\"op_config\":\"00000000,00000000,00000000,00000000,00000000,00000000,00000001,003f03ff\"";
    let beyond =
        "\"op_config\":\"00000000,00000000,00000000,00000000,00000000,00000000,00000003,003f03ff\"";
    clean(&[VERSION_2, (at, all)]);
    let finding = only(&[VERSION_2, (at, beyond)]);
    assert_eq!(finding.field, "op_config");
    assert!(all.contains(finding.fix.trim_matches('"').rsplit('"').next().unwrap()));
    for left_out in [all, beyond] {
        clean(&[(at, left_out)]);
        let profile = Profile::parse(&changed(&[(at, left_out)]), "test").unwrap();
        assert_eq!(profile.unmodelled()[0].field, "op_config");
        let device = profile.devices().unwrap().remove(0);
        assert_eq!(device.work_queues[0].op_config, [u64::MAX; 4]);
    }
}

#[test]
fn type_and_driver() {
    clean(&[("\"user\"", "\"kernel\"")]);
    clean(&[("\"user\"", "\"user\",\"driver_name\":\"user\"")]);
    clean(&[("\"user\"", "\"user\",\"driver_name\":\"\"")]);
    refused(&[("\"user\"", "\"none\"")], "type", "\"none\"");
    refused(&[("\"type\":\"user\",", "")], "type", "missing");
    refused(&[("\"user\"", "\"mdev\"")], "type", "\"mdev\"");
    // The kernel goes by the driver's name, where it has one.
    let other = ("\"user\"", "\"user\",\"driver_name\":\"dmaengine\"");
    clean(&[other]);
    clean(&[("\"type\":\"user\"", "\"driver_name\":\"user\"")]);
    refused(
        &[("\"user\"", "\"user\",\"driver_name\":\"idxd\"")],
        "driver_name",
        "\"idxd\"",
    );
    let profile = Profile::parse(&changed(&[other]), "test").unwrap();
    let queue = &profile.device_profiles()[0].groups[0].grouped_workqueues[0];
    assert_eq!(queue.driver(Personality::Linux6_8), Some("dmaengine"));
    assert_eq!(queue.driver(Personality::Linux6_4), Some("user"));
}

#[test]
fn without_address_spaces() {
    let off = ("\"pasid_enabled\":1", "\"pasid_enabled\":0");
    clean(&[off, ("\"user\"", "\"kernel\"")]);
    refused(&[off], "type", "user");
    let profile = Profile::parse(&changed(&[off]), "test").unwrap();
    assert_eq!(profile.validate(Personality::Linux5_18), []);
    for kernel in [Personality::Linux6_4, Personality::NEWEST] {
        let findings = profile.validate(kernel);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].fix.starts_with("boot with"), "{}", findings[0]);
    }
    // Dedicated alone is no way out for a queue of users from 6.1 on.
    let shared = changed(&[off, SHARED, ("\"threshold\":0", "\"threshold\":1")]);
    let profile = Profile::parse(&shared, "test").unwrap();
    let fix = |kernel| profile.validate(kernel).remove(0).fix;
    assert!(fix(Personality::Linux5_18).ends_with("\"mode\":\"dedicated\""));
    assert!(fix(Personality::NEWEST).contains("with \"type\":\"kernel\""));
    refused(
        &[
            off,
            ("\"user\"", "\"kernel\""),
            SHARED,
            ("\"threshold\":0", "\"threshold\":1"),
        ],
        "mode",
        "shared",
    );
}

#[test]
fn name() {
    let named = |letters: usize| format!("\"{}\"", "n".repeat(letters));
    clean(&[("\"app0\"", &named(1024))]);
    let finding = only(&[("\"app0\"", &named(1025))]);
    assert!(finding.value.ends_with("1025 bytes"), "{finding}");
    assert_eq!(finding.fix, format!("\"name\":{}", named(1024)));
    refused(&[("\"app0\"", "\"\"")], "name", "empty");
    refused(&[("\"app0\"", "\" \"")], "name", "empty");
    refused(&[("\"name\":\"app0\",", "")], "name", "missing");
}

#[test]
fn blocking_on_faults_needs_page_requests() {
    let changes = [
        ("\"pasid_enabled\":1", "\"pasid_enabled\":0"),
        ("\"user\"", "\"kernel\""),
        ("\"block_on_fault\":0", "\"block_on_fault\":1"),
    ];
    refused(&changes, "block_on_fault", "1");
}

#[test]
fn queues_of_the_kernel_have_no_name_before_6_3() {
    let profile = Profile::parse(&changed(&[("\"user\"", "\"kernel\"")]), "test").unwrap();
    assert_eq!(profile.validate(Personality::Linux6_4), []);
    let found = profile.validate(Personality::Linux5_18);
    assert_eq!((found.len(), found[0].field.as_str()), (1, "type"));
}
