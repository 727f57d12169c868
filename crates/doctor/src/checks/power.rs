//! Does the processor keep its speed?

use super::sources::{KERNEL_PARAMETERS, PERF_MICROS, USER_GUIDE};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix};
use crate::survey::host::{GOVERNOR, IDLE};

pub(super) const CHECK: Check = Check {
    id: "power",
    title: "governor and C-states",
    needs: &["queues"],
    why: "Latencies of a microsecond do not survive a core that sleeps deeper than C1, nor one that \
changes its frequency. Only those who measure need to care. The first processor is looked at.",
    sources: &[PERF_MICROS, USER_GUIDE, KERNEL_PARAMETERS],
    judge,
};

/// Waking up in less than this does not show in a latency; C1 takes 1 or 2, C1E some 4, C6 more
/// than 100.
const SHALLOW_US: i64 = 10;

fn judge(context: &Context<'_>) -> Verdict {
    let host = &context.survey.host;
    let mut findings = Vec::new();
    if let Ok(governor) = &host.governor
        && governor != "performance"
    {
        let what = format!("the governor is {governor}: latencies vary with the frequency");
        let fix =
            Fix::advice("For measurements:").then(["sudo cpupower frequency-set -g performance"]);
        let evidence = Evidence::of(GOVERNOR, &host.governor);
        findings.push(Finding::note(what).seen([evidence]).fix(fix));
    }
    let deep = host
        .idle_states
        .iter()
        .filter(|s| s.enabled && s.latency_us > SHALLOW_US);
    let deep: Vec<_> = deep
        .map(|s| format!("{} ({} us)", s.name, s.latency_us))
        .collect();
    if !deep.is_empty() {
        let what = format!("cores may sleep deeply: {}", deep.join(", "));
        let fix = Fix::advice("For measurements:")
            .then([format!("sudo cpupower idle-set -D {SHALLOW_US}")]);
        let evidence = Evidence::new(IDLE, deep.join(", "));
        findings.push(Finding::note(what).seen([evidence]).fix(fix));
    }
    Verdict::of(findings, || match &host.governor {
        Ok(governor) => format!("{governor}, no deep C-states"),
        Err(_) => "no governor, no deep C-states".to_owned(),
    })
}
