//! Rules of one group.

use dray_device::Capabilities;

use super::{check_index, check_switch};
use crate::finding::{Finding, Findings};
use crate::parts::numbers;
use crate::{DeviceProfile, GroupProfile};

pub(super) fn check(
    group: &GroupProfile,
    device: &DeviceProfile,
    capabilities: &Capabilities,
    path: &str,
    list: &mut Vec<Finding>,
) {
    let mut findings = Findings::at(format!("{path} ({})", group.dev), list);
    check_index(
        &mut findings,
        &group.dev,
        "group",
        device,
        capabilities.max_groups,
    );
    check_switch(
        &mut findings,
        "use_read_buffer_limit",
        group.use_read_buffer_limit,
    );
    check_both(&mut findings, group);
    for (field, value, most) in [
        ("traffic_class_a", group.traffic_class_a, 7),
        ("traffic_class_b", group.traffic_class_b, 7),
        ("desc_progress_limit", group.desc_progress_limit, 3),
        ("batch_progress_limit", group.batch_progress_limit, 3),
    ] {
        check_range(&mut findings, field, value, most);
    }
    check_progress(&mut findings, group, capabilities);
    check_membership(group, path, list);
    for (index, engine) in group.grouped_engines.iter().enumerate() {
        let path = format!("{path}/grouped_engines[{index}] ({})", engine.dev);
        let mut findings = Findings::at(path, list);
        check_index(
            &mut findings,
            &engine.dev,
            "engine",
            device,
            capabilities.max_engines,
        );
    }
}

/// CMDSTATUS 15: a group has work queues and no engine, or engines and no work queue (spec 5.1).
fn check_both(findings: &mut Findings<'_>, group: &GroupProfile) {
    let queues = !group.grouped_workqueues.is_empty();
    let engines = !group.grouped_engines.is_empty();
    let limit = "a group in use has at least one of each";
    if queues && !engines {
        findings.add(
            "grouped_engines",
            "empty, but work queues are there",
            limit,
            "list an engine in the group, or move its work queues to a group that has one",
        );
    }
    if engines && !queues {
        findings.add(
            "grouped_workqueues",
            "empty, but engines are there",
            limit,
            "list a work queue in the group, or move its engines to ungrouped_engines",
        );
    }
}

fn check_range(findings: &mut Findings<'_>, field: &str, value: Option<i64>, most: i64) {
    if let Some(value) = value
        && !(0..=most).contains(&value)
    {
        findings.add(
            field,
            value,
            format!("it is 0 to {most}"),
            format!("\"{field}\":0"),
        );
    }
}

/// Limits of work in progress came with version 2 (GRPCAP bit 18).
fn check_progress(findings: &mut Findings<'_>, group: &GroupProfile, capabilities: &Capabilities) {
    for (field, value) in [
        ("desc_progress_limit", group.desc_progress_limit),
        ("batch_progress_limit", group.batch_progress_limit),
    ] {
        if capabilities.version < 0x200 && value.is_some_and(|value| value != 0) {
            findings.add(
                field,
                value.unwrap_or(0),
                format!(
                    "a device of version {:#x} has no such limit",
                    capabilities.version
                ),
                format!("leave {field} out"),
            );
        }
    }
}

/// `group_id` wins over the place when accel-config loads the file, so the two must agree.
fn check_membership(group: &GroupProfile, path: &str, list: &mut Vec<Finding>) {
    let Some((_, id)) = numbers(&group.dev, "group") else {
        return;
    };
    let queues = group.grouped_workqueues.iter().enumerate();
    let engines = group.grouped_engines.iter().enumerate();
    let queues =
        queues.map(|(index, queue)| ("grouped_workqueues", index, &queue.dev, queue.group_id));
    let engines =
        engines.map(|(index, engine)| ("grouped_engines", index, &engine.dev, engine.group_id));
    for (key, index, dev, group_id) in queues.chain(engines) {
        let Some(group_id) = group_id else {
            continue;
        };
        if group_id != i64::from(id) {
            Findings::at(format!("{path}/{key}[{index}] ({dev})"), list).add(
                "group_id",
                group_id,
                format!("it stands in {}", group.dev),
                format!("\"group_id\":{id}, or move it to group {group_id}"),
            );
        }
    }
}
