//! Programs that cannot load the preload library: another thread of the launcher watches over them.
//!
//! They are traced (ptrace(2)). A filter of system calls stops them where they map and unmap; a
//! portal becomes a page that nothing may access, and what they write to it stops them once more,
//! is decoded and carried out from here. It is slower than the preload library by two orders of
//! magnitude, and works for whatever the kernel can execute as x86-64.

mod executable;
mod filter;
mod mapping;
mod plain;
mod ptrace;
mod reins;
mod space;
mod supervisor;
mod trap;

use std::ffi::OsStr;

pub(crate) use reins::{Followed, Reins};

use executable::{Kind, Obstacle};

/// Which commands run under the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Supervise {
    /// All.
    Always,
    /// Those that cannot load the preload library.
    #[default]
    Auto,
    /// None: such programs have write(2) alone.
    Never,
}

impl Supervise {
    /// Whether a command is to be supervised. Says so on stderr where it is decided here.
    pub(crate) fn wants(self, command: &OsStr) -> bool {
        if self == Supervise::Never {
            return false;
        }
        // What cannot be found or read cannot be executed either, and exec(2) says why.
        let Some(found) = executable::find(command) else {
            return self == Supervise::Always;
        };
        let path = found.path.display();
        match found.kind() {
            Ok(Kind::Native) => self == Supervise::Always,
            Ok(Kind::Hindered(Obstacle::Machine)) => {
                eprintln!("note: {path} is no program for x86-64: no portal can be given to it");
                false
            }
            Ok(Kind::Hindered(obstacle)) => {
                eprintln!("note: {path} {obstacle}: it runs under the supervisor, which is slower");
                true
            }
            Err(error) => {
                if self == Supervise::Auto {
                    eprintln!("note: whether {path} can preload a library is unknown: {error}");
                }
                self == Supervise::Always
            }
        }
    }
}
