//! Load at the same time: more cores, more devices, a neighbour.

use dray_device::{DeviceConfig, GroupConfig, WorkQueueMode};
use dray_platform::Distance;

use crate::FiguresError;

/// What two tenants of a device share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// One shared work queue.
    Queue,
    /// The engines: a work queue each, in one group.
    Engine,
    /// The device: a work queue, a group and an engine each.
    Device,
}

/// Another tenant, which keeps its queue full of copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Neighbour {
    /// Bytes of each copy.
    pub size: u32,
    /// Priority of its work queue; `None`: as the profile's.
    pub priority: Option<u8>,
    /// What it shares.
    pub sharing: Sharing,
}

/// Who works at the same time, and on what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tenants {
    /// Cores; `None`: one for each device.
    pub cores: Option<u16>,
    /// Socket of the cores, as the device sees it.
    pub core_node: Distance,
    /// Devices.
    pub devices: u16,
    /// Priority of the work queue; `None`: as the profile has it.
    pub priority: Option<u8>,
    /// Another tenant.
    pub neighbour: Option<Neighbour>,
}

impl Tenants {
    /// One core, one device, no neighbour.
    pub const ALONE: Tenants = Tenants {
        cores: None,
        core_node: Distance::Local,
        devices: 1,
        priority: None,
        neighbour: None,
    };

    /// Cores that do the workload, the neighbour's not counted.
    pub(crate) fn cores(&self) -> u16 {
        self.cores.unwrap_or(self.devices)
    }

    /// Arranges a device for two tenants.
    ///
    /// Returns the neighbour's work queue.
    ///
    /// # Errors
    /// No entries, work queue, group or engine left for a second tenant.
    pub(crate) fn arrange(&self, config: &mut DeviceConfig) -> Result<u16, FiguresError> {
        let Some(own) = config.work_queues.first_mut() else {
            return Err(FiguresError::NoWorkQueue);
        };
        own.priority = self.priority.unwrap_or(own.priority);
        let wq = own.id;
        let Some(neighbour) = self.neighbour else {
            return Ok(wq);
        };
        if neighbour.sharing == Sharing::Queue {
            return match own.mode {
                WorkQueueMode::Shared => Ok(wq),
                WorkQueueMode::Dedicated => Err(FiguresError::NoSecondTenant {
                    what: "shared work queue",
                }),
            };
        }
        let none_left = |what| FiguresError::NoSecondTenant { what };
        // Two queues of half the entries: what the tenants have together stays the same.
        own.size = (own.size / 2).max(1);
        own.threshold = own.threshold.min(own.size);
        let mut other = own.clone();
        other.priority = neighbour.priority.unwrap_or(other.priority);
        let used: Vec<u16> = config.work_queues.iter().map(|q| q.id).collect();
        let ids = 0..config.capabilities.max_work_queues;
        other.id = ids
            .clone()
            .find(|id| !used.contains(id))
            .ok_or_else(|| none_left("work queue"))?;
        if neighbour.sharing == Sharing::Device {
            let used: Vec<u16> = config
                .groups
                .iter()
                .flat_map(|g| g.engines.clone())
                .collect();
            let mut engines = 0..config.capabilities.max_engines;
            let engine = engines.find(|id| !used.contains(id));
            let mut groups = 0..config.capabilities.max_groups;
            let group = groups.find(|id| config.groups.iter().all(|g| g.id != *id));
            let like = config.groups.iter().find(|g| g.id == other.group).cloned();
            other.group = group.ok_or_else(|| none_left("group"))?;
            config.groups.push(GroupConfig {
                id: other.group,
                engines: vec![engine.ok_or_else(|| none_left("engine"))?],
                ..like.unwrap_or_default()
            });
        }
        let id = other.id;
        config.work_queues.push(other);
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arranged(profile: &str, sharing: Sharing) -> Result<(DeviceConfig, u16), FiguresError> {
        let profile = dray_idxd::Profile::named(profile)?;
        let mut config = profile.devices()?.remove(0);
        let tenants = Tenants {
            cores: None,
            core_node: Distance::Local,
            devices: 1,
            priority: Some(3),
            neighbour: Some(Neighbour {
                size: 4096,
                priority: Some(7),
                sharing,
            }),
        };
        let wq = tenants.arrange(&mut config)?;
        Ok((config, wq))
    }

    #[test]
    fn tenants_share_only_the_given_queue_engine_or_device() {
        let (config, wq) = arranged("1e1w-s", Sharing::Queue).unwrap();
        assert_eq!((config.work_queues.len(), wq), (1, 0));
        let (config, wq) = arranged("1e1w-d", Sharing::Engine).unwrap();
        assert_eq!(
            (config.work_queues.len(), config.groups.len(), wq),
            (2, 1, 1)
        );
        let of = |i: usize| (config.work_queues[i].size, config.work_queues[i].priority);
        assert_eq!((of(0), of(1)), ((64, 3), (64, 7)));
        let (config, _) = arranged("1e1w-d", Sharing::Device).unwrap();
        let engines: Vec<u16> = config
            .groups
            .iter()
            .flat_map(|g| g.engines.clone())
            .collect();
        assert_eq!(engines, [0, 1]);
        assert_ne!(config.work_queues[0].group, config.work_queues[1].group);
    }

    #[test]
    fn missing_queues_and_engines_for_a_neighbour_are_named() {
        let message = |profile, sharing| arranged(profile, sharing).unwrap_err().to_string();
        assert!(message("1e1w-d", Sharing::Queue).contains("shared work queue"));
        assert!(message("4e1w-d", Sharing::Device).contains("engine"));
    }
}
