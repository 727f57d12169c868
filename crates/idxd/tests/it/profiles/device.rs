//! Each rule of a device, its groups and its read buffers, with its legal neighbour.

use super::common::{clean, findings, only};
use dray_idxd::Profile;
use dray_idxd::driver::Personality;

const GROUP: &str = "dsa0/groups[0] (group0.0)";
const ENGINE: &str = "\"dev\":\"engine0.0\"";
const ALLOWED: &str = "\"read_buffers_allowed\":96";
const RESERVED: &str = "\"read_buffers_reserved\":0";

#[track_caller]
fn refused(changes: &[(&str, &str)], path: &str, field: &str) -> String {
    let finding = only(changes);
    assert_eq!(
        (finding.path.as_str(), finding.field.as_str()),
        (path, field),
        "{finding}"
    );
    finding.value
}

/// Changes that put a second group in use, with what is given for it.
fn two_groups<'a>(group: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let engine = "      {\n        \"dev\":\"engine0.1\"\n      },\n";
    let base = [
        ("\"size\":128", "\"size\":96"),
        (engine, ""),
        (IDLE_GROUP, group),
    ];
    base.into_iter().chain(more.iter().copied()).collect()
}

const IDLE_GROUP: &str = "\"dev\":\"group0.1\",\n        \"read_buffers_reserved\":0,\n        \"use_read_buffer_limit\":0,\n        \"read_buffers_allowed\":96";

/// A group with one engine, which says nothing of read buffers but what it keeps.
fn second_group(reserved: u16) -> String {
    format!(
        r#""dev":"group0.1","read_buffers_reserved":{reserved},
        "grouped_workqueues":[{{"dev":"wq0.1","mode":"dedicated","size":32,"group_id":1,"priority":1,"type":"user","name":"app1"}}],
        "grouped_engines":[{{"dev":"engine0.1","group_id":1}}]"#
    )
}

#[test]
fn two_groups_are_legal() {
    let group = second_group(0);
    clean(&two_groups(&group, &[]));
}

#[test]
fn entries_of_all_queues() {
    let group = second_group(0);
    let finding = only(&two_groups(&group, &[("\"size\":96", "\"size\":97")]));
    assert_eq!(
        (finding.path.as_str(), finding.field.as_str()),
        ("dsa0", "size")
    );
    assert_eq!(
        finding.value,
        "129 for all work queues (wq0.0 97, wq0.1 32)"
    );
    assert!(finding.limit.contains("128"), "{finding}");
}

#[test]
fn queue_in_no_group() {
    let queue = |size| {
        format!(
            "\"ungrouped workqueues\":[{{\"dev\":\"wq0.1\",\"size\":{size}}}],\"ungrouped_engines\""
        )
    };
    clean(&[("\"ungrouped_engines\"", &queue(0))]);
    let one = queue(1);
    let changes = [
        ("\"size\":128", "\"size\":127"),
        ("\"ungrouped_engines\"", one.as_str()),
    ];
    let path = "dsa0/ungrouped_workqueues[0] (wq0.1)";
    assert_eq!(refused(&changes, path, "group_id"), "no group");
}

#[test]
fn group_with_one_kind_of_member() {
    let engine = "{\n            \"dev\":\"engine0.0\",\n            \"group_id\":0\n          }";
    let found = findings(&[(engine, "")]);
    let fields: Vec<&str> = found.iter().map(|finding| finding.field.as_str()).collect();
    // The only group: no engine in it, and none on the device.
    assert_eq!(fields, ["grouped_engines", "grouped_engines"]);
    let engines_alone = "\"dev\":\"group0.1\",\"grouped_engines\":[{\"dev\":\"engine0.1\"}]";
    let unlisted = ("      {\n        \"dev\":\"engine0.1\"\n      },\n", "");
    let changes = [("\"dev\":\"group0.1\"", engines_alone), unlisted];
    let value = refused(&changes, "dsa0/groups[1] (group0.1)", "grouped_workqueues");
    assert_eq!(value, "empty, but engines are there");
}

#[test]
fn member_of_two_groups() {
    let group = second_group(0);
    let engine = [("\"dev\":\"engine0.1\"", "\"dev\":\"engine0.0\"")];
    let value = refused(&two_groups(&group, &engine), "dsa0", "grouped_engines");
    assert_eq!(value, "engine0.0 in group0.0 and in group0.1");
    let queue = [("\"dev\":\"wq0.1\"", "\"dev\":\"wq0.0\"")];
    let value = refused(&two_groups(&group, &queue), "dsa0", "grouped_workqueues");
    assert_eq!(value, "wq0.0 in group0.0 and in group0.1");
    let group = [("\"dev\":\"group0.3\"", "\"dev\":\"group0.02\"")];
    assert_eq!(
        refused(&group, "dsa0", "groups"),
        "group0.02 in groups and in groups"
    );
}

#[test]
fn index_beyond_the_device() {
    clean(&[("\"dev\":\"wq0.0\"", "\"dev\":\"wq0.7\"")]);
    let path = "dsa0/groups[0]/grouped_workqueues[0] (wq0.8)";
    refused(&[("\"dev\":\"wq0.0\"", "\"dev\":\"wq0.8\"")], path, "dev");
    let path = "dsa0/groups[0]/grouped_engines[0] (engine0.4)";
    refused(&[(ENGINE, "\"dev\":\"engine0.4\"")], path, "dev");
    let path = "dsa0/groups[3] (group0.4)";
    refused(
        &[("\"dev\":\"group0.3\"", "\"dev\":\"group0.4\"")],
        path,
        "dev",
    );
    let path = "dsa0/ungrouped_engines[2] (engine0.9)";
    refused(
        &[("\"dev\":\"engine0.3\"", "\"dev\":\"engine0.9\"")],
        path,
        "dev",
    );
}

#[test]
fn object_of_another_device() {
    let path = "dsa0/groups[0]/grouped_workqueues[0] (wq1.0)";
    let value = refused(&[("\"dev\":\"wq0.0\"", "\"dev\":\"wq1.0\"")], path, "dev");
    assert_eq!(value, "wq1.0");
}

#[test]
fn group_id_says_where_it_stands() {
    clean(&[("            \"group_id\":0,\n", "")]);
    let path = "dsa0/groups[0]/grouped_workqueues[0] (wq0.0)";
    refused(&[("\"group_id\":0", "\"group_id\":1")], path, "group_id");
    let path = "dsa0/groups[0]/grouped_engines[0] (engine0.0)";
    let engine = "\"dev\":\"engine0.0\",\n            \"group_id\":";
    refused(
        &[(&format!("{engine}0"), &format!("{engine}-1"))],
        path,
        "group_id",
    );
}

#[test]
fn device_described_twice() {
    let text = super::common::changed(&[]);
    let body = text.trim().trim_start_matches('[').trim_end_matches(']');
    let twice = format!("[{body},{body}]");
    let found = Profile::parse(&twice, "test")
        .unwrap()
        .validate(Personality::NEWEST);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].path.as_str(), found[0].value.as_str()),
        ("[1]", "dsa0")
    );
    let other = format!(
        "[{body},{}]",
        body.replace("dsa0", "dsa2").replace("0.", "2.")
    );
    let profile = Profile::parse(&other, "test").unwrap();
    assert_eq!(profile.devices().unwrap().len(), 2);
    assert_eq!(profile.title(), "test (2 devices)");
}

#[test]
fn event_log_came_with_version_2() {
    let at = "\"max_groups\":4";
    let log = |entries| format!("\"event_log_size\":{entries},{at}");
    let version_2 = ("\"0x100\"", "\"0x200\"");
    clean(&[(at, &log(0))]);
    // Left out, as by accel-config: there is no such attribute.
    clean(&[(at, &log(64))]);
    refused(&[version_2, (at, &log(0))], "dsa0", "event_log_size");
    clean(&[version_2, (at, &log(64))]);
    refused(&[version_2, (at, &log(63))], "dsa0", "event_log_size");
    refused(&[version_2, (at, &log(65536))], "dsa0", "event_log_size");
}

#[test]
fn group_attributes() {
    let with = |text: &str| format!("{text},{RESERVED}");
    let version_2 = ("\"0x100\"", "\"0x200\"");
    clean(&[(RESERVED, &with("\"traffic_class_a\":7"))]);
    // The driver's own classes stay, but on old kernels those of version 2 can be written.
    let class = [version_2, (RESERVED, &with("\"traffic_class_b\":8"))];
    clean(&class);
    let profile = Profile::parse(&super::common::changed(&class), "test").unwrap();
    let found = profile.validate(Personality::Linux5_18);
    assert_eq!(found[0].field, "traffic_class_b");
    clean(&[version_2, (RESERVED, &with("\"desc_progress_limit\":3"))]);
    refused(
        &[version_2, (RESERVED, &with("\"batch_progress_limit\":4"))],
        GROUP,
        "batch_progress_limit",
    );
    clean(&[(RESERVED, &with("\"desc_progress_limit\":1"))]);
}

#[test]
fn read_buffers_allowed() {
    clean(&[(ALLOWED, "\"read_buffers_allowed\":4")]);
    let finding = only(&[(ALLOWED, "\"read_buffers_allowed\":3")]);
    assert_eq!(finding.fix, "\"read_buffers_allowed\":4");
    refused(
        &[(ALLOWED, "\"read_buffers_allowed\":97")],
        GROUP,
        "read_buffers_allowed",
    );
    // A group without engines holds none, whatever it may.
    let idle = "\"dev\":\"group0.1\",\n        \"read_buffers_reserved\":0,\n        \"use_read_buffer_limit\":0,\n        \"read_buffers_allowed\":";
    clean(&[(&format!("{idle}96"), &format!("{idle}0"))]);
}

#[test]
fn read_buffers_reserved() {
    clean(&[(RESERVED, "\"read_buffers_reserved\":96")]);
    let found = findings(&[(RESERVED, "\"read_buffers_reserved\":97")]);
    let fields: Vec<&str> = found.iter().map(|finding| finding.field.as_str()).collect();
    assert_eq!(fields, ["read_buffers_reserved", "read_buffers_allowed"]);
    refused(
        &[(RESERVED, "\"read_buffers_reserved\":-1")],
        GROUP,
        "read_buffers_reserved",
    );
}

#[test]
fn what_one_group_keeps_no_other_may_hold() {
    let group = second_group(10);
    clean(&two_groups(
        &group,
        &[(ALLOWED, "\"read_buffers_allowed\":86")],
    ));
    let more = [(ALLOWED, "\"read_buffers_allowed\":87")];
    refused(&two_groups(&group, &more), GROUP, "read_buffers_allowed");
    let group = second_group(97);
    let found = findings(&two_groups(&group, &[]));
    assert_eq!(found[0].field, "read_buffers_reserved");
    assert_eq!(found[0].value, "97 for all groups with engines");
}

#[test]
fn read_buffer_limit() {
    let limit = |limit| format!("\"read_buffer_limit\":{limit}");
    let used = ("\"use_read_buffer_limit\":0", "\"use_read_buffer_limit\":1");
    let off = limit(0);
    let set = |to: &str| (off.clone(), to.to_owned());
    let check = |to: &str| {
        let (from, to) = set(to);
        findings(&[(&from, &to), used])
    };
    assert_eq!(check(&limit(4)), []);
    assert_eq!(check(&limit(96)), []);
    assert_eq!(check(&limit(3))[0].fix, "\"read_buffer_limit\":4");
    assert_eq!(check(&limit(97))[0].path, "dsa0");
    assert_eq!(check(&limit(0))[0].field, "use_read_buffer_limit");
    clean(&[(&off, &limit(3))]);
    refused(
        &[(
            "\"use_read_buffer_limit\":0",
            "\"use_read_buffer_limit\":-1",
        )],
        GROUP,
        "use_read_buffer_limit",
    );
}

#[test]
fn everything_is_found_at_once() {
    let found = findings(&[
        ("\"size\":128", "\"size\":-1"),
        ("\"priority\":10", "\"priority\":0"),
        ("\"max_batch_size\":64", "\"max_batch_size\":4096"),
        (ENGINE, "\"dev\":\"engine0.4\""),
    ]);
    let fields: Vec<&str> = found.iter().map(|finding| finding.field.as_str()).collect();
    assert_eq!(fields, ["dev", "size", "priority", "max_batch_size"]);
}
