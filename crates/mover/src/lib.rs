//! Offload memory operations to a data mover, and say who executed them.
//!
//! [`Mover`] is the one interface: poll-mode, non-blocking, without allocation. Applications are
//! written once against it, as [`Application`]s whose steps a driver calls: a thread in real time
//! ([`drive`]), the event queue in modelled time ([`model::World::run`]). Behind it are
//! [`CpuMover`] (this machine's core), [`virt::VirtualMover`] (the virtual device in real time) and
//! [`model::ModelMover`] (a modelled device, or the modelled core beside it). Each completion names its [`Executor`]; nothing falls back silently.

mod cpu;
mod drive;
pub mod model;
mod mover;
mod operation;
mod refusal;
pub mod virt;

pub use cpu::CpuMover;
pub use drive::{Application, Next, drive};
pub use mover::{Completion, Executor, Full, Mover, Progress, Ticket};
pub use operation::Operation;
