//! `cmd_status`: why the last command failed.

use std::fmt;

use dray_spec::registers::CommandError;

/// What the attribute `cmd_status` holds: 0, an error of the device (CMDSTATUS, spec 9.2.13), or one
/// of the driver (`enum idxd_scmd_stat` of `linux/idxd.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CommandStatus(pub u32);

/// Declares constants, names and descriptions from one table.
macro_rules! statuses {
    ($($code:literal $name:ident $text:literal,)*) => {
        impl CommandStatus {
            $(#[doc = concat!("`IDXD_SCMD_", stringify!($name), "`: ", $text, ".")]
            pub const $name: CommandStatus = CommandStatus($code);)*

            /// Every code of the driver.
            pub const DRIVER: &[CommandStatus] = &[$(CommandStatus::$name,)*];

            /// What a code means, in one sentence without a full stop.
            pub const fn describe(self) -> &'static str {
                match self.0 {
                    0 => "no error",
                    $($code => $text,)*
                    code if code & 0x8000_0000 != 0 => "an error that newer kernels have",
                    code => CommandError(code as u8).describe(),
                }
            }
        }
    };
}

statuses! {
    0x8000_0010 DEV_ENABLED "the device is not disabled",
    0x8000_0020 DEV_NOT_ENABLED "the device is not enabled",
    0x8000_0021 WQ_ENABLED "the work queue is enabled",
    0x8002_0000 DEV_DMA_ERR "the DMA device cannot be registered",
    0x8003_0000 WQ_NO_GRP "the work queue is in no group",
    0x8004_0000 WQ_NO_NAME "the work queue has no name",
    0x8005_0000 WQ_NO_SVM "a shared work queue needs shared virtual addressing",
    0x8006_0000 WQ_NO_THRESH "the shared work queue has threshold 0",
    0x8007_0000 WQ_PORTAL_ERR "the portal cannot be mapped",
    0x8008_0000 WQ_RES_ALLOC_ERR "no memory for the work queue",
    0x8009_0000 PERCPU_ERR "no memory for the counter of users",
    0x800a_0000 DMA_CHAN_ERR "the DMA channel cannot be registered",
    0x800b_0000 CDEV_ERR "the character device cannot be made",
    0x800c_0000 WQ_NO_SWQ_SUPPORT "a shared work queue is configured, and there is no support for it",
    0x800d_0000 WQ_NONE_CONFIGURED "no work queue is in a group",
    0x800e_0000 WQ_NO_SIZE "a work queue in a group has size 0",
    0x800f_0000 WQ_NO_PRIV "a dedicated work queue of the kernel needs PCI's privileged mode",
    0x8010_0000 WQ_IRQ_ERR "no interrupt for the work queue",
    0x8011_0000 WQ_USER_NO_IOMMU "a work queue of type user needs shared virtual addressing",
    0x8012_0000 DEV_EVL_ERR "the event log cannot be set up",
    0x8020_0000 WQ_NO_DRV_NAME "driver_name of the work queue is not the driver's",
}

impl From<CommandError> for CommandStatus {
    fn from(error: CommandError) -> CommandStatus {
        CommandStatus(error.0.into())
    }
}

impl fmt::Display for CommandStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (cmd_status {:#x})", self.describe(), self.0)
    }
}
