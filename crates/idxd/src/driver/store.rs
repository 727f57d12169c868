//! What writing an attribute does: the refusals of its table in their order, then the change.

use super::attribute::{Attribute, Field, Format, When};
use super::state::{Device, EVENT_LOG_ENTRIES, MAX_RETRIES, WorkQueueType};
use super::{CommandStatus, Errno, Options, Registers, parse};

/// Longest `name` and `driver_name`, newline included (`WQ_NAME_SIZE`, `DRIVER_NAME_SIZE`).
const NAME_BYTES: usize = 1024;
const DRIVER_NAME_BYTES: usize = 128;
/// `IDXD_MAX_PRIORITY`.
const MAX_PRIORITY: u64 = 15;

/// What was written, read as its format.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Number(u64),
    Signed(i64),
    Switch(bool),
    Word(&'static str),
    Text(Vec<u8>),
    Bitmap([u64; 4]),
    Nothing,
}

/// Which group, engine or work queue of the device; 0 for the device itself.
pub(super) struct AttributeOwner<'a, R> {
    pub(super) device: &'a mut Device<R>,
    pub(super) index: usize,
    pub(super) options: &'a Options,
}

/// A refused write: the error, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) errno: Errno,
    pub(super) when: Option<When>,
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Refused {
        Refused { errno, when: None }
    }
}

/// Writes an attribute.
pub(super) fn write<R: Registers>(
    attribute: &Attribute,
    owner: &mut AttributeOwner<'_, R>,
    bytes: &[u8],
) -> Result<(), Refused> {
    if !attribute.writable {
        return Err(Errno::EACCES.into());
    }
    let value = parse_as(attribute.format, bytes);
    for refusal in attribute.refusals {
        let when = Some(refusal.when);
        match (refusal.when, &value) {
            (When::Malformed, Err(_)) => {
                let errno = refusal.errno;
                return Err(Refused { errno, when });
            }
            (When::Unparsable, Err(errno)) => {
                let errno = *errno;
                return Err(Refused { errno, when });
            }
            (case, value) => {
                if owner.applies(case, attribute.field, value.as_ref().ok(), bytes) {
                    let errno = refusal.errno;
                    return Err(Refused { errno, when });
                }
            }
        }
    }
    owner.apply(attribute.field, value.map_err(Refused::from)?);
    Ok(())
}

fn parse_as(format: Format, bytes: &[u8]) -> Result<Value, Errno> {
    Ok(match format {
        Format::Ignored => Value::Nothing,
        Format::Unsigned => Value::Number(parse::unsigned(bytes, false)?),
        Format::AnyBase => Value::Number(parse::unsigned(bytes, true)?),
        Format::Signed => Value::Signed(parse::signed(bytes)?),
        Format::Switch => Value::Switch(parse::boolean(bytes)?),
        Format::Word(words) => {
            let line = parse::line(bytes);
            let word = words.iter().find(|word| word.as_bytes() == line);
            Value::Word(word.ok_or(Errno::EINVAL)?)
        }
        Format::Text => Value::Text(parse::trimmed(bytes).to_vec()),
        Format::Bitmap => Value::Bitmap(parse::bitmap(bytes)?),
    })
}

impl<R: Registers> AttributeOwner<'_, R> {
    fn applies(&self, case: When, field: Field, value: Option<&Value>, bytes: &[u8]) -> bool {
        let device = &*self.device;
        let hardware = &device.part.hardware;
        let queue = device.queues.get(self.index);
        let queue_is = |test: fn(&super::state::Queue) -> bool| queue.is_some_and(test);
        match case {
            When::Malformed | When::Unparsable => false,
            When::OutOfRange => value.is_some_and(|value| !self.takes(field, value, bytes)),
            When::Fixed => !device.configurable(),
            When::DeviceEnabled => device.enabled,
            When::QueueEnabled => queue_is(|queue| queue.enabled),
            When::Dedicated => queue_is(|queue| queue.dedicated),
            When::NoGlobalLimit => !hardware.group_cap.global_read_buffer_limit(),
            When::LimitIsZero => device.read_buffer_limit == 0,
            When::FixedTrafficClasses => device.fixed_classes(),
            When::NoAtsDisable => !hardware.wq_cap.ats_disable(),
            When::NoBlockOnFault => !hardware.gen_cap.block_on_fault(),
            When::WithoutPageRequests => {
                value == Some(&Value::Switch(true)) && queue_is(|queue| queue.prs_disable)
            }
            When::KernelType => {
                queue_is(|queue| queue.kind == WorkQueueType::Kernel)
                    && device.part.pasid_enabled
                    && self.options.personality.refuses_kernel_names()
            }
        }
    }

    /// Whether a value is in the range of its field.
    fn takes(&self, field: Field, value: &Value, bytes: &[u8]) -> bool {
        let device = &*self.device;
        let hardware = &device.part.hardware;
        let total = u64::from(hardware.group_cap.read_buffers());
        match (field, value) {
            (Field::ReadBufferLimit, &Value::Number(value)) => value <= total,
            (Field::EventLogSize, Value::Number(value)) => EVENT_LOG_ENTRIES.contains(value),
            (Field::ReadBuffersReserved, &Value::Number(value)) => {
                let own = device.groups.get(self.index).map_or(0, |g| g.reserved);
                value <= total && value <= u64::from(device.free_buffers) + u64::from(own)
            }
            (Field::ReadBuffersAllowed, &Value::Number(value)) => {
                let own = device.groups.get(self.index).map_or(0, |g| g.reserved);
                let engines = device.engines_of(self.index as u16) as u64;
                value >= 4 * engines && value <= u64::from(own) + u64::from(device.free_buffers)
            }
            (Field::TrafficClassA | Field::TrafficClassB, Value::Signed(value)) => {
                (0..=7).contains(value)
            }
            (Field::DescProgressLimit | Field::BatchProgressLimit, Value::Signed(value)) => {
                (0..=3).contains(value)
            }
            (Field::EngineGroupId | Field::GroupId, &Value::Signed(value)) => {
                value >= -1 && value < device.groups.len() as i64
            }
            (Field::Size, &Value::Number(value)) => {
                let others = device.queues.iter().enumerate();
                let others = others.filter(|(index, _)| *index != self.index);
                let claimed: u64 = others.map(|(_, queue)| u64::from(queue.size)).sum();
                let sum = claimed.checked_add(value);
                sum.is_some_and(|sum| sum <= hardware.wq_cap.total_entries().into())
            }
            (Field::Priority, &Value::Number(value)) => value <= MAX_PRIORITY,
            (Field::Threshold, &Value::Number(value)) => {
                let size = device.queues.get(self.index).map_or(0, |queue| queue.size);
                (1..=u64::from(size)).contains(&value)
            }
            (Field::MaxTransferSize, &Value::Number(value)) => {
                rounds_to(value, hardware.gen_cap.max_transfer_shift())
            }
            (Field::MaxBatchSize, &Value::Number(value)) => {
                rounds_to(value, hardware.gen_cap.max_batch_shift())
            }
            (Field::OpConfig, Value::Bitmap(bits)) => {
                let able = hardware.capabilities.op_cap;
                bits.iter().zip(able).all(|(want, able)| want & !able == 0)
            }
            // The length counts what was written, newline and blanks included (`strlen`).
            (Field::Name, Value::Text(_)) => (1..=NAME_BYTES).contains(&length(bytes)),
            (Field::DriverName, Value::Text(_)) => (1..=DRIVER_NAME_BYTES).contains(&length(bytes)),
            _ => true,
        }
    }

    fn apply(&mut self, field: Field, value: Value) {
        let device = &mut *self.device;
        match (field, &value) {
            (Field::CmdStatus, _) => device.status = CommandStatus::default(),
            (Field::ReadBufferLimit, &Value::Number(n)) => device.read_buffer_limit = n as u32,
            (Field::EventLogSize, &Value::Number(n)) => device.event_log_size = n as u32,
            (Field::EngineGroupId, &Value::Signed(id)) => {
                if let Some(home) = device.engines.get_mut(self.index) {
                    *home = u16::try_from(id).ok();
                }
            }
            _ => self.apply_below(field, value),
        }
    }

    fn apply_below(&mut self, field: Field, value: Value) {
        let device = &mut *self.device;
        if let Some(group) = device.groups.get_mut(self.index) {
            match (field, &value) {
                (Field::UseReadBufferLimit, &Value::Number(n)) => group.use_limit = n != 0,
                (Field::ReadBuffersAllowed, &Value::Number(n)) => group.allowed = n as u32,
                (Field::ReadBuffersReserved, &Value::Number(n)) => {
                    group.reserved = n as u32;
                    device.count_free_buffers();
                    return;
                }
                (Field::TrafficClassA, &Value::Signed(n)) => group.traffic_classes[0] = n as i8,
                (Field::TrafficClassB, &Value::Signed(n)) => group.traffic_classes[1] = n as i8,
                (Field::DescProgressLimit, &Value::Signed(n)) => group.work_limit = n as u8,
                (Field::BatchProgressLimit, &Value::Signed(n)) => group.batch_limit = n as u8,
                _ => {}
            }
        }
        let Some(queue) = device.queues.get_mut(self.index) else {
            return;
        };
        match (field, value) {
            (Field::GroupId, Value::Signed(id)) => queue.group = u16::try_from(id).ok(),
            (Field::Mode, Value::Word(mode)) => {
                queue.dedicated = mode == "dedicated";
                if queue.dedicated {
                    queue.threshold = 0;
                }
            }
            (Field::Size, Value::Number(n)) => queue.size = n as u32,
            (Field::Priority, Value::Number(n)) => queue.priority = n as u8,
            (Field::BlockOnFault, Value::Switch(on)) => queue.block_on_fault = on,
            (Field::Threshold, Value::Number(n)) => queue.threshold = n as u32,
            (Field::Type, Value::Word(word)) => {
                let kinds = WorkQueueType::NAMES.iter().find(|(name, _)| *name == word);
                let kind = kinds.map_or(WorkQueueType::None, |&(_, kind)| kind);
                if kind != queue.kind {
                    queue.name.clear();
                }
                queue.kind = kind;
            }
            (Field::Name, Value::Text(text)) => queue.name = text,
            (Field::DriverName, Value::Text(text)) => queue.driver_name = text,
            (Field::MaxTransferSize, Value::Number(n)) => {
                queue.max_transfer = n.next_power_of_two();
            }
            (Field::MaxBatchSize, Value::Number(n)) => {
                queue.max_batch = n.next_power_of_two() as u32;
            }
            (Field::AtsDisable, Value::Switch(on)) => queue.ats_disable = on,
            (Field::PrsDisable, Value::Switch(on)) => {
                queue.prs_disable = on;
                // Blocking on a fault needs page requests.
                queue.block_on_fault &= !on;
            }
            (Field::EnqcmdsRetries, Value::Number(n)) => {
                queue.retries = n.min(MAX_RETRIES.into()) as u32;
            }
            (Field::OpConfig, Value::Bitmap(bits)) => queue.operations = bits,
            _ => {}
        }
    }
}

/// Whether a limit is not 0 and, rounded up to a power of two, at most 2 to the power of `shift`.
fn rounds_to(value: u64, shift: u8) -> bool {
    let rounded = value.checked_next_power_of_two();
    value != 0 && rounded.is_some_and(|value| value <= 1 << shift)
}

fn length(bytes: &[u8]) -> usize {
    bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len())
}
