//! Gives a program time before what it has submitted is executed: to submit more, or to end.
//!
//! Time is what the program has had of a processor, so that a busy machine makes no difference.

use std::fs;
use std::time::{Duration, Instant};

use crate::processes::Pid;

/// Processor time that a program has before its descriptor starts: more than it needs to the next submission, with the trap
/// that its first one may take.
const ENOUGH: Duration = Duration::from_micros(200);
/// Looks at a program that runs, and whether any of its threads does.
const LOOK: Duration = Duration::from_micros(20);
const LOOKS: u32 = 10;
/// A program that neither runs nor sleeps has no longer.
const LONGEST: Duration = Duration::from_millis(500);
/// How long the end of a mapping, or of the program, takes to arrive here.
const ARRIVAL: Duration = Duration::from_millis(2);

/// Waits until a process has had its time, waits itself, or has ended: whether it is there.
pub(super) fn wait(pid: Pid) -> bool {
    let begin = Instant::now();
    let Some(first) = processor_time(pid) else {
        return false;
    };
    for look in 1.. {
        std::thread::sleep(LOOK);
        let Some(now) = processor_time(pid) else {
            return false;
        };
        if now.saturating_sub(first) >= ENOUGH || begin.elapsed() >= LONGEST {
            return true;
        }
        if look % LOOKS == 0 && !runs(pid) {
            std::thread::sleep(ARRIVAL);
            return states(pid).any(|state| !matches!(state, 'Z' | 'X'));
        }
    }
    unreachable!("looks are counted without end")
}

/// What a process has had of processors; `None` if there is none.
fn processor_time(pid: Pid) -> Option<Duration> {
    let mut clock = 0;
    // SAFETY: it writes the number of a clock.
    if unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &raw mut clock) } != 0 {
        return None;
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes a time.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) } == 0;
    read.then(|| {
        Duration::new(
            time.tv_sec.unsigned_abs(),
            time.tv_nsec.unsigned_abs() as u32,
        )
    })
}

/// Whether a thread of a process runs, or could.
fn runs(pid: Pid) -> bool {
    states(pid).any(|state| state == 'R')
}

/// The state of each thread of a process; the first may have ended before the others.
fn states(pid: Pid) -> impl Iterator<Item = char> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    tasks.flatten().flatten().filter_map(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        // Behind the name, which may have any character.
        stat.rsplit_once(") ")?.1.chars().next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_one_that_is_gone_does_not() {
        let own = std::process::id();
        assert!(processor_time(own).is_some() && runs(own));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(processor_time(pid).is_none() && !runs(pid));
        assert!(!wait(pid) && wait(own));
    }
}
