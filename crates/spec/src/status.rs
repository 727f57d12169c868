//! Completion status codes.

use core::fmt;

/// The status byte of a completion record or the code of a software error (spec Table 5-6).
///
/// Bits 5:0 are the code, bit 6 is unused in records, bit 7 says that the faulting access was a
/// write. The codes 0x51 to 0x54 appear only in SWERROR and the event log, never in a record.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default)]
pub struct Status(pub u8);

/// Declares constants, names and descriptions from one table.
macro_rules! statuses {
    ($($code:literal $constant:ident $name:literal $description:literal,)*) => {
        impl Status {
            $(#[doc = concat!("Code ", stringify!($code), ": ", $description, ".")]
            pub const $constant: Self = Self($code);)*

            /// Every code that the architecture defines, and 0.
            pub const ALL: &[Self] = &[$(Self::$constant,)*];

            /// A short name, such as `page_fault`; `unknown` for codes without meaning.
            pub const fn name(self) -> &'static str {
                match self.defined() {
                    $($code => $name,)*
                    _ => "unknown",
                }
            }

            /// What the code means, in one sentence without a full stop.
            pub const fn describe(self) -> &'static str {
                match self.defined() {
                    $($code => $description,)*
                    _ => "the architecture defines no such status",
                }
            }
        }
    };
}

statuses! {
    0x00 NONE "none" "not completed: hardware never writes 0",
    0x01 SUCCESS "success" "success",
    0x02 SUCCESS_PREDICATE "success_predicate" "success, but the result is not the expected one",
    0x03 PAGE_FAULT "page_fault"
        "page fault with block on fault off: completed partially",
    0x04 PAGE_FAULT_INVALID_RESPONSE "page_fault_invalid_response"
        "page fault that the page request service could not resolve",
    0x05 BATCH_FAIL "batch_fail" "at least one descriptor of the batch did not succeed",
    0x06 BATCH_PAGE_FAULT "batch_page_fault" "page fault on the descriptor list of a batch",
    0x07 DELTA_OFFSET_ORDER "delta_offset_order" "offsets in the delta record do not ascend",
    0x08 DELTA_OFFSET_RANGE "delta_offset_range"
        "an offset in the delta record is not below the transfer size",
    0x09 DIF_ERROR "dif_error" "a data integrity field does not match",
    0x10 BAD_OPCODE "bad_opcode" "operation not supported by the device or not allowed here",
    0x11 INVALID_FLAGS "invalid_flags"
        "a reserved flag is set, a required one is missing, or block on fault is set where block_on_fault of the queue is 0",
    0x12 NONZERO_RESERVED "nonzero_reserved" "a reserved field is not zero",
    0x13 TRANSFER_SIZE "transfer_size" "transfer size is 0 or above the limit",
    0x14 DESCRIPTOR_COUNT "descriptor_count" "descriptor count of the batch is out of range",
    0x15 DELTA_RECORD_SIZE "delta_record_size" "delta record size is out of range",
    0x16 OVERLAP "overlap" "buffers overlap where the operation forbids it",
    0x17 DUALCAST_ALIGNMENT "dualcast_alignment"
        "the dualcast destinations differ in address bits 11:0",
    0x18 DESCRIPTOR_LIST_ALIGNMENT "descriptor_list_alignment"
        "the descriptor list is not aligned to 64 bytes",
    0x19 INTERRUPT_HANDLE "interrupt_handle" "the completion interrupt handle is not valid",
    0x1a COMPLETION_ADDRESS_FAULT "completion_address_fault"
        "page fault on the completion record",
    0x1b COMPLETION_ADDRESS_ALIGNMENT "completion_address_alignment"
        "the completion record is not aligned to 32 bytes",
    0x1c ADDRESS_ALIGNMENT "address_alignment"
        "an address or a size is not aligned as the operation needs",
    0x1d PRIVILEGE "privilege" "privileged descriptor where privileged mode is off",
    0x1e TRAFFIC_CLASS "traffic_class" "the selected traffic class is not enabled",
    0x1f READBACK_PAGE_FAULT "readback_page_fault" "page fault on the readback address of a drain",
    0x20 HARDWARE_ERROR_READ "hardware_error_read" "error on a memory read",
    0x21 HARDWARE_ERROR_WRITE "hardware_error_write"
        "error on a memory write or a destination readback",
    0x22 TRANSLATION_FAIL "translation_fail" "address translation failed",
    0x26 DRAIN_EVENT_LOG "drain_event_log"
        "drain complete; a record of an earlier descriptor may be in the event log",
    0x27 BATCH_EVENT_LOG "batch_event_log"
        "records of members of this batch are in the event log",
    0x28 INTER_DOMAIN_PASID "inter_domain_pasid"
        "inter-domain operation in a work queue without PASID",
    0x29 IDPT_HANDLE "idpt_handle" "the inter-domain permission handle is not valid",
    0x2a IDPT_PERMISSION "idpt_permission"
        "the inter-domain permission entry does not allow the access",
    0x2b IDPT_WINDOW "idpt_window" "the access lies outside the inter-domain window",
    0x2c UPDATE_WINDOW_ENTRY "update_window_entry"
        "the inter-domain permission entry may not be updated",
    0x2d UPDATE_WINDOW_FIELDS "update_window_fields" "the new window is not valid",
    0x2e INTER_DOMAIN_ABORTED "inter_domain_aborted" "inter-domain operation ended by an abort",
    0x51 PCI_CONFIGURATION "pci_configuration"
        "PCI configuration changed while the device was not disabled",
    0x52 COMMAND_ACTIVE "command_active" "command written while another was active",
    0x53 WQ_OVERFLOW "wq_overflow" "descriptor dropped: the dedicated work queue was full",
    0x54 EVENT_LOG_APPEND "event_log_append" "the event log could not be extended",
}

impl Status {
    /// The code: bits 5:0.
    #[inline]
    pub const fn code(self) -> u8 {
        self.0 & 0x3f
    }

    /// Whether the faulting access was a write: bit 7.
    ///
    /// Means something for the codes 03, 04, 06, 1a and 1f only.
    pub const fn is_write_fault(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// This status with bit 7 set: the faulting access was a write.
    pub const fn with_write_fault(self) -> Self {
        Self(self.0 | 0x80)
    }

    /// Whether the operation ran to its end: code 01 or 02.
    #[inline]
    pub const fn is_success(self) -> bool {
        matches!(self.code(), 0x01 | 0x02)
    }

    /// The byte without the write bit, and without bit 6 unless it makes a SWERROR code.
    pub const fn defined(self) -> u8 {
        match self.0 {
            0x51..=0x54 => self.0,
            _ => self.code(),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:#04x})", self.name(), self.0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = if self.is_write_fault() {
            " on a write"
        } else {
            ""
        };
        write!(
            f,
            "{:#04x} {}{access}: {}",
            self.0,
            self.name(),
            self.describe()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    // linux/idxd.h, enum dsa_completion_status (Linux 6.1 uapi).
    #[test]
    fn codes_are_those_of_the_kernel_header() {
        let consecutive = [
            (
                0x00,
                [
                    Status::NONE,
                    Status::SUCCESS,
                    Status::SUCCESS_PREDICATE,
                    Status::PAGE_FAULT,
                    Status::PAGE_FAULT_INVALID_RESPONSE,
                    Status::BATCH_FAIL,
                    Status::BATCH_PAGE_FAULT,
                    Status::DELTA_OFFSET_ORDER,
                    Status::DELTA_OFFSET_RANGE,
                    Status::DIF_ERROR,
                ]
                .as_slice(),
            ),
            (
                0x10,
                &[
                    Status::BAD_OPCODE,
                    Status::INVALID_FLAGS,
                    Status::NONZERO_RESERVED,
                    Status::TRANSFER_SIZE,
                    Status::DESCRIPTOR_COUNT,
                    Status::DELTA_RECORD_SIZE,
                    Status::OVERLAP,
                    Status::DUALCAST_ALIGNMENT,
                    Status::DESCRIPTOR_LIST_ALIGNMENT,
                    Status::INTERRUPT_HANDLE,
                    Status::COMPLETION_ADDRESS_FAULT,
                    Status::COMPLETION_ADDRESS_ALIGNMENT,
                    Status::ADDRESS_ALIGNMENT,
                    Status::PRIVILEGE,
                    Status::TRAFFIC_CLASS,
                    Status::READBACK_PAGE_FAULT,
                    Status::HARDWARE_ERROR_READ,
                    Status::HARDWARE_ERROR_WRITE,
                    Status::TRANSLATION_FAIL,
                ],
            ),
        ];
        for (first, statuses) in consecutive {
            for (code, status) in (first..).zip(statuses) {
                assert_eq!(status.0, code, "{status:?}");
            }
        }
        // DSA_COMP_STATUS_WRITE 0x80.
        assert_eq!(Status::PAGE_FAULT.with_write_fault().0, 0x83);
    }

    #[test]
    fn the_write_bit_is_no_part_of_the_code() {
        let status = Status(0x83);
        assert_eq!(status.code(), 0x03);
        assert!(status.is_write_fault());
        assert!(!status.is_success());
        assert_eq!(status.name(), "page_fault");
        assert_eq!(format!("{status:?}"), "page_fault(0x83)");
        assert_eq!(
            format!("{status}"),
            "0x83 page_fault on a write: page fault with block on fault off: completed partially"
        );
    }

    #[test]
    fn only_01_and_02_are_success() {
        for byte in 0..=u8::MAX {
            assert_eq!(Status(byte).is_success(), matches!(byte & 0x3f, 1 | 2));
        }
    }

    #[test]
    fn names_are_unique_and_gaps_are_unknown() {
        let mut seen = std::collections::HashSet::new();
        for status in Status::ALL {
            assert!(seen.insert(status.name()), "{status:?}");
            assert!(!status.describe().ends_with('.'));
        }
        for gap in [0x0a, 0x0f, 0x23, 0x25, 0x2f, 0x3f] {
            assert_eq!(Status(gap).name(), "unknown");
        }
        assert_eq!(Status::WQ_OVERFLOW.name(), "wq_overflow");
    }
}
