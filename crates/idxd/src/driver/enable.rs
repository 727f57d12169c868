//! Binding and unbinding devices and work queues, which enables and disables them.

use dray_spec::registers::{Command, CommandError, CommandRegister};

use super::state::{Device, WorkQueueType};
use super::{CommandStatus, Errno, Options, Registers};

/// `WQ_DEFAULT_QUEUE_DEPTH`.
const DEFAULT_SIZE: u32 = 16;

/// The driver that a work queue is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bound {
    /// `user`: character device.
    User,
    /// `dmaengine`: a channel of the kernel's.
    DmaEngine,
}

impl Bound {
    /// Name in `/sys/bus/dsa/drivers`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::DmaEngine => "dmaengine",
        }
    }

    fn kind(self) -> WorkQueueType {
        match self {
            Self::User => WorkQueueType::User,
            Self::DmaEngine => WorkQueueType::Kernel,
        }
    }
}

impl<R: Registers> Device<R> {
    fn fail<T>(&mut self, status: CommandStatus, errno: Errno) -> Result<T, Errno> {
        self.status = status;
        Err(errno)
    }

    /// Shared queues need a CPU with ENQCMD and PASIDs (`wq_shared_supported`).
    fn shares(&self, options: &Options) -> bool {
        options.enqcmd && self.part.pasid_enabled
    }

    /// `idxd_device_config`: checks what the driver checks, and writes all configuration registers.
    fn configure(&mut self, options: &Options) -> Result<(), Errno> {
        let defaults = options.personality.has_default_size();
        let mut configured = 0;
        for queue in self.queues.iter().filter(|queue| queue.group.is_some()) {
            if queue.size == 0 && !defaults {
                continue;
            }
            if !queue.dedicated && !self.shares(options) {
                return self.fail(CommandStatus::WQ_NO_SWQ_SUPPORT, Errno::EINVAL);
            }
            configured += 1;
        }
        if configured == 0 {
            return self.fail(CommandStatus::WQ_NONE_CONFIGURED, Errno::EINVAL);
        }
        if self.engines.iter().all(Option::is_none) {
            return Err(Errno::EINVAL);
        }
        for wq in 0..self.queues.len() {
            let queue = &mut self.queues[wq];
            if queue.group.is_none() {
                continue;
            }
            if queue.size == 0 && defaults && queue.kind != WorkQueueType::None {
                queue.size = DEFAULT_SIZE;
            }
            if queue.size == 0 && !defaults {
                return self.fail(CommandStatus::WQ_NO_SIZE, Errno::EINVAL);
            }
            let dedicated = queue.dedicated;
            let privileged_mode = self.registers.privileged_mode();
            if dedicated && self.kernel_pasid(wq).is_some() && !privileged_mode {
                return self.fail(CommandStatus::WQ_NO_PRIV, Errno::EOPNOTSUPP);
            }
            self.write_queue(wq);
        }
        self.write_groups();
        Ok(())
    }

    /// `idxd_device_drv_probe`: what a write of the device's name to `drivers/idxd/bind` does.
    pub(super) fn bind(&mut self, options: &Options) -> Result<(), Errno> {
        if self.enabled || self.state_name() == "halted" {
            return self.fail(CommandStatus::DEV_ENABLED, Errno::ENXIO);
        }
        if self.configurable() {
            self.configure(options).map_err(|_| Errno::ENXIO)?;
        }
        if options.personality.has_version_2_attributes() {
            self.write_event_log();
        }
        match self.command(Command::EnableDevice, 0)? {
            Ok(()) | Err(CommandError::DEVICE_NOT_DISABLED) => {}
            Err(_) => return Err(Errno::ENXIO),
        }
        self.enabled = true;
        self.bound = true;
        self.status = CommandStatus::default();
        Ok(())
    }

    /// `idxd_device_drv_remove`, once no queue is enabled.
    pub(super) fn unbind(&mut self) -> Result<(), Errno> {
        // The driver goes on whatever the device says of these two.
        if self.enabled {
            let _ = self.command(Command::DisableDevice, 0)?;
            self.clear();
        }
        if self.configurable() {
            let _ = self.command(Command::ResetDevice, 0)?;
            self.clear();
            self.unmask_errors();
        }
        self.bound = false;
        Ok(())
    }

    /// `idxd_user_drv_probe` and `idxd_dmaengine_drv_probe`, but for the character device.
    pub(super) fn bind_queue(
        &mut self,
        wq: usize,
        driver: Bound,
        options: &Options,
    ) -> Result<(), Errno> {
        if !self.enabled {
            return Err(Errno::ENXIO);
        }
        self.match_driver(wq, driver, options)?;
        self.queues[wq].kind = driver.kind();
        let result = self.enable_queue(wq, options);
        if result.is_err() {
            self.queues[wq].kind = WorkQueueType::None;
        }
        match (driver, result) {
            (_, Ok(())) => {
                self.queues[wq].bound = Some(driver);
                self.status = CommandStatus::default();
                Ok(())
            }
            (_, Err(Errno::EAGAIN)) => Err(Errno::EAGAIN),
            (Bound::DmaEngine, Err(_)) => Err(Errno::ENXIO),
            (Bound::User, Err(errno)) => Err(errno),
        }
    }

    fn match_driver(&mut self, wq: usize, driver: Bound, options: &Options) -> Result<(), Errno> {
        let personality = options.personality;
        // The kernel compares as many bytes as the driver's name has: `users` goes to `user`.
        let named = self.queues[wq]
            .driver_name
            .starts_with(driver.name().as_bytes());
        let misnamed = personality.has_driver_name() && !named;
        let without =
            driver == Bound::User && personality.user_needs_sva() && !self.part.pasid_enabled;
        // A probe that fails before it takes the type resets it only after the name's check.
        let refusals = match personality.matches_name_first() {
            true => [(misnamed, true), (without, false)],
            false => [(without, false), (misnamed, true)],
        };
        for (refused, by_name) in refusals {
            match (refused, by_name) {
                (false, _) => {}
                (true, true) => {
                    self.queues[wq].kind = WorkQueueType::None;
                    return self.fail(CommandStatus::WQ_NO_DRV_NAME, Errno::ENODEV);
                }
                (true, false) => {
                    if personality.matches_name_first() {
                        self.queues[wq].kind = WorkQueueType::None;
                    }
                    return self.fail(CommandStatus::WQ_USER_NO_IOMMU, Errno::EOPNOTSUPP);
                }
            }
        }
        Ok(())
    }

    /// `idxd_drv_enable_wq`.
    fn enable_queue(&mut self, wq: usize, options: &Options) -> Result<(), Errno> {
        let queue = &self.queues[wq];
        let (enabled, dedicated) = (queue.enabled, queue.dedicated);
        let (grouped, named) = (queue.group.is_some(), !queue.name.is_empty());
        let threshold = queue.threshold;
        if enabled {
            return self.fail(CommandStatus::WQ_ENABLED, Errno::EBUSY);
        }
        if !grouped {
            return self.fail(CommandStatus::WQ_NO_GRP, Errno::ENXIO);
        }
        if !named {
            return self.fail(CommandStatus::WQ_NO_NAME, Errno::ENXIO);
        }
        if !dedicated && !self.shares(options) {
            return self.fail(CommandStatus::WQ_NO_SVM, Errno::ENXIO);
        }
        if !dedicated && threshold == 0 {
            return self.fail(CommandStatus::WQ_NO_THRESH, Errno::ENXIO);
        }
        if self.configurable() {
            let kernel = self.queues[wq].kind == WorkQueueType::Kernel;
            // A dedicated queue of users gets the PASID of the process that opens it.
            let shared = (!dedicated && self.part.pasid_enabled).then_some(0);
            let pasid = self.kernel_pasid(wq).or(shared);
            if pasid.is_some() {
                self.write_pasid(wq, pasid, kernel);
            } else {
                self.write_pasid(wq, None, kernel);
            }
            self.configure(options)?;
        }
        self.command_enable(wq)
    }

    /// `idxd_wq_enable`.
    pub(super) fn command_enable(&mut self, wq: usize) -> Result<(), Errno> {
        match self.command(Command::EnableWq, wq as u32)? {
            Ok(()) | Err(CommandError::WQ_NOT_DISABLED) => {}
            Err(_) => return Err(Errno::ENXIO),
        }
        self.queues[wq].enabled = true;
        Ok(())
    }

    /// `idxd_wq_disable` without a reset of the configuration.
    pub(super) fn command_disable(&mut self, wq: usize) -> Result<(), Errno> {
        let operand = CommandRegister::queue(wq as u8);
        let done = self.command(Command::DisableWq, operand)?;
        done.map_err(|_| Errno::ENXIO)?;
        self.queues[wq].enabled = false;
        Ok(())
    }

    /// `idxd_drv_disable_wq`: drain, reset, and the configuration is as after a reset but for the
    /// size, the group, `driver_name` and `prs_disable`.
    pub(super) fn unbind_queue(&mut self, wq: usize) -> Result<(), Errno> {
        if self.queues[wq].enabled {
            let operand = CommandRegister::queue(wq as u8);
            // The driver goes on whatever the device says of these two.
            let _ = self.command(Command::DrainWq, operand)?;
            let _ = self.command(Command::ResetWq, operand)?;
            let hardware = self.part.hardware.clone();
            self.queues[wq].clear(&hardware);
        }
        let queue = &mut self.queues[wq];
        queue.kind = WorkQueueType::None;
        queue.clients.clear();
        queue.bound = None;
        Ok(())
    }
}
