//! What to do about a status.

use dray_spec::Status;

/// What to do about a status of a completion record, of SWERROR or of the event log.
///
/// What the status means is [`Status::describe`].
pub(super) fn of(status: Status) -> &'static str {
    match status.defined() {
        0x00 => {
            "The record is not written yet: poll until it is not 0, with the record zeroed before each submission."
        }
        0x01 => "",
        0x02 => {
            "Compare and delta operations report here that the buffers differ: read the result field."
        }
        0x03 => {
            "Touch the page at the fault address and submit the rest from bytes_completed on, or set block on fault \
in the work queue and in the descriptor."
        }
        0x04 => {
            "The page cannot be had: the address is not mapped, or the mapping does not allow the access. Check the \
buffer's address, size and protection."
        }
        0x05 => "Read the record of each descriptor of the batch.",
        0x06 => "Touch the pages of the descriptor list before the batch is submitted.",
        0x07 | 0x08 => "The delta record does not belong to these buffers, or was changed.",
        0x09 => {
            "The data does not match its integrity fields: check block size, flags and seeds, then the data."
        }
        0x10 => {
            "Look at op_cap of the device and op_config of the queue: translation fetch (0x0a), for one, is of \
version 2, and so are the inter-domain operations."
        }
        0x11 => {
            "Clear the flags that the operation does not take; block on fault needs block_on_fault of the work queue."
        }
        0x12 => "Zero the descriptor before it is filled in.",
        0x13 => "Keep the transfer size above 0 and at most max_transfer_size of the work queue.",
        0x14 => {
            "A batch has 2 descriptors (1 from version 2 on) to max_batch_size of the work queue."
        }
        0x15 => "The delta record has a size of 80 bytes or more, in steps of 10.",
        0x16 => "Separate the buffers; a move may overlap only where gen_cap says so.",
        0x17 => "Give both destinations the same offset in their 4 KiB pages.",
        0x18 => "Align the descriptor list to 64 bytes.",
        0x19 => "A user's descriptor has no interrupt handle: clear the completion interrupt flag.",
        0x1a => {
            "Touch the completion record's page before submission; fork and reclaim take it away again."
        }
        0x1b => "Align the completion record to 32 bytes (64 for IAA).",
        0x1c => "Align the address as the operation says (delta: 8 bytes; CRC seed: 4).",
        0x1d => "A user's descriptor must not set the privileged flag.",
        0x1e => "Use the traffic class that the group has.",
        0x1f => "Touch the page of the readback address.",
        0x20 | 0x21 => {
            "Look for machine checks, PCIe (AER) and DMAR faults in dmesg at that time; memory of another \
device may have gone."
        }
        0x22 => {
            "Look for the DMAR fault in dmesg at that time: its reason says which table refused the access."
        }
        0x26 | 0x27 => "Read the event log (kernel 6.5 and later write the record from there).",
        0x28..=0x2e => {
            "Inter-domain operations need a PASID, a handle and a window that the owner has opened to this submitter."
        }
        0x51 => {
            "Something changed the function's PCI configuration while it was enabled; do not run setpci, resets or a second driver on it."
        }
        0x52 => "Two programs drive the device's commands: leave it to the kernel's driver.",
        0x53 => {
            "Count what is in flight in a dedicated queue: MOVDIR64B reports nothing when the queue is full."
        }
        0x54 => {
            "The event log's memory was refused or is full: give event_log_size a larger value."
        }
        _ => {
            "The specification names no such status: the record may not have been written by the device, or be of a newer one (IAA has statuses of its own)."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_defined_status_has_advice_of_its_own() {
        let unknown = of(Status(0x3f));
        for &status in Status::ALL {
            assert_ne!(of(status), unknown, "{status:?}");
            assert_eq!(
                of(status).is_empty(),
                status == Status::SUCCESS,
                "{status:?}"
            );
        }
    }
}
