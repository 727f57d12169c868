//! Programs that cannot load the preload library: another thread of the launcher watches over them.
//!
//! They are traced (ptrace(2)): from before they are executed, where that is looked at, and otherwise from
//! the moment in which they open a work queue and turn out to have no other way to a portal. A filter of
//! system calls stops them where they map and unmap; those that ran before, ptrace(2) at each call. A
//! portal becomes a page that nothing may access, and what they write to it stops them once more,
//! is decoded and carried out from here. It is slower than the preload library by two orders of
//! magnitude, and works for whatever the kernel can execute as x86-64.

mod command;
mod cpuid;
mod mapping;
mod notes;
mod opener;
mod plain;
mod preload;
mod ptrace;
mod space;
mod supervision;
mod supervisor;
mod trap;

pub(crate) use command::Followed;
pub use cpuid::can_fault_cpuid;
pub(crate) use opener::is_reached;
pub(crate) use preload::without;
pub(crate) use supervision::{Rule, Supervision};

/// Which programs run under the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Supervise {
    /// The command and all that it starts.
    Always,
    /// Programs that cannot load the preload library, and their children: the launcher checks the command, the
    /// library checks what programs execute, and the session checks each process that opens a work queue.
    #[default]
    Auto,
    /// None: such programs have write(2) alone.
    Never,
}

impl Supervise {
    /// What the environment of programs says.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Supervise::Always => "always",
            Supervise::Auto => "auto",
            Supervise::Never => dray_wire::NONE,
        }
    }
}
