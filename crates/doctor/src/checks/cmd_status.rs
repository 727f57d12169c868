//! Why did the last command fail?

use super::sources::{DML_40, IDXD_CONFIG_29, IDXD_CONFIG_78, KERNEL_IDXD, SPECIFICATION};
use crate::check::{Check, Context, Verdict};
use crate::cmd_status::{decode, is_software};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::Survey;
use crate::survey::device::Device;

pub(super) const CHECK: Check = Check {
    id: "cmd-status",
    title: "last command",
    needs: &["driver", "configuration"],
    why: "cmd_status holds why the last enabling or disabling failed: codes from 0x80000000 on are the \
driver's, smaller ones the device's. accel-config prints it once, and clears it at its next start, \
whatever it was started for: look here before. A status of an enabled device without a disabled, \
configured queue is left over and harmless.",
    sources: &[
        IDXD_CONFIG_29,
        IDXD_CONFIG_78,
        DML_40,
        KERNEL_IDXD,
        SPECIFICATION,
    ],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let devices = context.survey.devices.all();
    let mut findings = Vec::new();
    let mut read = 0;
    for device in devices {
        let Ok(status) = device.cmd_status else {
            continue;
        };
        read += 1;
        findings.extend(finding(device, status.cast_unsigned()));
    }
    if read == 0 {
        return match devices.first() {
            Some(device) => Verdict::Unknown(Evidence::of("cmd_status", &device.cmd_status).text),
            None => Verdict::DoesNotApply("no device".to_owned()),
        };
    }
    Verdict::of(findings, || "no error".to_owned())
}

fn finding(device: &Device, status: u64) -> Option<Finding> {
    let meaning = decode(status)?;
    let by = match is_software(status) {
        true => "the driver",
        false => "the device",
    };
    let name = &device.name;
    let what = format!("{by} refused the last command to {name}: {}", meaning.what);
    let waiting =
        |queue: &crate::survey::device::Queue| queue.is_configured() && !queue.is_enabled();
    let left_over = device.is_enabled() && !device.queues.iter().any(waiting);
    let finding = match left_over {
        true => Finding::note(format!("{what} (left over: {name} is enabled)")),
        false => Finding::error(what).confirmed_by(Saying::LAST_COMMAND),
    };
    let evidence = Evidence::new(device.path("cmd_status"), format!("{status:#x}"));
    let fix = Fix::advice(meaning.advice);
    let fix = match status & 0xff {
        0x11 | 0x14 | 0x16 | 0x17 if !is_software(status) => fix.reload(),
        _ => fix,
    };
    Some(finding.seen([evidence]).fix(fix))
}

/// A refused shared queue shows that the lack of ENQCMD matters here.
pub(super) fn confirmed(survey: &Survey) -> Vec<(&'static str, Evidence)> {
    const NO_SHARED_QUEUES: i64 = 0x800c_0000;
    let devices = survey.devices.all().iter();
    let refused = devices.filter(|device| device.cmd_status == Ok(NO_SHARED_QUEUES));
    refused
        .flat_map(|device| {
            let path = device.path("cmd_status");
            ["cpu", "kernel"].map(|check| {
                let text = "0x800c0000: a shared queue was refused";
                (check, Evidence::new(path.clone(), text))
            })
        })
        .collect()
}
