//! Rules of read buffers, which groups share, keep and are limited in (spec 5.1, CMDSTATUS 18).

use dray_device::Capabilities;

use crate::finding::{Finding, Findings};
use crate::{DeviceProfile, GroupProfile};

/// What a group keeps and what it may hold.
pub(crate) struct ReadBuffers {
    pub(crate) reserved: i64,
    pub(crate) allowed: i64,
}

/// The group's read buffers. Where the profile does not say, none are kept and all that the device
/// has are allowed, as the driver writes; so they are where it says 0, which kernels before 6.2 show
/// for a group whose limit was never written.
pub(crate) fn of(group: &GroupProfile, capabilities: &Capabilities) -> ReadBuffers {
    let most = i64::from(capabilities.max_read_buffers);
    let allowed = group.read_buffers_allowed.filter(|allowed| *allowed != 0);
    ReadBuffers {
        reserved: reserved(group),
        allowed: allowed.unwrap_or(most),
    }
}

/// The driver takes any number but 0 for on.
pub(crate) fn uses_limit(group: &GroupProfile) -> bool {
    group.use_read_buffer_limit.is_some_and(|value| value > 0)
}

fn reserved(group: &GroupProfile) -> i64 {
    group.read_buffers_reserved.unwrap_or(0)
}

/// Groups without engines hold nothing.
fn in_use(device: &DeviceProfile) -> impl Iterator<Item = (usize, &GroupProfile)> {
    let groups = device.groups.iter().enumerate();
    groups.filter(|(_, group)| !group.grouped_engines.is_empty())
}

fn all_reserved(device: &DeviceProfile) -> i64 {
    in_use(device).fold(0, |sum, (_, group)| {
        sum.saturating_add(reserved(group).max(0))
    })
}

pub(super) fn check(device: &DeviceProfile, capabilities: &Capabilities, list: &mut Vec<Finding>) {
    let total = i64::from(capabilities.max_read_buffers);
    let reserved = all_reserved(device);
    if reserved > total {
        Findings::at(&device.dev, list).add(
            "read_buffers_reserved",
            format!("{reserved} for all groups with engines"),
            format!("the device has {total} (max_read_buffers)"),
            format!("reservations that add up to {total} or less; 0 keeps none"),
        );
    }
    check_limit(device, total, list);
    for (index, group) in in_use(device) {
        let path = format!("{}/groups[{index}] ({})", device.dev, group.dev);
        let mut findings = Findings::at(path, list);
        check_group(
            &mut findings,
            group,
            device,
            capabilities,
            reserved <= total,
        );
    }
}

/// The device-wide limit, for the groups that use it.
fn check_limit(device: &DeviceProfile, total: i64, list: &mut Vec<Finding>) {
    let limit = device.read_buffer_limit.unwrap_or(0);
    let users = || in_use(device).filter(|(_, group)| uses_limit(group));
    let engines: usize = users().map(|(_, group)| group.grouped_engines.len()).sum();
    let least = four_per(engines);
    if !(0..=total).contains(&limit) {
        Findings::at(&device.dev, list).add(
            "read_buffer_limit",
            limit,
            format!("it is 0 (no limit) to {total} (max_read_buffers)"),
            "\"read_buffer_limit\":0",
        );
    } else if limit != 0 && limit < least {
        Findings::at(&device.dev, list).add(
            "read_buffer_limit",
            limit,
            format!("4 for each of the {engines} engines whose groups use the limit, so {least} at least"),
            format!("\"read_buffer_limit\":{least}"),
        );
    }
    if limit == 0 {
        for (index, group) in device.groups.iter().enumerate() {
            if uses_limit(group) {
                let path = format!("{}/groups[{index}] ({})", device.dev, group.dev);
                Findings::at(path, list).add(
                    "use_read_buffer_limit",
                    1,
                    "the device's read_buffer_limit is 0, and the driver refuses to use it",
                    format!(
                        "\"use_read_buffer_limit\":0, or \"read_buffer_limit\":{} in {}",
                        least.max(4),
                        device.dev
                    ),
                );
            }
        }
    }
}

fn check_group(
    findings: &mut Findings<'_>,
    group: &GroupProfile,
    device: &DeviceProfile,
    capabilities: &Capabilities,
    fits: bool,
) {
    let ReadBuffers { reserved, allowed } = of(group, capabilities);
    if reserved < 0 {
        findings.add(
            "read_buffers_reserved",
            reserved,
            "it is 0 at least",
            "\"read_buffers_reserved\":0",
        );
        return;
    }
    let engines = group.grouped_engines.len();
    let least = four_per(engines).max(reserved);
    let free = i64::from(capabilities.max_read_buffers).saturating_sub(all_reserved(device));
    let most = reserved.saturating_add(free);
    if allowed < least {
        findings.add(
            "read_buffers_allowed",
            allowed,
            format!("4 for each of the {engines} engines and not less than the {reserved} reserved, so {least} at least"),
            format!("\"read_buffers_allowed\":{least}"),
        );
    } else if fits && allowed > most {
        findings.add(
            "read_buffers_allowed",
            allowed,
            format!(
                "the {reserved} reserved and the {free} that no group keeps, so {most} at most"
            ),
            format!("\"read_buffers_allowed\":{most}"),
        );
    }
}

/// Every engine needs four (spec 5.1). The count is bounded by the reader.
fn four_per(engines: usize) -> i64 {
    i64::try_from(engines).unwrap_or(i64::MAX).saturating_mul(4)
}
