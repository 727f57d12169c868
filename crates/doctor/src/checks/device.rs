//! Is a device enabled?

use super::sources::{IDXD_CONFIG_8, KERNEL_IDXD, USER_GUIDE};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::machine::Unreadable;
use crate::survey::device::{BUS, Device};

pub(super) const CHECK: Check = Check {
    id: "device",
    title: "device state",
    needs: &["driver", "sva", "configuration", "cmd-status", "faults"],
    why: "A device starts disabled and without queues; it is enabled after a work queue and an engine \
share a group, and it loses its configuration when it is disabled, reset, or the machine starts \
again. An attribute that does not answer shows a driver that waits for the device.",
    sources: &[USER_GUIDE, IDXD_CONFIG_8, KERNEL_IDXD],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let devices = match &survey.devices.devices {
        Ok(devices) if !devices.is_empty() => devices,
        Ok(_) | Err(Unreadable::Missing) => {
            let what = "idxd has the function, and no device shows";
            let fix = Fix::advice("Load idxd again; dmesg says why it made none.")
                .reload()
                .then(["sudo dmesg | grep idxd"]);
            let finding = Finding::error(what)
                .confirmed_by(Saying::NO_DEVICE)
                .seen([Evidence::new(BUS, "no dsaN")]);
            return finding.fix(fix).into();
        }
        Err(reason) => return Verdict::Unknown(format!("{BUS}: {reason}")),
    };
    let mut findings: Vec<Finding> = devices.iter().filter_map(silent).collect();
    let enabled: Vec<_> = devices
        .iter()
        .filter(|device| device.is_enabled())
        .map(|device| device.name.as_str())
        .collect();
    if enabled.is_empty() && findings.is_empty() {
        findings.push(disabled(devices));
    }
    Verdict::of(findings, || {
        format!(
            "{} of {} enabled: {}",
            enabled.len(),
            devices.len(),
            enabled.join(", ")
        )
    })
}

fn silent(device: &Device) -> Option<Finding> {
    let reason = match &device.state {
        Err(reason @ (Unreadable::Blocked(_) | Unreadable::Garbage(_) | Unreadable::Other(_))) => {
            reason
        }
        Ok(state) if !["enabled", "disabled", "halted"].contains(&state.as_str()) => {
            &Unreadable::Garbage(state.clone())
        }
        _ => return None,
    };
    let what = format!(
        "the state of {} cannot be read: the driver is stuck or broken",
        device.name
    );
    let fix = Fix::advice("See what the kernel says; if idxd hangs, only a restart helps.")
        .then(["sudo dmesg | grep -e idxd -e 'blocked for more than'"]);
    let evidence = Evidence::new(device.path("state"), reason.to_string());
    Some(Finding::error(what).seen([evidence]).fix(fix))
}

fn disabled(devices: &[Device]) -> Finding {
    let evidence = devices
        .iter()
        .map(|device| Evidence::of(device.path("state"), &device.state));
    let queue = devices
        .iter()
        .flat_map(|d| &d.queues)
        .find(|queue| queue.is_configured());
    let Some(device) = devices.first() else {
        return Finding::error("no device");
    };
    let (what, fix) = match queue {
        Some(queue) => {
            let name = queue.full_name();
            let device = name.split('/').next().unwrap_or_default();
            (
                "no device is enabled, though a work queue is configured",
                Fix::advice("Enable the device, then the queue.").then([
                    format!("sudo accel-config enable-device {device}"),
                    format!("sudo accel-config enable-wq {name}"),
                ]),
            )
        }
        None => {
            let (name, number) = (&device.name, device.name.trim_start_matches("dsa"));
            let wq = format!("{name}/wq{number}.0");
            (
                "no device is configured and enabled",
                Fix::advice(
                    "Configure one: here one dedicated queue of 16 entries and one engine; then enable both. A \
whole file is loaded with `sudo accel-config load-config -c FILE -e`.",
                )
                .then([
                    format!("sudo accel-config config-engine {name}/engine{number}.0 --group-id=0"),
                    format!(
                        "sudo accel-config config-wq {wq} --group-id=0 --mode=dedicated --wq-size=16 --priority=10 --type=user --name=app1{}",
                        match device.queues.iter().any(|queue| queue.driver_name.is_ok()) {
                            true => " --driver-name=user",
                            false => "",
                        }
                    ),
                    format!("sudo accel-config enable-device {name}"),
                    format!("sudo accel-config enable-wq {wq}"),
                ]),
            )
        }
    };
    Finding::error(what)
        .confirmed_by(Saying::NOTHING_ENABLED)
        .seen(evidence)
        .fix(fix)
}
