//! Settings that hardware follows and the modelled device does not.

use crate::DeviceProfile;
use crate::configure::is_dedicated;
use crate::finding::{Finding, Findings};

/// One finding for each such setting, so that nothing is passed over in silence.
pub(crate) fn profile(devices: &[DeviceProfile]) -> Vec<Finding> {
    let mut list = Vec::new();
    for device in devices {
        if device.event_log_size.is_some_and(|entries| entries > 0) {
            Findings::at(&device.dev, &mut list).add(
                "event_log_size",
                device.event_log_size.unwrap_or(0),
                "the modelled device keeps no event log",
                "\"event_log_size\":0",
            );
        }
        for (index, group) in device.groups.iter().enumerate() {
            let path = format!("{}/groups[{index}]", device.dev);
            let mut findings = Findings::at(format!("{path} ({})", group.dev), &mut list);
            for (field, value) in [
                ("desc_progress_limit", group.desc_progress_limit),
                ("batch_progress_limit", group.batch_progress_limit),
            ] {
                if let Some(value) = value
                    && value != 0
                {
                    findings.add(
                        field,
                        value,
                        "the modelled device does not limit work in progress per group",
                        format!("\"{field}\":0"),
                    );
                }
            }
            for (index, queue) in group.grouped_workqueues.iter().enumerate() {
                let path = format!("{path}/grouped_workqueues[{index}] ({})", queue.dev);
                let mut findings = Findings::at(path, &mut list);
                if let Some(operations) = queue.op_config
                    && device.version.unwrap_or(0x100) < 0x200
                {
                    let limit =
                        "a device of version 1 takes all of its operations on every work queue";
                    findings.add("op_config", operations, limit, "leave op_config out");
                }
                if let Some(threshold) = queue.threshold.filter(|threshold| *threshold != 0)
                    && is_dedicated(queue)
                {
                    let limit = "a dedicated work queue has none";
                    findings.add("threshold", threshold, limit, "leave threshold out");
                }
                for (field, value) in [
                    ("ats_disable", queue.ats_disable),
                    ("prs_disable", queue.prs_disable),
                ] {
                    if value == Some(1) {
                        findings.add(
                            field,
                            1,
                            "the modelled device translates and requests pages for every work queue",
                            format!("\"{field}\":0"),
                        );
                    }
                }
            }
        }
    }
    list
}
