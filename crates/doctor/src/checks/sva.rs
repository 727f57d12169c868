//! Does the device have the address spaces of processes?

use super::sources::{
    IDXD_CONFIG_5, IDXD_CONFIG_46, IDXD_CONFIG_78, KERNEL_IOMMU, LRL, PERF_MICROS_2, PLUGINS_1836,
    QPL_50, USER_GUIDE,
};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Cause, Evidence, Finding, Fix, Likelihood, Saying, Severity};
use crate::survey::Survey;
use crate::survey::iommu::Unit;
use crate::survey::kernel::{COMMAND_LINE, Kernel};
use crate::survey::pci::Function;

pub(super) const CHECK: Check = Check {
    id: "sva",
    title: "shared virtual addressing",
    needs: &["options", "command-line", "iommu", "driver"],
    why: "User and shared work queues need shared virtual addressing: the device uses the addresses of \
a process, distinguished by PASIDs. The driver tries to turn it on when it loads; if that fails it says \
\"Unable to turn on user SVA feature\" without a reason, and pasid_enabled is 0. The reasons are the \
ones for which drivers/iommu/intel refuses: the remapping unit lacks scalable mode, PASIDs, page \
requests, first-stage translation or coherent page walks (its ecap register says so, and firmware \
clears the bits of PASIDs and page requests when PCI ENQCMD/ENQCMDS is off); it walks other page \
tables than the CPU (five levels, pages of 1 GiB); the function lacks PASID, ATS or PRI. Which \
number of levels is the cure differs: no5lvl was it on a machine whose unit walks four, five levels \
in the kernel on another. From 6.16 on the driver does not try: pasid_enabled is 1, and opening a queue \
fails, so the registers are judged there.",
    sources: &[
        IDXD_CONFIG_46,
        PLUGINS_1836,
        PERF_MICROS_2,
        IDXD_CONFIG_78,
        QPL_50,
        IDXD_CONFIG_5,
        LRL,
        USER_GUIDE,
        KERNEL_IOMMU,
    ],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let devices = survey.devices.all();
    if devices.is_empty() {
        return Verdict::Unknown("no device shows in /sys/bus/dsa/devices".to_owned());
    }
    let off = |device: &&crate::survey::device::Device| device.pasid_enabled == Ok(0);
    let without: Vec<_> = devices.iter().filter(off).collect();
    let mut causes = causes(survey);
    if without.is_empty() {
        let refused_later = survey.kernel.version() >= Some((6, 16));
        causes.retain(|cause| cause.likelihood == Likelihood::Proven && refused_later);
        if causes.is_empty() {
            return match devices.iter().find_map(|d| d.pasid_enabled.as_ref().err()) {
                Some(reason) => Verdict::Unknown(format!("pasid_enabled: {reason}")),
                None => Verdict::Holds("pasid_enabled is 1".to_owned()),
            };
        }
    }
    let named: Vec<_> = match without.is_empty() {
        true => devices.iter().collect(),
        false => without,
    };
    let names: Vec<_> = named.iter().map(|device| device.name.as_str()).collect();
    let what = format!(
        "shared virtual addressing is off on {}: no user and no shared work queues",
        names.join(", ")
    );
    let said = survey
        .kernel
        .message("Unable to turn on")
        .map(Evidence::log);
    let attributes = named
        .iter()
        .map(|device| Evidence::of(device.path("pasid_enabled"), &device.pasid_enabled));
    let mut finding = Finding::error(what)
        .confirmed_by(Saying::NO_SVA)
        .confirmed_by(Saying::USER_QUEUE_REFUSED)
        .seen(attributes)
        .seen(said);
    // Kernel clients of dedicated queues do without.
    let mut enabled = survey.devices.enabled_queues().peekable();
    if enabled.peek().is_some() && enabled.all(|(_, queue)| !queue.is_user()) {
        finding.severity = Severity::Warning;
    }
    finding.fix = match causes.is_empty() {
        true => Fix::advice(
            "Compare with a machine where it works: the kernel's messages, and the capabilities of the function.",
        )
        .then(named.iter().filter_map(|device| {
            let address = device.address.as_deref()?;
            Some(format!("sudo lspci -vvv -s {address}"))
        })),
        false => Fix::default(),
    };
    finding.causes = causes;
    finding.into()
}

/// Candidate causes, the best supported first.
fn causes(survey: &Survey) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for function in survey.pci.functions() {
        causes.extend(function_lacks(survey, function));
        let unit = function
            .iommu
            .as_ref()
            .ok()
            .and_then(|name| survey.iommu.unit(name));
        if let Some(unit) = unit.filter(|unit| !seen.contains(&unit.name.as_str())) {
            seen.push(&unit.name);
            causes.extend(unit_lacks(survey, unit, &function.address));
            causes.extend(unit_walks(survey, unit));
        }
    }
    if seen.is_empty() {
        // Which unit serves the device is not known: one that all lack it is.
        let mut lacking = survey
            .iommu
            .units
            .iter()
            .filter(|unit| !unit.lacks(survey.kernel.version()).is_empty());
        if let Some(unit) = lacking.next()
            && lacking.count() + 1 == survey.iommu.units.len()
        {
            causes.extend(unit_lacks(survey, unit, "every function"));
        }
    }
    let walks = causes
        .iter()
        .any(|cause| cause.what.starts_with("the CPU uses"));
    causes.extend(logged(&survey.kernel, walks));
    let proven = causes
        .iter()
        .any(|cause| cause.likelihood == Likelihood::Proven);
    if !proven {
        causes.extend(five_levels(survey));
        causes.extend(unknown_registers(survey));
    }
    causes.sort_by_key(|cause| cause.likelihood);
    causes
}

fn firmware() -> Fix {
    Fix::advice(
        "In the firmware's setup: Socket Configuration, IIO Configuration, PCI ENQCMD/ENQCMDS: enable \
(and VT-d as a whole); a newer firmware if there is no such item. Then start again.",
    )
    .then(["sudo systemctl reboot --firmware-setup"])
}

fn unit_lacks(survey: &Survey, unit: &Unit, serves: &str) -> Option<Cause> {
    let lacks = unit.lacks(survey.kernel.version());
    let register = unit.extended().filter(|_| !lacks.is_empty())?;
    let what = format!(
        "{}, which serves {serves}, lacks {}",
        unit.name,
        lacks.join(", ")
    );
    let fix = match survey.is_guest() {
        true => Fix::advice(
            "The virtual IOMMU has to offer it: QEMU's needs scalable-mode=on,fsts=on,svm=on,pasid-bits=20, and \
up to 11.1 has no SMPWC at all, without which Linux from 6.12 on refuses. Use kernel clients of dedicated queues, or the host.",
        ),
        false => firmware(),
    };
    Some(Cause {
        likelihood: Likelihood::Proven,
        what,
        evidence: vec![Evidence::new(unit.path("ecap"), format!("{register:x}"))],
        fix,
    })
}

fn unit_walks(survey: &Survey, unit: &Unit) -> Vec<Cause> {
    let register = || {
        let register = unit.capability().unwrap_or_default();
        Evidence::new(unit.path("cap"), format!("{register:x}"))
    };
    let flag =
        |flag: &str| Evidence::new(crate::survey::cpu::CPUINFO, format!("flags with {flag}"));
    let mut causes = Vec::new();
    if survey.cpu.has("la57") && unit.walks_five_levels() == Some(false) {
        causes.push(Cause {
            likelihood: Likelihood::Proven,
            what: format!(
                "the CPU uses five levels of page tables, and {} walks four (FL5LP, bit 60)",
                unit.name
            ),
            evidence: vec![register(), flag("la57")],
            fix: Fix::advice("Keep the CPU at four levels.")
                .then(survey.kernel.add_to_command_line("no5lvl")),
        });
    }
    if survey.cpu.has("pdpe1gb") && unit.walks_huge_pages() == Some(false) {
        causes.push(Cause {
            likelihood: Likelihood::Proven,
            what: format!(
                "the CPU uses pages of 1 GiB, and {} does not walk them (FL1GP, bit 56)",
                unit.name
            ),
            evidence: vec![register(), flag("pdpe1gb")],
            fix: Fix::advice(
                "Hide them from a virtual machine (QEMU: -cpu host,-pdpe1gb); on hardware use a newer firmware.",
            ),
        });
    }
    causes
}

fn function_lacks(survey: &Survey, function: &Function) -> Option<Cause> {
    let lacks = function
        .lacks(survey.kernel.version())
        .filter(|lacks| !lacks.is_empty())?;
    let address = &function.address;
    Some(Cause {
        likelihood: Likelihood::Proven,
        what: format!("{address} shows no {} capability", lacks.join(" and no ")),
        evidence: vec![Evidence::new(
            format!("{}/config", function.path()),
            "extended capabilities without it",
        )],
        fix: Fix::advice(
            "A hypervisor that hides it has to show it (QEMU 11 passes PASID on with -device vfio-pci,pasid=on \
where the host allows it); on hardware use a newer firmware.",
        )
        .then([format!("sudo lspci -vvv -s {address}")]),
    })
}

/// Causes that the kernel names; `walks` says whether the registers showed the first already.
fn logged(kernel: &Kernel, walks: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let incompatible = kernel.message("SVM disabled, incompatible");
    if let Some(line) = incompatible.filter(|_| !walks) {
        causes.push(Cause {
            likelihood: Likelihood::Proven,
            what: "the kernel found CPU and remapping unit to walk different page tables"
                .to_owned(),
            evidence: vec![Evidence::log(line)],
            fix: match line.contains("paging mode") {
                true => Fix::advice("Keep the CPU at four levels of page tables.")
                    .then(kernel.add_to_command_line("no5lvl")),
                false => Fix::advice("Hide pages of 1 GiB from the CPU, or use a newer firmware."),
            },
        });
    }
    let mut differ = kernel
        .messages("inconsistent")
        .filter(|line| line.contains("feature pasid") || line.contains("feature prs"));
    if let Some(line) = differ.next() {
        causes.push(Cause {
            likelihood: Likelihood::Likely,
            what: "the remapping units differ in what they can: the firmware turned it on for some only"
                .to_owned(),
            evidence: std::iter::once(line).chain(differ).map(Evidence::log).collect(),
            fix: firmware(),
        });
    }
    causes
}

/// The cure that one user found: five-level page tables in the kernel.
fn five_levels(survey: &Survey) -> Option<Cause> {
    const LA57: (&str, u32) = ("la57", 16);
    let kernel = &survey.kernel;
    let hardware = survey.cpu.cpuid_has(LA57);
    if survey.cpu.has(LA57.0) || hardware == Some(false) {
        return None;
    }
    let off = kernel.lacks_option("X86_5LEVEL") && kernel.version() < Some((6, 17));
    let mut evidence = Vec::new();
    let fix = if kernel.has_word("no5lvl") {
        evidence.push(Evidence::of(COMMAND_LINE, &kernel.command_line));
        Fix::advice("Take no5lvl away.").then(kernel.remove_from_command_line("no5lvl"))
    } else if off {
        evidence.push(Evidence::new(
            "kernel configuration",
            "CONFIG_X86_5LEVEL is not set",
        ));
        Fix::advice("Use a kernel with CONFIG_X86_5LEVEL=y.")
    } else {
        return None;
    };
    if hardware == Some(true) {
        evidence.push(Evidence::new("CPUID", "leaf 7, ECX bit 16 (la57) is 1"));
    }
    Some(Cause {
        likelihood: match hardware {
            Some(true) => Likelihood::Likely,
            _ => Likelihood::Possible,
        },
        what: "the CPU can use five levels of page tables and the kernel does not; turning them on was the cure for one user"
            .to_owned(),
        evidence,
        fix,
    })
}

/// When the registers cannot be read, what they most often show.
fn unknown_registers(survey: &Survey) -> Option<Cause> {
    let units = &survey.iommu.units;
    if units.iter().any(|unit| unit.extended().is_some()) {
        return None;
    }
    let evidence = match units.first() {
        Some(unit) => Evidence::new(unit.path("ecap"), "cannot be read"),
        None => Evidence::new(crate::survey::iommu::CLASS, "no remapping unit"),
    };
    Some(Cause {
        likelihood: Likelihood::Possible,
        what: "the firmware may have left PASIDs off (PCI ENQCMD/ENQCMDS); the remapping units' ecap registers would show it"
            .to_owned(),
        evidence: vec![evidence],
        fix: firmware(),
    })
}
