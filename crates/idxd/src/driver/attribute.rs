//! An attribute as data: its name, what it holds, and what the driver refuses.

use super::Errno;

/// Which attribute. Deprecated names are other attributes of the same field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is named as its attribute in sysfs")]
pub enum Field {
    Version,
    MaxGroups,
    MaxWorkQueues,
    MaxWorkQueuesSize,
    MaxEngines,
    NumaNode,
    DeviceMaxBatchSize,
    DeviceMaxTransferSize,
    OpCap,
    GenCap,
    Configurable,
    DeviceClients,
    PasidEnabled,
    DeviceState,
    Errors,
    MaxReadBuffers,
    ReadBufferLimit,
    CdevMajor,
    CmdStatus,
    EventLogSize,
    WorkQueues,
    Engines,
    UseReadBufferLimit,
    ReadBuffersAllowed,
    ReadBuffersReserved,
    TrafficClassA,
    TrafficClassB,
    DescProgressLimit,
    BatchProgressLimit,
    EngineGroupId,
    Clients,
    State,
    GroupId,
    Mode,
    Size,
    Priority,
    BlockOnFault,
    Threshold,
    Type,
    Name,
    CdevMinor,
    MaxTransferSize,
    MaxBatchSize,
    AtsDisable,
    PrsDisable,
    Occupancy,
    EnqcmdsRetries,
    OpConfig,
    DriverName,
}

/// How the driver reads what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// It is not read: read-only attributes, and `cmd_status`, which any write clears.
    Ignored,
    /// A decimal number from 0.
    Unsigned,
    /// A number from 0; `0x` and a leading 0 say the base.
    AnyBase,
    /// A decimal number.
    Signed,
    /// 0 or 1, y or n, on or off.
    Switch,
    /// One of some words.
    Word(&'static [&'static str]),
    /// Text; blanks at its ends do not count.
    Text,
    /// 256 bits in words of 8 hexadecimal digits, separated by commas, the highest first.
    Bitmap,
}

/// A case in which a write fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The text is not of the attribute's format.
    Malformed,
    /// As [`When::Malformed`], with the error of the kernel's parser (`kstrtobool`, `bitmap_parse`).
    Unparsable,
    /// The value is below or above what the attribute takes.
    OutOfRange,
    /// The device is not configurable (GENCAP bit 31).
    Fixed,
    /// The device is enabled.
    DeviceEnabled,
    /// The work queue is enabled.
    QueueEnabled,
    /// The work queue is dedicated.
    Dedicated,
    /// The device has no global read buffer limit (GRPCAP bit 17).
    NoGlobalLimit,
    /// `read_buffer_limit` of the device is 0.
    LimitIsZero,
    /// Traffic classes of this version are the driver's (`tc_override` is off).
    FixedTrafficClasses,
    /// The device cannot block on faults (GENCAP bit 0).
    NoBlockOnFault,
    /// The device cannot do without address translation services for a queue (WQCAP).
    NoAtsDisable,
    /// `prs_disable` is 1, and 1 is written.
    WithoutPageRequests,
    /// The type is kernel, and the driver has no PASID for kernel queues.
    KernelType,
}

impl When {
    /// The case in words, for a message.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Malformed | Self::Unparsable => "the value cannot be read",
            Self::OutOfRange => "the value is out of range",
            Self::Fixed => "the device is not configurable",
            Self::DeviceEnabled => "the device is enabled",
            Self::QueueEnabled => "the work queue is enabled",
            Self::Dedicated => "the work queue is dedicated",
            Self::NoGlobalLimit => "the device has no global read buffer limit",
            Self::LimitIsZero => "read_buffer_limit of the device is 0",
            Self::FixedTrafficClasses => {
                "traffic classes of this version are the driver's (idxd.tc_override)"
            }
            Self::NoBlockOnFault => "the device cannot block on faults",
            Self::NoAtsDisable => "the device has no switch for translation services of a queue",
            Self::WithoutPageRequests => "prs_disable is 1",
            Self::KernelType => "a work queue of type kernel cannot be named where PASIDs are on",
        }
    }
}

/// A case and its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The case.
    pub when: When,
    /// What write(2) returns.
    pub errno: Errno,
}

/// What must be there for the attribute to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// It is always there.
    Nothing,
    /// GENCAP's event log, and a kernel that has it.
    EventLog,
    /// WQCAP's operation configuration, and a kernel that has it.
    OperationConfig,
    /// WQCAP's PRS disable, and a kernel that has it.
    PrsDisable,
    /// WQCAP's ATS disable; before 6.2 the attribute is there without.
    AtsDisable,
    /// GRPCAP's limits of work in progress, and a kernel that has them.
    ProgressLimits,
    /// Kernel 6.7.
    DriverName,
}

/// An attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute {
    /// Name in sysfs.
    pub name: &'static str,
    /// What it holds.
    pub field: Field,
    /// How it is written.
    pub format: Format,
    /// When it is there.
    pub needs: Needs,
    /// Whether it can be written (mode 0644; else 0444).
    pub writable: bool,
    /// What the driver refuses, in the order in which it looks.
    pub refusals: &'static [Refusal],
}

pub(super) const fn read_only(name: &'static str, field: Field) -> Attribute {
    Attribute {
        name,
        field,
        format: Format::Ignored,
        needs: Needs::Nothing,
        writable: false,
        refusals: &[],
    }
}

pub(super) const fn writable(
    name: &'static str,
    field: Field,
    format: Format,
    refusals: &'static [Refusal],
) -> Attribute {
    Attribute {
        format,
        writable: true,
        refusals,
        ..read_only(name, field)
    }
}

impl Attribute {
    pub(super) const fn with(self, needs: Needs) -> Attribute {
        Attribute { needs, ..self }
    }

    /// Permission bits in sysfs; the owner is root.
    pub const fn mode(&self) -> u32 {
        if self.writable { 0o644 } else { 0o444 }
    }
}
