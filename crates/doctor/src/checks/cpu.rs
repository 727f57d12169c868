//! Can the processor submit?

use super::sources::{IDXD_CONFIG_46, KERNEL_IDXD, SPECIFICATION};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::cpu::{CPUINFO, Cpu, ENQCMD, MOVDIR64B, WAITPKG};

pub(super) const CHECK: Check = Check {
    id: "cpu",
    title: "CPU instructions",
    needs: &["pci"],
    why: "Descriptors are submitted with MOVDIR64B (dedicated work queues) and ENQCMD (shared ones); \
waiting programs save power with UMONITOR and UMWAIT (waitpkg). The idxd driver does not load \
without MOVDIR64B. The flags of /proc/cpuinfo are compared with CPUID: a kernel that turns ENQCMD \
off (5.13 to 5.17 do) shows it in CPUID alone, and a hypervisor may hide it from both. With \
waitpkg missing, a program that does not ask CPUID first dies of SIGILL in its wait.",
    sources: &[SPECIFICATION, KERNEL_IDXD, IDXD_CONFIG_46],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let cpu = &survey.cpu;
    if let Some(reason) = cpu.unreadable() {
        return Verdict::Unknown(format!("{CPUINFO}: {reason}"));
    }
    let by_whom = match survey.is_guest() {
        true => "Let the host show it to this virtual machine",
        false => "Take clearcpuid= off the kernel's command line, or use a kernel that knows it",
    };
    let mut findings = Vec::new();
    if !cpu.has(MOVDIR64B.0) {
        let refused = survey.kernel.message("failed to load without MOVDIR64B");
        let what = "the processor shows no MOVDIR64B, without which idxd does not load";
        let fix = Fix::advice(format!(
            "{by_whom} (QEMU: -cpu host, or +movdir64b,+movdiri)."
        ));
        let evidence = shown(cpu, MOVDIR64B).chain(refused.map(Evidence::log));
        findings.push(
            Finding::error(what)
                .confirmed_by(Saying::NO_MOVDIR64B)
                .seen(evidence)
                .fix(fix),
        );
    }
    // Kernels before 5.18 are the subject of the next check.
    let kernel_hides = cpu.cpuid_has(ENQCMD) == Some(true);
    if !cpu.has(ENQCMD.0) && !kernel_hides {
        let what = "the processor shows no ENQCMD: shared work queues cannot be used";
        let fix = Fix::advice(format!(
            "{by_whom}; until then use dedicated work queues, to which MOVDIR64B submits (DPDK and SPDK \
do; DML and DTO need shared ones). From Linux 6.1 on those of programs need shared virtual addressing, too."
        ));
        findings.push(
            Finding::warning(what)
                .confirmed_by(Saying::NO_ENQCMD)
                .confirmed_by(Saying::NO_SHARED_QUEUES)
                .seen(shown(cpu, ENQCMD))
                .fix(fix),
        );
    }
    if !cpu.has(WAITPKG.0) {
        let what = "the processor shows no WAITPKG: programs that wait with UMWAIT die of SIGILL";
        let fix = Fix::advice(format!(
            "{by_whom}; until then let programs poll (dsa_perf_micros without -x 100, DTO_WAIT_METHOD=busypoll)."
        ));
        findings.push(
            Finding::note(what)
                .confirmed_by(Saying::NO_WAITPKG)
                .seen(shown(cpu, WAITPKG))
                .fix(fix),
        );
    }
    Verdict::of(findings, || {
        let of = cpu.with_dsa().unwrap_or("a model that is not in the table");
        format!("{of}: movdir64b, enqcmd, waitpkg")
    })
}

fn shown(cpu: &Cpu, instruction: (&str, u32)) -> impl Iterator<Item = Evidence> {
    let (name, bit) = instruction;
    let flags = Evidence::new(CPUINFO, format!("flags without {name}"));
    let cpuid = cpu.cpuid_has(instruction).map(|set| {
        let text = format!("leaf 7, ECX bit {bit} ({name}) is {}", u32::from(set));
        Evidence::new("CPUID", text)
    });
    std::iter::once(flags).chain(cpuid)
}
