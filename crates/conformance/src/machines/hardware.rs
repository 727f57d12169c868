//! A work queue of this machine; inside `dray run` that is one of the virtual device.

use dray::Executor;
use dray::hw::{self, HwError, HwMover, HwOptions, SubmitPath, Submitting};

use super::disrupt::disrupt;
use super::held_page;
use crate::movers::{Column, Disruption, ProcessDoor, disruption_row, held_row, tabulate};

/// How a work queue of this machine is put to the suite.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting {
    /// Its name, such as `wq0.1`; `None`: the first that no other process has.
    pub queue: Option<String>,
    /// The only way to submit; `None`: the portal, and write(2) where the kernel refuses to map it.
    pub submitting: Option<Submitting>,
    /// One row alone: what becomes of work in flight. The process must be allowed to configure the device,
    /// and leaves the queue as the disruption does.
    pub disruption: Option<Disruption>,
    /// One row alone: completions that do not come before a deadline. The device must wait for pages (inside
    /// `dray run`: `--faults touch`), and the process be allowed to hold the kernel's page faults.
    pub held: bool,
}

pub(super) fn column(setting: &Setting) -> Result<Column, HwError> {
    let options = HwOptions {
        slots: 16,
        submitting: setting.submitting,
        ..HwOptions::default()
    };
    let mover = hw::open(setting.queue.as_deref(), options)?;
    let (name, queue) = (name(&mover), mover.info().name());
    let mut door = ProcessDoor::new(name, Executor::Hardware, mover);
    if setting.held {
        if let Some(held) = held_page() {
            door = door.with_held(move || held);
        }
        return Ok(held_row(&mut door));
    }
    if let Some(disruption) = setting.disruption {
        let mut door = door.with_disrupter(Box::new(move |asked| {
            if asked == disruption {
                disrupt(&queue, disruption);
            }
            asked == disruption
        }));
        return Ok(disruption_row(&mut door, disruption));
    }
    // The kernel knows which pages can be accessed.
    Ok(tabulate(&mut door.with_faults(|_| {})))
}

/// By the way to submit: MOVDIR64B to a dedicated queue, ENQCMD to a shared one, or write(2).
fn name(mover: &HwMover) -> &'static str {
    match mover.submit_path() {
        SubmitPath::Movdir64b => "hw dwq",
        SubmitPath::Enqcmd => "hw swq",
        SubmitPath::Write => "hw write",
    }
}
