//! How the devices are configured for a point.

use dray_idxd::{DeviceProfile, EngineProfile, GroupProfile, Profile, WorkQueueProfile};

use crate::FiguresError;
use crate::setup::changed;
use crate::tenants::{Sharing, Tenants};
use crate::workload::Workload;

/// A profile for each device that a point needs.
pub(super) fn configuration(profile: &Profile, w: &Workload) -> Result<Profile, FiguresError> {
    let profile = changed(profile, w)?;
    let count = usize::from(w.tenants.devices.max(1));
    // Where the profile says nothing of a device, it is as the ones before.
    let devices = profile.device_profiles().iter().cycle().take(count);
    let mut devices: Vec<DeviceProfile> = devices.cloned().collect();
    for device in &mut devices {
        if let Some(buffers) = w.read_buffers {
            let allowed = i64::from(buffers);
            for group in &mut device.groups {
                group.read_buffers_allowed = Some(allowed);
                let reserved = group.read_buffers_reserved;
                group.read_buffers_reserved = reserved.map(|reserved| reserved.min(allowed));
            }
        }
        arrange(device, &w.tenants)?;
    }
    Ok(Profile::of(devices))
}

/// Queues of a configured device: the workload's and the neighbour's, by their numbers.
pub(super) fn queues(device: &DeviceProfile, tenants: &Tenants) -> Option<[u16; 2]> {
    let queues = device.groups.iter().flat_map(|g| &g.grouped_workqueues);
    let numbers: Vec<u16> = queues.filter_map(|queue| index(&queue.dev)).collect();
    let own = *numbers.first()?;
    let neighbour = match tenants.neighbour {
        Some(neighbour) if neighbour.sharing != Sharing::Queue => *numbers.last()?,
        _ => own,
    };
    Some([own, neighbour])
}

/// Arranges a device for two tenants, as [`Tenants::arrange`] does for the model.
fn arrange(device: &mut DeviceProfile, tenants: &Tenants) -> Result<(), FiguresError> {
    let home = device
        .groups
        .iter()
        .position(|group| !group.grouped_workqueues.is_empty())
        .ok_or(FiguresError::NoWorkQueue)?;
    let own = &mut device.groups[home].grouped_workqueues[0];
    let priority = tenants.priority.map(i64::from);
    own.priority = priority.or(own.priority);
    let Some(neighbour) = tenants.neighbour else {
        return Ok(());
    };
    if neighbour.sharing == Sharing::Queue {
        return Ok(());
    }
    // Two queues of half the entries: what the tenants have together stays the same.
    own.size = own.size.map(|size| (size / 2).max(1));
    own.threshold = match (own.threshold, own.size) {
        (Some(threshold), Some(size)) => Some(threshold.min(size)),
        (threshold, _) => threshold,
    };
    let priority = neighbour.priority.map(i64::from);
    let mut other = WorkQueueProfile {
        priority: priority.or(own.priority),
        ..own.clone()
    };
    let none_left = |what| FiguresError::NoSecondTenant { what };
    let number = device.dev.trim_start_matches("dsa").to_owned();
    let queues = device.groups.iter().flat_map(|g| &g.grouped_workqueues);
    let used: Vec<u16> = queues.filter_map(|queue| index(&queue.dev)).collect();
    let free = (0..count(device.max_work_queues)).find(|index| !used.contains(index));
    let free = free.ok_or_else(|| none_left("work queue"))?;
    other.dev = format!("wq{number}.{free}");
    device
        .ungrouped_workqueues
        .retain(|queue| queue.dev != other.dev);
    if neighbour.sharing == Sharing::Engine {
        device.groups[home].grouped_workqueues.push(other);
        return Ok(());
    }
    let engines = device.groups.iter().flat_map(|g| &g.grouped_engines);
    let used: Vec<u16> = engines.filter_map(|engine| index(&engine.dev)).collect();
    let engine = (0..count(device.max_engines)).find(|index| !used.contains(index));
    let engine = engine.ok_or_else(|| none_left("engine"))?;
    let in_use = |group: &GroupProfile| {
        !group.grouped_workqueues.is_empty() || !group.grouped_engines.is_empty()
    };
    let used: Vec<u16> = device
        .groups
        .iter()
        .filter(|group| in_use(group))
        .filter_map(|group| index(&group.dev))
        .collect();
    let group = (0..count(device.max_groups)).find(|index| !used.contains(index));
    let group = group.ok_or_else(|| none_left("group"))?;
    other.group_id = Some(group.into());
    let engine = EngineProfile {
        dev: format!("engine{number}.{engine}"),
        group_id: Some(group.into()),
    };
    device
        .ungrouped_engines
        .retain(|free| free.dev != engine.dev);
    // The last of the groups with work queues, which is where the neighbour's is looked for.
    let like = device.groups[home].clone();
    let dev = format!("group{number}.{group}");
    device.groups.retain(|other| other.dev != dev);
    device.groups.push(GroupProfile {
        dev,
        grouped_workqueues: vec![other],
        grouped_engines: vec![engine],
        ..like
    });
    Ok(())
}

/// The number of an object within its device.
fn index(name: &str) -> Option<u16> {
    name.rsplit_once('.')?.1.parse().ok()
}

/// How many of a kind a device has; as many as the first generation where the profile does not say.
fn count(said: Option<i64>) -> u16 {
    said.and_then(|count| u16::try_from(count).ok())
        .unwrap_or(4)
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;

    use super::*;

    fn configured(profile: &str, point: Point) -> Result<Profile, FiguresError> {
        let w = Workload::from_point(&point)?;
        configuration(&Profile::named(profile)?, &w)
    }

    #[test]
    fn a_configuration_has_the_read_buffers_of_its_point() {
        let changed = configured("1e1w-d", Point::default().with("read_buffers", 24)).unwrap();
        let group = &changed.device_profiles()[0].groups[0];
        assert_eq!(group.read_buffers_allowed, Some(24));
    }

    /// What the hardware is configured as is what the model is configured as.
    #[test]
    fn the_hardware_configuration_of_tenants_is_that_of_the_model() {
        for sharing in ["queue", "engine", "device"] {
            let point = Point::default()
                .with("neighbour_size", 4096)
                .with("sharing", sharing)
                .with("submit", "enqcmd")
                .with("priority", 3)
                .with("neighbour_priority", 7)
                .with("engines", 1);
            let w = Workload::from_point(&point).unwrap();
            let found = configured("4e1w-d", point).unwrap();
            let of_profile = found.devices().unwrap().remove(0);
            let profile = Profile::named("4e1w-d").unwrap();
            let mut of_model = changed(&profile, &w).unwrap().devices().unwrap().remove(0);
            let neighbour = w.tenants.arrange(&mut of_model).unwrap();
            of_model.groups.sort_by_key(|group| group.id);
            let mut groups = of_profile.groups.clone();
            groups.sort_by_key(|group| group.id);
            let kinds = |queues: &[dray_device::WorkQueueConfig]| -> Vec<_> {
                let kind = |q: &dray_device::WorkQueueConfig| {
                    (q.id, q.mode, q.size, q.threshold, q.priority, q.group)
                };
                queues.iter().map(kind).collect()
            };
            assert_eq!(kinds(&of_profile.work_queues), kinds(&of_model.work_queues));
            let engines = |groups: &[dray_device::GroupConfig]| -> Vec<(u16, Vec<u16>)> {
                let used = groups.iter().filter(|group| !group.engines.is_empty());
                used.map(|group| (group.id, group.engines.clone()))
                    .collect()
            };
            assert_eq!(engines(&groups), engines(&of_model.groups), "{sharing}");
            let device = &found.device_profiles()[0];
            assert_eq!(
                queues(device, &w.tenants),
                Some([0, neighbour]),
                "{sharing}"
            );
        }
    }

    #[test]
    fn a_profile_of_one_device_configures_several() {
        let point = Point::default().with("devices", 3);
        let found = configured("1e1w-d", point).unwrap();
        assert_eq!(found.device_profiles().len(), 3);
        let no_engine = Point::default()
            .with("neighbour_size", 4096)
            .with("sharing", "device");
        let refused = configured("4e1w-d", no_engine).unwrap_err().to_string();
        assert!(refused.contains("engine"), "{refused}");
    }
}
