//! DMA remapping: the ACPI table, the units, what they can.

use super::kernel::Version;
use super::look::Look;
use crate::machine::Reading;

pub(crate) const DMAR_TABLE: &str = "/sys/firmware/acpi/tables/DMAR";
pub(crate) const CLASS: &str = "/sys/class/iommu";

/// The DMA remapping of the machine.
pub(crate) struct Iommu {
    /// Whether the firmware has a DMAR table.
    pub(crate) table: Reading<bool>,
    pub(crate) units: Vec<Unit>,
}

/// One remapping unit.
pub(crate) struct Unit {
    /// As in `dmar3`.
    pub(crate) name: String,
    capability: Reading<u64>,
    extended: Reading<u64>,
}

/// A bit of ecap that shared virtual addressing needs.
struct Need {
    bit: u32,
    name: &'static str,
    what: &'static str,
    /// Kernel versions that need it: from the first on, before the second.
    versions: (Version, Version),
}

const ALWAYS: (Version, Version) = ((0, 0), (u32::MAX, 0));

const fn need(
    bit: u32,
    name: &'static str,
    what: &'static str,
    versions: (Version, Version),
) -> Need {
    Need {
        bit,
        name,
        what,
        versions,
    }
}

/// Bits as in drivers/iommu/intel/iommu.h; that they are needed, in svm.c and iommu.c there.
const NEEDED: &[Need] = &[
    need(43, "SMTS", "scalable mode", ALWAYS),
    need(40, "PASID", "process address space identifiers", ALWAYS),
    // idxd turned on I/O page faults together with SVA, until both became implicit.
    need(29, "PRS", "page requests", ((0, 0), (6, 16))),
    need(47, "FLTS", "first-stage translation", ALWAYS),
    // Seen to be refused by 6.12 and 7.2.
    need(48, "SMPWC", "coherent page walks", ((6, 12), (u32::MAX, 0))),
];
const FL1GP: u32 = 56;
const FL5LP: u32 = 60;

impl Iommu {
    pub(super) fn of(look: Look<'_>) -> Self {
        let names = look.names(CLASS).unwrap_or_default();
        let units = names.into_iter().filter(|name| name.starts_with("dmar"));
        let unit = |name: String| Unit {
            capability: look.hex(&format!("{CLASS}/{name}/intel-iommu/cap")),
            extended: look.hex(&format!("{CLASS}/{name}/intel-iommu/ecap")),
            name,
        };
        Self {
            table: look.exists(DMAR_TABLE),
            units: units.map(unit).collect(),
        }
    }

    pub(crate) fn unit(&self, name: &str) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.name == name)
    }
}

impl Unit {
    /// Where a register can be read.
    pub(crate) fn path(&self, register: &str) -> String {
        format!("{CLASS}/{}/intel-iommu/{register}", self.name)
    }

    pub(crate) fn extended(&self) -> Option<u64> {
        self.extended.as_ref().ok().copied()
    }

    /// What SVA needs under a kernel and the unit lacks, as `PASID (bit 40: ...)`.
    pub(crate) fn lacks(&self, kernel: Option<Version>) -> Vec<String> {
        let Some(extended) = self.extended() else {
            return Vec::new();
        };
        let needed = |need: &&Need| {
            let (from, before) = need.versions;
            kernel.is_none_or(|kernel| (from..before).contains(&kernel))
        };
        let lacking = NEEDED.iter().filter(needed);
        lacking
            .filter(|need| extended >> need.bit & 1 == 0)
            .map(|need| format!("{} (bit {}: {})", need.name, need.bit, need.what))
            .collect()
    }

    /// Whether the first stage walks five levels, as the CPU does with la57.
    pub(crate) fn walks_five_levels(&self) -> Option<bool> {
        Some(self.capability.as_ref().ok()? >> FL5LP & 1 == 1)
    }

    /// Whether the first stage knows pages of 1 GiB, as the CPU does with pdpe1gb.
    pub(crate) fn walks_huge_pages(&self) -> Option<bool> {
        Some(self.capability.as_ref().ok()? >> FL1GP & 1 == 1)
    }

    pub(crate) fn capability(&self) -> Option<u64> {
        self.capability.as_ref().ok().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_from_a_published_issue_are_decoded() {
        // intel-device-plugins-for-kubernetes issue 1836: pasid_enabled 0 in spite of sm_on.
        let unit = Unit {
            name: "dmar0".to_owned(),
            capability: Ok(0x19ed_008c_4078_0c66),
            extended: Ok(0x0003_ee9e_86f0_50df),
        };
        let lacks = unit.lacks(Some((5, 14)));
        assert_eq!(lacks.len(), 2, "{lacks:?}");
        assert!(lacks[0].starts_with("PASID (bit 40"), "{lacks:?}");
        assert!(lacks[1].starts_with("PRS (bit 29"), "{lacks:?}");
        assert_eq!(unit.walks_five_levels(), Some(true));
        assert_eq!(unit.walks_huge_pages(), Some(true));
    }

    #[test]
    fn the_iommu_of_qemu_lacks_coherent_page_walks() {
        let unit = Unit {
            name: "dmar0".to_owned(),
            capability: Ok(0),
            extended: Ok(0x8d9a_20f0_0f4e),
        };
        assert_eq!(
            unit.lacks(Some((6, 12))),
            ["SMPWC (bit 48: coherent page walks)"]
        );
    }
}
