//! Administrative commands.

use core::fmt;

use bitfield_struct::bitfield;

/// CMD: write only (spec 9.2.12).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct CommandRegister {
    /// Meaning depends on the command.
    #[bits(20)]
    pub operand: u32,
    /// See [`Command`].
    #[bits(5)]
    pub code: u8,
    #[bits(6)]
    pub reserved: u8,
    /// Interrupt through entry 0 of the MSI-X table when the command has ended.
    pub request_interrupt: bool,
}

impl CommandRegister {
    /// The register value that issues `command`, without an interrupt.
    pub const fn of(command: Command, operand: u32) -> Self {
        Self::new()
            .with_code(command as u8)
            .with_operand(operand & 0xf_ffff)
    }

    /// Operand of a command for several queues: `mask` of queues `16 * bank` and following.
    pub const fn queues(bank: u8, mask: u16) -> u32 {
        ((bank as u32 & 0xf) << 16) | mask as u32
    }

    /// Operand of a command for one queue, where [`CommandRegister::queues`] is what it takes.
    pub const fn queue(wq: u8) -> u32 {
        Self::queues(wq / 16, 1 << (wq % 16))
    }
}

/// CMDSTATUS (spec 9.2.13).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct CommandStatus {
    /// See [`CommandError`]; 0 is success.
    pub error: u8,
    /// A handle, after a command that asks for one.
    pub result: u16,
    #[bits(7)]
    __: u8,
    /// A command is in progress.
    pub active: bool,
}

/// Declares codes and their names from one table.
macro_rules! commands {
    ($($code:literal $name:ident $description:literal,)*) => {
        /// Command codes (spec Table 9-5).
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Command {
            $(#[doc = $description] $name = $code,)*
        }

        impl Command {
            /// All commands, in the order of their codes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The command with this code, if there is one.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

commands! {
    1 EnableDevice "Check the configuration and enable the device.",
    2 DisableDevice "Wait for all descriptors, disable all queues and the device.",
    3 DrainAll "Wait for all descriptors.",
    4 AbortAll "Abandon all descriptors, or wait for them.",
    5 ResetDevice "Abort, disable and clear the configuration.",
    6 EnableWq "Check the configuration of a queue and enable it.",
    7 DisableWq "Wait for the descriptors of queues and disable these.",
    8 DrainWq "Wait for the descriptors of queues.",
    9 AbortWq "Abandon the descriptors of queues, or wait for them.",
    10 ResetWq "Abort and disable queues and clear their configuration.",
    11 DrainPasid "Wait for the descriptors of a PASID.",
    12 AbortPasid "Abandon the descriptors of a PASID, or wait for them.",
    13 RequestInterruptHandle "A handle for an entry of an interrupt table.",
    14 ReleaseInterruptHandle "Give such a handle back.",
    15 RequestIdptHandle "A handle for an entry of the inter-domain permissions table.",
    16 ReleaseIdptHandle "Give such a handle back.",
    17 InvalidateBitmapCache "Forget cached parts of a submitter bitmap.",
}

impl Command {
    /// The bit of the command in CMDCAP.
    pub const fn bit(self) -> u64 {
        1 << self as u8
    }

    /// Commands of a device without CMDCAP (spec Table 9-6).
    pub const DEFAULT: u64 = 0x1ffe;
}

/// An error code of CMDSTATUS (spec 9.2.13, Table 5-8).
///
/// The kernel's names are those of `enum idxd_cmdsts_err`.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct CommandError(pub u8);

/// Declares constants and descriptions from one table.
macro_rules! errors {
    ($($code:literal $constant:ident $description:literal,)*) => {
        impl CommandError {
            $(#[doc = concat!("Code ", stringify!($code), ": ", $description, ".")]
            pub const $constant: Self = Self($code);)*

            /// Every code that the architecture defines.
            pub const ALL: &[Self] = &[$(Self::$constant,)*];

            /// What the code means, in one sentence without a full stop.
            pub const fn describe(self) -> &'static str {
                match self.0 {
                    $($code => $description,)*
                    _ => "the architecture defines no such error",
                }
            }
        }
    };
}

errors! {
    0x01 UNSUPPORTED_COMMAND "undefined or unsupported command code",
    0x02 WQ_INDEX "work queue index beyond the number of work queues",
    0x03 HARDWARE "error of the platform or within the hardware",
    0x04 NONZERO_RESERVED "a reserved field of the command is not zero",
    0x05 HALTED "the device is halted",
    0x10 DEVICE_NOT_DISABLED "the device is not disabled",
    0x11 DEVICE_CONFIGURATION "the device's configuration is in error",
    0x12 BUS_MASTER "bus mastering is off",
    0x13 PAGE_REQUEST_ALLOCATION "the page request allocation is 0 or above the capacity",
    0x14 WQ_SIZES "the sizes of the work queues add up to more than there is",
    0x15 GROUP "a group has work queues without engines or engines without work queues",
    0x16 GROUP_WQS
        "a work queue with entries is not in exactly one group, or one without entries is in a group",
    0x17 GROUP_ENGINES "an engine is in two groups or does not exist",
    0x18 READ_BUFFERS "the read buffers or the bandwidth limits are not valid",
    0x19 EVENT_LOG "the event log is not supported, too small or beyond the address space",
    0x1a ADDRESS_TRANSLATION "the address translation service is not as the platform needs it",
    0x1b PASID "PASID or privilege of the event log or the bitmaps, where PCI has them off",
    0x20 DEVICE_NOT_ENABLED "the device is not enabled",
    0x21 WQ_NOT_DISABLED "the work queue is not disabled",
    0x22 WQ_SIZE "the work queue has no entries",
    0x23 WQ_PRIORITY "the work queue has priority 0",
    0x24 WQ_MODE "the mode of the work queue is not supported",
    0x25 WQ_BLOCK_ON_FAULT "block on fault, without support or without the page request service",
    0x26 WQ_PASID_ENABLE "PASID enable is wrong for the mode or for PCI's PASID enable",
    0x27 WQ_MAX_BATCH "the largest batch is 0 or above what the device supports",
    0x28 WQ_MAX_TRANSFER "the largest transfer is above what the device supports",
    0x2a WQ_PRIVILEGE "a privileged work queue where privileged mode is off",
    0x2b WQ_OCCUPANCY_INTERRUPT "the occupancy interrupt's table or handle is not valid",
    0x2c WQ_ATS_DISABLE "ATS disable is not supported",
    0x2d WQ_OPERATIONS "operations that the device does not support",
    0x2e WQ_PRS_DISABLE
        "PRS disable, without support, without event log or together with block on fault",
    0x31 DISABLE_NOT_ENABLED "the device to disable is not enabled",
    0x32 WQ_NOT_ENABLED "a work queue is not enabled",
    0x41 INTERRUPT_INDEX "no such entry in the interrupt table",
    0x42 NO_INTERRUPT_HANDLE "no interrupt handle is left",
    0x51 IDPT_INDEX "no such entry in the inter-domain permissions table",
    0x52 NO_IDPT_HANDLE "no handle of the inter-domain permissions table is left",
}

impl fmt::Debug for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandError({:#04x}: {})", self.0, self.describe())
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (command error {:#04x})", self.describe(), self.0)
    }
}

impl core::error::Error for CommandError {}
