//! How a device is configured: what it can do, its work queues, its groups.

use dray_spec::WorkQueueMode;
use dray_spec::registers::CommandError;
use thiserror::Error;

use crate::{Capabilities, IdptConfig};

/// What the device refuses to be enabled with. A reader of profiles checks them with better
/// words; this is the hardware's own guard.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A number of things that the device does not have.
    #[error("{what} {id}: the device has {limit}")]
    Beyond {
        /// Kind of thing.
        what: &'static str,
        /// Index asked for.
        id: u16,
        /// Number that there are.
        limit: u16,
    },
    /// Queues ask for more entries than there are (enable error 0x14).
    #[error("work queues ask for {asked} entries: the device has {limit}")]
    Entries {
        /// Sum of the sizes.
        asked: u32,
        /// Entries of the device.
        limit: u16,
    },
    /// A queue, group or engine that cannot work as configured.
    #[error("{what} {id}: {why}")]
    Unusable {
        /// Kind of thing.
        what: &'static str,
        /// Index.
        id: u16,
        /// What is wrong.
        why: &'static str,
    },
    /// What Enable Device refuses (spec 5.1).
    #[error("{0}")]
    Device(CommandError),
    /// What Enable WQ refuses (spec 5.2).
    #[error("{what} {id}: {error}")]
    Refused {
        /// Kind of thing.
        what: &'static str,
        /// Index.
        id: u16,
        /// What is wrong.
        error: CommandError,
    },
}

/// One work queue (WQCFG, spec 9.2.24).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkQueueConfig {
    /// Index on the device.
    pub id: u16,
    /// Group that the queue belongs to.
    pub group: u16,
    /// Dedicated or shared.
    pub mode: WorkQueueMode,
    /// Entries.
    pub size: u16,
    /// Occupancy up to which the limited portal accepts; shared queues only.
    pub threshold: u16,
    /// 1 (low) to 15 (high).
    pub priority: u8,
    /// Whether descriptors may ask to block on a page fault.
    pub block_on_fault: bool,
    /// WQ PASID; `None` where PASID enable is 0. A descriptor of a shared queue brings its own,
    /// and there only the enable counts.
    pub pasid: Option<u32>,
    /// WQ Priv: descriptors of a dedicated queue are privileged.
    pub privileged: bool,
    /// WQ ATS disable.
    pub ats_disable: bool,
    /// WQ PRS disable: pages that are not there are never asked for (spec 3.13.3).
    pub prs_disable: bool,
    /// WQ OPCFG: operations that the queue lets through, of those that the device has.
    pub op_config: [u64; 4],
    /// Largest batch, in descriptors.
    pub max_batch_size: u32,
    /// Largest transfer, in bytes.
    pub max_transfer_size: u64,
}

impl WorkQueueConfig {
    /// A queue of group 0 with `size` entries that all portals may fill, for one client with PASID 0: priority 10,
    /// batches of 32 descriptors and transfers of 2 MiB at most, no block on fault.
    pub fn new(id: u16, mode: WorkQueueMode, size: u16) -> WorkQueueConfig {
        WorkQueueConfig {
            id,
            mode,
            size,
            threshold: size,
            priority: 10,
            pasid: Some(0),
            max_batch_size: 32,
            max_transfer_size: 2 << 20,
            ..WorkQueueConfig::default()
        }
    }
}

impl Default for WorkQueueConfig {
    /// WQCFG after a reset: nothing is set, and every operation is let through.
    fn default() -> WorkQueueConfig {
        WorkQueueConfig {
            id: 0,
            group: 0,
            mode: WorkQueueMode::Shared,
            size: 0,
            threshold: 0,
            priority: 0,
            block_on_fault: false,
            pasid: None,
            privileged: false,
            ats_disable: false,
            prs_disable: false,
            op_config: [u64::MAX; 4],
            max_batch_size: 0,
            max_transfer_size: 0,
        }
    }
}

/// One group (GRPCFG, spec 9.2.23).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupConfig {
    /// Index on the device.
    pub id: u16,
    /// Engines that serve the group.
    pub engines: Vec<u16>,
    /// Read buffers kept for this group alone.
    pub read_buffers_reserved: u16,
    /// Read buffers that the group may hold at most.
    pub read_buffers_allowed: u16,
    /// Whether the device-wide limit applies to the group.
    pub use_read_buffer_limit: bool,
    /// TC-A and TC-B, of which each flag of a descriptor selects one; 0 to 7.
    pub traffic_classes: [u8; 2],
}

/// What the PCI configuration space has enabled, as far as descriptors depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciConfig {
    /// Address translation service (ATS control).
    pub ats: bool,
    /// Privileged mode enable of the PASID capability.
    pub privileged_mode: bool,
    /// Traffic classes that an enabled virtual channel carries, one bit each.
    pub traffic_classes: u8,
}

impl Default for PciConfig {
    /// All of it, as Linux leaves it on a machine that has it.
    fn default() -> PciConfig {
        PciConfig {
            ats: true,
            privileged_mode: true,
            traffic_classes: u8::MAX,
        }
    }
}

/// A device as it is when it is enabled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceConfig {
    /// What the device can do.
    pub capabilities: Capabilities,
    /// GENCFG global read-buffer limit; 0 is no limit.
    pub read_buffer_limit: u16,
    /// GENCFG user-mode interrupts enable: without it a descriptor that is not privileged asks for
    /// no interrupt on a queue with PASID (spec Table 5-4).
    pub user_interrupts: bool,
    /// What PCI lets it do.
    pub pci: PciConfig,
    /// The inter-domain permissions table.
    pub idpt: IdptConfig,
    /// Enabled work queues.
    pub work_queues: Vec<WorkQueueConfig>,
    /// Groups that have engines.
    pub groups: Vec<GroupConfig>,
}

impl DeviceConfig {
    /// The device of a fourth generation Xeon: one group with engines 0 to `engines` - 1 and these work
    /// queues. User-mode interrupts are on.
    pub fn sapphire_rapids(engines: u16, work_queues: Vec<WorkQueueConfig>) -> DeviceConfig {
        DeviceConfig {
            capabilities: Capabilities::sapphire_rapids(),
            user_interrupts: true,
            work_queues,
            groups: vec![GroupConfig {
                engines: (0..engines).collect(),
                ..GroupConfig::default()
            }],
            ..DeviceConfig::default()
        }
    }

    /// The device that programs start within themselves, where they have none or are to have no other: a fourth
    /// generation Xeon's with one engine, which is the dispatcher's thread. `queues` work queues, 1 to 8, share its
    /// entries; they allow batches as large as the device does, and block on fault. Nothing asks for interrupts.
    pub fn embedded(mode: WorkQueueMode, queues: u16, max_transfer_size: u64) -> DeviceConfig {
        let capabilities = Capabilities::sapphire_rapids();
        let queues = queues.clamp(1, capabilities.max_work_queues);
        let queue = |id| WorkQueueConfig {
            block_on_fault: true,
            max_batch_size: capabilities.max_batch_size,
            max_transfer_size,
            ..WorkQueueConfig::new(id, mode, capabilities.work_queue_size / queues)
        };
        DeviceConfig {
            user_interrupts: false,
            ..DeviceConfig::sapphire_rapids(1, (0..queues).map(queue).collect())
        }
    }

    /// Whether registers can hold all of this. What they can hold and the device refuses, Enable
    /// Device and Enable WQ say (spec 5.1, 5.2).
    pub(crate) fn check_representable(&self) -> Result<(), ConfigError> {
        let cap = &self.capabilities;
        let mut groups = vec![false; cap.max_groups.into()];
        for group in &self.groups {
            beyond("group", group.id, cap.max_groups)?;
            let unusable = |bad, why| unusable(bad, "group", group.id, why);
            let twice = std::mem::replace(&mut groups[usize::from(group.id)], true);
            unusable(twice, "configured twice")?;
            for engine in &group.engines {
                beyond("engine", *engine, cap.max_engines.min(64))?;
            }
            let most = u16::from(u8::MAX);
            let buffers = group.read_buffers_reserved.max(group.read_buffers_allowed);
            unusable(buffers > most, "more than 255 read buffers")?;
            let classes = group.traffic_classes.iter().all(|class| *class < 8);
            unusable(!classes, "a traffic class is not 0 to 7")?;
        }
        let mut queues = vec![false; cap.max_work_queues.into()];
        for wq in &self.work_queues {
            beyond("work queue", wq.id, cap.max_work_queues)?;
            let unusable = |bad, why| unusable(bad, "work queue", wq.id, why);
            let twice = std::mem::replace(&mut queues[usize::from(wq.id)], true);
            unusable(twice, "configured twice")?;
            let served = |g: &GroupConfig| g.id == wq.group && !g.engines.is_empty();
            let served = self.groups.iter().any(served);
            unusable(!served, "in a group without engines")?;
            unusable(wq.priority > 15, "priority is not 1 to 15")?;
            let pasid = wq.pasid.is_none_or(|pasid| pasid < 1 << 20);
            unusable(!pasid, "PASID has more than 20 bits")?;
            let powers =
                wq.max_batch_size.is_power_of_two() && wq.max_transfer_size.is_power_of_two();
            unusable(!powers, "largest batch or transfer is no power of two")?;
        }
        Ok(())
    }

    /// What Enable Device says of a configuration, with what it is about.
    pub(crate) fn explain(&self, error: CommandError) -> ConfigError {
        let unusable = |what, id, why| ConfigError::Unusable { what, id, why };
        let explained = match error {
            CommandError::WQ_SIZES => Some(ConfigError::Entries {
                asked: self.work_queues.iter().map(|wq| u32::from(wq.size)).sum(),
                limit: self.capabilities.work_queue_size,
            }),
            CommandError::GROUP => {
                let lonely = |g: &&GroupConfig| {
                    let queues = self.work_queues.iter().any(|wq| wq.group == g.id);
                    queues == g.engines.is_empty()
                };
                let group = self.groups.iter().find(lonely);
                group.map(|g| unusable("group", g.id, "has engines but no work queues"))
            }
            CommandError::GROUP_WQS => {
                let queue = self.work_queues.iter().find(|wq| wq.size == 0);
                queue.map(|wq| unusable("work queue", wq.id, "has no entries"))
            }
            CommandError::GROUP_ENGINES => {
                let engines = || self.groups.iter().flat_map(|group| &group.engines);
                let twice = engines().find(|e| engines().filter(|other| other == e).count() > 1);
                twice.map(|engine| unusable("engine", *engine, "in two groups"))
            }
            _ => None,
        };
        explained.unwrap_or(ConfigError::Device(error))
    }
}

fn beyond(what: &'static str, id: u16, limit: u16) -> Result<(), ConfigError> {
    match id >= limit {
        true => Err(ConfigError::Beyond { what, id, limit }),
        false => Ok(()),
    }
}

fn unusable(bad: bool, what: &'static str, id: u16, why: &'static str) -> Result<(), ConfigError> {
    match bad {
        true => Err(ConfigError::Unusable { what, id, why }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
