//! Has the firmware turned on VT-d?

use super::sources::{IDXD_CONFIG_5, LRL, USER_GUIDE};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::iommu::DMAR_TABLE;

pub(super) const CHECK: Check = Check {
    id: "dmar",
    title: "DMAR table (VT-d)",
    needs: &["pci"],
    why: "VT-d, the DMA remapping that gives a device the address space of a process, is turned on by \
the firmware, which informs the kernel by the ACPI table DMAR. Without the table there is no \
remapping, whatever the command line says. In a virtual machine the table belongs to the virtual \
IOMMU.",
    sources: &[IDXD_CONFIG_5, USER_GUIDE, LRL],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let logged = survey.kernel.message("ACPI: DMAR");
    match (&survey.iommu.table, logged) {
        (Ok(true), _) => Verdict::Holds(DMAR_TABLE.to_owned()),
        (_, Some(line)) => Verdict::Holds(line.to_owned()),
        (Ok(false), None) => missing(context).into(),
        (Err(reason), None) if survey.iommu.units.is_empty() => {
            Verdict::Unknown(format!("{DMAR_TABLE}: {reason}"))
        }
        (Err(_), None) => Verdict::Holds("remapping units are there".to_owned()),
    }
}

fn missing(context: &Context<'_>) -> Finding {
    let survey = context.survey;
    let evidence = Evidence::of(
        DMAR_TABLE,
        &survey.iommu.table.clone().and_then(|there| match there {
            true => Ok("exists"),
            false => Err(crate::machine::Unreadable::Missing),
        }),
    );
    let log = survey
        .kernel
        .log_is_whole()
        .then(|| Evidence::new("dmesg", "no message \"ACPI: DMAR\" since the start"));
    let (what, fix) = match survey.is_guest() {
        true => (
            "this virtual machine has no virtual IOMMU: there is no DMAR table",
            Fix::advice("Start the virtual machine with one that knows PASIDs, for QEMU:").then([
                "-machine q35,kernel-irqchip=split -device intel-iommu,intremap=on,caching-mode=on,device-iotlb=on,scalable-mode=on,fsts=on,svm=on,pasid-bits=20",
            ]),
        ),
        false => (
            "VT-d is off in the firmware: there is no DMAR table",
            Fix::advice(
                "Turn it on in the firmware's setup: Socket Configuration, IIO Configuration, Intel VT for \
Directed I/O (VT-d): enable; and there PCI ENQCMD/ENQCMDS: enable. Then start again.",
            )
            .then(["sudo systemctl reboot --firmware-setup"]),
        ),
    };
    Finding::error(what)
        .confirmed_by(Saying::NO_DMAR)
        .seen(std::iter::once(evidence).chain(log))
        .fix(fix)
}
