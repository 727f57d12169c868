//! Programs that open a node, and whether they ever submitted by it.
//!
//! A program that gets no portal falls back to its own ways, most often silently, and its user takes it
//! for tested. What the session can see is that a node was opened and closed again, and nothing came of it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::processes::{Pid, field};
use crate::supervise::is_reached;

/// Programs that are kept; scripts start many that are alike.
const KEPT: usize = 32;
/// Closed nodes whose processes are remembered.
const RECENT: usize = 256;

/// A program that opened a node, and neither mapped a portal nor wrote to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// Its name, as `comm` of proc(5).
    pub program: String,
    /// The node, as `wq0.0`.
    pub node: String,
    /// It had loaded the preload library, or was supervised.
    pub prepared: bool,
    /// How often.
    pub times: u64,
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.program.escape_debug();
        write!(f, "{program} opened {} ", self.node)?;
        if self.times > 1 {
            write!(f, "{} times ", self.times)?;
        }
        match self.prepared {
            true => write!(
                f,
                "and submitted nothing by it: neither mmap(2) nor write(2) was successful; one that opens \
                 it by the C library and maps it past that needs `--supervise always`"
            ),
            false => write!(
                f,
                "without the preload library, and got no portal: it was not supervised either, by \
                 `--supervise never`, or because ptrace(2) is forbidden or another's (gdb, strace)"
            ),
        }
    }
}

/// Open nodes that nothing has come of, and those that were closed so.
#[derive(Debug, Default)]
pub(crate) struct Openers {
    open: Mutex<HashMap<u64, (Pid, Unreached)>>,
    closed: Mutex<Closed>,
    mapped: AtomicU64,
}

/// Nodes that were closed before anything came of them.
#[derive(Debug, Default)]
struct Closed {
    /// The last ones: their processes may still submit by a node that they open next.
    recent: VecDeque<(Pid, Unreached)>,
    /// Those before, alike ones summed up.
    listed: Vec<Unreached>,
}

impl Closed {
    fn list_oldest(&mut self) -> bool {
        let Some((_, one)) = self.recent.pop_front() else {
            return false;
        };
        add(&mut self.listed, one, |one| {
            if !one.prepared {
                // Once for each program: the session may be long.
                eprintln!("warning: {one}");
            }
        });
        true
    }
}

impl Openers {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, (Pid, Unreached)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process has opened a node. `prepared`: it is known to have loaded the preload library.
    pub(crate) fn opened(&self, cookie: u64, pid: Pid, node: String, prepared: bool) {
        let program = field(pid, "Name:").unwrap_or_else(|| pid.to_string());
        let prepared = prepared || is_reached(pid);
        let unreached = Unreached {
            program,
            node,
            prepared,
            times: 1,
        };
        self.open().insert(cookie, (pid, unreached));
    }

    /// A portal has been mapped by it.
    pub(crate) fn mapped(&self, cookie: u64) {
        self.mapped.fetch_add(1, Ordering::Relaxed);
        self.reached(cookie);
    }

    /// A descriptor has been written to it.
    pub(crate) fn written(&self, cookie: u64) {
        self.reached(cookie);
    }

    /// Its process has a way to the device. Nodes that it had opened before were attempts.
    fn reached(&self, cookie: u64) {
        // Each node once: descriptors are written often.
        if let Some((pid, _)) = self.open().remove(&cookie) {
            self.past().recent.retain(|(other, _)| *other != pid);
        }
    }

    /// It is closed.
    pub(crate) fn closed(&self, cookie: u64) {
        let Some(one) = self.open().remove(&cookie) else {
            return;
        };
        let mut closed = self.past();
        closed.recent.push_back(one);
        if closed.recent.len() > RECENT {
            closed.list_oldest();
        }
    }

    fn past(&self) -> MutexGuard<'_, Closed> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Portals that were mapped.
    pub(crate) fn portals(&self) -> u64 {
        self.mapped.load(Ordering::Relaxed)
    }

    /// Programs that submitted nothing, all of them closed or not, at the end.
    pub(crate) fn sum_up(&self) -> Vec<Unreached> {
        let cookies: Vec<u64> = self.open().keys().copied().collect();
        for cookie in cookies {
            self.closed(cookie);
        }
        let mut closed = self.past();
        while closed.list_oldest() {}
        closed.listed.clone()
    }
}

/// Adds to a list in which each stands once.
fn add(list: &mut Vec<Unreached>, one: Unreached, first: impl FnOnce(&Unreached)) {
    let times = one.times;
    let alike = |known: &&mut Unreached| {
        (&known.program, &known.node, known.prepared) == (&one.program, &one.node, one.prepared)
    };
    if let Some(known) = list.iter_mut().find(alike) {
        known.times += times;
    } else if list.len() < KEPT {
        first(&one);
        list.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openers() -> Openers {
        let openers = Openers::default();
        for cookie in 1..=4 {
            // Pids that no process has.
            let pid = u32::MAX - cookie as u32;
            openers.opened(cookie, pid, "wq0.0".to_owned(), true);
        }
        for one in openers.open().values_mut() {
            one.1.program = "same".to_owned();
        }
        openers
    }

    #[test]
    fn a_program_that_submits_by_its_second_open_is_not_listed() {
        let openers = Openers::default();
        let pid = std::process::id();
        for (cookie, reached) in [(1, false), (2, true), (3, false)] {
            openers.opened(cookie, pid, "wq0.0".to_owned(), true);
            match reached {
                true => openers.mapped(cookie),
                false => openers.closed(cookie),
            }
        }
        // What it opens after that, and does not use, may be meant for another way.
        assert_eq!(openers.sum_up().iter().map(|one| one.times).sum::<u64>(), 1);
    }

    #[test]
    fn many_programs_are_summed_up() {
        let openers = Openers::default();
        for cookie in 1..=2 * RECENT as u64 {
            openers.opened(cookie, u32::MAX - 1, "wq0.0".to_owned(), true);
            openers.closed(cookie);
        }
        let unreached = openers.sum_up();
        assert_eq!(unreached.len(), 1);
        assert_eq!(unreached[0].times, 2 * RECENT as u64);
    }

    #[test]
    fn only_openers_that_never_mapped_or_wrote_are_listed() {
        let openers = openers();
        openers.mapped(1);
        openers.written(2);
        openers.closed(1);
        openers.closed(3);
        let unreached = openers.sum_up();
        assert_eq!(openers.portals(), 1);
        assert_eq!(unreached.len(), 1);
        assert_eq!(unreached[0].times, 2, "one closed, one still open");
        assert!(
            unreached[0]
                .to_string()
                .contains("2 times and submitted nothing")
        );
    }

    #[test]
    fn control_characters_in_program_names_are_escaped() {
        let one = Unreached {
            program: "a\x1b[2J".to_owned(),
            node: "wq0.0".to_owned(),
            prepared: false,
            times: 1,
        };
        assert!(
            one.to_string()
                .starts_with("a\\u{1b}[2J opened wq0.0 without")
        );
    }
}
