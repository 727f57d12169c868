//! Would enabling succeed?

use super::sources::{
    CSIT_4068, DML_40, IDXD_CONFIG_11, IDXD_CONFIG_15, IDXD_CONFIG_40, KERNEL_IDXD,
};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying, count};
use crate::survey::device::{Device, Queue};

pub(super) const CHECK: Check = Check {
    id: "configuration",
    title: "configuration of queues",
    needs: &["driver"],
    why: "A work queue is enabled only if it has a size, a group with an engine, a name (user type), a \
type, a threshold (shared mode) and, from Linux 6.7 on, the name of its driver: user, dmaengine or \
crypto. accel-config says \"failed in dsa0/wq0.0, enabled 0 wq(s) out of 1\" for all of them; files \
written for older kernels lack driver_name. The sizes of all queues together must fit the device, \
and those of earlier configurations remain after disabling until idxd is loaded again. Only queues \
that are configured and not enabled are judged.",
    sources: &[
        IDXD_CONFIG_40,
        IDXD_CONFIG_15,
        CSIT_4068,
        DML_40,
        IDXD_CONFIG_11,
        KERNEL_IDXD,
    ],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let devices = context.survey.devices.all();
    let mut findings = Vec::new();
    let mut configured = 0;
    for device in devices {
        findings.extend(sizes(device));
        for queue in device.queues.iter().filter(|queue| queue.is_configured()) {
            configured += 1;
            if !queue.is_enabled() {
                findings.extend(problems(device, queue));
            }
        }
    }
    if configured == 0 {
        return Verdict::DoesNotApply("no work queue is configured".to_owned());
    }
    Verdict::of(findings, || {
        format!("{} configured", count(configured, "work queue"))
    })
}

fn sizes(device: &Device) -> Option<Finding> {
    let total = *device.max_work_queues_size.as_ref().ok()?;
    let sizes = device
        .queues
        .iter()
        .filter_map(|queue| queue.size.as_ref().ok());
    let sum = sizes.fold(0_i64, |sum, size| sum.saturating_add(*size));
    if sum <= total {
        return None;
    }
    let what = format!(
        "the work queues of {} have {sum} entries together, and the device has {total}",
        device.name
    );
    let evidence = device.queues.iter().filter(|queue| queue.is_configured());
    let evidence = evidence.map(|queue| Evidence::of(queue.path("size"), &queue.size));
    let fix =
        Fix::advice("Sizes of earlier configurations remain: load idxd again, then configure.")
            .reload();
    Some(
        Finding::error(what)
            .confirmed_by(Saying::SIZES)
            .seen(evidence)
            .fix(fix),
    )
}

/// What keeps a queue from being enabled, in the order in which the driver asks.
fn problems(device: &Device, queue: &Queue) -> Vec<Finding> {
    let name = queue.full_name();
    let mut findings = Vec::new();
    let mut problem = |what: &str, evidence: Evidence, option: &str| {
        let command = match option.starts_with("--") {
            true => format!("sudo accel-config config-wq {option} {name}"),
            false => option.to_owned(),
        };
        let finding = Finding::error(format!("{name} cannot be enabled: {what}"))
            .confirmed_by(Saying::NOTHING_ENABLED);
        let fix = Fix::advice("Give it one, then enable it.").then([command]);
        findings.push(finding.seen([evidence]).fix(fix));
    };
    let attribute = |name: &str| queue.path(name);
    match queue.group {
        Ok(group @ 0..) if !device.serves(group) => {
            let evidence = Evidence::new(attribute("group_id"), group.to_string());
            let engine = format!(
                "sudo accel-config config-engine {0}/engine{1}.0 --group-id={group}",
                device.name,
                device.name.trim_start_matches("dsa")
            );
            problem(
                &format!("its group {group} has no engine"),
                evidence,
                &engine,
            );
        }
        Ok(0..) => {}
        ref group => {
            let evidence = Evidence::of(attribute("group_id"), group);
            problem("it is in no group", evidence, "--group-id=0");
        }
    }
    if queue.size == Ok(0) {
        let evidence = Evidence::of(attribute("size"), &queue.size);
        problem("it has no size", evidence, "--wq-size=16");
    }
    let kind = queue.kind.as_deref().unwrap_or_default();
    if kind.is_empty() || kind == "none" {
        let evidence = Evidence::of(attribute("type"), &queue.kind);
        problem("it has no type", evidence, "--type=user");
    }
    if queue.is_user() && queue.label.as_deref() == Ok("") {
        let evidence = Evidence::of(attribute("name"), &queue.label);
        problem("it has no name", evidence, "--name=app1");
    }
    if queue.is_shared() && queue.threshold == Ok(0) {
        let evidence = Evidence::of(attribute("threshold"), &queue.threshold);
        let threshold = queue.size.as_ref().map_or(1, |size| (*size).max(1));
        let option = format!("--threshold={threshold}");
        problem("it is shared and has no threshold", evidence, &option);
    }
    // Missing before Linux 6.7, where the type alone decides.
    if matches!(queue.driver_name.as_deref(), Ok("" | "(null)")) {
        let evidence = Evidence::of(attribute("driver_name"), &queue.driver_name);
        let driver = match kind {
            "kernel" => "dmaengine",
            _ => "user",
        };
        let option = format!("--driver-name={driver}");
        problem(
            "it has no driver name, which this kernel demands",
            evidence,
            &option,
        );
    }
    findings
}
