//! What `cmd_status` says.

use dray_spec::registers::CommandError;

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
        0x8020_0000 => says(
            "the work queue has no driver name",
            "Give it one (Linux 6.7 and later demand it): accel-config config-wq --driver-name=user.",
        ),
        // So numbered by accel-config 4.1; the kernel has 0x80120000.
        0x8030_0000 => says(
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
    // Older revisions, and accel-config, have names for two that revision 3.0 does not.
    let what = match code {
        0x43 => "no interrupt handle belongs to that entry of the interrupt table",
        0x44 => "no revoked handle belongs to that entry of the interrupt table",
        _ => CommandError(code).describe(),
    };
    says(what, advice(code))
}

/// What to do about an error of the device.
const fn advice(code: u8) -> &'static str {
    match code {
        0x01 => "Use a newer kernel.",
        0x02 => "Look at max_work_queues.",
        0x03 => "See dmesg for machine checks and PCIe errors; reset the machine.",
        0x04 => "Use a newer kernel.",
        0x05 => "Reset it; dmesg says which reset it needs.",
        0x10 => "Disable it before enabling it anew.",
        0x11 => "Load idxd again and configure anew.",
        0x12 => "Bind the function to idxd anew, which turns it on.",
        0x13 => "Load idxd again.",
        0x14 => {
            "Sizes of earlier configurations remain until idxd is loaded again: do that, then configure."
        }
        0x15 => "Put an engine into the group: accel-config config-engine --group-id.",
        0x16 => "Load idxd again and configure anew.",
        0x17 => "Load idxd again and configure anew.",
        0x18 => {
            "At least four for each engine, and no more than the device has: config-group --read-buffers-allowed."
        }
        0x19 => "Choose an event_log_size of 64 or more.",
        0x1a => "Use a newer firmware.",
        0x1b => "See the check sva.",
        0x20 => "Enable it before its work queues.",
        0x21 => "Disable it first.",
        0x22 => "Give it one: --wq-size.",
        0x23 => "Give it one of 1 to 15: --priority.",
        0x24 => "Choose the other one: --mode.",
        0x25 => "--block-on-fault=0, or turn on page requests.",
        0x26 => "A shared queue needs PASIDs: see the check sva.",
        0x27 => "Choose at most the device's: --max-batch-size.",
        0x28 => "Choose at most the device's: --max-transfer-size.",
        0x2a => "Use a user-type queue, or a newer kernel.",
        0x2b => "Use a newer kernel.",
        0x2c => "Leave ats_disable at 0.",
        0x2d => "Choose among those of op_cap: --op-config.",
        0x2e => "Leave prs_disable at 0, or block_on_fault at 0 with it.",
        0x31 => "Enable it first.",
        0x32 => "Enable it first.",
        0x41 => "Load idxd again.",
        0x42 => "Disable work queues that are not used.",
        0x51 => "Use a newer kernel.",
        0x43 | 0x44 => "Load idxd again.",
        0x52 => "Close inter-domain windows that are not used.",
        _ => "See dmesg; load idxd again.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_driver_and_device_are_decoded_apart() {
        assert!(decode(0).is_none());
        assert!(decode(0x800c_0000).unwrap().what.contains("shared"));
        assert!(decode(0x14).unwrap().what.contains("add up"));
        // The result and the active bit's neighbours do not matter.
        assert!(decode(0x0012_3414).unwrap().what.contains("add up"));
        for error in CommandError::ALL {
            let meaning = decode(error.0.into()).unwrap();
            assert_eq!(meaning.what, error.describe());
        }
        assert!(decode(0x80ff_0000).unwrap().what.contains("newer"));
    }
}
