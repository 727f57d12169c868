//! Work queues of this machine to measure on.

use std::io;

use dray::hw::{self, HwMover, HwOptions, QueueInfo, is_virtual};
use dray_spec::Opcode;
use dray_workload::Buffers;

use crate::BenchError;

/// A queue of this machine that was asked for: `hw`, the first that is free, or `hw:wq0.1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceChoice {
    queue: Option<String>,
}

impl DeviceChoice {
    /// The queue that it names, if it does.
    pub fn queue(&self) -> Option<&str> {
        self.queue.as_deref()
    }

    /// Reads what `--device` was given.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<DeviceChoice, String> {
        let expected = "--device takes hw, or hw: and a work queue, such as hw:wq0.1";
        match text.split_once(':') {
            None if text == "hw" => Ok(DeviceChoice { queue: None }),
            Some(("hw", queue)) if queue.starts_with("wq") && queue.contains('.') => {
                Ok(DeviceChoice {
                    queue: Some(queue.to_owned()),
                })
            }
            _ => Err(expected.to_owned()),
        }
    }

    /// The queues that it names: one, or all.
    ///
    /// # Errors
    /// There are none, or not that one.
    pub fn queues(&self) -> Result<Vec<QueueInfo>, BenchError> {
        let queues = hw::discover().map_err(device_error)?;
        let Some(name) = &self.queue else {
            return Ok(queues);
        };
        match queues.iter().find(|queue| queue.name() == *name) {
            Some(queue) => Ok(vec![queue.clone()]),
            None => {
                let names: Vec<String> = queues.iter().map(QueueInfo::name).collect();
                Err(BenchError::Value {
                    flag: format!("--device hw:{name}"),
                    reason: "there is no such work queue".to_owned(),
                    hint: format!("there are {}", names.join(", ")),
                })
            }
        }
    }
}

/// Buffers of an operation that is only looked at.
pub(super) const NOWHERE: Buffers = {
    let ring = dray_workload::Ring {
        base: 0,
        stride: 0,
        count: 1,
    };
    Buffers {
        src: ring,
        dst: ring,
        dst2: ring,
    }
};

/// Opens the first of these queues that is free.
///
/// # Errors
/// None is, or cannot be used.
pub(super) fn open(queues: &[QueueInfo], options: HwOptions) -> Result<HwMover, BenchError> {
    let mut last = None;
    for queue in queues {
        match HwMover::open(queue, options) {
            Ok(mover) => return Ok(mover),
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) => Err(device_error(error)),
        None => Err(BenchError::NoWorkQueue { node: None }),
    }
}

/// Why a thread's measurement ended: so many operations do not complete.
pub(super) fn stalled(operations: u64) -> io::Error {
    io::Error::other(format!(
        "nothing completed for ten seconds, with {operations} operations in flight: dray doctor looks at the device"
    ))
}

/// Why numbers of this machine's devices are none of hardware.
pub(super) fn doubt() -> Option<String> {
    let text = "the device is virtual: these are times of the emulation, not of hardware";
    is_virtual().then(|| text.to_owned())
}

/// What a queue is, for readers of its numbers.
pub fn describe(queue: &QueueInfo) -> String {
    let what = match is_virtual() {
        true => "virtual device of dray run",
        false => "DSA",
    };
    let mode = match queue.mode {
        dray_device::WorkQueueMode::Dedicated => "dedicated",
        dray_device::WorkQueueMode::Shared => "shared",
    };
    format!(
        "{} ({what}, version {:#x}, {mode}, {} entries)",
        queue.name(),
        queue.version,
        queue.entries
    )
}

/// What a queue must have for a measurement.
pub(super) fn check(
    queue: &QueueInfo,
    op: &'static str,
    opcode: Opcode,
    largest: u64,
    batch: u32,
) -> Result<(), BenchError> {
    let can = &queue.capabilities;
    if !can.has(opcode) {
        let opcode = opcode as u8;
        return Err(BenchError::Unsupported { op, opcode });
    }
    let limits = [
        ("size", largest, can.max_transfer_bytes, "max_transfer_size"),
        (
            "batch",
            batch.into(),
            can.max_batch.into(),
            "max_batch_size",
        ),
    ];
    let over = limits
        .into_iter()
        .find(|(_, value, limit, _)| value > limit);
    match over {
        None => Ok(()),
        Some((what, value, limit, field)) => Err(BenchError::Limit {
            what,
            value,
            limit,
            field,
        }),
    }
}

pub(super) fn device_error(source: hw::HwError) -> BenchError {
    BenchError::Device {
        source: Box::new(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_choices_are_hw_or_hw_with_a_queue() {
        let queue = |text| DeviceChoice::parse(text).map(|choice| choice.queue);
        assert_eq!(queue("hw"), Ok(None));
        assert_eq!(queue("hw:wq0.1"), Ok(Some("wq0.1".to_owned())));
        for bad in ["", "hv", "hw:", "hw:dsa0", "cpu", "hw:wq0"] {
            assert!(queue(bad).is_err(), "{bad}");
        }
    }
}
