//! Rules that span the device.

use dray_device::Capabilities;

use super::{Owner, check_index, check_switch};
use crate::DeviceProfile;
use crate::configure::size;
use crate::finding::{Finding, Findings};
use crate::parts::numbers;

pub(super) fn check(owner: &Owner<'_>, list: &mut Vec<Finding>) {
    let Owner {
        device,
        capabilities,
        ..
    } = *owner;
    let mut findings = Findings::at(&device.dev, list);
    check_switch(&mut findings, "configurable", device.configurable);
    check_switch(&mut findings, "pasid_enabled", device.pasid_enabled);
    check_event_log(&mut findings, owner);
    check_entries(&mut findings, device, capabilities);
    check_members(&mut findings, device);
    check_repeats(&mut findings, device);
    check_ungrouped(device, capabilities, list);
}

/// The event log came with version 2; it holds 64 entries at least (spec 5.9).
fn check_event_log(findings: &mut Findings<'_>, owner: &Owner<'_>) {
    let entries = owner.device.event_log_size;
    if let Some(entries) = entries.filter(|_| owner.has_version_2())
        && !(64..=65535).contains(&entries)
    {
        findings.add(
            "event_log_size",
            entries,
            "the log takes 64 to 65535 entries",
            "\"event_log_size\":64",
        );
    }
}

/// CMDSTATUS 14: the sizes of all work queues exceed what the device has (spec 5.1).
fn check_entries(findings: &mut Findings<'_>, device: &DeviceProfile, capabilities: &Capabilities) {
    let groups = device.groups.iter();
    let grouped = groups.flat_map(|group| &group.grouped_workqueues);
    let grouped = grouped.map(|queue| (&queue.dev, size(queue)));
    // To a queue without a group the driver gives none.
    let ungrouped = device.ungrouped_workqueues.iter();
    let ungrouped = ungrouped.map(|queue| (&queue.dev, queue.size.unwrap_or(0)));
    let queues: Vec<(&String, i64)> = grouped.chain(ungrouped).collect();
    let sizes = queues.iter().map(|(_, size)| i128::from(*size));
    let total: i128 = sizes.filter(|&size| size > 0).sum();
    let most = i128::from(capabilities.work_queue_size);
    if total > most {
        let each = most / queues.len().max(1) as i128;
        let shown = queues.iter().take(8);
        let shown: Vec<String> = shown.map(|(dev, size)| format!("{dev} {size}")).collect();
        let more = if queues.len() > 8 { ", ..." } else { "" };
        findings.add(
            "size",
            format!("{total} for all work queues ({}{more})", shown.join(", ")),
            format!("the device has {most} entries for all of them (work_queue_size)"),
            format!(
                "sizes that add up to {most} or less, such as \"size\":{} each",
                each.max(1)
            ),
        );
    }
}

/// The driver does not enable a device without a grouped work queue and a grouped engine.
fn check_members(findings: &mut Findings<'_>, device: &DeviceProfile) {
    if device
        .groups
        .iter()
        .all(|group| group.grouped_workqueues.is_empty())
    {
        findings.add(
            "grouped_workqueues",
            "empty in every group",
            "the driver enables a device only with a work queue in a group",
            "list a work queue in a group that has an engine, such as \"grouped_workqueues\":[{\"dev\":\"wq0.0\",...}]",
        );
    }
    if device
        .groups
        .iter()
        .all(|group| group.grouped_engines.is_empty())
    {
        findings.add(
            "grouped_engines",
            "empty in every group",
            "the driver enables a device only with an engine in a group",
            "list an engine in a group, such as \"grouped_engines\":[{\"dev\":\"engine0.0\",\"group_id\":0}]",
        );
    }
}

/// CMDSTATUS 16 and 17: a work queue or an engine stands in two groups (spec 5.1).
fn check_repeats(findings: &mut Findings<'_>, device: &DeviceProfile) {
    let no_group = "no group";
    let groups = || device.groups.iter();
    let queues = groups()
        .flat_map(|group| {
            let members = group.grouped_workqueues.iter();
            members.map(|queue| (queue.dev.as_str(), group.dev.as_str()))
        })
        .chain(
            device
                .ungrouped_workqueues
                .iter()
                .map(|queue| (queue.dev.as_str(), no_group)),
        );
    repeats(findings, "grouped_workqueues", "wq", queues.collect());
    let engines = groups()
        .flat_map(|group| {
            let members = group.grouped_engines.iter();
            members.map(|engine| (engine.dev.as_str(), group.dev.as_str()))
        })
        .chain(
            device
                .ungrouped_engines
                .iter()
                .map(|engine| (engine.dev.as_str(), no_group)),
        );
    repeats(findings, "grouped_engines", "engine", engines.collect());
    let names = groups().map(|group| (group.dev.as_str(), "groups"));
    repeats(findings, "groups", "group", names.collect());
}

/// Compares by number, since `wq0.01` is `wq0.1`.
fn repeats(findings: &mut Findings<'_>, field: &str, prefix: &str, members: Vec<(&str, &str)>) {
    for (position, (dev, place)) in members.iter().enumerate() {
        let same = |(other, _): &&(&str, &str)| numbers(other, prefix) == numbers(dev, prefix);
        if let Some((_, earlier)) = members[..position].iter().find(same) {
            findings.add(
                field,
                format!("{dev} in {earlier} and in {place}"),
                "it stands in one place only",
                format!("{dev} in one of the two"),
            );
        }
    }
}

/// A work queue without a group gets no engine; the driver refuses to enable it. One that was
/// never set up (size 0) is only listed.
fn check_ungrouped(device: &DeviceProfile, capabilities: &Capabilities, list: &mut Vec<Finding>) {
    for (index, queue) in device.ungrouped_workqueues.iter().enumerate() {
        let path = format!(
            "{}/ungrouped_workqueues[{index}] ({})",
            device.dev, queue.dev
        );
        let mut findings = Findings::at(path, list);
        check_index(
            &mut findings,
            &queue.dev,
            "wq",
            device,
            capabilities.max_work_queues,
        );
        if queue.size.is_some_and(|size| size != 0) {
            findings.add(
                "group_id",
                "no group",
                "a work queue with entries must be in a group with an engine",
                "move it to grouped_workqueues of a group, or \"size\":0",
            );
        }
    }
    for (index, engine) in device.ungrouped_engines.iter().enumerate() {
        let path = format!("{}/ungrouped_engines[{index}] ({})", device.dev, engine.dev);
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
