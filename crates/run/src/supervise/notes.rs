//! Notes to the user, once each: scripts start many programs.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use dray_interpose::program::Obstacle;
use dray_wire::Reason;

use super::opener::Lack;

/// What has been said.
#[derive(Debug, Default)]
pub(super) struct Notes(AtomicU32);

/// Beside those of the reasons.
const REFUSED: u32 = 1 << 31;
const NO_LIBRARY: u32 = 1 << 30;
const OWN_CALLS: u32 = 1 << 29;
const FILTER: u32 = 1 << 28;

impl Notes {
    fn is_new(&self, bit: u32) -> bool {
        self.0.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// What keeps a program from loading the preload library, unless that has been said.
    fn news(&self, reason: Reason) -> Option<Obstacle> {
        let obstacle = match reason {
            Reason::STATIC => Obstacle::Static,
            Reason::PRIVILEGED => Obstacle::Privileged,
            Reason::MACHINE => Obstacle::Machine,
            Reason::LINKER => Obstacle::Linker,
            Reason::RAW_CALLS => Obstacle::RawCalls,
            Reason::ENVIRONMENT => Obstacle::Environment,
            _ => return None,
        };
        self.is_new(1 << reason.0).then_some(obstacle)
    }

    /// That a program does not load the preload library.
    pub(super) fn program(&self, reason: Reason, name: &[u8]) {
        let Some(obstacle) = self.news(reason) else {
            return;
        };
        let name = shown(name);
        match obstacle {
            Obstacle::Machine => eprintln!("note: {name} {obstacle}: no portal can be given to it"),
            _ => {
                eprintln!("note: {name} {obstacle}: it runs under the supervisor, which is slower");
            }
        }
    }

    /// That a program has opened a node and is supervised from then on.
    pub(super) fn opener(&self, lack: Lack, name: &[u8]) {
        let bit = match lack {
            Lack::Library => NO_LIBRARY,
            Lack::Calls => OWN_CALLS,
            Lack::Filter => FILTER,
        };
        if self.is_new(bit) {
            let name = shown(name);
            eprintln!(
                "note: {name} {lack}: it runs under the supervisor from now on, which is slower"
            );
        }
    }

    /// Notes that a program does not load the preload library, so that its paths are not redirected.
    pub(super) fn finds_nothing(&self, reason: Reason, name: &[u8]) {
        if let Some(obstacle) = self.news(reason) {
            let name = shown(name);
            eprintln!("note: {name} {obstacle}: it finds no device by --redirect");
        }
    }

    /// That a program cannot be traced.
    pub(super) fn refusal(&self, name: &[u8], error: &io::Error) {
        if !self.is_new(REFUSED) {
            return;
        }
        let name = shown(name);
        eprintln!("warning: ptrace cannot be had here: {error}; {name} gets no portal");
        eprintln!(
            "hint: a process is traced by one alone, and not under gdb, strace or another \
             supervisor; in a container --cap-add SYS_PTRACE; sysctl kernel.yama.ptrace_scope below \
             3. write(2) works without it: --require write"
        );
    }
}

/// A name with nothing in it that a terminal would take for a command.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_in_names_are_escaped() {
        assert_eq!(shown(b"/bin/\x1b[2Ja\nb"), "/bin/\\u{1b}[2Ja\\nb");
    }

    #[test]
    fn each_note_is_printed_once() {
        let notes = Notes::default();
        assert!(notes.is_new(1 << Reason::STATIC.0));
        assert!(!notes.is_new(1 << Reason::STATIC.0));
        assert!(notes.is_new(1 << Reason::MACHINE.0));
        assert!(notes.is_new(REFUSED));
        assert!(!notes.is_new(REFUSED));
    }
}
