//! The four movers by their names, each opened and put to the suite: what the table shows and the example
//! `movers` runs.

mod disrupt;
mod guarded;
mod hardware;
mod held;
mod modelled;
mod virtually;

use std::str::FromStr;

use dray::hw::HwError;
use dray::{CpuMover, Executor};
use thiserror::Error;

use crate::movers::{Column, ProcessDoor, tabulate};

pub use disrupt::disrupt;
pub use hardware::Setting;
pub use held::held_page;

/// A mover of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoverName {
    /// The calling core, which looks at addresses.
    Cpu,
    /// The virtual device in real time.
    Virtual,
    /// The device in modelled time.
    Model,
    /// A work queue of this machine.
    Hw,
}

/// No mover has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no mover {0:?}: there are cpu, virtual, model and hw")]
pub struct UnknownMover(String);

impl FromStr for MoverName {
    type Err = UnknownMover;

    fn from_str(name: &str) -> Result<MoverName, UnknownMover> {
        Ok(match name {
            "cpu" => MoverName::Cpu,
            "virtual" => MoverName::Virtual,
            "model" => MoverName::Model,
            "hw" => MoverName::Hw,
            other => return Err(UnknownMover(other.to_owned())),
        })
    }
}

/// Puts the suite to a mover: a column for each kind of queue that it has. `hardware` is for
/// [`MoverName::Hw`] alone.
///
/// # Errors
/// No work queue of this machine can be opened.
pub fn columns(mover: MoverName, hardware: &Setting) -> Result<Vec<Column>, HwError> {
    Ok(match mover {
        MoverName::Cpu => vec![cpu()],
        MoverName::Virtual => virtually::columns(),
        MoverName::Model => modelled::columns(),
        MoverName::Hw => vec![hardware::column(hardware)?],
    })
}

/// The core, with few slots.
fn cpu() -> Column {
    let mover = CpuMover::checked(16);
    let mut door = ProcessDoor::new("cpu", Executor::Cpu, mover).with_faults(|_| {});
    tabulate(&mut door)
}
