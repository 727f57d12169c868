//! Each rule of a work queue, with its legal neighbour.

use super::common::{clean, findings, only};

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
    refused(&[("\"size\":128", "\"size\":0")], "size", "0");
    refused(&[("\"size\":128", "\"size\":-1")], "size", "-1");
    refused(&[("\"size\":128,", "")], "size", "missing");
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
    refused(
        &[("\"mode\":\"dedicated\"", "\"mode\":\"exclusive\"")],
        "mode",
        "\"exclusive\"",
    );
    refused(&[("\"mode\":\"dedicated\",", "")], "mode", "missing");
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
    refused(
        &[("\"threshold\":0", "\"threshold\":64")],
        "threshold",
        "64",
    );
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
    refused(&[(at, "\"prs_disable\":1")], "prs_disable", "1");
    refused(&[(at, "\"ats_disable\":1")], "ats_disable", "1");
    refused(&[(at, "\"ats_disable\":2")], "ats_disable", "2");
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
    assert_eq!(only(&[(at, all)]).fix, "leave op_config out");
}

#[test]
fn type_and_driver() {
    clean(&[("\"user\"", "\"kernel\"")]);
    clean(&[("\"user\"", "\"user\",\"driver_name\":\"user\"")]);
    clean(&[("\"user\"", "\"user\",\"driver_name\":\"\"")]);
    refused(&[("\"user\"", "\"none\"")], "type", "\"none\"");
    refused(&[("\"type\":\"user\",", "")], "type", "missing");
    refused(
        &[("\"user\"", "\"user\",\"driver_name\":\"dmaengine\"")],
        "driver_name",
        "\"dmaengine\"",
    );
}

#[test]
fn without_address_spaces() {
    let off = ("\"pasid_enabled\":1", "\"pasid_enabled\":0");
    clean(&[off, ("\"user\"", "\"kernel\"")]);
    refused(&[off], "type", "user");
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
    clean(&[("\"app0\"", "\"sixteen_letters_\"")]);
    let fix = refused(
        &[("\"app0\"", "\"seventeen_letters\"")],
        "name",
        "\"seventeen_letters\", 17 bytes",
    );
    assert_eq!(fix, "\"name\":\"seventeen_letter\"");
    refused(&[("\"app0\"", "\"\"")], "name", "empty");
    refused(&[("\"name\":\"app0\",", "")], "name", "missing");
}
