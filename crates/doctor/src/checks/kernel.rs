//! Is the kernel recent enough?

use super::sources::{IDXD_CONFIG_7, IDXD_CONFIG_54, KERNEL_IDXD, USER_GUIDE};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::cpu::{CPUINFO, ENQCMD};
use crate::survey::kernel::RELEASE;

pub(super) const CHECK: Check = Check {
    id: "kernel",
    title: "kernel version",
    needs: &["pci"],
    why: "accel-config wants Linux 5.10 for dedicated work queues and 5.18 for shared ones: the \
kernel turned ENQCMD off in 5.13 and on again in 5.18. Distributions port the driver back, so below \
5.18 the flag of /proc/cpuinfo decides, not the number. Defects to know: before 5.14 unbinding the \
PCI function crashes the machine; 5.15 and 6.x have a PASID directory that is not flushed until a \
fix of 2023; 6.12 oopses when a device without an event log is disabled; in 7.2 and 7.3 a kernel \
client that calls dmaengine_terminate_* leaves the next user of the channel without interrupts, \
until its work queue is disabled and enabled; 7.0 changed how a halted device is reset.",
    sources: &[USER_GUIDE, KERNEL_IDXD, IDXD_CONFIG_54, IDXD_CONFIG_7],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let kernel = &context.survey.kernel;
    let Some(version) = kernel.version() else {
        return Verdict::Unknown(Evidence::of(RELEASE, &kernel.release).text);
    };
    let release = || Evidence::of(RELEASE, &kernel.release);
    let newer = "Install a kernel of 5.18 or later (6.1 is the oldest long-term one).";
    if version < (5, 10) {
        let what = format!("Linux {}.{} is too old for a DSA", version.0, version.1);
        return Finding::error(what)
            .seen([release()])
            .fix(Fix::advice(newer))
            .into();
    }
    let mut findings = Vec::new();
    let cpu = &context.survey.cpu;
    let hidden = cpu.cpuid_has(ENQCMD) != Some(false) && !cpu.has(ENQCMD.0);
    if version < (5, 18) && hidden {
        let what = "this kernel turns ENQCMD off: shared work queues cannot be used";
        let flags = Evidence::new(CPUINFO, "flags without enqcmd");
        let advice = format!(
            "{newer} Dedicated work queues work meanwhile (RHEL 9 wants shared virtual addressing for those of programs, as Linux from 6.1 on)."
        );
        let finding = Finding::warning(what)
            .confirmed_by(Saying::NO_ENQCMD)
            .seen([release(), flags]);
        findings.push(finding.fix(Fix::advice(advice)));
    }
    let without_log = |d: &crate::survey::device::Device| d.version == Ok(0x100);
    let devices = context.survey.devices.all();
    if version == (6, 12) && devices.iter().any(without_log) {
        let what = "Linux 6.12 may oops when a DSA of version 1 is disabled (seen on 6.12.107)";
        let advice =
            "Configure before enabling and avoid `accel-config disable-device`, or use 6.8 or 7.2.";
        let finding = Finding::note(what)
            .confirmed_by(Saying::CRASH)
            .seen([release()]);
        findings.push(finding.fix(Fix::advice(advice)));
    }
    Verdict::of(findings, || kernel.release.clone().unwrap_or_default())
}
