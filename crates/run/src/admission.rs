//! Who may connect to the socket of a session: its name is for all to read, in `/proc/net/unix`.

use std::os::fd::AsFd;

use rustix::net::sockopt::socket_peercred;
use rustix::process::{Uid, geteuid};

use crate::processes::{Pid, field};

/// Parents that are followed from a process to the first of the session.
const GENERATIONS: usize = 1000;

/// The rule of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admission {
    owner: Uid,
    first: Pid,
}

impl Admission {
    /// For a session of the calling user whose programs descend from this process.
    pub(crate) fn new(first: Pid) -> Admission {
        Admission {
            owner: geteuid(),
            first,
        }
    }

    /// Whether the process at the other end is the owner's, root's, or one of the session, whatever user it has
    /// become.
    pub(crate) fn admits(&self, socket: impl AsFd) -> bool {
        let Ok(peer) = socket_peercred(socket) else {
            return false;
        };
        let process = peer.pid.as_raw_nonzero().get() as Pid;
        peer.uid == self.owner || peer.uid.is_root() || self.has_started(process)
    }

    /// Whether a process descends from the first one, which also takes those in whose parents have ended.
    fn has_started(&self, process: Pid) -> bool {
        let parent = |process: &Pid| field(*process, "PPid:")?.parse().ok();
        let mut line = std::iter::successors(Some(process), parent).take(GENERATIONS);
        line.any(|process| process == self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn processes_of_the_owner_and_of_the_session_are_admitted() {
        let flags = SocketFlags::CLOEXEC;
        let (_ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let own = std::process::id();
        let other = Uid::from_raw(geteuid().as_raw() ^ 0x4000);
        let of = |owner, first| Admission { owner, first };
        assert!(of(geteuid(), 0).admits(&theirs));
        assert!(of(other, own).admits(&theirs));
        assert!(of(other, std::os::unix::process::parent_id()).admits(&theirs));
        let root = geteuid().is_root();
        assert_eq!(of(other, Pid::MAX).admits(&theirs), root);
        assert!(!of(other, Pid::MAX).has_started(own));
    }
}
