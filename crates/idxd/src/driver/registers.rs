//! The driver's side of BAR0: configuration registers and commands (`drivers/dma/idxd/device.c`).

use dray_spec::registers::{
    self as at, Command, CommandError, CommandRegister, CommandStatus as Register, DeviceState,
    EvlCfg, GenCfg, GenCtrl, GenSts, GroupFlags, GroupRegister, TableOffsets, WorkQueueLimits,
    WorkQueuePolicy, WorkQueueRegister, WorkQueueStatus,
};

use super::state::{Device, WorkQueueType};
use super::{CommandStatus, Errno, Registers};

fn offsets(registers: &impl Registers) -> TableOffsets {
    let low = u128::from(registers.read64(at::OFFSETS));
    let high = u128::from(registers.read64(at::OFFSETS + 8));
    TableOffsets::from_bits(high << 64 | low)
}

impl<R: Registers> Device<R> {
    fn queue_base(&self, wq: usize) -> u64 {
        let stride = self.part.hardware.wq_cap.config_stride_bytes();
        let base = u64::from(offsets(&self.registers).work_queue_config());
        base * TableOffsets::UNIT + wq as u64 * u64::from(stride)
    }

    fn group_base(&self, group: usize) -> u64 {
        let base = u64::from(offsets(&self.registers).group_config());
        base * TableOffsets::UNIT + group as u64 * GroupRegister::STRIDE
    }

    /// State of the device as `state` prints it: the driver's, but for a device that has halted.
    pub(super) fn state_name(&self) -> &'static str {
        match (self.is_halted(), self.enabled) {
            (true, _) => "halted",
            (false, true) => "enabled",
            (false, false) => "disabled",
        }
    }

    fn is_halted(&self) -> bool {
        GenSts::from_bits(self.registers.read32(at::GENSTS)).state() == DeviceState::Halted
    }

    /// SWERROR (spec 9.2.15).
    pub(super) fn software_error(&self) -> [u64; 4] {
        [0, 8, 16, 24].map(|offset| self.registers.read64(at::SWERROR + offset))
    }

    /// Entries of a work queue that are in use.
    pub(super) fn occupancy(&self, wq: u16) -> u16 {
        let address = self.queue_base(wq.into()) + WorkQueueRegister::STATUS;
        WorkQueueStatus::from_bits(self.registers.read32(address)).occupancy()
    }

    /// What the driver does when it has found a device (`idxd_probe`).
    pub(super) fn probe(&mut self) {
        // Nothing can be in flight: the command ends at once.
        let _ = self.command(Command::ResetDevice, 0);
        self.status = CommandStatus::default();
        if self.part.pasid_enabled {
            let gen_cfg = GenCfg::from_bits(self.registers.read32(at::GENCFG));
            let gen_cfg = gen_cfg.with_user_interrupt_enable(true).into_bits();
            self.registers.write32(at::GENCFG, gen_cfg);
        }
        self.unmask_errors();
    }

    /// `idxd_unmask_error_interrupts`: from the interrupt the kernel learns that SWERROR is valid.
    pub(super) fn unmask_errors(&mut self) {
        let control = GenCtrl::new()
            .with_software_error_interrupt(true)
            .with_halt_interrupt(true);
        self.registers.write32(at::GENCTRL, control.into_bits());
    }

    /// `idxd_cmd_exec`: issues a command and waits for it.
    ///
    /// # Errors
    /// [`Errno::EAGAIN`] while descriptors are in flight that the command waits for: the kernel
    /// sleeps, the caller lets engines work and writes again.
    pub(super) fn command(
        &mut self,
        command: Command,
        operand: u32,
    ) -> Result<Result<(), CommandError>, Errno> {
        if self.is_halted() {
            return Ok(Err(CommandError::HARDWARE));
        }
        if Register::from_bits(self.registers.read32(at::CMDSTATUS)).active() {
            return Err(Errno::EAGAIN);
        }
        // Who comes back for a command that has gone on meanwhile gets its end, and no second one: also if another
        // command was issued since then.
        let last = self.unfinished.take_if(|last| *last != (command, operand));
        if let Some(last) = last {
            let error = Register::from_bits(self.registers.read32(at::CMDSTATUS)).error();
            self.ended.push((last, CommandError(error)));
        }
        let seen = self
            .ended
            .iter()
            .position(|(ended, _)| *ended == (command, operand));
        if let Some(seen) = seen {
            let (_, error) = self.ended.swap_remove(seen);
            return Ok(self.concluded(error));
        }
        if self.unfinished.is_none() {
            self.status = CommandStatus::default();
            let register = CommandRegister::of(command, operand).into_bits();
            self.registers.write32(at::CMD, register);
        }
        let result = Register::from_bits(self.registers.read32(at::CMDSTATUS));
        if result.active() {
            self.unfinished = Some((command, operand));
            return Err(Errno::EAGAIN);
        }
        self.unfinished = None;
        if matches!(command, Command::ResetDevice | Command::DisableDevice) {
            self.ended.clear();
        }
        Ok(self.concluded(CommandError(result.error())))
    }

    /// Notes what a command has come to.
    fn concluded(&mut self, error: CommandError) -> Result<(), CommandError> {
        self.status = error.into();
        match error.0 {
            0 => Ok(()),
            _ => Err(error),
        }
    }

    /// `__idxd_wq_set_pasid_locked` and `__idxd_wq_set_priv_locked`.
    pub(super) fn write_pasid(&mut self, wq: usize, pasid: Option<u32>, privileged: bool) {
        let address = self.queue_base(wq) + WorkQueueRegister::POLICY;
        let policy = WorkQueuePolicy::from_bits(self.registers.read32(address))
            .with_pasid_enable(pasid.is_some())
            .with_pasid(pasid.unwrap_or(0))
            .with_privileged(privileged);
        self.registers.write32(address, policy.into_bits());
    }

    /// `idxd_wq_config_write`.
    pub(super) fn write_queue(&mut self, wq: usize) {
        let base = self.queue_base(wq);
        let queue = &self.queues[wq];
        let wq_cap = self.part.hardware.wq_cap;
        let policy = self.registers.read32(base + WorkQueueRegister::POLICY);
        let policy = WorkQueuePolicy::from_bits(policy)
            .with_dedicated(queue.dedicated)
            .with_block_on_fault(queue.block_on_fault)
            .with_ats_disable(queue.ats_disable && wq_cap.ats_disable())
            .with_prs_disable(queue.prs_disable && wq_cap.prs_disable())
            .with_priority(queue.priority);
        let limits = WorkQueueLimits::new()
            .with_max_transfer_shift(queue.max_transfer.trailing_zeros() as u8)
            .with_max_batch_shift(queue.max_batch.trailing_zeros() as u8);
        let words = [
            (WorkQueueRegister::SIZE, queue.size),
            (WorkQueueRegister::THRESHOLD, queue.threshold),
            (WorkQueueRegister::POLICY, policy.into_bits()),
            (WorkQueueRegister::LIMITS, limits.into_bits()),
        ];
        let operations = queue.operations;
        for (offset, value) in words {
            self.registers.write32(base + offset, value);
        }
        if wq_cap.operation_config() {
            for (word, bits) in (0..).zip(operations) {
                let address = base + WorkQueueRegister::OPERATIONS + 8 * word;
                self.registers.write64(address, bits);
            }
        }
    }

    /// `idxd_groups_config_write`, with what `idxd_group_flags_setup` puts into the flags.
    pub(super) fn write_groups(&mut self) {
        if self.read_buffer_limit != 0 {
            let gen_cfg = GenCfg::from_bits(self.registers.read32(at::GENCFG))
                .with_global_read_buffer_limit(self.read_buffer_limit as u8);
            self.registers.write32(at::GENCFG, gen_cfg.into_bits());
        }
        for id in 0..self.groups.len() {
            let mut queues = [0_u64; 4];
            for (wq, queue) in self.queues.iter().enumerate() {
                if queue.group == Some(id as u16) {
                    queues[wq / 64] |= 1 << (wq % 64);
                }
            }
            let engines = self.engines.iter().take(64).enumerate();
            let engines = engines.filter(|(_, home)| **home == Some(id as u16));
            let engines = engines.fold(0_u64, |bits, (engine, _)| bits | 1 << engine);
            let group = &self.groups[id];
            let class = |index: usize| {
                let class = group.traffic_classes[index];
                u8::try_from(class).unwrap_or(index as u8)
            };
            let allowed = match group.allowed {
                0 => self.part.hardware.group_cap.read_buffers(),
                allowed => allowed as u8,
            };
            let flags = GroupFlags::new()
                .with_traffic_class_a(class(0))
                .with_traffic_class_b(class(1))
                .with_use_global_read_buffer_limit(group.use_limit)
                .with_read_buffers_reserved(group.reserved as u8)
                .with_read_buffers_allowed(allowed)
                .with_work_descriptor_limit(group.work_limit)
                .with_batch_descriptor_limit(group.batch_limit);
            let base = self.group_base(id);
            for (word, bits) in (0..).zip(queues) {
                let address = base + GroupRegister::WORK_QUEUES + 8 * word;
                self.registers.write64(address, bits);
            }
            let engines_at = base + GroupRegister::ENGINES;
            self.registers.write64(engines_at, engines);
            let flags_at = base + GroupRegister::FLAGS;
            self.registers.write64(flags_at, flags.into_bits());
        }
    }

    /// `idxd_device_evl_setup`: the log of a device that has one, where it has a place.
    pub(super) fn write_event_log(&mut self) {
        let Some(base) = self.part.event_log else {
            return;
        };
        if self.part.hardware.gen_cap.event_log_entry() == 0 {
            return;
        }
        let log = EvlCfg::new()
            .with_base_page(base >> 12)
            .with_entries(self.event_log_size as u16)
            .into_bits();
        self.registers.write64(at::EVLCFG + 8, (log >> 64) as u64);
        self.registers.write64(at::EVLCFG, log as u64);
        let gen_cfg = GenCfg::from_bits(self.registers.read32(at::GENCFG));
        let gen_cfg = gen_cfg.with_event_log_enable(true).into_bits();
        self.registers.write32(at::GENCFG, gen_cfg);
    }

    /// Whether queues of the kernel have a PASID: where shared virtual addressing is on.
    pub(super) fn kernel_pasid(&self, wq: usize) -> Option<u32> {
        let kernel = self.queues[wq].kind == WorkQueueType::Kernel;
        (kernel && self.part.pasid_enabled).then_some(0)
    }
}
