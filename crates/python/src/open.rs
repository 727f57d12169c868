//! Movers of the back ends, each with the thread that drives it.

use std::thread::{self, JoinHandle};

use dray::channels::{Channels, ChannelsOptions, Choice, Member, Require};
use dray::hw::{self, HwMover, HwOptions};
use dray::task::{self, Client};
use dray::virt::{Options, VirtualDevice};
use dray::{Checked, CpuMover, Mover};
use dray_device::DeviceConfig;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::buffer::Exported;

/// Operations that each queue may have in flight.
const QUEUE_SLOTS: usize = 128;
/// Bytes of the largest operation of the virtual device.
const MAX_TRANSFER: u64 = 1 << 31;

/// A mover and its thread.
pub(crate) struct Open {
    pub(crate) client: Client<Exported>,
    pub(crate) thread: JoinHandle<()>,
    /// What happened when it was opened, a line each.
    pub(crate) note: String,
}

fn refused(error: &dyn std::error::Error) -> PyErr {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    PyOSError::new_err(text)
}

fn driven<M: Mover + Send + 'static>(mover: M, note: String) -> PyResult<Open> {
    let (client, driver) = task::channel(mover);
    let thread = thread::Builder::new().name("dray mover".to_owned());
    let thread = thread
        .spawn(move || driver.run())
        .map_err(|error| refused(&error))?;
    Ok(Open {
        client,
        thread,
        note,
    })
}

fn channels<M: Mover + Send + 'static>(
    members: Vec<Member<M>>,
    options: ChannelsOptions,
    note: String,
) -> PyResult<Open> {
    let channels = Channels::new(members, options).map_err(|error| refused(&error))?;
    driven(channels, note)
}

/// Opens a mover: `any`, `hardware`, `virtual` or `cpu`. Operations below `threshold` bytes go to the core; 0: none does because
/// of its size. `checked`: the core and the virtual device look at addresses before they touch them.
///
/// # Errors
/// ValueError: an unknown back end. OSError: no work queue that can be used, for `hardware`.
pub(crate) fn open(back_end: &str, threshold: u32, checked: bool) -> PyResult<Open> {
    let options = ChannelsOptions {
        choice: match threshold {
            0 => Choice::Device,
            device_from_bytes => Choice::Threshold { device_from_bytes },
        },
        require: match back_end {
            "hardware" => Require::Hardware,
            _ => Require::Any,
        },
        check_core: checked,
        ..ChannelsOptions::default()
    };
    match back_end {
        "any" | "hardware" => hardware(back_end == "hardware", options),
        "virtual" => {
            let config =
                DeviceConfig::embedded(dray_device::WorkQueueMode::Dedicated, 1, MAX_TRANSFER);
            let device = match checked {
                false => VirtualDevice::start(config, Options::default()),
                true => VirtualDevice::start_in(config, Options::default(), Checked, |_| {}),
            };
            let device = device.map_err(|error| refused(&error))?;
            let mover = device
                .open(0, QUEUE_SLOTS)
                .map_err(|error| refused(&error))?;
            let note = "a virtual device of this process is open".to_owned();
            channels(
                vec![Member {
                    mover,
                    numa_node: None,
                }],
                options,
                note,
            )
        }
        "cpu" => {
            let mover = match checked {
                true => CpuMover::checked(QUEUE_SLOTS),
                false => CpuMover::new(QUEUE_SLOTS),
            };
            let note = "the core executes all operations, as asked".to_owned();
            channels(
                vec![Member {
                    mover,
                    numa_node: None,
                }],
                options,
                note,
            )
        }
        _ => Err(PyValueError::new_err(format!(
            "back end {back_end}: any, hardware, virtual and cpu are possible"
        ))),
    }
}

/// All work queues of this machine; without one the core executes, unless they are required.
fn hardware(required: bool, options: ChannelsOptions) -> PyResult<Open> {
    let queue_options = HwOptions {
        slots: QUEUE_SLOTS,
        ..HwOptions::default()
    };
    match hw::open_all(queue_options) {
        Ok(queues) => {
            let note = format!("{} work queues of this machine are open", queues.len());
            channels(queues, options, note)
        }
        Err(error) if required => Err(refused(&error)),
        Err(error) => {
            let note = format!("{error}\nthe core executes all operations");
            channels(Vec::<Member<HwMover>>::new(), options, note)
        }
    }
}
