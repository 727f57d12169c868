//! Two commands that run in turn on one core, a slice each: what changes from one moment to the next, the clock of
//! the core, other load, other guests of the host, changes both alike.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::counter;
use crate::session::{Session, Value};
use crate::sys::errno;

/// How two commands take turns.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// The core that both run on, with all of their threads.
    pub core: usize,
    /// How long the first turn is; each later one is twice as long. None if one is to run after the other has ended.
    pub slice: Option<Duration>,
}

/// What a command has used, with all processes that it has waited for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Used {
    /// Core time.
    pub(super) core: Duration,
    /// Of it the command's own process, without those that it has started.
    pub(super) own: Duration,
    /// Of it the threads that dray has in programs, if it is a session.
    pub(super) agents: Duration,
    /// Instructions, where the processor counts them.
    pub(super) instructions: Option<u64>,
}

/// Runs both to their ends, `first` first in the first slice.
pub(super) fn run(commands: [&[OsString]; 2], first: usize, turns: Turns) -> io::Result<[Used; 2]> {
    let mut used = [Used::default(); 2];
    thread::scope(|scope| {
        let mut runs: Vec<Option<Running>> = vec![None, None];
        let mut ended = [false; 2];
        let mut turn = first;
        // A B B A A B B A: what rises or falls evenly adds to both alike.
        let mut slice = turns.slice;
        while ended != [true; 2] {
            let other = 1 - turn;
            let running = match &mut runs[turn] {
                Some(running) => {
                    running.signal(libc::SIGCONT);
                    running
                }
                none => none.insert(Running::start(scope, commands[turn], turns.core)?),
            };
            let alone = ended[other];
            match running.wait(if alone { None } else { slice }) {
                Some(end) => {
                    used[turn] = end?;
                    ended[turn] = true;
                }
                None => running.signal(libc::SIGSTOP),
            }
            if slice == turns.slice {
                slice = turns.slice.map(|slice| 2 * slice);
            }
            if !ended[other] {
                turn = other;
            }
        }
        Ok(used)
    })
}

/// A command that has been started, in a process group of its own.
struct Running {
    pid: i32,
    end: Receiver<io::Result<Used>>,
    session: Option<Session>,
    has_ended: bool,
}

/// How long a session is waited for when a command starts, and how often it is looked for.
const SESSION_WAIT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(1));

impl Running {
    fn start<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        command: &'scope [OsString],
        core: usize,
    ) -> io::Result<Running> {
        let (started, starts) = channel();
        let (sends, end) = channel();
        // Counters are inherited from the thread that starts a process, and the end of that thread signals the process.
        scope.spawn(move || {
            let used = follow(command, core, &started);
            drop(started);
            let _ = sends.send(used);
        });
        match starts.recv() {
            Ok(pid) => Ok(Running {
                pid,
                end,
                session: None,
                has_ended: false,
            }),
            Err(_) => Err(match end.recv() {
                Ok(Err(error)) => error,
                _ => io::ErrorKind::NotFound.into(),
            }),
        }
    }

    /// Waits until it has ended, at most so long.
    fn wait(&mut self, slice: Option<Duration>) -> Option<io::Result<Used>> {
        let begin = Instant::now();
        loop {
            self.look();
            let passed = begin.elapsed();
            let left = match slice {
                Some(slice) if passed >= slice => return None,
                Some(slice) => slice - passed,
                None => Duration::from_millis(100),
            };
            let waits_for_session = self.session.is_none() && passed < SESSION_WAIT.0;
            match self.end.recv_timeout(if waits_for_session {
                SESSION_WAIT.1
            } else {
                left
            }) {
                Ok(end) => {
                    self.has_ended = true;
                    return Some(end.map(|used| Used {
                        agents: self.session.map_or(Duration::ZERO, agents),
                        ..used
                    }));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Some(Err(io::ErrorKind::UnexpectedEof.into()));
                }
            }
        }
    }

    /// A session's file is removed when its command has ended; its counters can be read through an earlier mapping.
    fn look(&mut self) {
        if self.session.is_none() {
            let file = crate::launch::session_of(self.pid as u32);
            self.session = file.and_then(|file| Session::open(&file).ok());
        }
    }

    fn signal(&self, number: i32) {
        // Between the end of the command and its report the group may be gone; its number is not given out anew so soon.
        // SAFETY: a signal to a process group touches no memory of this one.
        unsafe { libc::kill(-self.pid, number) };
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended {
            self.signal(libc::SIGKILL);
            self.signal(libc::SIGCONT);
        }
    }
}

fn agents(session: Session) -> Duration {
    let nanos = session.processes().map(|p| p.get(Value::AgentCpuNs));
    Duration::from_nanos(nanos.sum())
}

/// Starts a command, says its number, and waits for its end.
fn follow(command: &[OsString], core: usize, started: &Sender<i32>) -> io::Result<Used> {
    let (name, arguments) = command
        .split_first()
        .ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
    let counter = counter::instructions();
    let mut start = Command::new(name);
    // Its output is discarded, and its input is empty: a read from a terminal would stop it.
    start
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0);
    let prepare = move || {
        // SAFETY: all zeros is the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel knows the core, so the set has room for it.
        unsafe { libc::CPU_SET(core, &mut set) };
        // SAFETY: the set and its size.
        if unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // A session passes the signal on to its program.
        // SAFETY: it takes a number.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
        Ok(())
    };
    // SAFETY: system calls alone, which may be called between fork and exec.
    unsafe { start.pre_exec(prepare) };
    let child = start.spawn()?;
    let pid = child.id() as i32;
    let _ = started.send(pid);
    // Its end, without taking it: the group exists as long as it was not waited for.
    // SAFETY: all zeros is a valid value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOWAIT;
    loop {
        // SAFETY: a child of this process, and a place to be written to.
        let answer = unsafe { libc::waitid(libc::P_PID, pid as u32, &raw mut info, flags) };
        match (answer, errno()) {
            (0, _) => break,
            (_, libc::EINTR) => {}
            (_, error) => return Err(io::Error::from_raw_os_error(error)),
        }
    }
    let own = own_time(pid);
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: as above.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
    if waited != pid {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has written it.
    let usage = unsafe { usage.assume_init() };
    if status != 0 {
        let how = match libc::WIFSIGNALED(status) {
            true => format!("it is ended by signal {}", libc::WTERMSIG(status)),
            false => format!("it ends with {}", libc::WEXITSTATUS(status)),
        };
        return Err(io::Error::other(how));
    }
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    Ok(Used {
        core: time(usage.ru_utime) + time(usage.ru_stime),
        own,
        agents: Duration::ZERO,
        instructions: counter
            .as_ref()
            .and_then(|counter: &File| counter::read(counter)),
    })
}

/// Core time of a process alone, which has ended and was not waited for; 0 if the kernel does not say.
fn own_time(pid: i32) -> Duration {
    let mut clock = 0;
    // SAFETY: a place for a clock's number.
    if unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } != 0 {
        return Duration::ZERO;
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a clock that there is, and a place to be written to.
    match unsafe { libc::clock_gettime(clock, &raw mut time) } {
        0 => Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> Vec<OsString> {
        ["/bin/sh", "-c", text].map(OsString::from).to_vec()
    }

    fn turns(slice: Option<Duration>) -> Turns {
        Turns {
            core: super::super::a_core().expect("a core"),
            slice,
        }
    }

    #[test]
    fn both_commands_and_their_children_are_counted() {
        let busy = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
        let twice = shell(&format!("({busy}); ({busy}); {busy}"));
        let once = shell(busy);
        for slice in [None, Some(Duration::from_millis(2))] {
            for first in 0..2 {
                let used = run([&once, &twice], first, turns(slice)).expect("they run");
                assert!(used[0].core > Duration::ZERO, "{used:?}");
                assert!(
                    used[0].own <= used[0].core + Duration::from_millis(1),
                    "{used:?}"
                );
                assert!(used[1].own < used[1].core, "children too: {used:?}");
            }
        }
    }

    #[test]
    fn a_command_that_fails_ends_the_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let late = directory.path().join("late");
        let long = shell(&format!("sleep 600; touch {}", late.display()));
        let slice = Some(Duration::from_millis(1));
        let failed = run([&long, &shell("exit 3")], 0, turns(slice));
        let said = failed.expect_err("it fails").to_string();
        assert!(said.contains("ends with 3"), "{said}");
        assert!(!late.exists(), "the other has run to its end");
        let none = [OsString::from("/no/such/program")];
        let missing = run([&none, &long], 0, turns(None)).expect_err("there is none");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
