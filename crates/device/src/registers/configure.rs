//! From a configuration to register writes, and back.

use dray_spec::registers::{
    self as at, GenCfg, GroupFlags, GroupRegister, IdBr, WorkQueueLimits, WorkQueuePolicy,
    WorkQueueRegister,
};

use super::bits::Bits;
use super::enable::{check_device, check_queue};
use super::{File, Hardware, Interrupts, PciControls};
use crate::{ConfigError, DeviceConfig, GroupConfig, IdptConfig, WorkQueueConfig, WorkQueueMode};

/// A write to BAR0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterWrite {
    /// Offset in bytes.
    pub offset: u64,
    /// 4 or 8 bytes.
    pub size: u8,
    /// What is written.
    pub value: u64,
}

impl DeviceConfig {
    /// The writes that bring this configuration to a disabled device: GENCFG, then groups, then work
    /// queues. Values that are 0 where the device has a default (read buffers) are not written.
    ///
    /// # Errors
    /// Values that the registers cannot hold, and things that `hardware` does not have.
    pub fn register_writes(&self, hardware: &Hardware) -> Result<Vec<RegisterWrite>, ConfigError> {
        self.check_representable()?;
        let file = File::new(hardware.clone());
        let limit = match self.read_buffer_limit {
            0 => file.gen_cfg.global_read_buffer_limit(),
            limit => limit as u8,
        };
        let gen_cfg = GenCfg::new()
            .with_global_read_buffer_limit(limit)
            .with_user_interrupt_enable(self.user_interrupts);
        let mut writes = vec![RegisterWrite {
            offset: at::GENCFG,
            size: 4,
            value: gen_cfg.into_bits().into(),
        }];
        for group in &self.groups {
            let base = file.layout.groups.base + u64::from(group.id) * GroupRegister::STRIDE;
            self.write_group(group, &file, base, &mut writes);
        }
        for queue in &self.work_queues {
            let table = file.layout.queues;
            let base = table.base + u64::from(queue.id) * table.stride;
            write_queue(queue, hardware, base, &mut writes);
        }
        Ok(writes)
    }

    fn write_group(
        &self,
        group: &GroupConfig,
        file: &File,
        base: u64,
        writes: &mut Vec<RegisterWrite>,
    ) {
        let mut write = |offset: u64, value: u64| {
            writes.push(RegisterWrite {
                offset: base + offset,
                size: 8,
                value,
            });
        };
        let mut queues = [0_u64; 4];
        for queue in self.work_queues.iter().filter(|q| q.group == group.id) {
            queues[usize::from(queue.id) / 64] |= 1 << (queue.id % 64);
        }
        for (word, bits) in (0..).zip(queues) {
            write(GroupRegister::WORK_QUEUES + 8 * word, bits);
        }
        let engines = group.engines.iter().fold(0, |bits, e| bits | 1 << e);
        write(GroupRegister::ENGINES, engines);
        let allowed = match group.read_buffers_allowed {
            0 => file.hardware.group_cap.read_buffers(),
            allowed => allowed as u8,
        };
        let flags = GroupFlags::new()
            .with_traffic_class_a(group.traffic_classes[0])
            .with_traffic_class_b(group.traffic_classes[1])
            .with_use_global_read_buffer_limit(group.use_read_buffer_limit)
            .with_read_buffers_reserved(group.read_buffers_reserved as u8)
            .with_read_buffers_allowed(allowed);
        write(GroupRegister::FLAGS, flags.into_bits());
    }
}

fn write_queue(
    queue: &WorkQueueConfig,
    hardware: &Hardware,
    base: u64,
    writes: &mut Vec<RegisterWrite>,
) {
    let policy = WorkQueuePolicy::new()
        .with_dedicated(queue.mode == WorkQueueMode::Dedicated)
        .with_block_on_fault(queue.block_on_fault)
        .with_ats_disable(queue.ats_disable)
        .with_prs_disable(queue.prs_disable)
        .with_priority(queue.priority)
        .with_pasid(queue.pasid.unwrap_or(0))
        .with_pasid_enable(queue.pasid.is_some())
        .with_privileged(queue.privileged);
    let limits = WorkQueueLimits::new()
        .with_max_transfer_shift(queue.max_transfer_size.trailing_zeros() as u8)
        .with_max_batch_shift(queue.max_batch_size.trailing_zeros() as u8);
    let words = [
        (WorkQueueRegister::SIZE, queue.size.into()),
        (WorkQueueRegister::THRESHOLD, queue.threshold.into()),
        (WorkQueueRegister::POLICY, policy.into_bits()),
        (WorkQueueRegister::LIMITS, limits.into_bits()),
    ];
    for (offset, value) in words {
        writes.push(RegisterWrite {
            offset: base + offset,
            size: 4,
            value: u64::from(value),
        });
    }
    if hardware.wq_cap.operation_config() {
        let allowed = queue.op_config.iter().zip(hardware.capabilities.op_cap);
        for (word, (allowed, device)) in (0..).zip(allowed) {
            writes.push(RegisterWrite {
                offset: base + WorkQueueRegister::OPERATIONS + 8 * word,
                size: 8,
                value: allowed & device,
            });
        }
    }
}

/// A part for a configuration that no software writes.
pub(crate) fn part(config: &DeviceConfig) -> (Hardware, PciControls) {
    let mut hardware = Hardware::new(config.capabilities.clone());
    hardware.without_driver = true;
    // A caller without registers can configure what is fixed for software.
    hardware.gen_cap.set_configurable(true);
    let restricted = config
        .work_queues
        .iter()
        .any(|q| q.op_config != [u64::MAX; 4]);
    if restricted {
        hardware.wq_cap = hardware
            .wq_cap
            .with_operation_config(true)
            .with_config_shift(1);
    }
    let pci = PciControls {
        config: config.pci.clone(),
        ..PciControls::default()
    };
    (hardware, pci)
}

/// The rules of Enable Device and Enable WQ, for a configuration that no software writes.
pub(crate) fn check(config: &DeviceConfig) -> Result<(), ConfigError> {
    let (hardware, pci) = part(config);
    let interrupts = Interrupts::new(&hardware);
    let writes = config.register_writes(&hardware)?;
    let mut file = File::new(hardware);
    file.apply(&writes);
    check_device(&file, &pci).map_err(|error| config.explain(error))?;
    file.state = at::DeviceState::Enabled;
    for queue in &config.work_queues {
        check_queue(&file, &interrupts, &pci, queue.id.into())
            .map_err(|error| refused(queue.id, error))?;
    }
    Ok(())
}

pub(crate) fn refused(wq: u16, error: at::CommandError) -> ConfigError {
    ConfigError::Refused {
        what: "work queue",
        id: wq,
        error,
    }
}

impl File {
    /// Writes of whole registers, of 4 or 8 bytes.
    pub(crate) fn apply(&mut self, writes: &[RegisterWrite]) {
        for write in writes {
            let shift = write.offset % 8 * 8;
            let mask = u64::MAX >> (64 - 8 * u32::from(write.size.clamp(1, 8)));
            let bits = Bits {
                value: write.value << shift,
                mask: mask << shift,
            };
            self.write(write.offset & !7, bits);
        }
    }

    /// What the device is enabled with.
    pub(crate) fn device_config(&self, pci: &PciControls) -> DeviceConfig {
        let engines = |mask: u64| (0..64).filter(|e| mask >> e & 1 == 1).collect();
        let active = (0..).zip(&self.groups).filter(|(_, g)| g.engines != 0);
        DeviceConfig {
            capabilities: self.hardware.capabilities.clone(),
            read_buffer_limit: self.gen_cfg.global_read_buffer_limit().into(),
            user_interrupts: self.gen_cfg.user_interrupt_enable(),
            pci: pci.config.clone(),
            idpt: IdptConfig {
                bitmaps: IdBr::from(self.bitmap),
                ..IdptConfig::default()
            },
            work_queues: Vec::new(),
            groups: active
                .map(|(id, group)| GroupConfig {
                    id,
                    engines: engines(group.engines),
                    read_buffers_reserved: group.flags.read_buffers_reserved().into(),
                    read_buffers_allowed: group.flags.read_buffers_allowed().into(),
                    use_read_buffer_limit: group.flags.use_global_read_buffer_limit(),
                    traffic_classes: [group.flags.traffic_class_a(), group.flags.traffic_class_b()],
                })
                .collect(),
        }
    }

    /// What a queue that has passed its checks is enabled with.
    pub(crate) fn queue_config(&self, wq: usize) -> WorkQueueConfig {
        let queue = &self.queues[wq];
        let policy = queue.policy;
        let group = self.groups.iter().position(|group| group.has_queue(wq));
        WorkQueueConfig {
            id: wq as u16,
            group: group.unwrap_or(0) as u16,
            mode: match policy.dedicated() {
                true => WorkQueueMode::Dedicated,
                false => WorkQueueMode::Shared,
            },
            size: queue.size,
            threshold: queue.threshold,
            priority: match self.hardware.wq_cap.priority() {
                true => policy.priority(),
                false => 1,
            },
            block_on_fault: policy.block_on_fault(),
            pasid: policy.pasid_enable().then_some(policy.pasid()),
            privileged: policy.privileged() && policy.pasid_enable(),
            ats_disable: policy.ats_disable(),
            prs_disable: policy.prs_disable(),
            op_config: match self.hardware.wq_cap.operation_config() {
                true => queue.operations,
                false => [u64::MAX; 4],
            },
            max_batch_size: 1 << queue.limits.max_batch_shift(),
            max_transfer_size: 1 << queue.limits.max_transfer_shift(),
        }
    }
}
