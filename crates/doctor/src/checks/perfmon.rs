//! Can the device's events be counted?

use super::sources::{IDXD_CONFIG_46, KERNEL_IDXD, USER_GUIDE};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::host::EVENT_SOURCES;

pub(super) const CHECK: Check = Check {
    id: "perfmon",
    title: "performance events",
    needs: &["device"],
    why: "`perf stat -e dsa0/event=0x1,event_category=0x1/` counts what a device does, if the kernel has \
INTEL_IDXD_PERFMON and the device has counters (those that a hypervisor shows often have none). \
Nothing but counting needs it.",
    sources: &[USER_GUIDE, IDXD_CONFIG_46, KERNEL_IDXD],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let sources = match &survey.host.event_sources {
        Ok(sources) => sources,
        Err(reason) => return Verdict::Unknown(format!("{EVENT_SOURCES}: {reason}")),
    };
    let enabled = survey
        .devices
        .all()
        .iter()
        .filter(|device| device.is_enabled());
    let lacking: Vec<_> = enabled
        .map(|device| device.name.as_str())
        .filter(|name| !sources.iter().any(|source| source == name))
        .collect();
    if lacking.is_empty() {
        return Verdict::Holds("perf can count".to_owned());
    }
    let kernel = &survey.kernel;
    let what = format!("perf cannot count events of {}", lacking.join(", "));
    let evidence = Evidence::new(EVENT_SOURCES, format!("no {}", lacking.join(", ")));
    let said = kernel
        .message("Failed to initialize perfmon")
        .map(Evidence::log);
    let built = kernel.lacks_option("INTEL_IDXD_PERFMON");
    let fix = match built {
        true => Fix::advice("Use a kernel with CONFIG_INTEL_IDXD_PERFMON=y, if you want to count."),
        false => Fix::advice("The device shows no counters; a hypervisor would have to."),
    };
    let option = built.then(|| {
        Evidence::new(
            "kernel configuration",
            "CONFIG_INTEL_IDXD_PERFMON is not set",
        )
    });
    Finding::note(what)
        .confirmed_by(Saying::NO_PMU)
        .seen(std::iter::once(evidence).chain(said).chain(option))
        .fix(fix)
        .into()
}
