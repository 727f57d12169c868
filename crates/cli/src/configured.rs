//! The device that is configured on this machine, for commands that were given no other.

use std::path::Path;

use dray_config::{Directory, survey, sysfs_root};
use dray_idxd::{DeviceProfile, Profile};

/// A configuration, and where it comes from.
pub(crate) struct Configured {
    pub(crate) profile: Profile,
    /// What to call it: the tree that it was read from.
    pub(crate) name: String,
}

/// The devices with enabled work queues, on this machine, in `dray run`'s session, or in the tree
/// that `DRAY_SYSFS_PATH` names. `None` if there is none: a tree without the driver's directory, or
/// with nothing enabled, is no error here.
pub(crate) fn configured() -> Option<Configured> {
    read(&sysfs_root())
}

fn read(root: &Path) -> Option<Configured> {
    let tree = Directory::open(root).ok()?;
    let machine = survey(&tree).ok()?;
    let devices: Vec<DeviceProfile> = machine
        .device_profiles()
        .iter()
        .filter_map(enabled)
        .collect();
    let profile = Profile::of(devices);
    // What the model cannot take is left to --config, with its message.
    let usable = profile.devices().is_ok_and(|devices| !devices.is_empty());
    usable.then(|| Configured {
        name: root.join("bus/dsa").display().to_string(),
        profile,
    })
}

/// A device with what is enabled of it; `None` if it has no enabled work queue.
fn enabled(device: &DeviceProfile) -> Option<DeviceProfile> {
    let is_enabled = |state: &Option<String>| state.as_deref() == Some("enabled");
    let mut device = device.clone();
    if !is_enabled(&device.state) {
        return None;
    }
    device.ungrouped_workqueues.clear();
    for group in &mut device.groups {
        group
            .grouped_workqueues
            .retain(|queue| is_enabled(&queue.state));
    }
    let any = device
        .groups
        .iter()
        .any(|group| !group.grouped_workqueues.is_empty());
    any.then_some(device)
}

/// The configuration that a command runs on: the one given, the one configured here, or `otherwise`;
/// says on stderr which one was taken, unless it was given.
///
/// # Errors
/// A configuration given that cannot be read.
pub(crate) fn profile(
    given: Option<&str>,
    otherwise: &str,
) -> Result<Configured, dray_idxd::ProfileError> {
    let named = |name: &str| {
        Ok(Configured {
            profile: Profile::resolve(name)?,
            name: name.to_owned(),
        })
    };
    match (given, configured()) {
        (Some(name), _) => named(name),
        (None, Some(configured)) => {
            eprintln!(
                "note: modelled with the devices configured in {}; --config names others",
                configured.name
            );
            Ok(configured)
        }
        (None, None) => named(otherwise),
    }
}
