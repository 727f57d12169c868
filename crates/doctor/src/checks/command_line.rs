//! Does the command line turn on remapping in scalable mode?

use super::sources::{IDXD_CONFIG_5, KERNEL_PARAMETERS, PLUGINS_1836, USER_GUIDE};
use crate::check::{Check, Context, Verdict};
use crate::command_line::turns_sva_off;
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::Survey;
use crate::survey::kernel::{COMMAND_LINE, Kernel, Setting};
use crate::survey::module::LOADED;

pub(super) const CHECK: Check = Check {
    id: "command-line",
    title: "kernel command line",
    needs: &["dmar"],
    why: "VT-d works in scalable mode, which PASIDs need, only if the kernel's command line says so: \
intel_iommu=on,sm_on, unless it was built with INTEL_IOMMU_DEFAULT_ON and \
INTEL_IOMMU_SCALABLE_MODE_DEFAULT_ON. `iommu=pt` does no harm. The module parameter idxd.sva=0 \
turns shared virtual addressing off in the driver alone.",
    sources: &[IDXD_CONFIG_5, PLUGINS_1836, USER_GUIDE, KERNEL_PARAMETERS],
    judge,
};

/// What is to be done about scalable mode.
enum Word {
    Fine,
    Missing,
    Refused(&'static str),
}

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let kernel = &survey.kernel;
    if let Err(reason) = &kernel.command_line {
        return Verdict::Unknown(format!("{COMMAND_LINE}: {reason}"));
    }
    let mut findings = Vec::new();
    let (on, scalable) = (remapping(survey), scalable(survey));
    for word in [&on, &scalable] {
        if let Word::Refused(word) = word {
            let what = format!("the command line turns VT-d's scalable mode off: {word}");
            let fix = Fix::advice("Take it away, and say intel_iommu=on,sm_on instead.");
            let fix = fix.then(kernel.remove_from_command_line(word));
            findings.push(
                Finding::error(what)
                    .confirmed_by(Saying::SCALABLE_MODE_OFF)
                    .confirmed_by(Saying::IOMMU_OFF)
                    .seen([line(kernel)])
                    .fix(fix),
            );
        }
    }
    if findings.is_empty() && (matches!(on, Word::Missing) || matches!(scalable, Word::Missing)) {
        let what = match (&on, &scalable) {
            (Word::Missing, Word::Missing) => "intel_iommu=on,sm_on is missing on the command line",
            (Word::Missing, _) => "intel_iommu=on is missing on the command line",
            _ => "sm_on is missing on the command line: VT-d runs in legacy mode, without PASIDs",
        };
        let defaults = [
            "INTEL_IOMMU_DEFAULT_ON",
            "INTEL_IOMMU_SCALABLE_MODE_DEFAULT_ON",
        ];
        let defaults = defaults.iter().filter(|option| kernel.lacks_option(option));
        let defaults = defaults.map(|option| {
            Evidence::new(
                "kernel configuration",
                format!("CONFIG_{option} is not set"),
            )
        });
        let refused = kernel.message("Unable to turn on user SVA");
        let evidence = std::iter::once(line(kernel)).chain(defaults);
        let evidence = evidence.chain(refused.map(Evidence::log));
        let fix = Fix::advice("Say so, and start again.");
        let fix = fix.then(kernel.add_to_command_line("intel_iommu=on,sm_on"));
        findings.push(
            Finding::error(what)
                .confirmed_by(Saying::NO_SVA)
                .seen(evidence)
                .fix(fix),
        );
    }
    findings.extend(sva_parameter(survey));
    Verdict::of(findings, || match kernel.intel_iommu().is_empty() {
        true => "remapping in scalable mode is the default of this kernel".to_owned(),
        false => format!("intel_iommu={}", kernel.intel_iommu().join(",")),
    })
}

fn line(kernel: &Kernel) -> Evidence {
    Evidence::of(COMMAND_LINE, &kernel.command_line)
}

fn remapping(survey: &Survey) -> Word {
    let kernel = &survey.kernel;
    let said = kernel.intel_iommu();
    // The last word counts (intel_iommu_setup in drivers/iommu/intel/iommu.c).
    match said.iter().rfind(|word| ["on", "off"].contains(word)) {
        Some(&"off") => return Word::Refused("intel_iommu=off"),
        Some(_) => return Word::Fine,
        None => {}
    }
    if kernel.parameter("iommu") == Some("off") {
        return Word::Refused("iommu=off");
    }
    let default_on = kernel.option("INTEL_IOMMU_DEFAULT_ON") == Some(Setting::BuiltIn);
    match default_on || !survey.iommu.units.is_empty() {
        true => Word::Fine,
        false => Word::Missing,
    }
}

fn scalable(survey: &Survey) -> Word {
    let kernel = &survey.kernel;
    let said = kernel.intel_iommu();
    match said.iter().rfind(|word| ["sm_on", "sm_off"].contains(word)) {
        Some(&"sm_off") => return Word::Refused("intel_iommu=sm_off"),
        Some(_) => return Word::Fine,
        None => {}
    }
    match kernel.option("INTEL_IOMMU_SCALABLE_MODE_DEFAULT_ON") {
        Some(Setting::BuiltIn) => Word::Fine,
        Some(_) => Word::Missing,
        // The configuration does not show it; the devices do.
        None => match survey
            .devices
            .all()
            .iter()
            .any(|d| d.pasid_enabled == Ok(1))
        {
            true => Word::Fine,
            false => Word::Missing,
        },
    }
}

fn sva_parameter(survey: &Survey) -> Option<Finding> {
    let kernel = &survey.kernel;
    let what = "the module parameter sva=0 turns shared virtual addressing off";
    let word = kernel.words().find(|word| turns_sva_off(word));
    let forced = kernel.message("User forced SVA off");
    if let Some(word) = word {
        let fix = Fix::advice("Take it away.").then(kernel.remove_from_command_line(word));
        let evidence = std::iter::once(line(kernel)).chain(forced.map(Evidence::log));
        return Some(
            Finding::error(what)
                .confirmed_by(Saying::SVA_FORCED_OFF)
                .seen(evidence)
                .fix(fix),
        );
    }
    if let Some((path, rule)) = survey.module.sva_off() {
        let fix = Fix::advice(format!(
            "Take the line out of {path} and load the module again."
        ));
        let evidence = [Evidence::new(path.clone(), rule.clone())];
        return Some(
            Finding::error(what)
                .confirmed_by(Saying::SVA_FORCED_OFF)
                .seen(evidence)
                .fix(fix.reload()),
        );
    }
    if matches!(survey.module.sva.as_deref(), Ok("N" | "0")) {
        let path = format!("{LOADED}/parameters/sva");
        let evidence = Evidence::of(path, &survey.module.sva);
        let fix = Fix::advice("Load the module again without it.").reload();
        return Some(
            Finding::error(what)
                .confirmed_by(Saying::SVA_FORCED_OFF)
                .seen([evidence])
                .fix(fix),
        );
    }
    None
}
