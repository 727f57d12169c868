//! The device as a driver sees it: registers, portals and commands over the [`Device`](crate::Device).

mod bits;
mod configure;
mod domains;
mod enable;
mod errors;
mod file;
mod function;
mod group;
mod hardware;
mod interrupts;
mod layout;
mod pci;
mod queue;

pub use configure::RegisterWrite;
pub use function::{Bar, Configuration, Function};
pub use hardware::Hardware;
pub use layout::Layout;
pub use pci::PciControls;

pub(crate) use configure::check;
use errors::{Backlog, Report};
use file::File;
pub(crate) use interrupts::{Claim, Interrupts, Source};
