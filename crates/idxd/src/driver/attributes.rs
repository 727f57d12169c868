//! Every attribute of devices, groups, engines and work queues (`drivers/dma/idxd/sysfs.c`).

use super::attribute::{
    Attribute, Field, Format, Needs, Refusal, When, read_only as r, writable as w,
};
use super::{Errno, WorkQueueType};
use When::{
    Dedicated, DeviceEnabled, Fixed, FixedTrafficClasses, KernelType, LimitIsZero, Malformed,
    NoAtsDisable, NoBlockOnFault, NoGlobalLimit, OutOfRange, QueueEnabled, Unparsable,
    WithoutPageRequests,
};

const fn no(when: When, errno: Errno) -> Refusal {
    Refusal { when, errno }
}

const EPERM: Errno = Errno::EPERM;
const EINVAL: Errno = Errno::EINVAL;
const ENXIO: Errno = Errno::ENXIO;
const EOPNOTSUPP: Errno = Errno::EOPNOTSUPP;

/// Attributes of a work queue that can be written while it is disabled.
const fn kinds() -> &'static [&'static str] {
    &[
        WorkQueueType::NAMES[0].0,
        WorkQueueType::NAMES[1].0,
        WorkQueueType::NAMES[2].0,
    ]
}

const LIMIT: &[Refusal] = &[
    no(Malformed, EINVAL),
    no(DeviceEnabled, EPERM),
    no(Fixed, EPERM),
    no(NoGlobalLimit, EPERM),
    no(OutOfRange, EINVAL),
];

/// Attributes of a device, in the order of the driver's table.
pub const DEVICE: &[Attribute] = &[
    r("version", Field::Version),
    r("max_groups", Field::MaxGroups),
    r("max_work_queues", Field::MaxWorkQueues),
    r("max_work_queues_size", Field::MaxWorkQueuesSize),
    r("max_engines", Field::MaxEngines),
    r("numa_node", Field::NumaNode),
    r("max_batch_size", Field::DeviceMaxBatchSize),
    r("max_transfer_size", Field::DeviceMaxTransferSize),
    r("op_cap", Field::OpCap),
    r("gen_cap", Field::GenCap),
    r("configurable", Field::Configurable),
    r("clients", Field::DeviceClients),
    r("pasid_enabled", Field::PasidEnabled),
    r("state", Field::DeviceState),
    r("errors", Field::Errors),
    r("max_tokens", Field::MaxReadBuffers),
    r("max_read_buffers", Field::MaxReadBuffers),
    w(
        "token_limit",
        Field::ReadBufferLimit,
        Format::Unsigned,
        LIMIT,
    ),
    w(
        "read_buffer_limit",
        Field::ReadBufferLimit,
        Format::Unsigned,
        LIMIT,
    ),
    r("cdev_major", Field::CdevMajor),
    w("cmd_status", Field::CmdStatus, Format::Ignored, &[]),
    w(
        "event_log_size",
        Field::EventLogSize,
        Format::Unsigned,
        &[
            no(Malformed, EINVAL),
            no(DeviceEnabled, EPERM),
            no(Fixed, EPERM),
            no(OutOfRange, EINVAL),
        ],
    )
    .with(Needs::EventLog),
];

const BUFFERS: &[Refusal] = &[
    no(Malformed, EINVAL),
    no(Fixed, EPERM),
    no(DeviceEnabled, EPERM),
    no(OutOfRange, EINVAL),
];
const USE_LIMIT: &[Refusal] = &[
    no(Malformed, EINVAL),
    no(Fixed, EPERM),
    no(DeviceEnabled, EPERM),
    no(LimitIsZero, EPERM),
];
const CLASS: &[Refusal] = &[
    no(Malformed, EINVAL),
    no(Fixed, EPERM),
    no(DeviceEnabled, EPERM),
    no(FixedTrafficClasses, EPERM),
    no(OutOfRange, EINVAL),
];
/// These can be written while the device is enabled, and then do nothing until it is anew.
const PROGRESS: &[Refusal] = &[no(Malformed, EINVAL), no(OutOfRange, EINVAL)];

/// Attributes of a group.
pub const GROUP: &[Attribute] = &[
    r("work_queues", Field::WorkQueues),
    r("engines", Field::Engines),
    w(
        "use_token_limit",
        Field::UseReadBufferLimit,
        Format::Unsigned,
        USE_LIMIT,
    ),
    w(
        "use_read_buffer_limit",
        Field::UseReadBufferLimit,
        Format::Unsigned,
        USE_LIMIT,
    ),
    w(
        "tokens_allowed",
        Field::ReadBuffersAllowed,
        Format::Unsigned,
        BUFFERS,
    ),
    w(
        "read_buffers_allowed",
        Field::ReadBuffersAllowed,
        Format::Unsigned,
        BUFFERS,
    ),
    w(
        "tokens_reserved",
        Field::ReadBuffersReserved,
        Format::Unsigned,
        BUFFERS,
    ),
    w(
        "read_buffers_reserved",
        Field::ReadBuffersReserved,
        Format::Unsigned,
        BUFFERS,
    ),
    w(
        "traffic_class_a",
        Field::TrafficClassA,
        Format::Signed,
        CLASS,
    ),
    w(
        "traffic_class_b",
        Field::TrafficClassB,
        Format::Signed,
        CLASS,
    ),
    w(
        "desc_progress_limit",
        Field::DescProgressLimit,
        Format::Signed,
        PROGRESS,
    )
    .with(Needs::ProgressLimits),
    w(
        "batch_progress_limit",
        Field::BatchProgressLimit,
        Format::Signed,
        PROGRESS,
    )
    .with(Needs::ProgressLimits),
];

/// The attribute of an engine. The driver does not look whether the device is enabled.
pub const ENGINE: &[Attribute] = &[w(
    "group_id",
    Field::EngineGroupId,
    Format::Signed,
    &[
        no(Malformed, EINVAL),
        no(Fixed, EPERM),
        no(OutOfRange, EINVAL),
    ],
)];

/// Where the driver reads the value only after it has looked at the states.
const LATE: &[Refusal] = &[
    no(Fixed, EPERM),
    no(QueueEnabled, EPERM),
    no(Malformed, EINVAL),
    no(OutOfRange, EINVAL),
];
const EARLY: &[Refusal] = &[
    no(Malformed, EINVAL),
    no(Fixed, EPERM),
    no(QueueEnabled, EPERM),
    no(OutOfRange, EINVAL),
];

/// Attributes of a work queue.
pub const WORK_QUEUE: &[Attribute] = &[
    r("clients", Field::Clients),
    r("state", Field::State),
    w("group_id", Field::GroupId, Format::Signed, EARLY),
    w(
        "mode",
        Field::Mode,
        Format::Word(&["dedicated", "shared"]),
        LATE,
    ),
    w(
        "size",
        Field::Size,
        Format::Unsigned,
        &[
            no(Malformed, EINVAL),
            no(Fixed, EPERM),
            no(DeviceEnabled, EPERM),
            no(OutOfRange, EINVAL),
        ],
    ),
    w("priority", Field::Priority, Format::Unsigned, EARLY),
    w(
        "block_on_fault",
        Field::BlockOnFault,
        Format::Switch,
        &[
            no(NoBlockOnFault, EOPNOTSUPP),
            no(Fixed, EPERM),
            no(QueueEnabled, ENXIO),
            no(Unparsable, EINVAL),
            no(WithoutPageRequests, EOPNOTSUPP),
        ],
    ),
    w(
        "threshold",
        Field::Threshold,
        Format::AnyBase,
        &[
            no(Malformed, EINVAL),
            no(OutOfRange, EINVAL),
            no(Fixed, EPERM),
            no(QueueEnabled, ENXIO),
            no(Dedicated, EINVAL),
        ],
    ),
    w(
        "type",
        Field::Type,
        Format::Word(kinds()),
        &[no(QueueEnabled, EPERM), no(Malformed, EINVAL)],
    ),
    w(
        "name",
        Field::Name,
        Format::Text,
        &[
            no(QueueEnabled, EPERM),
            no(OutOfRange, EINVAL),
            no(KernelType, EOPNOTSUPP),
        ],
    ),
    r("cdev_minor", Field::CdevMinor),
    w(
        "max_transfer_size",
        Field::MaxTransferSize,
        Format::AnyBase,
        LATE,
    ),
    w("max_batch_size", Field::MaxBatchSize, Format::AnyBase, LATE),
    w(
        "ats_disable",
        Field::AtsDisable,
        Format::Switch,
        &[
            no(QueueEnabled, EPERM),
            no(NoAtsDisable, EOPNOTSUPP),
            no(Fixed, EPERM),
            no(Unparsable, EINVAL),
        ],
    )
    .with(Needs::AtsDisable),
    w(
        "prs_disable",
        Field::PrsDisable,
        Format::Switch,
        &[no(QueueEnabled, EPERM), no(Unparsable, EINVAL)],
    )
    .with(Needs::PrsDisable),
    r("occupancy", Field::Occupancy),
    w(
        "enqcmds_retries",
        Field::EnqcmdsRetries,
        Format::Unsigned,
        &[no(Dedicated, EOPNOTSUPP), no(Unparsable, EINVAL)],
    ),
    w(
        "op_config",
        Field::OpConfig,
        Format::Bitmap,
        &[
            no(QueueEnabled, EPERM),
            no(Unparsable, EINVAL),
            no(OutOfRange, EINVAL),
        ],
    )
    .with(Needs::OperationConfig),
    w(
        "driver_name",
        Field::DriverName,
        Format::Text,
        &[no(QueueEnabled, EPERM), no(OutOfRange, EINVAL)],
    )
    .with(Needs::DriverName),
];
