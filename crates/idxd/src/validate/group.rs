//! Rules of one group.

use super::{Owner, check_index};
use crate::GroupProfile;
use crate::finding::{Finding, Findings};
use crate::parts::numbers;

pub(super) fn check(group: &GroupProfile, owner: &Owner<'_>, path: &str, list: &mut Vec<Finding>) {
    let Owner {
        device,
        capabilities,
        kernel,
    } = *owner;
    let mut findings = Findings::at(format!("{path} ({})", group.dev), list);
    check_index(
        &mut findings,
        &group.dev,
        "group",
        device,
        capabilities.max_groups,
    );
    check_both(&mut findings, group);
    // The driver takes any number but 0 for on.
    let limit = group.use_read_buffer_limit.filter(|value| *value < 0);
    check_range(&mut findings, "use_read_buffer_limit", limit, 1);
    // The driver has its own on these versions, whatever a file says.
    let fixed = capabilities.version <= kernel.fixed_traffic_classes();
    for (field, value) in [
        ("traffic_class_a", group.traffic_class_a),
        ("traffic_class_b", group.traffic_class_b),
    ] {
        check_range(&mut findings, field, value.filter(|_| !fixed), 7);
    }
    for (field, value) in [
        ("desc_progress_limit", group.desc_progress_limit),
        ("batch_progress_limit", group.batch_progress_limit),
    ] {
        check_range(
            &mut findings,
            field,
            value.filter(|_| owner.has_version_2()),
            3,
        );
    }
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
