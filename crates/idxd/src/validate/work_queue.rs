//! Rules of one work queue.

use dray_device::Capabilities;
use dray_spec::{GenCap, OpCap, Opcode};

use super::{Owner, check_index, check_switch};
use crate::WorkQueueProfile;
use crate::configure::{is_dedicated, max_batch, max_transfer_bytes};
use crate::finding::{Finding, Findings, MISSING};

/// What turns shared virtual memory on where the BIOS allows it.
const SVA_ON: &str = "intel_iommu=on,sm_on";

/// Longest name that sysfs takes, in bytes (`WQ_NAME_SIZE`).
const MAX_NAME_BYTES: usize = 1024;

pub(super) fn check(
    queue: &WorkQueueProfile,
    owner: &Owner<'_>,
    path: &str,
    list: &mut Vec<Finding>,
) {
    let Owner {
        device,
        capabilities,
        ..
    } = *owner;
    let mut findings = Findings::at(path, list);
    check_index(
        &mut findings,
        &queue.dev,
        "wq",
        device,
        capabilities.max_work_queues,
    );
    check_size(&mut findings, queue, owner);
    check_mode(&mut findings, queue, owner);
    check_threshold(&mut findings, queue);
    check_priority(&mut findings, queue);
    check_limits(&mut findings, queue, capabilities);
    check_faults(&mut findings, queue, owner);
    check_operations(&mut findings, queue, owner);
    check_type(&mut findings, queue, owner);
    check_name(&mut findings, queue);
}

/// CMDSTATUS 22: size 0 (spec 5.2). The sum is the device's matter.
fn check_size(findings: &mut Findings<'_>, queue: &WorkQueueProfile, owner: &Owner<'_>) {
    let most = i64::from(owner.capabilities.work_queue_size);
    let limit = format!("a work queue has 1 to {most} entries (work_queue_size)");
    // The driver gives a queue of a type 16 entries when it enables the device; a threshold is
    // compared before.
    let typed = matches!(queue.kind.as_deref(), Some("user" | "kernel"));
    let filled = owner.kernel.has_default_size() && typed && is_dedicated(queue);
    match queue.size {
        None | Some(0) if filled => {}
        None => findings.add("size", MISSING, limit, "\"size\":16"),
        Some(size) if size < 1 => findings.add(
            "size",
            size,
            limit,
            "\"size\":16, or take the work queue out of the group",
        ),
        Some(size) if size > most => findings.add("size", size, limit, format!("\"size\":{most}")),
        Some(_) => {}
    }
}

fn check_mode(findings: &mut Findings<'_>, queue: &WorkQueueProfile, owner: &Owner<'_>) {
    let limit = "it is shared (ENQCMD, many clients) or dedicated (MOVDIR64B, one client)";
    match queue.mode.as_deref() {
        Some("dedicated") => {}
        Some("shared") | None if !owner.has_sva() => {
            let user = queue.driver(owner.kernel) == Some("user");
            // From 6.1 on a dedicated queue of users is refused as well.
            let other = match user && owner.kernel.user_needs_sva() {
                true => {
                    "\"mode\":\"dedicated\" with \"type\":\"kernel\", which programs cannot open"
                }
                false => "\"mode\":\"dedicated\"",
            };
            findings.add(
                "mode",
                "shared",
                "the device has pasid_enabled 0, and a shared work queue takes the address space from the descriptor (CMDSTATUS 26)",
                format!("boot with {SVA_ON}, or {other}"),
            );
        }
        // The driver's queues are shared until something else is written.
        Some("shared") | None => {}
        Some(other) => findings.add(
            "mode",
            format!("{other:?}"),
            limit,
            "\"mode\":\"dedicated\"",
        ),
    }
}

/// A dedicated queue has no threshold; one in a file is left out, as accel-config does.
fn check_threshold(findings: &mut Findings<'_>, queue: &WorkQueueProfile) {
    if is_dedicated(queue) {
        return;
    }
    let size = queue.size.unwrap_or(0).max(1);
    let fix = format!("\"threshold\":{size}");
    match queue.threshold {
        None => findings.add(
            "threshold",
            MISSING,
            "a shared work queue cannot be enabled without one",
            fix,
        ),
        Some(threshold) if !(1..=size).contains(&threshold) => findings.add(
            "threshold",
            threshold,
            format!("it is 1 to {size}, the size of the work queue"),
            fix,
        ),
        Some(_) => {}
    }
}

/// CMDSTATUS 23: priority 0. sysfs takes it, enabling fails.
fn check_priority(findings: &mut Findings<'_>, queue: &WorkQueueProfile) {
    let limit = "it is 1 (low) to 15 (high)";
    let fix = "\"priority\":10";
    match queue.priority {
        None => findings.add(
            "priority",
            MISSING,
            "without one it is 0, and enabling fails",
            fix,
        ),
        Some(0) => findings.add(
            "priority",
            0,
            format!("{limit}; 0 can be written, but enabling fails"),
            fix,
        ),
        Some(priority) if !(1..=15).contains(&priority) => {
            findings.add("priority", priority, limit, fix);
        }
        Some(_) => {}
    }
}

/// CMDSTATUS 27 and 28. The driver rounds up to a power of two before it compares.
fn check_limits(
    findings: &mut Findings<'_>,
    queue: &WorkQueueProfile,
    capabilities: &Capabilities,
) {
    // Without batches of one the queue's limit of 2^0 is refused (spec 9.2.2).
    let batches = OpCap(capabilities.op_cap).supports(u8::from(Opcode::Batch));
    let alone = !batches || GenCap::from_bits(capabilities.gen_cap).batch_of_one();
    let batch = (
        "max_batch_size",
        max_batch(queue, capabilities),
        if alone { 1 } else { 2 },
        i64::from(capabilities.max_batch_size),
    );
    let transfer = (
        "max_transfer_size",
        max_transfer_bytes(queue, capabilities),
        1,
        i64::try_from(capabilities.max_transfer_size).unwrap_or(i64::MAX),
    );
    for (field, value, least, most) in [batch, transfer] {
        if !(least..=most).contains(&value) {
            findings.add(
                field,
                value,
                format!("it is {least} to {most}, the device's {field}"),
                format!("\"{field}\":{most}"),
            );
        }
    }
}

/// CMDSTATUS 25, 2c and 2e: blocking on faults needs GENCAP bit 0 and page requests (spec 3.13), and a
/// queue's own switches are what version 2 brought (WQCAP bits 50 and 55).
fn check_faults(findings: &mut Findings<'_>, queue: &WorkQueueProfile, owner: &Owner<'_>) {
    check_switch(findings, "block_on_fault", queue.block_on_fault);
    let blocks = queue.block_on_fault == Some(1);
    let able = GenCap::from_bits(owner.capabilities.gen_cap).block_on_fault();
    if blocks && !(able && owner.has_sva()) {
        findings.add(
            "block_on_fault",
            1,
            match able {
                true => {
                    "the device has pasid_enabled 0, and blocking on faults needs page requests"
                }
                false => "the device cannot block on a fault (gen_cap bit 0 is 0)",
            },
            "\"block_on_fault\":0",
        );
    }
    // Negative is what accel-config prints where the kernel has no such attribute.
    let said = |value: Option<i64>| value.filter(|&value| value >= 0);
    let version_2 = owner.capabilities.version >= 0x200;
    if version_2 {
        check_switch(findings, "ats_disable", said(queue.ats_disable));
    } else if let Some(value) = said(queue.ats_disable)
        && value != 0
        && owner.kernel.shows_ats_disable_always()
    {
        findings.add(
            "ats_disable",
            value,
            format!(
                "a device of version {:#x} cannot switch address translation off for one work queue",
                owner.capabilities.version
            ),
            "leave ats_disable out",
        );
    }
    if !owner.has_version_2() {
        return;
    }
    check_switch(findings, "prs_disable", said(queue.prs_disable));
    if queue.prs_disable == Some(1) && blocks {
        findings.add(
            "prs_disable",
            1,
            "blocking on faults needs page requests",
            "\"block_on_fault\":0, or \"prs_disable\":0",
        );
    }
}

/// CMDSTATUS 2d: operations that the device does not have.
fn check_operations(findings: &mut Findings<'_>, queue: &WorkQueueProfile, owner: &Owner<'_>) {
    let device = OpCap(owner.capabilities.op_cap);
    if let Some(operations) = queue.op_config.filter(|_| owner.has_version_2())
        && !device.contains(&operations)
    {
        findings.add(
            "op_config",
            operations,
            format!("the device has {device} (op_cap)"),
            format!("\"op_config\":\"{device}\""),
        );
    }
}

/// The driver that takes the queue, and what it asks for.
fn check_type(findings: &mut Findings<'_>, queue: &WorkQueueProfile, owner: &Owner<'_>) {
    let kind = queue.kind.as_deref();
    let limit = "it is user or kernel; without one no driver takes the work queue";
    let fix = "\"type\":\"user\"";
    match (kind, queue.driver(owner.kernel)) {
        (Some(other), _) if !["user", "kernel", "none"].contains(&other) => {
            return findings.add("type", format!("{other:?}"), limit, fix);
        }
        (None, None) => return findings.add("type", MISSING, limit, fix),
        (Some(other), None) => return findings.add("type", format!("{other:?}"), limit, fix),
        (_, Some("user")) if !owner.has_sva() && owner.kernel.user_needs_sva() => findings.add(
            "type",
            "user",
            "the device has pasid_enabled 0, and from Linux 6.1 on a user work queue, dedicated or \
             shared, needs shared virtual memory",
            format!("boot with {SVA_ON}, or \"type\":\"kernel\", which programs cannot open"),
        ),
        (_, Some("user" | "dmaengine")) => {}
        (_, Some(name)) => findings.add(
            "driver_name",
            format!("{name:?}"),
            "the drivers of work queues are user and dmaengine",
            "\"driver_name\":\"user\"",
        ),
    }
    if kind == Some("kernel") && owner.has_sva() && owner.kernel.refuses_kernel_names() {
        findings.add(
            "type",
            "kernel",
            "before Linux 6.3 a work queue of type kernel cannot be named, and so not be enabled, where PASIDs are on",
            "\"type\":\"user\", or boot without sm_on",
        );
    }
}

fn check_name(findings: &mut Findings<'_>, queue: &WorkQueueProfile) {
    let limit = format!("a name has 1 to {MAX_NAME_BYTES} bytes");
    match queue.name.as_deref() {
        None => findings.add("name", MISSING, limit, "\"name\":\"app0\""),
        Some(name) if name.trim().is_empty() => {
            findings.add("name", "empty", limit, "\"name\":\"app0\"");
        }
        Some(name) if name.len() > MAX_NAME_BYTES => {
            let fits: String = name
                .char_indices()
                .take_while(|(at, letter)| at + letter.len_utf8() <= MAX_NAME_BYTES)
                .map(|(_, letter)| letter)
                .collect();
            let shown: String = name.chars().take(40).collect();
            findings.add(
                "name",
                format!("{shown:?}, {} bytes", name.len()),
                limit,
                format!("\"name\":{fits:?}"),
            );
        }
        Some(_) => {}
    }
}
