//! The virtual DSA: a state machine without I/O, threads or clock.
//!
//! The runner hands descriptors in at a portal ([`Device::write_posted`],
//! [`Device::enqueue`]), lets each engine [`take`](Device::take) work and [`start`](Device::start) it, executes the [`Task`] on its memory,
//! and reports the end ([`Device::done`]). The device answers with effects: completion records to write, interrupts to
//! send. How long anything takes, and who moves the bytes, is the runner's business: in modelled
//! time an event queue and [`execute`], in real time threads.

mod arbiter;
mod batch;
mod capabilities;
mod check;
mod config;
mod device;
mod drain;
mod effect;
mod error_report;
mod execute;
mod extent;
mod fidelity;
mod idpt;
mod job;
mod lifecycle;
mod memory;
mod queue;
mod registers;
mod rule;
mod task;
mod work;

pub use capabilities::Capabilities;
pub use check::{
    PLAIN_FLAGS, Rejection, SOFTWARE_OPERATIONS, check_operands, check_software, is_inter_domain,
};
pub use config::{ConfigError, DeviceConfig, GroupConfig, PciConfig, WorkQueueConfig};
pub use device::Device;
pub use dray_spec::{Portal, Submission, WorkQueueMode};
pub use effect::{DescriptorResult, Effect, Origin};
pub use execute::{Payload, execute};
pub use fidelity::{Fidelity, FidelityCounts};
pub use idpt::{AddressSpace, Domain, Domains, IdptConfig, IdptEntry};
pub use job::WorkId;
pub use lifecycle::LifecycleEvent;
pub use memory::{
    Access, AllAccessible, CAN_FLUSH, Memory, ProcessMemory, SliceMemory, Translation,
    copy_in_parts,
};
pub use registers::{Bar, Configuration, Function, Hardware, Layout, PciControls, RegisterWrite};
pub use task::{Action, ListRead, RecordPage, Task, View};
pub use work::{Member, Work, WorkKind};
