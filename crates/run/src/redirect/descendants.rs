//! The processes of a session without a namespace of its own: all that descend from this one.

use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid,
};

use crate::RunError;
use crate::error::system;

/// How long killed processes are waited for, and how often: a process outside may trace them.
const REST: Duration = Duration::from_millis(1);
const ROUNDS: u32 = 5000;

/// A process, as `/proc` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    /// When it began, in ticks: no other process of this number has begun then.
    began: u64,
    ended: bool,
}

/// Descendants of this process without those that it had at its start: these were started before the exec of
/// the launcher and do not belong to the session.
#[derive(Debug)]
pub(crate) struct Descendants {
    strangers: Vec<Process>,
}

/// Makes this process the subreaper: processes whose parent has ended become its children.
///
/// # Errors
/// The system refuses.
pub(crate) fn adopt() -> Result<Descendants, RunError> {
    let all = processes();
    let strangers = below(&all, &[]);
    // SAFETY: it changes what becomes of other processes' children.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } {
        0 => Ok(Descendants { strangers }),
        _ => Err(system("prctl")(io::Error::last_os_error())),
    }
}

impl Descendants {
    /// Kills them all and waits for their end. Those of another user, which an unprivileged one
    /// cannot kill, are left and named.
    pub(crate) fn end(&self) {
        let (mut left, mut dying) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            left.clear();
            dying.clear();
            // All of them at once: one that traces another must die for that one to be gone.
            for process in below(&processes(), &self.strangers) {
                match process.kill() {
                    Err(Errno::PERM) => left.push(process.id),
                    _ => dying.push(process.id),
                }
                process.reap();
            }
            if dying.is_empty() {
                break;
            }
            thread::sleep(REST);
        }
        if !left.is_empty() {
            eprintln!("warning: processes of other users are left: {left:?}");
        }
        if !dying.is_empty() {
            eprintln!("warning: killed, and not gone: {dying:?}");
        }
    }
}

impl Process {
    /// From `/proc/PID/stat`.
    fn parse(id: i32, stat: &str) -> Option<Process> {
        // The name is in brackets and may hold anything; state, parent and 17 more follow before the
        // time (proc_pid_stat(5)).
        let (_, rest) = stat.rsplit_once(')')?;
        let mut rest = rest.split_whitespace();
        let ended = matches!(rest.next()?, "Z" | "X");
        let parent = rest.next()?.parse().ok()?;
        let began = rest.nth(17)?.parse().ok()?;
        Some(Process {
            id,
            parent,
            began,
            ended,
        })
    }

    fn read(id: i32) -> Option<Process> {
        Process::parse(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    fn kill(&self) -> Result<(), Errno> {
        let id = Pid::from_raw(self.id).ok_or(Errno::SRCH)?;
        let file = pidfd_open(id, PidfdFlags::empty())?;
        // The file is of the process that has the number now.
        match Process::read(self.id) {
            Some(now) if now.began == self.began && !now.ended => {
                pidfd_send_signal(&file, Signal::KILL)
            }
            _ => Ok(()),
        }
    }

    /// If it has ended, and is a child.
    fn reap(&self) {
        if let Some(id) = Pid::from_raw(self.id) {
            // Otherwise the next round does.
            let _ = waitpid(Some(id), WaitOptions::NOHANG);
        }
    }
}

fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Process::read).collect()
}

/// Those that descend from this process, past `spared` and what descends from them.
fn below(all: &[Process], spared: &[Process]) -> Vec<Process> {
    let is_spared = |process: &Process| {
        let same = |other: &Process| (other.id, other.began) == (process.id, process.began);
        spared.iter().any(same)
    };
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![std::process::id() as i32];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            if !is_spared(process) && !found.contains(process) {
                parents.push(process.id);
                found.push(*process);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_are_parsed_with_any_process_name() {
        let stat = "7 (a) R 1 (b c) S 3 7 7 0 -1 4194304 9 0 0 0 1 2 0 0 20 0 1 0 555 8 9";
        let process = Process::parse(7, stat);
        let expected = Process {
            id: 7,
            parent: 3,
            began: 555,
            ended: false,
        };
        assert_eq!(process, Some(expected));
        assert_eq!(Process::parse(7, "7 (a"), None);
        assert_eq!(Process::parse(7, "7 (a) S 3"), None);
    }

    #[test]
    fn this_process_is_read_with_its_start_time() {
        let id = std::process::id() as i32;
        let process = Process::read(id).expect("it is there");
        assert!(process.parent > 0 && process.began > 0 && !process.ended);
        assert!(processes().contains(&process));
    }

    #[test]
    fn descendants_of_spared_processes_are_spared() {
        let us = std::process::id() as i32;
        let process = |id, parent| Process {
            id,
            parent,
            began: 5,
            ended: false,
        };
        let all = [
            process(-2, us),
            process(-3, -2),
            process(-4, us),
            process(-5, -4),
            process(-6, 1),
        ];
        assert_eq!(below(&all, &[process(-2, us)]), [all[2], all[3]]);
        assert_eq!(below(&all, &[]).len(), 4);
    }
}
