//! What `cmd_status` says.

/// A decoded `cmd_status`.
pub(crate) struct Meaning {
    /// What went wrong.
    pub(crate) what: &'static str,
    /// What to do about it.
    pub(crate) advice: &'static str,
}

const fn says(what: &'static str, advice: &'static str) -> Meaning {
    Meaning { what, advice }
}

/// Whether the driver wrote it, and not the device (`IDXD_SCMD_SOFTERR_MASK`).
pub(crate) const fn is_software(status: u64) -> bool {
    status & 0x8000_0000 != 0
}

/// The meaning of a `cmd_status`; none if it is success.
pub(crate) fn decode(status: u64) -> Option<Meaning> {
    if status == 0 {
        return None;
    }
    Some(match is_software(status) {
        true => by_driver(status),
        // Bits 23:8 are the result, bit 31 says whether the command still runs.
        false => by_device((status & 0xff) as u8),
    })
}

/// Errors of the driver, `enum idxd_scmd_stat` of linux/idxd.h.
fn by_driver(status: u64) -> Meaning {
    match status {
        0x8000_0010 => says(
            "the device is enabled already",
            "Disable it before enabling it anew.",
        ),
        0x8000_0020 => says(
            "the device is not enabled",
            "Enable the device before its work queues.",
        ),
        0x8000_0021 => says(
            "the work queue is enabled already",
            "Nothing needs to be done.",
        ),
        0x8001_0000 => says(
            "the library could not read cmd_status",
            "Look at the permissions of /sys/bus/dsa/devices.",
        ),
        0x8002_0000 => says(
            "the DMA device could not be registered",
            "See dmesg; load idxd again.",
        ),
        0x8003_0000 => says(
            "the work queue is in no group",
            "Give it one: accel-config config-wq --group-id=0.",
        ),
        0x8004_0000 => says(
            "the work queue has no name",
            "Give it one: accel-config config-wq --name=app1.",
        ),
        0x8005_0000 => says(
            "the work queue needs shared virtual addressing, which is off",
            "See the check sva; kernel-type dedicated queues do without.",
        ),
        0x8006_0000 => says(
            "the shared work queue has no threshold",
            "Give it one of at most its size: accel-config config-wq --threshold.",
        ),
        0x8007_0000 => says(
            "the portal could not be mapped",
            "See dmesg; load idxd again.",
        ),
        0x8008_0000 => says(
            "memory for the work queue could not be had",
            "Free memory and try again.",
        ),
        0x8009_0000 => says(
            "a per-CPU counter could not be had",
            "Free memory and try again.",
        ),
        0x800a_0000 => says(
            "the DMA channel could not be registered",
            "See dmesg; load idxd again.",
        ),
        0x800b_0000 => says(
            "the character device could not be made",
            "See dmesg; load idxd again.",
        ),
        0x800c_0000 => says(
            "a shared work queue is configured and shared work queues are not supported here",
            "See the checks cpu and sva. --mode=dedicated helps where only ENQCMD is missing: without shared virtual addressing Linux from 6.1 on refuses dedicated queues of users, too.",
        ),
        0x800d_0000 => says(
            "no work queue is configured",
            "Configure one with a size and a group before enabling the device.",
        ),
        0x800e_0000 => says(
            "the work queue has no size",
            "Give it one: accel-config config-wq --wq-size.",
        ),
        0x800f_0000 => says(
            "the kernel's work queue needs privileged mode, which PASID has off",
            "Use a kernel from 6.4 on, or a user-type queue.",
        ),
        0x8010_0000 => says(
            "the interrupt could not be had",
            "See dmesg; interrupt remapping may lack vectors.",
        ),
        0x8011_0000 => says(
            "a user-type work queue needs shared virtual addressing, which is off",
            "See the check sva; kernel-type dedicated queues do without.",
        ),
        0x8012_0000 => says(
            "the event log could not be set up",
            "See dmesg; free memory, or choose a smaller event_log_size.",
        ),
        _ => says(
            "the driver reports an error that is newer than this program",
            "See enum idxd_scmd_stat in linux/idxd.h.",
        ),
    }
}

/// Errors of the device (specification 9.2.13, table 9-3, and 5.1, 5.2 for enabling).
fn by_device(code: u8) -> Meaning {
    match code {
        0x01 => says(
            "the device does not know the command",
            "Use a newer kernel.",
        ),
        0x02 => says("there is no such work queue", "Look at max_work_queues."),
        0x03 => says(
            "hardware error",
            "See dmesg for machine checks and PCIe errors; reset the machine.",
        ),
        0x04 => says("a reserved bit was set", "Use a newer kernel."),
        0x05 => says(
            "the device is halted",
            "Reset it; dmesg says which reset it needs.",
        ),
        0x10 => says(
            "the device was not disabled",
            "Disable it before enabling it anew.",
        ),
        0x11 => says(
            "the configuration is wrong",
            "Load idxd again and configure anew.",
        ),
        0x12 => says(
            "bus mastering is off",
            "Bind the function to idxd anew, which turns it on.",
        ),
        0x13 => says(
            "the number of page requests does not fit",
            "Load idxd again.",
        ),
        0x14 => says(
            "the sizes of the work queues sum up to more than the device has",
            "Sizes of earlier configurations remain until idxd is loaded again: do that, then configure.",
        ),
        0x15 => says(
            "a group has work queues and no engine, or engines and no work queue",
            "Put an engine into the group: accel-config config-engine --group-id.",
        ),
        0x16 => says(
            "a work queue is in two groups, or in none",
            "Load idxd again and configure anew.",
        ),
        0x17 => says(
            "an engine is in two groups",
            "Load idxd again and configure anew.",
        ),
        0x18 => says(
            "the read buffers of a group are wrong",
            "At least four for each engine, and no more than the device has: config-group --read-buffers-allowed.",
        ),
        0x19 => says(
            "the event log is wrong",
            "Choose an event_log_size of 64 or more.",
        ),
        0x1a => says("ATS does not fit the platform", "Use a newer firmware."),
        0x1b => says("the PASID of the event log is wrong", "See the check sva."),
        0x20 => says(
            "the device is not enabled",
            "Enable it before its work queues.",
        ),
        0x21 => says("the work queue is not disabled", "Disable it first."),
        0x22 => says("the work queue has no size", "Give it one: --wq-size."),
        0x23 => says(
            "the work queue has no priority",
            "Give it one of 1 to 15: --priority.",
        ),
        0x24 => says(
            "the work queue does not support its mode",
            "Choose the other one: --mode.",
        ),
        0x25 => says(
            "block on fault is not possible here",
            "--block-on-fault=0, or turn on page requests.",
        ),
        0x26 => says(
            "PASID and mode of the work queue do not go together",
            "A shared queue needs PASIDs: see the check sva.",
        ),
        0x27 => says(
            "max_batch_size is 0 or more than the device has",
            "Choose at most the device's: --max-batch-size.",
        ),
        0x28 => says(
            "max_transfer_size is 0 or more than the device has",
            "Choose at most the device's: --max-transfer-size.",
        ),
        0x2a => says(
            "the queue is privileged, and PASID has privileged mode off",
            "Use a user-type queue, or a newer kernel.",
        ),
        0x2b => says("the occupancy interrupt is wrong", "Use a newer kernel."),
        0x2c => says(
            "ATS cannot be turned off for the work queue",
            "Leave ats_disable at 0.",
        ),
        0x2d => says(
            "op_config has operations that the device has not",
            "Choose among those of op_cap: --op-config.",
        ),
        0x2e => says(
            "page requests cannot be turned off for the work queue",
            "Leave prs_disable at 0, or block_on_fault at 0 with it.",
        ),
        0x31 => says("the device is not enabled", "Enable it first."),
        0x32 => says("one of the work queues is not enabled", "Enable it first."),
        0x41 | 0x43 | 0x44 => says("there is no such interrupt handle", "Load idxd again."),
        0x42 => says(
            "no interrupt handle is left",
            "Disable work queues that are not used.",
        ),
        0x51 => says(
            "there is no such inter-domain handle",
            "Use a newer kernel.",
        ),
        0x52 => says(
            "a command was given while another one ran",
            "Try again; see dmesg if it stays.",
        ),
        _ => says(
            "an error that revision 3.0 of the specification does not name",
            "See dmesg; load idxd again.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_driver_and_device_are_decoded_apart() {
        assert!(decode(0).is_none());
        assert!(decode(0x800c_0000).unwrap().what.contains("shared"));
        assert!(decode(0x14).unwrap().what.contains("sum up"));
        // The result and the active bit's neighbours do not matter.
        assert!(decode(0x0012_3414).unwrap().what.contains("sum up"));
        assert!(decode(0x80ff_0000).unwrap().what.contains("newer"));
    }
}
