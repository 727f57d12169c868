//! What would have to be measured to learn a parameter that no published table exercises.

/// Parameter, and the measurement that would exercise it.
const MEASUREMENTS: &[(&str, &str)] = &[
    (
        "core_store_queue",
        "bursts of MOVDIR64B around 114 descriptors",
    ),
    (
        "portal_lines_in_flight",
        "the rate of MOVDIR64B with the portal offset rotated, against a fixed one",
    ),
    (
        "enqcmd_accept",
        "the rate of NOOPs by ENQCMD from 8 to 48 cores of the device's socket",
    ),
    ("enqcmd_contention", "the same rate past its maximum"),
    (
        "enqcmd_accept_remote",
        "the same rate from the cores of the other socket",
    ),
    (
        "enqcmd_remote",
        "the rate of ENQCMD of one core of the other socket",
    ),
    (
        "submit_remote",
        "a NOOP by MOVDIR64B from a core of the other socket",
    ),
    ("pause", "latency of a copy whose core waits with PAUSE"),
    (
        "umwait_wake",
        "latency of a copy whose core waits with UMWAIT",
    ),
    (
        "read_buffer_bytes",
        "throughput of a group by read_buffers_allowed, 8 to 96",
    ),
    (
        "read_buffers",
        "throughput of a group by read_buffers_allowed, 8 to all",
    ),
    (
        "engine_transform",
        "latency of a CRC of 64 B against that of a compare with a pattern",
    ),
    (
        "remote_extra",
        "latency of 64 B from memory of the other socket",
    ),
    ("cxl_extra", "latency of 64 B from CXL memory"),
    (
        "translation_miss",
        "latency of copies whose pages alternate",
    ),
    (
        "batch_dispatch",
        "latency of one batch of 2 descriptors on a dedicated queue",
    ),
    ("batch_shared", "the same on a shared queue, 4 KiB each"),
    ("node_read", "reads of several devices from one node"),
    ("node_write", "fills of several devices to one node"),
    (
        "socket_link",
        "copies of several devices from one node to the other, by number of links",
    ),
    ("cxl_read", "reads from CXL memory"),
    ("cxl_write", "fills of CXL memory"),
    (
        "vhost_ring",
        "cycles per packet of 64 B in non-empty polls (dray vhost --forward rxonly)",
    ),
    (
        "vhost_forward",
        "packet rate of a switch between two network ports, without a guest",
    ),
    (
        "vhost_async",
        "cargo bench -p dray-vhost --bench bookkeeping",
    ),
    (
        "vhost_lock",
        "time to take a lock that another core of the socket held",
    ),
    (
        "vhost_refetch",
        "cycles of ring and switching per packet of 1518 B that the core copies, above those of 64 B",
    ),
    (
        "vhost_copy_line",
        "cycles per packet of 1518 B above those of 64 B, with the guest on another core",
    ),
    ("cpu_call", "software on 64 B in the first-level cache"),
    (
        "cpu_string_from",
        "memcpy from DRAM by size, 1 to 16 KiB in steps of 512 B",
    ),
    ("cpu_copy_start", "memcpy of 1 and 2 KiB from DRAM"),
    ("cpu_line_latency", "a chain of dependent loads from DRAM"),
    ("cpu_fill_buffers", "memcpy of 1 KiB at random addresses"),
    (
        "cpu_copy_line",
        "memcpy of 1 MiB from DRAM (dray advise --measure-cpu)",
    ),
    (
        "cpu_fill_line",
        "memset of 1 MiB (dray advise --op fill --measure-cpu)",
    ),
    ("cpu_nt_fill_line", "memset with non-temporal stores"),
    (
        "cpu_compare_line",
        "memcmp of 1 MiB (dray advise --op compare --measure-cpu)",
    ),
    (
        "cpu_pattern_line",
        "comparison of 1 MiB with a pattern (dray advise --op compval --measure-cpu)",
    ),
    (
        "cpu_crc_line",
        "CRC32C of 1 MiB from DRAM by three streams or by folding",
    ),
    (
        "cpu_crc_compute",
        "CRC32C of 1 MiB (dray advise --op crc --measure-cpu)",
    ),
    (
        "cpu_dualcast_line",
        "a copy of 1 MiB to two places (dray advise --op dualcast --measure-cpu)",
    ),
    ("cpu_random_access", "memcpy of 4 KiB at random addresses"),
    ("cpu_scale_l1", "software on 4 KiB in the first-level cache"),
    (
        "cpu_scale_llc",
        "software on operands in the last-level cache",
    ),
    ("cpu_scale_remote", "software on memory of the other socket"),
    ("cpu_scale_cxl", "software on CXL memory"),
];

/// The measurement that would exercise a parameter.
pub fn measurement(parameter: &str) -> Option<&'static str> {
    let found = MEASUREMENTS.iter().find(|(name, _)| *name == parameter);
    found.map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Evidence;

    #[test]
    fn unconstrained_parameters_name_a_measurement() {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let evidence = Evidence::kept(&platform).unwrap().unwrap();
        for influence in evidence.influences.iter().filter(|i| i.tables.is_empty()) {
            assert!(
                measurement(&influence.parameter).is_some(),
                "{}",
                influence.parameter
            );
        }
        for (name, _) in MEASUREMENTS {
            assert!(platform.list().iter().any(|p| p.name == *name), "{name}");
        }
    }
}
