//! Fault reasons of the remapping unit (VT-d specification, and the texts of drivers/iommu/intel).

use super::decode::Decoded;

const FIRMWARE: &str = "The kernel and the unit do not see the same tables: use a newer stable kernel and a newer firmware; compare with a machine of the same kind that works (microcode, firmware's setup).";
const DIRECTORY: &str = "The kernel and the unit do not see the same tables: use Linux 6.3 or later (the PASID directory is flushed \
from there on) and a newer firmware.";
const SUPERVISOR: &str = "Use a newer stable kernel: older ones set the bit for supervisor requests (SRE) in the entry where the unit has none (SRS), which it refuses. Else use a newer firmware.";
const NO_ENTRY: &str = "The queue has no PASID, or the kernel did not turn PASIDs on for the function: see that pasid_enabled is 1 (check sva), and enable the \
queue anew. In a request without a PASID (NO_PASID) the device has no domain in this kernel: a kdump kernel after a device that goes on, or a function without a driver.";
const UNMAPPED: &str = "The device used an address that is not mapped for it, or not for that access: check the program's buffers, and that \
they stay mapped until the descriptors are complete.";
const NO_SVA: &str = "The queue has no PASID, or the kernel did not turn PASIDs on for the function: see that pasid_enabled is 1 (check sva), and enable the \
queue anew.";
const UNATTACHED: &str = "No driver has set the function up, or it goes on after its driver has left: for a DSA, load idxd or reset the function. A graphics device that the firmware left running does it at each start, and harms nothing.";
const OTHER: &str = "Give the whole line to the maintainers of drivers/iommu/intel.";

/// What a reason says: `0x5a` as newer kernels print it, `06` as 5.10 does, in decimal.
pub(super) fn reason(text: &str) -> Option<Decoded> {
    let reason: u8 = match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    let (what, advice) = meaning(reason);
    Some(Decoded {
        what: format!("reason {reason:#04x}: {what}"),
        advice,
        fine: false,
    })
}

/// What a reason means, and what to do.
const fn meaning(reason: u8) -> (&'static str, &'static str) {
    match reason {
        0x01 | 0x02 | 0x39 | 0x41 => (
            "the function has no entry in the unit's tables: nothing is set up for it",
            UNATTACHED,
        ),
        0x03 | 0x04 | 0x07..=0x0c => ("the unit found an entry of its tables broken", FIRMWARE),
        0x05 => (
            "the device wrote to an address that it may not write",
            UNMAPPED,
        ),
        0x06 => ("the device read an address that it may not read", UNMAPPED),
        0x0d => (
            "translation requests of the function are blocked",
            "ATS is on in the device and off for it in the unit: reset the function, or boot with pci=noats.",
        ),
        0x20..=0x26 => (
            "an interrupt of the device was refused by interrupt remapping",
            "Load idxd again; if it stays, use a newer firmware.",
        ),
        0x30 => ("the unit's root table has no valid address", FIRMWARE),
        0x31 | 0x32 => (
            "the device used a PASID and the unit runs in legacy mode",
            "Boot with intel_iommu=on,sm_on.",
        ),
        0x38 | 0x3a => (
            "the unit found its root entry for the device broken",
            FIRMWARE,
        ),
        0x40 | 0x42 | 0x43 => (
            "the unit found its context entry for the device broken",
            FIRMWARE,
        ),
        0x44 => (
            "the context entry does not let the device use translations of its own (ATS)",
            "Boot with pci=noats, or use a newer kernel.",
        ),
        0x45 | 0x46 => (
            "PASIDs are not enabled for the device, or this one is too large",
            NO_SVA,
        ),
        0x47 => (
            "page requests are not enabled for the device",
            "Set block_on_fault to 0, or prs_disable to 1; see the check sva.",
        ),
        0x48 => ("the PASID for requests without one is wrong", FIRMWARE),
        0x50..=0x52 => (
            "the unit found its PASID directory absent or broken",
            DIRECTORY,
        ),
        0x58 | 0x5b => ("the unit found its PASID table entry broken", FIRMWARE),
        0x5a => (
            "the unit found a reserved bit set in its PASID table entry",
            SUPERVISOR,
        ),
        0x59 => (
            "the PASID has no entry: the process that it belonged to has ended, or was never bound",
            NO_ENTRY,
        ),
        0x5c | 0x5d => (
            "supervisor or execute requests are not allowed for this PASID",
            "Use a kernel-type queue for kernel clients, a user-type one for programs.",
        ),
        0x70..=0x78 => (
            "the page tables of the process do not map the address, or not for that access",
            UNMAPPED,
        ),
        0x79..=0x7c => (
            "the second-stage tables do not map the address, or not for that access",
            UNMAPPED,
        ),
        0x80 => (
            "the address is not canonical",
            "Check the addresses in the descriptor: bits 63:57 (63:48 with four levels) repeat the one below.",
        ),
        0x81..=0x87 => (
            "the page does not allow that access to user-mode requests",
            UNMAPPED,
        ),
        0x90 => (
            "the unit had to set an accessed or dirty bit and may not",
            FIRMWARE,
        ),
        _ => ("a reason that the kernel has no words for", OTHER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_read_as_each_kernel_prints_them() {
        assert_eq!(reason("0x06"), reason("06"));
        assert_eq!(reason("0x38"), reason("56"));
        assert!(reason("0x3a").unwrap().what.contains("root entry"));
        for (code, advice) in [("0x51", "6.3"), ("0x5a", "SRS"), ("0x59", "kdump")] {
            assert!(reason(code).unwrap().advice.contains(advice), "{code}");
        }
        assert!(!reason("0x3a").unwrap().advice.contains("6.3"));
        assert!(reason("0x47").unwrap().advice.contains("block_on_fault"));
        // A request without a PASID may fail so, too: it is no matter of shared virtual addressing.
        for absent in ["0x01", "2", "0x39", "0x41"] {
            let advice = reason(absent).unwrap().advice;
            assert!(
                advice.contains("load idxd") && !advice.contains("sva"),
                "{absent}"
            );
        }
        assert_eq!(reason("5a"), None);
    }
}
