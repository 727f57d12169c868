//! Was the kernel built with what is needed?

use super::sources::{KERNEL_IDXD, KERNEL_IOMMU, LRL, USER_GUIDE};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};

pub(super) const CHECK: Check = Check {
    id: "options",
    title: "kernel options",
    needs: &["pci"],
    why: "The kernel needs INTEL_IDXD (the driver), INTEL_IOMMU and INTEL_IOMMU_SVM (shared virtual \
addressing in the IOMMU) and INTEL_IDXD_SVM (its use by the driver). Without one of the SVM options \
user and shared work queues cannot be enabled. The configuration is read from /proc/config.gz or \
/boot/config-<release>. INTEL_IOMMU_DEFAULT_ON and INTEL_IOMMU_SCALABLE_MODE_DEFAULT_ON only save \
the words on the command line, INTEL_IDXD_PERFMON is judged by `perfmon`, X86_5LEVEL by `sva`.",
    sources: &[USER_GUIDE, LRL, KERNEL_IDXD, KERNEL_IOMMU],
    judge,
};

const NEEDED: &[(&str, &str)] = &[
    ("INTEL_IDXD", "there is no driver for the device"),
    ("INTEL_IOMMU", "there is no DMA remapping, and so no PASID"),
    (
        "INTEL_IOMMU_SVM",
        "the IOMMU offers no shared virtual addressing",
    ),
    (
        "INTEL_IDXD_SVM",
        "the driver uses no shared virtual addressing",
    ),
];

fn judge(context: &Context<'_>) -> Verdict {
    let kernel = &context.survey.kernel;
    if let Err(reason) = &kernel.options {
        return Verdict::Unknown(format!("the kernel's configuration: {reason}"));
    }
    let lacking: Vec<_> = NEEDED
        .iter()
        .filter(|(option, _)| kernel.lacks_option(option))
        .collect();
    let mut findings = Vec::new();
    if let Some((first, consequence)) = lacking.first() {
        let evidence = lacking.iter().map(|(option, _)| {
            Evidence::new(
                "kernel configuration",
                format!("CONFIG_{option} is not set"),
            )
        });
        let names = lacking.iter().map(|(option, _)| format!("CONFIG_{option}"));
        let names = names.collect::<Vec<_>>().join(", ");
        let what = format!("the kernel was built without {first}: {consequence}");
        let finding = Finding::error(what)
            .confirmed_by(Saying::MODULE_MISSING)
            .seen(evidence);
        let fix = Fix::advice(format!(
            "Use a kernel that has {names} (the generic kernels of Debian, Ubuntu, Fedora and RHEL do; \
kernels for cloud guests may not), or build one."
        ));
        let install = kernel
            .install_modules()
            .filter(|_| kernel.lacks_option("DMADEVICES"));
        findings.push(finding.fix(fix.then(install)));
    }
    Verdict::of(findings, || {
        "INTEL_IDXD, INTEL_IOMMU, INTEL_IOMMU_SVM, INTEL_IDXD_SVM".to_owned()
    })
}
