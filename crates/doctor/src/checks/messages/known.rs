//! Messages that users report, and what they mean.

/// A message that users report.
pub(super) struct Known {
    /// Words that all stand in the line, in small letters.
    pub(super) words: &'static [&'static str],
    /// Checks that find the cause, if it is one of theirs.
    pub(super) causes: &'static [&'static str],
    pub(super) what: &'static str,
    pub(super) advice: &'static str,
    pub(super) commands: &'static [&'static str],
}

const RELOAD: &[&str] = &["sudo modprobe -r idxd", "sudo modprobe idxd"];

/// What a healthy driver says as well.
pub(super) const HARMLESS: &[&[&str]] = &[
    &["idxd", "enabling device"],
    &["idxd", "intel(r) accelerator device"],
];

/// Without shared virtual addressing a dedicated queue of users is no way out (`idxd_user_drv_probe`).
const NO_SHARED_QUEUES: &str = "Shared queues need ENQCMD and shared virtual addressing (checks cpu and sva). Where only \
ENQCMD is missing, use --mode=dedicated; without shared virtual addressing Linux from 6.1 on (RHEL 9 too) takes dedicated \
queues of --type=kernel alone.";

/// What has to be right for programs to share their address space with the device.
const SVA_CAUSES: &[&str] = &[
    "sva",
    "command-line",
    "iommu",
    "dmar",
    "options",
    "kernel",
    "cpu",
];

/// The first that matches counts: special ones come before general ones.
pub(super) const KNOWN: &[Known] = &[
    Known {
        words: &["read_buffer_limit", "operation not permitted"],
        causes: &[],
        what: "the device refuses a new read buffer limit: it is enabled, or keeps an earlier configuration",
        advice: "Load idxd again, which takes back every device, then load the file.",
        commands: RELOAD,
    },
    Known {
        words: &["unable to turn on user sva"],
        causes: SVA_CAUSES,
        what: "idxd found no shared virtual addressing for programs: no shared work queues, and no use without CAP_SYS_RAWIO",
        advice: "It needs the IOMMU with scalable mode (intel_iommu=on,sm_on and VT-d in the firmware), and on some machines five-level page tables (check sva); then load idxd again.",
        commands: RELOAD,
    },
    Known {
        words: &["user sva"],
        causes: SVA_CAUSES,
        what: "idxd found no shared virtual addressing for programs: no shared work queues, and no use without CAP_SYS_RAWIO",
        advice: "It needs the IOMMU with scalable mode (intel_iommu=on,sm_on and VT-d in the firmware), and on some machines five-level page tables (check sva); then load idxd again.",
        commands: RELOAD,
    },
    Known {
        words: &["read_buffer_limit", "value failed"],
        causes: &[],
        what: "the device refuses a new read buffer limit: it is enabled, or keeps an earlier configuration",
        advice: "Load idxd again, which takes back every device, then load the file.",
        commands: RELOAD,
    },
    Known {
        words: &["parse json and set device fail"],
        causes: &["configuration"],
        what: "accel-config could not load a file: the line before says which attribute was refused",
        advice: "Ask what would be refused, and why; a device that is enabled refuses most of it.",
        commands: &[
            "dray config validate FILE",
            "sudo modprobe -r idxd",
            "sudo modprobe idxd",
        ],
    },
    Known {
        words: &["wq size", "invalid"],
        causes: &["configuration"],
        what: "the size of a work queue is refused: with those of earlier configurations it is more than the device has, or the device is enabled",
        advice: "Load idxd again, which takes back every size, then load the file.",
        commands: RELOAD,
    },
    Known {
        words: &["wq not in expected state"],
        causes: &["configuration", "cmd-status", "device"],
        what: "a work queue is not in the state that accel-config expects: its driver has refused it, or the device was reset meanwhile",
        advice: "Read the reason of the last command, then disable the device and begin again.",
        commands: &[
            "cat /sys/bus/dsa/devices/dsa0/cmd_status",
            "sudo accel-config disable-device dsa0",
        ],
    },
    Known {
        words: &["libaccel-config"],
        causes: &["library"],
        what: "libaccel-config.so.1 is not found, and DML and QPL say status 100 then",
        advice: "Install it where the loader looks.",
        commands: &["sudo apt-get install libaccel-config1", "sudo ldconfig"],
    },
    Known {
        words: &["no pmu support"],
        causes: &["perfmon"],
        what: "the device has no counters that perf can read; nothing else is hindered",
        advice: "Use occupancy and the programs' own counts.",
        commands: &[],
    },
    Known {
        words: &["property", "enqcmd", "not found"],
        causes: &[],
        what: "this QEMU cannot show ENQCMD to a guest",
        advice: "Use dedicated work queues there, to which MOVDIR64B submits.",
        commands: &[],
    },
    Known {
        words: &["tcg doesn't support", "movdir64b"],
        causes: &[],
        what: "QEMU without KVM does not know MOVDIR64B",
        advice: "Run the guest with KVM on a processor that has it, or write descriptors by write(2).",
        commands: &[],
    },
    Known {
        words: &["token_limit", "operation not permitted"],
        causes: &[],
        what: "the device refuses a new read buffer limit: it is enabled, or keeps an earlier configuration",
        advice: "Load idxd again, which takes back every device, then load the file.",
        commands: RELOAD,
    },
    Known {
        words: &["set_size", "write failed"],
        causes: &["configuration"],
        what: "the size of a work queue is refused: with those of earlier configurations it is more than the device has, or the device is enabled",
        advice: "Load idxd again, which takes back every size, then load the file.",
        commands: RELOAD,
    },
    Known {
        words: &["sum of wq", "out of range"],
        causes: &["configuration", "cmd-status"],
        what: "the sizes of the work queues sum up to more than the device has",
        advice: "Load idxd again, which takes back every size, then load the file.",
        commands: RELOAD,
    },
    Known {
        words: &["threshold", "invalid argument"],
        causes: &["sva"],
        what: "a threshold is refused: the queue is dedicated, or the threshold is 0 or more than its size",
        advice: "Leave the threshold out for a dedicated queue; set mode and size before it for a shared one.",
        commands: &[],
    },
    Known {
        words: &["max_batch_size", "invalid argument"],
        causes: &[],
        what: "a batch size is refused: more than the device has, or the device is an IAA, which has no batches",
        advice: "Look at the device's max_batch_size, and leave it out for iax devices.",
        commands: &["cat /sys/bus/dsa/devices/dsa0/max_batch_size"],
    },
    Known {
        words: &["mode", "invalid argument"],
        causes: &["command-line", "sva", "cpu", "kernel", "dmar", "iommu"],
        what: "shared mode is refused: the device has no shared work queues here",
        advice: NO_SHARED_QUEUES,
        commands: &[],
    },
    Known {
        words: &["invalid wq driver name"],
        causes: &["configuration"],
        what: "the work queue has no driver name: accel-config 3.5.3 and later, and Linux 6.7 and later, demand one",
        advice: "Add \"driver_name\":\"user\" to the queue in the file, or give it:",
        commands: &["sudo accel-config config-wq --driver-name=user dsa0/wq0.0"],
    },
    Known {
        words: &["no shared wq support"],
        causes: &[
            "command-line",
            "sva",
            "cpu",
            "kernel",
            "dmar",
            "iommu",
            "cmd-status",
        ],
        what: "shared work queues are not supported here",
        advice: NO_SHARED_QUEUES,
        commands: &[],
    },
    Known {
        words: &["mmap", "operation not permitted"],
        causes: &["container", "nodes", "raw-io"],
        what: "the portal may not be mapped: the process lacks CAP_SYS_RAWIO, perhaps in spite of being root",
        advice: "Give the program the capability, in a container with --cap-add SYS_RAWIO, or let it use write(2).",
        commands: &["sudo setcap cap_sys_rawio+ep PROGRAM"],
    },
    Known {
        words: &["no available idxd devices"],
        causes: &["driver", "module", "device", "queues"],
        what: "SPDK found no device of the kind it was configured to take, and copies in software",
        advice: "Say -k for queues of the kernel's driver (dsa_scan_accel_module -k), which must be dedicated; without it the function must belong to vfio-pci.",
        commands: &["scripts/rpc.py dsa_scan_accel_module -k"],
    },
    Known {
        words: &["failed in dsa"],
        causes: &["configuration", "cmd-status", "sva", "device"],
        what: "accel-config could not enable a work queue, and did not say why",
        advice: "The reason stands in cmd_status until accel-config is started again: enable it by hand and look.",
        commands: &[
            "echo wq0.0 | sudo tee /sys/bus/dsa/drivers/user/bind",
            "cat /sys/bus/dsa/devices/dsa0/cmd_status",
        ],
    },
    Known {
        words: &["enabled 0 wq"],
        causes: &[
            "command-line",
            "sva",
            "configuration",
            "cmd-status",
            "device",
            "dmar",
            "iommu",
        ],
        what: "accel-config could not enable a work queue, and did not say why",
        advice: "The reason stands in cmd_status until accel-config is started again: enable it by hand and look.",
        commands: &[
            "echo wq0.0 | sudo tee /sys/bus/dsa/drivers/user/bind",
            "cat /sys/bus/dsa/devices/dsa0/cmd_status",
        ],
    },
    Known {
        words: &["status 100"],
        causes: &[
            "library",
            "sva",
            "device",
            "queues",
            "nodes",
            "command-line",
            "dmar",
            "iommu",
            "module",
        ],
        what: "DML did not find the hardware: the library is missing, or no shared queue is enabled",
        advice: "DML needs libaccel-config.so.1 and an enabled shared queue on the node of the thread.",
        commands: &["accel-config list"],
    },
    Known {
        words: &["error (100)"],
        causes: &[
            "library",
            "sva",
            "device",
            "queues",
            "nodes",
            "command-line",
            "dmar",
            "iommu",
            "module",
        ],
        what: "DML did not find the hardware: the library is missing, or no shared queue is enabled",
        advice: "DML needs libaccel-config.so.1 and an enabled shared queue on the node of the thread.",
        commands: &["accel-config list"],
    },
];
