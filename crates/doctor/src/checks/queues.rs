//! Is a work queue enabled?

use super::sources::{DML_25, IDXD_CONFIG_15, SPDK_2329, USER_GUIDE};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::device::Queue;

pub(super) const CHECK: Check = Check {
    id: "queues",
    title: "work queues",
    needs: &["device"],
    why: "Programs submit to enabled work queues of type user; the kernel's own clients to those of \
type kernel. DML and DTO take shared queues only, DPDK and SPDK dedicated ones, dsa-perf-micros \
both: that one program works and another does not is most often this. DPDK takes only queues whose \
name begins with dpdk_ or its file prefix. A dedicated queue has one user at a time.",
    sources: &[USER_GUIDE, DML_25, SPDK_2329, IDXD_CONFIG_15],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let devices = &context.survey.devices;
    let enabled: Vec<_> = devices.enabled_queues().collect();
    if enabled.is_empty() {
        let on = devices.all().iter().find(|device| device.is_enabled());
        let queues = on
            .map(|device| device.queues.as_slice())
            .unwrap_or_default();
        let configured: Vec<_> = queues.iter().filter(|q| q.is_configured()).collect();
        let evidence = configured
            .iter()
            .map(|queue| Evidence::of(queue.path("state"), &queue.state));
        let commands = configured
            .iter()
            .map(|queue| format!("sudo accel-config enable-wq {}", queue.full_name()));
        let what = "a device is enabled, and none of its work queues is";
        let fix = Fix::advice("Enable one.").then(commands);
        return Finding::error(what)
            .confirmed_by(Saying::PROGRAM_FINDS_NONE)
            .seen(evidence)
            .fix(fix)
            .into();
    }
    let seen = enabled.iter().map(|(_, queue)| describe(queue));
    Verdict::Holds(seen.collect::<Vec<_>>().join(", "))
}

fn describe(queue: &Queue) -> String {
    let of = |reading: &crate::machine::Reading<String>| {
        reading.as_deref().unwrap_or("unknown").to_owned()
    };
    let size = queue.size.as_ref().map_or("?".to_owned(), i64::to_string);
    let fault = match queue.block_on_fault {
        Ok(1) => ", blocks on faults",
        _ => "",
    };
    format!(
        "{} ({} {}, {size} entries{fault})",
        queue.full_name(),
        of(&queue.mode),
        of(&queue.kind),
    )
}
