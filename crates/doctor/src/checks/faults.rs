//! Has the device faulted?

use super::sources::{DML_48, KERNEL_IDXD, KERNEL_IOMMU, PERF_MICROS_2, PERF_MICROS_3};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::Survey;

pub(super) const CHECK: Check = Check {
    id: "faults",
    title: "faults",
    needs: &["driver"],
    why: "A device that meets an error of the platform halts and says which reset it needs. Faults of \
the remapping unit name the function: a missing page is normal with partial completions, but a \
fault of the tables themselves (reasons such as \"Non-zero reserved field set in Root Entry\") shows \
stale tables, which kernels before 6.3 did not flush. \"Page request without PASID\" shows a queue \
configured without PASID while the program uses virtual addresses.",
    sources: &[
        PERF_MICROS_3,
        PERF_MICROS_2,
        DML_48,
        KERNEL_IDXD,
        KERNEL_IOMMU,
    ],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    if let Err(reason) = &survey.kernel.log {
        return Verdict::Unknown(format!("the kernel's messages: {reason}"));
    }
    let mut findings: Vec<Finding> = halted(survey).into_iter().collect();
    findings.extend(tables(survey));
    findings.extend(without_pasid(survey));
    Verdict::of(findings, || "none in the kernel's messages".to_owned())
}

fn halted(survey: &Survey) -> Option<Finding> {
    let kernel = &survey.kernel;
    let line = kernel.message("idxd halted, need")?;
    let is_halted = |d: &crate::survey::device::Device| d.state.as_deref() == Ok("halted");
    // Loaded anew since, or reset: what counts is the state.
    let devices = survey.devices.all();
    let halted = devices.iter().filter(|device| is_halted(device));
    let commands: Vec<String> = halted
        .clone()
        .filter_map(|device| {
            let address = device.address.as_deref()?;
            Some(format!(
                "echo 1 | sudo tee /sys/bus/pci/devices/{address}/reset"
            ))
        })
        .collect();
    let names: Vec<_> = halted.map(|device| device.name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let what = format!("{} is halted", names.join(", "));
    let fix = match line.contains("need FLR") {
        true => Fix::advice(
            "Reset the function; older kernels need idxd loaded again after it. The faults in dmesg before the halt say why it halted.",
        )
        .then(commands)
        .reload(),
        false => Fix::advice("Only a reset of the system helps.").then(["sudo reboot"]),
    };
    Some(
        Finding::error(what)
            .confirmed_by(Saying::HALTED)
            .seen([Evidence::log(line)])
            .fix(fix),
    )
}

/// Faults of the tables, not of a page, that name a DSA function.
fn tables(survey: &Survey) -> Option<Finding> {
    let kernel = &survey.kernel;
    let addresses: Vec<&str> = survey
        .pci
        .functions()
        .iter()
        // DMAR leaves the domain 0000 out.
        .map(|function| function.address.trim_start_matches("0000:"))
        .collect();
    let of_tables = |line: &&str| {
        line.contains("Entry") || line.contains("reserved field") || line.contains("context")
    };
    let mut lines = kernel.messages("fault reason").filter(|line| {
        addresses
            .iter()
            .any(|address| line.contains(&format!("[{address}]")))
            && of_tables(line)
    });
    let line = lines.next()?;
    let what = "the remapping unit found its tables for the device broken";
    let fix = Fix::advice(
        "Use Linux 6.3 or later (the PASID directory is flushed from there on) and a newer firmware; if it stays, the unit sees other tables than the kernel writes.",
    );
    Some(
        Finding::warning(what)
            .confirmed_by(Saying::TABLES)
            .seen([Evidence::log(line)])
            .fix(fix),
    )
}

fn without_pasid(survey: &Survey) -> Option<Finding> {
    let line = survey.kernel.message("Page request without PASID")?;
    let what = "a device asked for a page without a PASID: its queue has none, and the program used virtual addresses";
    let fix = Fix::advice("See that pasid_enabled is 1 (check sva), and enable the queue anew.");
    Some(
        Finding::warning(what)
            .confirmed_by(Saying::WITHOUT_PASID)
            .seen([Evidence::log(line)])
            .fix(fix),
    )
}
