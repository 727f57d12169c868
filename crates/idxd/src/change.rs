//! A profile with one setting changed, for experiments that sweep it.

use dray_device::WorkQueueMode;

use crate::finding::{Finding, Findings};
use crate::parts::{EngineProfile, GroupProfile, WorkQueueProfile, device_number, numbers};
use crate::{DeviceProfile, Profile, ProfileError, capabilities};

impl Profile {
    /// The same with this many entries in every work queue; thresholds follow.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Invalid`] if the device has not so many.
    pub fn with_wq_size(&self, entries: u16) -> Result<Self, ProfileError> {
        if entries == 0 {
            // A file without a size gets the driver's own; an experiment asks for none.
            let mut findings = Vec::new();
            Findings::at("all work queues", &mut findings).add(
                "size",
                0,
                "a work queue has 1 entry at least",
                "\"size\":16",
            );
            return Err(ProfileError::Invalid {
                title: self.title(),
                findings,
            });
        }
        self.with_queues(|queue| {
            let old = queue.size.replace(entries.into());
            if is_shared(queue) {
                queue.threshold = queue
                    .threshold
                    .map(|threshold| match Some(threshold) == old {
                        true => entries.into(),
                        false => threshold.min(entries.into()),
                    });
            }
        })
    }

    /// The same with this many engines, 0 to `engines - 1`, in the one group that is in use.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Invalid`] if the device has not so many, or uses several groups, so that
    /// it is not said where they go.
    pub fn with_engines(&self, engines: u16) -> Result<Self, ProfileError> {
        let mut changed = self.clone();
        let mut findings = Vec::new();
        for device in &mut changed.devices {
            if let Err(finding) = set_engines(device, engines) {
                findings.push(*finding);
            }
        }
        match findings.is_empty() {
            true => changed.checked(),
            false => Err(ProfileError::Invalid {
                title: self.title(),
                findings,
            }),
        }
    }

    /// The same with every work queue in this mode; the threshold of a shared one is its size.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Invalid`] if the device cannot (a shared queue needs address spaces).
    pub fn with_mode(&self, mode: WorkQueueMode) -> Result<Self, ProfileError> {
        self.with_queues(|queue| match mode {
            WorkQueueMode::Shared if is_shared(queue) => {}
            WorkQueueMode::Shared => {
                queue.mode = Some("shared".to_owned());
                queue.threshold = queue.size;
            }
            WorkQueueMode::Dedicated => {
                queue.mode = Some("dedicated".to_owned());
                queue.threshold = Some(0);
            }
        })
    }

    /// The same with batches of up to this many descriptors in every work queue.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Invalid`] if the device takes fewer.
    pub fn with_max_batch(&self, descriptors: u32) -> Result<Self, ProfileError> {
        self.with_queues(|queue| queue.max_batch_size = Some(descriptors.into()))
    }

    /// The same with this name for every work queue that is in a group.
    pub fn with_queue_name(&self, name: &str) -> Self {
        self.changed(|queue| queue.name = Some(name.to_owned()))
    }

    fn with_queues(&self, change: impl Fn(&mut WorkQueueProfile)) -> Result<Self, ProfileError> {
        self.changed(change).checked()
    }

    fn changed(&self, change: impl Fn(&mut WorkQueueProfile)) -> Self {
        let mut changed = self.clone();
        let groups = changed
            .devices
            .iter_mut()
            .flat_map(|device| &mut device.groups);
        groups
            .flat_map(|group| &mut group.grouped_workqueues)
            .for_each(change);
        changed
    }

    fn checked(self) -> Result<Self, ProfileError> {
        self.devices()?;
        Ok(self)
    }
}

fn is_shared(queue: &WorkQueueProfile) -> bool {
    queue.mode.as_deref() == Some("shared")
}

fn set_engines(device: &mut DeviceProfile, engines: u16) -> Result<(), Box<Finding>> {
    let most = capabilities::resolve(device, &mut Vec::new()).max_engines;
    let finding = |value: String, limit: String, fix: &str| {
        Box::new(Finding {
            path: device.dev.clone(),
            field: "engines".to_owned(),
            value,
            limit,
            fix: fix.to_owned(),
        })
    };
    if !(1..=most).contains(&engines) {
        return Err(finding(
            engines.to_string(),
            format!("the device has 1 to {most}"),
            &format!("a number from 1 to {most}"),
        ));
    }
    let used = |group: &&GroupProfile| !group.grouped_workqueues.is_empty();
    let count = device.groups.iter().filter(used).count();
    if count != 1 {
        return Err(finding(
            engines.to_string(),
            format!("the profile uses {count} groups, and it is not said which gets them"),
            "set grouped_engines of each group in the file",
        ));
    }
    let number = device_number(&device.dev).unwrap_or(0);
    let engine = |index, group_id| EngineProfile {
        dev: format!("engine{number}.{index}"),
        group_id,
    };
    for group in &mut device.groups {
        group.grouped_engines.clear();
        if !group.grouped_workqueues.is_empty() {
            let id = numbers(&group.dev, "group").map(|(_, index)| i64::from(index));
            group.grouped_engines = (0..engines).map(|index| engine(index, id)).collect();
        }
    }
    device.ungrouped_engines = (engines..most).map(|index| engine(index, None)).collect();
    Ok(())
}
