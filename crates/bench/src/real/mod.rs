//! Measurement on the processor of this machine.

mod case_cpp;
mod case_device;
mod cpp;
mod device;
mod host;
mod micros;
mod micros_device;
mod micros_queues;
mod micros_rate;
mod micros_thread;
mod run;
mod thread;

use dray_workload::Percentiles;

use crate::timing::Counter;

pub use cpp::{CppError, Library as CppLibrary};
pub use device::{DeviceChoice, describe};
pub use dray::hw::is_virtual;
pub use dray_workload::{Pages, available_cpus};
pub use host::context;
pub use micros::{Software, run as run_micros};
pub use micros_device::{OnDevice, run as run_micros_on_device};
pub use run::{Measured, Real};

/// Percentiles as a result reports them.
fn counters(percentiles: &Percentiles) -> Vec<Counter> {
    let named = percentiles.named().into_iter();
    named
        .map(|(name, value)| Counter {
            name: name.to_owned(),
            value,
            unit: "s",
        })
        .collect()
}
