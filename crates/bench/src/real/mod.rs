//! Measurement on the processor of this machine.

mod host;
mod micros;
mod micros_thread;
mod run;
mod thread;

use dray_workload::Percentiles;

use crate::timing::Counter;

pub use dray_workload::{Pages, available_cpus};
pub use host::context;
pub use micros::{Software, run as run_micros};
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
