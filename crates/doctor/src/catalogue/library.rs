//! Statuses of DML and QPL, by the completion status that they stand for.

use dray_spec::Status;

use super::decode::{Decoded, status};

const SETUP: &str = "It needs libaccel-config.so.1, and a work queue that is enabled, shared, of type user and readable and writable for this user: see \
`accel-config list` and the checks library, queues and nodes.";

const NODE: &str = "It needs a work queue that is enabled, shared, of type user and readable and writable for this user, on a device of the node that the thread runs on: devices of other nodes \
are skipped. Bind the program to the device's node (numactl --cpunodebind=NODE), or enable a queue on each node; see `accel-config list`, numa_node of the device, and the checks queues, nodes and numa.";

fn says(what: &str, advice: &'static str) -> Option<Decoded> {
    Some(Decoded {
        what: what.to_owned(),
        advice,
        fine: false,
    })
}

/// A status of DML's C interface (dml_status_t).
pub(super) fn dml(number: u32) -> Option<Decoded> {
    let device = dml_device(number);
    if device != 0 {
        let decoded = status(Status(device))?;
        let what = format!("DML status {number}, the device's {}", decoded.what);
        return Some(Decoded { what, ..decoded });
    }
    dml_library(number)
}

/// The status of the device that a status of DML stands for; 0 if it is of the library.
const fn dml_device(number: u32) -> u8 {
    match number {
        1 => 0x02,
        9 => 0x05,
        10 => 0x07,
        11 => 0x08,
        12 => 0x09,
        14 => 0x11,
        16 => 0x14,
        17 => 0x15,
        18 => 0x16,
        19 => 0x17,
        25 => 0x03,
        30 | 42 => 0x1f,
        33 => 0x04,
        34 => 0x12,
        35 => 0x18,
        36 => 0x19,
        37 => 0x1a,
        38 => 0x1b,
        20 | 39 => 0x1c,
        40 => 0x1d,
        41 => 0x1e,
        43 => 0x20,
        44 => 0x21,
        45 => 0x22,
        _ => 0,
    }
}

/// A status that the library itself gives.
fn dml_library(number: u32) -> Option<Decoded> {
    match number {
        0 => Some(Decoded {
            what: "DML status 0, success".to_owned(),
            advice: "",
            fine: true,
        }),
        2 => says("DML status 2, still being processed", "Wait: dml_wait_job."),
        3 => says(
            "DML status 3, internal error",
            "Report it to intel/DML with what the job holds.",
        ),
        4 => says(
            "DML status 4, a null pointer",
            "Give every pointer that the operation uses.",
        ),
        5 | 13 | 15 | 21 | 22 => says(
            "DML refused a field of the job (limits, operation, length, size of a delta or of a buffer)",
            "See the operation's limits in dml.h.",
        ),
        6 => says(
            "DML status 6, no such path",
            "Use DML_PATH_AUTO, DML_PATH_SW or DML_PATH_HW.",
        ),
        7 | 23 => says(
            "DML found the job structure corrupted or its hint wrong",
            "Initialize it by dml_init_job, and do not copy it.",
        ),
        8 => says(
            "DML status 8, the CRC value is not aligned",
            "Align crc_checksum_ptr to 4 bytes.",
        ),
        24 => says(
            "DML status 24, the work queue was full",
            "Submit again: the shared queue refused the descriptor.",
        ),
        26 | 27 => says(
            "no work queue has the traffic class that the job asks for",
            "Set the group's traffic_class_a and traffic_class_b (-1 is the device's default), or take the hint away.",
        ),
        28 | 29 => says(
            "DML refused the size of the batch, or an index in it",
            "A batch has 4 descriptors (DML_MIN_BATCH_SIZE) to max_batch_size.",
        ),
        31 => says(
            "DML status 31, the size of the caches is not known",
            "Set DML_PATH_SW for this job.",
        ),
        32 => says(
            "DML status 32, source and destination of the DIF strip overlap",
            "Separate them.",
        ),
        100 => says(
            "DML status 100, the library of accel-config was not found",
            SETUP,
        ),
        101 => says(
            "DML status 101, the library of accel-config is incompatible",
            SETUP,
        ),
        102 => says("DML status 102, no work queue can be used", NODE),
        _ => says(
            "a status that DML does not have",
            "See dmldefs.h of the version in use.",
        ),
    }
}

/// A status of QPL (qpl_status): its device part, and that the hardware is missing.
pub(super) fn qpl(number: u32) -> Option<Decoded> {
    match number {
        0 => Some(Decoded {
            what: "QPL status 0, success".to_owned(),
            advice: "",
            fine: true,
        }),
        1..=4 | 6 | 7 => says(
            "QPL reports the state of a job, not of the device",
            "See status.h of QPL.",
        ),
        5 => says(
            "QPL status 5, the work queues were full",
            "Submit again; add queues or engines if it stays.",
        ),
        8 => says(
            "QPL status 8, no work queue is configured for the operation",
            "Look at op_config of the queues.",
        ),
        300..=431 => {
            let decoded = status(Status((number - 300) as u8))?;
            let what = format!("QPL status {number}, the device's {}", decoded.what);
            Some(Decoded { what, ..decoded })
        }
        500 => says(
            "QPL status 500, this system cannot execute on hardware",
            SETUP,
        ),
        501 => says(
            "QPL status 501, the library of accel-config was not found",
            SETUP,
        ),
        502 => says(
            "QPL status 502, the library of accel-config reported an error",
            SETUP,
        ),
        503 => says("QPL status 503, no work queue can be used", NODE),
        _ => says(
            "QPL reports an error of the job or of its data, not of the device",
            "See status.h of QPL.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_libraries_lead_to_those_of_the_device() {
        assert!(dml(25).unwrap().what.contains("page_fault"));
        assert!(dml(100).unwrap().advice.contains("libaccel-config"));
        assert!(qpl(300 + 131).unwrap().what.contains("on a write"));
        for decoded in [qpl(503), dml(102)] {
            let advice = decoded.unwrap().advice;
            assert!(advice.contains("accel-config list") && advice.contains("numactl"));
        }
        for number in 0..=102 {
            assert!(dml(number).is_some());
        }
    }
}
