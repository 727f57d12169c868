//! Configuration, control and status of the whole device.

use bitfield_struct::bitfield;

/// GENCFG: writable while the device is disabled (spec 9.2.8).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct GenCfg {
    /// Read buffers for all groups that use the global limit together.
    pub global_read_buffer_limit: u8,
    #[bits(4)]
    __: u8,
    /// Descriptors that are not privileged may ask for interrupts.
    pub user_interrupt_enable: bool,
    /// Errors go to the event log.
    pub event_log_enable: bool,
    #[bits(18)]
    __: u32,
}

/// GENCTRL: what interrupts through entry 0 of the MSI-X table (spec 9.2.9).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct GenCtrl {
    /// SWERROR becomes valid.
    pub software_error_interrupt: bool,
    /// The device halts.
    pub halt_interrupt: bool,
    /// Something is written to the event log.
    pub event_log_interrupt: bool,
    #[bits(29)]
    __: u32,
}

/// GENSTS (spec 9.2.10).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct GenSts {
    /// State of the device.
    #[bits(2)]
    pub state: DeviceState,
    /// What brings a halted device back.
    #[bits(2)]
    pub reset_type: ResetType,
    #[bits(28)]
    __: u32,
}

/// State of the device.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DeviceState {
    /// No work is done; the configuration can be written.
    #[default]
    Disabled = 0,
    /// Work queues can be enabled.
    Enabled = 1,
    /// A disable or a reset waits for work.
    Draining = 2,
    /// Halted (spec 5.7).
    Halted = 3,
}

impl DeviceState {
    const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Disabled,
            1 => Self::Enabled,
            2 => Self::Draining,
            _ => Self::Halted,
        }
    }

    const fn into_bits(self) -> u8 {
        self as u8
    }
}

/// The least reset that a halted device needs; a stronger one does as well.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ResetType {
    /// The Reset Device command.
    #[default]
    Command = 0,
    /// Function level reset.
    FunctionLevel = 1,
    /// Warm reset of the machine.
    Warm = 2,
    /// Cold reset of the machine.
    Cold = 3,
}

impl ResetType {
    const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Command,
            1 => Self::FunctionLevel,
            2 => Self::Warm,
            _ => Self::Cold,
        }
    }

    const fn into_bits(self) -> u8 {
        self as u8
    }
}

/// INTCAUSE: why entry 0 of the MSI-X table was used; write 1 to clear (spec 9.2.11).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct IntCause {
    /// SWERROR became valid.
    pub software_error: bool,
    /// A command ended.
    pub command: bool,
    /// A work queue's occupancy is at its limit or below.
    pub occupancy: bool,
    /// A performance counter overflowed.
    pub perfmon_overflow: bool,
    /// The device halted.
    pub halt: bool,
    /// The event log has an entry.
    pub event_log: bool,
    #[bits(25)]
    __: u32,
    /// Interrupt handles were revoked.
    pub handles_revoked: bool,
}
