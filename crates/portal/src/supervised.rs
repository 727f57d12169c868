//! The way of a thread under the supervisor of `dray run`, before it executes a program that cannot
//! load the preload library: it sends a request, is seized, and its system calls stop for the tracer.
//!
//! Nothing here allocates or changes `errno`: it runs in children of vfork(2).

mod filter;

use std::ffi::CStr;
use std::fmt::Write as _;
use std::io::IoSlice;

use dray_wire::{Hold, Reason, SocketName, Supervise, Supervised, WireError};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, sendmsg};
use rustix::thread::{CapabilitySet, capabilities};
use zerocopy::IntoBytes;

use crate::connect::{dial, retry};
use crate::syscall::{pid, tid};
use dray_interpose::Line;
use dray_interpose::program::Obstacle;

/// Why a thread is not supervised, or not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum SuperviseError {
    #[error("tracing would take its privileges away")]
    Privileges,
    #[error("the process that owns the device cannot be reached: {0}")]
    Socket(#[from] Errno),
    #[error("the process that owns the device sends what it should not: {0}")]
    Wire(#[from] WireError),
    #[error("its system calls cannot be filtered: {0}")]
    Filter(Errno),
}

/// Puts this thread, which is about to execute a program, under supervision. If that fails, a warning goes to
/// stderr and the program is executed without it. Without an obstacle supervision was requested by option.
pub fn enter(socket: SocketName<'_>, obstacle: Option<Obstacle>, program: &CStr) {
    let name = program.to_bytes();
    if let Err(error) = ask(socket, obstacle, name) {
        let mut line = Line::default();
        let _ = write!(line, "warning: ");
        line.append(name);
        let _ = writeln!(line, " gets no portal: {error}");
        line.print();
    }
}

fn ask(
    socket: SocketName<'_>,
    obstacle: Option<Obstacle>,
    name: &[u8],
) -> Result<(), SuperviseError> {
    let reason = match obstacle {
        None => Reason::WANTED,
        Some(Obstacle::Static) => Reason::STATIC,
        Some(Obstacle::Privileged) => Reason::PRIVILEGED,
        Some(Obstacle::Machine) => Reason::MACHINE,
        Some(Obstacle::Linker) => Reason::LINKER,
        Some(Obstacle::RawCalls) => Reason::RAW_CALLS,
        Some(Obstacle::Environment) => Reason::ENVIRONMENT,
    };
    let keep_privileges = obstacle == Some(Obstacle::Privileged);
    if keep_privileges
        && !capabilities(None)?
            .effective
            .contains(CapabilitySet::SYS_ADMIN)
    {
        return Err(SuperviseError::Privileges);
    }
    let thread = match tid() {
        first if first == pid() => 0,
        other => other,
    };
    let message = Supervise::new(reason, thread, name);
    let connection = dial(socket)?;
    let part = [IoSlice::new(message.as_bytes())];
    retry(|| {
        sendmsg(
            &connection,
            &part,
            &mut Default::default(),
            SendFlags::NOSIGNAL,
        )
    })?;
    // One byte more, so that a longer message shows.
    let mut bytes = [0u8; size_of::<Supervised>() + 1];
    let (got, _) = retry(|| recv(&connection, &mut bytes[..], RecvFlags::empty()))?;
    match Supervised::from_message(&bytes[..got])?.hold {
        Hold::SEIZED => filter::install(keep_privileges).map_err(SuperviseError::Filter),
        // The user has been informed why.
        _ => Ok(()),
    }
}
