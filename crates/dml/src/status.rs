//! `dml_status_t`, and which one a completion status is.

use dray_spec::Status;

/// Declares the statuses that are used here.
macro_rules! statuses {
    ($($name:ident = $value:literal,)*) => {
        $(
            #[doc = concat!("`DML_STATUS_", stringify!($name), "`.")]
            pub const $name: u32 = $value;
        )*
    };
}

statuses! {
    OK = 0,
    FALSE_PREDICATE_OK = 1,
    BEING_PROCESSED = 2,
    INTERNAL_ERROR = 3,
    NULL_POINTER_ERROR = 4,
    PATH_ERROR = 6,
    BATCH_ERROR = 9,
    DELTA_ASCENDT_ERROR = 10,
    DELTA_OFFSET_ERROR = 11,
    DIF_CHECK_ERROR = 12,
    JOB_OPERATION_ERROR = 13,
    JOB_FLAGS_ERROR = 14,
    JOB_LENGTH_ERROR = 15,
    DELTA_RECORD_SIZE_ERROR = 17,
    OVERLAPPING_BUFFER_ERROR = 18,
    DUALCAST_ALIGN_ERROR = 19,
    DELTA_ALIGN_ERROR = 20,
    DELTA_INPUT_SIZE_ERROR = 21,
    JOB_CORRUPTED = 23,
    PAGE_FAULT_ERROR = 25,
    BATCH_TASK_INDEX_OVERFLOW = 28,
    BATCH_SIZE_ERROR = 29,
    DIF_STRIP_ADJACENT_ERROR = 32,
    INVALID_PAGE_REQUEST = 33,
    INVALID_RESERVED_FIELD = 34,
    MISALIGNED_DESCRIPTOR_LIST = 35,
    INVALID_COMPLETION_HANDLE = 36,
    PAGE_FAULT_ON_TRANSLATION = 37,
    MISALIGNED_RECORD = 38,
    MISALIGNED_ADDRESS = 39,
    PRIVILEGE_ERROR = 40,
    TRAFFIC_CLASS_ERROR = 41,
    READBACK_ADDRESS_ERROR = 42,
    HARDWARE_READBACK_TIMEOUT = 43,
    HARDWARE_TIMEOUT = 44,
    ADDRESS_TRANSLATION_ERROR = 45,
    LIBACCEL_NOT_FOUND = 100,
    LIBACCEL_ERROR = 101,
    WORK_QUEUES_NOT_AVAILABLE = 102,
}

/// What a completion status is to a program. Without a record there is nothing yet.
pub fn of(status: Status) -> u32 {
    let bare = Status(status.code());
    match bare {
        Status::NONE => BEING_PROCESSED,
        Status::SUCCESS => OK,
        Status::SUCCESS_PREDICATE => FALSE_PREDICATE_OK,
        Status::PAGE_FAULT | Status::BATCH_PAGE_FAULT => PAGE_FAULT_ERROR,
        Status::PAGE_FAULT_INVALID_RESPONSE => INVALID_PAGE_REQUEST,
        Status::BATCH_FAIL => BATCH_ERROR,
        Status::DELTA_OFFSET_ORDER => DELTA_ASCENDT_ERROR,
        Status::DELTA_OFFSET_RANGE => DELTA_OFFSET_ERROR,
        Status::DIF_ERROR => DIF_CHECK_ERROR,
        Status::BAD_OPCODE => JOB_OPERATION_ERROR,
        Status::INVALID_FLAGS => JOB_FLAGS_ERROR,
        Status::NONZERO_RESERVED => INVALID_RESERVED_FIELD,
        Status::TRANSFER_SIZE => JOB_LENGTH_ERROR,
        Status::DESCRIPTOR_COUNT => BATCH_SIZE_ERROR,
        Status::DELTA_RECORD_SIZE => DELTA_INPUT_SIZE_ERROR,
        Status::OVERLAP => OVERLAPPING_BUFFER_ERROR,
        Status::DUALCAST_ALIGNMENT => DUALCAST_ALIGN_ERROR,
        Status::DESCRIPTOR_LIST_ALIGNMENT => MISALIGNED_DESCRIPTOR_LIST,
        Status::INTERRUPT_HANDLE => INVALID_COMPLETION_HANDLE,
        Status::COMPLETION_ADDRESS_FAULT => PAGE_FAULT_ON_TRANSLATION,
        Status::COMPLETION_ADDRESS_ALIGNMENT => MISALIGNED_RECORD,
        Status::ADDRESS_ALIGNMENT => MISALIGNED_ADDRESS,
        Status::PRIVILEGE => PRIVILEGE_ERROR,
        Status::TRAFFIC_CLASS => TRAFFIC_CLASS_ERROR,
        Status::READBACK_PAGE_FAULT => READBACK_ADDRESS_ERROR,
        Status::HARDWARE_ERROR_READ => HARDWARE_READBACK_TIMEOUT,
        Status::HARDWARE_ERROR_WRITE => HARDWARE_TIMEOUT,
        Status::TRANSLATION_FAIL => ADDRESS_TRANSLATION_ERROR,
        _ => INTERNAL_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_job_api_has_no_word_for_is_an_internal_error() {
        let unknown: Vec<&str> = (Status::ALL.iter())
            .filter(|status| of(**status) == INTERNAL_ERROR)
            .map(|status| status.name())
            .collect();
        let later = |name: &&str| !name.starts_with("inter_domain") && !name.contains("idpt");
        let expected = [
            "drain_event_log",
            "batch_event_log",
            "update_window_entry",
            "update_window_fields",
        ];
        let left: Vec<&str> = unknown.into_iter().filter(later).collect();
        // Those above 0x3f are no completion statuses; their low bits may be another's.
        let left: Vec<&str> = (left.into_iter())
            .filter(|name| {
                ![
                    "pci_configuration",
                    "command_active",
                    "wq_overflow",
                    "event_log_append",
                ]
                .contains(name)
            })
            .collect();
        assert_eq!(left, expected);
        assert_eq!(of(Status::PAGE_FAULT.with_write_fault()), PAGE_FAULT_ERROR);
    }
}
