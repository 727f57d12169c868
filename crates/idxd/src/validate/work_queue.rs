//! Rules of one work queue.

use dray_device::Capabilities;
use dray_spec::{GenCap, OpCap, Opcode};

use super::{check_index, check_switch};
use crate::configure::{max_batch, max_transfer_bytes};
use crate::finding::{Finding, Findings, MISSING};
use crate::{DeviceProfile, WorkQueueProfile};

/// Longest name that sysfs takes, in bytes.
const MAX_NAME_BYTES: usize = 16;

pub(super) fn check(
    queue: &WorkQueueProfile,
    device: &DeviceProfile,
    capabilities: &Capabilities,
    path: &str,
    list: &mut Vec<Finding>,
) {
    let mut findings = Findings::at(path, list);
    check_index(
        &mut findings,
        &queue.dev,
        "wq",
        device,
        capabilities.max_work_queues,
    );
    check_size(&mut findings, queue, capabilities);
    check_mode(&mut findings, queue, device);
    check_threshold(&mut findings, queue);
    check_priority(&mut findings, queue);
    check_limits(&mut findings, queue, capabilities);
    check_faults(&mut findings, queue, capabilities);
    check_operations(&mut findings, queue, capabilities);
    check_type(&mut findings, queue, device);
    check_name(&mut findings, queue);
}

/// CMDSTATUS 22: size 0 (spec 5.2). The sum is the device's matter.
fn check_size(findings: &mut Findings<'_>, queue: &WorkQueueProfile, capabilities: &Capabilities) {
    let most = i64::from(capabilities.work_queue_size);
    let limit = format!("a work queue has 1 to {most} entries (work_queue_size)");
    match queue.size {
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

fn check_mode(findings: &mut Findings<'_>, queue: &WorkQueueProfile, device: &DeviceProfile) {
    let limit = "it is shared (ENQCMD, many clients) or dedicated (MOVDIR64B, one client)";
    match queue.mode.as_deref() {
        Some("dedicated") => {}
        Some("shared") if device.pasid_enabled == Some(0) => findings.add(
            "mode",
            "shared",
            "the device has pasid_enabled 0, and a shared work queue takes the address space from the descriptor (CMDSTATUS 26)",
            "\"mode\":\"dedicated\", or boot with intel_iommu=on,sm_on",
        ),
        Some("shared") => {}
        Some(other) => findings.add("mode", format!("{other:?}"), limit, "\"mode\":\"dedicated\""),
        None => findings.add("mode", MISSING, limit, "\"mode\":\"dedicated\""),
    }
}

fn check_threshold(findings: &mut Findings<'_>, queue: &WorkQueueProfile) {
    let size = queue.size.unwrap_or(0).max(1);
    match (queue.mode.as_deref(), queue.threshold) {
        (Some("dedicated"), Some(threshold)) if threshold != 0 => findings.add(
            "threshold",
            threshold,
            "a dedicated work queue has none, and the driver refuses it",
            "leave threshold out, or \"mode\":\"shared\"",
        ),
        (Some("shared"), None) => findings.add(
            "threshold",
            MISSING,
            "a shared work queue cannot be enabled without one",
            format!("\"threshold\":{size}"),
        ),
        (Some("shared"), Some(threshold)) if !(1..=size).contains(&threshold) => findings.add(
            "threshold",
            threshold,
            format!("it is 1 to {size}, the size of the work queue"),
            format!("\"threshold\":{size}"),
        ),
        _ => {}
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
fn check_faults(
    findings: &mut Findings<'_>,
    queue: &WorkQueueProfile,
    capabilities: &Capabilities,
) {
    check_switch(findings, "block_on_fault", queue.block_on_fault);
    let blocks = queue.block_on_fault == Some(1);
    if blocks && !GenCap::from_bits(capabilities.gen_cap).block_on_fault() {
        findings.add(
            "block_on_fault",
            1,
            "the device cannot block on a fault (gen_cap bit 0 is 0)",
            "\"block_on_fault\":0",
        );
    }
    for (field, value, what) in [
        ("prs_disable", queue.prs_disable, "page requests"),
        ("ats_disable", queue.ats_disable, "address translation"),
    ] {
        // Negative is what accel-config prints where the kernel has no such attribute.
        check_switch(findings, field, value.filter(|&value| value >= 0));
        if value == Some(1) && capabilities.version < 0x200 {
            findings.add(
                field,
                1,
                format!(
                    "a device of version {:#x} cannot switch {what} off for one work queue",
                    capabilities.version
                ),
                format!("leave {field} out"),
            );
        }
    }
    if queue.prs_disable == Some(1) && blocks && capabilities.version >= 0x200 {
        findings.add(
            "prs_disable",
            1,
            "blocking on faults needs page requests",
            "\"block_on_fault\":0, or \"prs_disable\":0",
        );
    }
}

/// CMDSTATUS 2d: operations that the device does not have.
fn check_operations(
    findings: &mut Findings<'_>,
    queue: &WorkQueueProfile,
    capabilities: &Capabilities,
) {
    let Some(operations) = queue.op_config else {
        return;
    };
    let device = OpCap(capabilities.op_cap);
    if capabilities.version < 0x200 {
        findings.add(
            "op_config",
            operations,
            format!(
                "a device of version {:#x} cannot restrict the operations of a work queue",
                capabilities.version
            ),
            "leave op_config out",
        );
    } else if !device.contains(&operations) {
        findings.add(
            "op_config",
            operations,
            format!("the device has {device} (op_cap)"),
            format!("\"op_config\":\"{device}\""),
        );
    }
}

fn check_type(findings: &mut Findings<'_>, queue: &WorkQueueProfile, device: &DeviceProfile) {
    let limit = "it is user, kernel or mdev; without one no driver takes the work queue";
    let fix = "\"type\":\"user\"";
    let driver = match queue.kind.as_deref() {
        Some("user") if device.pasid_enabled == Some(0) => {
            findings.add(
                "type",
                "user",
                "the device has pasid_enabled 0, and user work queues need shared virtual memory",
                "\"type\":\"kernel\", or boot with intel_iommu=on,sm_on",
            );
            "user"
        }
        Some("user") => "user",
        Some("kernel") => "dmaengine",
        Some("mdev") => return,
        Some(other) => return findings.add("type", format!("{other:?}"), limit, fix),
        None => return findings.add("type", MISSING, limit, fix),
    };
    match queue.driver_name.as_deref() {
        None | Some("") => {}
        Some(name) if name == driver => {}
        Some(name) => findings.add(
            "driver_name",
            format!("{name:?}"),
            format!(
                "work queues of type {} go to the driver {driver}",
                queue.kind.as_deref().unwrap_or_default()
            ),
            format!("\"driver_name\":\"{driver}\""),
        ),
    }
}

fn check_name(findings: &mut Findings<'_>, queue: &WorkQueueProfile) {
    let limit = format!("a name has 1 to {MAX_NAME_BYTES} bytes");
    match queue.name.as_deref() {
        None => findings.add("name", MISSING, limit, "\"name\":\"app0\""),
        Some("") => findings.add("name", "empty", limit, "\"name\":\"app0\""),
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
