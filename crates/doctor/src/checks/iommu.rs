//! Does the kernel use VT-d?

use super::sources::{KERNEL_IOMMU, PERF_MICROS_2, PLUGINS_1836};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying, count};
use crate::survey::iommu::CLASS;

pub(super) const CHECK: Check = Check {
    id: "iommu",
    title: "DMA remapping",
    needs: &["dmar", "options", "command-line"],
    why: "When the kernel uses VT-d, every remapping unit shows in /sys/class/iommu, with its \
capability registers. Table and command line can be right and the units still missing: a broken \
DMAR table, a kernel for confidential guests, kdump's kernel, a hypervisor below. What the units \
can is judged by `sva`.",
    sources: &[KERNEL_IOMMU, PLUGINS_1836, PERF_MICROS_2],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let units = &survey.iommu.units;
    if units.is_empty() {
        let kernel = &survey.kernel;
        let messages = kernel
            .messages("DMAR")
            .filter(|line| !line.contains("ACPI: DMAR"));
        // The last ones say why it gave up.
        let mut last: Vec<_> = messages.map(Evidence::log).collect();
        let early = last.len().saturating_sub(3);
        last.drain(..early);
        let what = "there is a DMAR table, and the kernel uses no remapping unit";
        let evidence = std::iter::once(Evidence::new(CLASS, "no dmar0")).chain(last);
        let fix = Fix::advice(
            "See what the kernel says about DMAR at its start; a newer firmware fixes a broken table.",
        )
        .then(["sudo dmesg | grep -i -e dmar -e iommu"]);
        return Finding::error(what)
            .confirmed_by(Saying::DMAR_BROKEN)
            .seen(evidence)
            .fix(fix)
            .into();
    }
    let mut registers: Vec<u64> = units.iter().filter_map(|unit| unit.extended()).collect();
    registers.sort_unstable();
    registers.dedup();
    let registers = registers.iter().map(|register| format!("{register:#x}"));
    Verdict::Holds(format!(
        "{}, ecap {}",
        count(units.len(), "remapping unit"),
        match registers.len() {
            0 => "cannot be read".to_owned(),
            _ => registers.collect::<Vec<_>>().join(", "),
        }
    ))
}
