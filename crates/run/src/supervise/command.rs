//! The command itself, which no other part has looked at before it is executed.

use std::ffi::{CStr, CString};

use dray_interpose::program::{Obstacle, Path, PreloadSupport, kind};
use dray_portal::supervised::enter;
use dray_wire::SocketName;

use super::Supervise;

/// What the process that is to become the command needs to know.
#[derive(Debug)]
pub(crate) struct Followed {
    supervise: Supervise,
    socket: String,
}

impl Followed {
    /// By this rule, through the socket of this name.
    pub(crate) fn new(supervise: Supervise, socket: &str) -> Followed {
        let socket = socket.to_owned();
        Followed { supervise, socket }
    }

    /// Has this process supervised, if that is the rule for the command that it executes next.
    ///
    /// Whether it can load the preload library; unknown is yes.
    pub(crate) fn follow(&self, command: &CStr) -> bool {
        let Some(socket) = SocketName::parse(self.socket.as_bytes()) else {
            return true;
        };
        let always = self.supervise == Supervise::Always;
        let directories = std::env::var_os("PATH").and_then(|directories| {
            use std::os::unix::ffi::OsStringExt;
            CString::new(directories.into_vec()).ok()
        });
        // What cannot be found or read cannot be executed either, and exec(2) says why.
        let mut room: Path = Path::empty();
        let Some(path) = room.find(command, directories.as_deref()) else {
            return true;
        };
        let kind = kind(path);
        match kind {
            _ if self.supervise == Supervise::Never => {}
            Ok(PreloadSupport::Hindered(obstacle)) => enter(socket, Some(obstacle), path),
            Ok(PreloadSupport::Native) if !always => {}
            Err(error) if !always => eprintln!(
                "note: whether {} can preload a library is unknown: {error}",
                path.to_string_lossy()
            ),
            _ => enter(socket, None, path),
        }
        kind != Ok(PreloadSupport::Hindered(Obstacle::Linker))
    }
}
