//! A process that runs is tiered from outside, until it ends: watched by DAMON, moved by the kernel.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{KernelBackEnd, failed};
use crate::TierError;
use crate::back_end::{BackEnd, Limits, Tiering};
use crate::knobs::Knob;
use crate::policy::by_index;
use crate::session::{Note, Process, Session, Value};
use crate::sys::{PAGE, errno, thread_cpu_ns};
use crate::tracking::{Books, Choice, DamonTracker, Tracking, enter_present, stretches};

/// How often mappings and the nodes of pages are looked at, if that costs little.
const LOOK: Duration = Duration::from_secs(1);

/// A process that runs and is tiered from outside, between two nodes.
#[derive(Debug)]
pub struct RemoteProcess {
    /// Readable once the process has ended, even if its number is in use again.
    alive: File,
    session: Session,
    process: Option<&'static Process>,
    back_end: KernelBackEnd,
    /// Without one nothing is known of accesses.
    tracker: Option<DamonTracker>,
    tiering: Tiering,
    /// When mappings and nodes were looked at, and how long that is enough.
    looked: Option<(Instant, Duration)>,
    decided: Instant,
}

impl RemoteProcess {
    /// Watches a process; `damon` is the directory of DAMON's files.
    ///
    /// # Errors
    /// No such process, or no right to look into it; DAMON alone was asked for and cannot be had.
    pub fn new(
        pid: i32,
        nodes: [u32; 2],
        session: Session,
        damon: &Path,
    ) -> Result<RemoteProcess, TierError> {
        let setup = session.setup();
        // SAFETY: it takes a number and flags.
        let alive = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        if alive < 0 {
            return Err(failed(pid)(std::io::Error::from_raw_os_error(errno())));
        }
        // SAFETY: the kernel has just given it to us.
        let alive = unsafe { File::from_raw_fd(alive as i32) };
        let process = session.claim(pid.unsigned_abs().into());
        let back_end = KernelBackEnd::new(pid, nodes, session, process)?;
        let taken = match setup.tracking {
            Choice::Hints => Err("hints work inside a process alone".to_owned()),
            choice => match DamonTracker::take(damon, pid).map_err(failed(pid))? {
                Err(cause) if choice == Choice::Damon => return Err(TierError::Damon { cause }),
                taken => taken.map_err(|cause| cause.to_string()),
            },
        };
        if let Some(process) = process {
            match &taken {
                Ok(_) => process.tracks(Tracking::Damon),
                Err(why) => process.note(
                    Note::Tracking,
                    &format!(
                        "accesses are not tracked: {why}; pages go by their addresses, and none comes back"
                    ),
                ),
            }
            process.begin_tiering();
        }
        Ok(RemoteProcess {
            alive,
            session,
            process,
            back_end,
            tracker: taken.ok(),
            tiering: Tiering::new(by_index(setup.policy)),
            looked: None,
            decided: Instant::now(),
        })
    }

    /// One interval. How long to wait until the next; nothing once the process has ended.
    ///
    /// # Errors
    /// No right to move its pages; no such node.
    pub fn step(&mut self) -> Result<Option<Duration>, TierError> {
        let stepped = if self.has_ended() {
            Ok(())
        } else {
            self.interval()
        };
        // What fails because the process ends is no error.
        if self.has_ended() || stepped.is_err() && !self.back_end.has_memory() {
            return Ok(None);
        }
        stepped?;
        let pause = Duration::from_millis(self.session.knob(Knob::IntervalMs));
        Ok(Some(pause))
    }

    fn has_ended(&self) -> bool {
        let mut polled = libc::pollfd {
            fd: self.alive.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: there is one.
        unsafe { libc::poll(&raw mut polled, 1, 0) == 1 }
    }

    fn interval(&mut self) -> Result<(), TierError> {
        if self.looked.is_none_or(|(at, pause)| at.elapsed() >= pause) {
            let start = thread_cpu_ns();
            self.back_end.look()?;
            let cost = Duration::from_nanos(thread_cpu_ns() - start);
            let overhead = self.session.knob(Knob::Overhead).max(1) as u32;
            self.looked = Some((Instant::now(), LOOK.max(cost * 100 / overhead)));
        }
        self.track();
        let fast = self.session.setup().bytes[0];
        let mut limits = Limits::of(self.session, fast, self.decided.elapsed());
        self.decided = Instant::now();
        if self.tracker.is_none() {
            // Without a tracker pages that were only read once would be promoted.
            limits.promote = 0;
        }
        if self.tiering.cools(&limits) {
            self.back_end.cool();
        }
        self.tiering.step(&mut self.back_end, &limits)?;
        if let Some(process) = self.process {
            let [fast, slow] = self.back_end.used();
            process.put(Value::FastBytes, fast * PAGE);
            process.put(Value::SlowBytes, slow * PAGE);
            let regions = self.back_end.tracked().0.regions();
            process.put(Value::Regions, regions.len() as u64);
            let managed = regions.iter().map(|(start, end)| end - start);
            process.put(Value::ManagedBytes, managed.sum());
            process.put(Value::AgentCpuNs, thread_cpu_ns());
        }
        Ok(())
    }

    fn track(&mut self) {
        let overhead = self.session.knob(Knob::Overhead);
        let (memory, pagemap) = self.back_end.tracked();
        let Some(tracker) = &mut self.tracker else {
            return stretches(memory, |start, end| {
                enter_present(pagemap, memory, start, end, true, |_| ());
            });
        };
        match (tracker.step_on(memory, overhead), self.process) {
            (Ok(tracked), Some(process)) => {
                process.add(Value::Scans, u64::from(tracked.scanned));
                process.add(Value::TrackingNs, tracked.cost.as_nanos() as u64);
            }
            (Err(error), process) => {
                self.tracker = None;
                // Of a process that ends there is nothing to track.
                let ends = !self.back_end.has_memory();
                if let (Some(process), false) = (process, ends) {
                    let text = format!("accesses are tracked no more: {error}");
                    process.note(Note::Tracking, &text);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Reason, Setup, VIRTUAL};

    const FAST: u64 = 4 << 20;

    fn session(tracking: Choice) -> Session {
        let setup = Setup {
            bytes: [FAST, u64::MAX],
            nodes: [Some(0), Some(0)],
            policy: 2,
            shared_read: false,
            release: crate::Release::Kernel,
            device: VIRTUAL,
            tracking,
            filters: 0,
        };
        Session::private(&setup).expect("memory")
    }

    /// A child that has written to 16 MiB and sleeps until its pipe is closed.
    fn child() -> (std::process::Child, std::process::ChildStdin) {
        let script = "a=$(head -c 16777216 /dev/zero | tr '\\0' a); echo ready; read b";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh is there");
        let mut line = [0u8; 6];
        let out = child.stdout.as_mut().expect("a pipe");
        std::io::Read::read_exact(out, &mut line).expect("it is ready");
        let input = child.stdin.take().expect("a pipe");
        (child, input)
    }

    /// Both tiers are node 0, which every machine has: what is decided and counted is the same.
    #[test]
    fn a_process_is_tiered_until_it_ends() {
        let no_damon = tempfile::tempdir().expect("a directory");
        let (mut child, input) = child();
        let session = session(Choice::Best);
        let pid = child.id() as i32;
        let mut remote =
            RemoteProcess::new(pid, [0, 0], session, no_damon.path()).expect("our own child");
        assert!(remote.step().expect("it runs").is_some());
        let process = session.claim(pid as u64).expect("it has counters");
        assert!(process.get(Value::DemotedPages) >= (12 << 20) / PAGE);
        assert!(
            process.get(Value::FastBytes) <= FAST,
            "{}",
            process.get(Value::FastBytes)
        );
        assert_eq!(process.get(Value::PromotedPages), 0);
        let notes = process.notes();
        assert!(
            notes[0].contains("no DAMON; pages go by their addresses"),
            "{notes:?}"
        );
        drop(input);
        child.wait().expect("it ends");
        assert!(remote.step().expect("that is no error").is_none());
    }

    /// While a process ends, its memory is gone before its number is: then move_pages(2) fails with EINVAL.
    #[test]
    fn a_process_that_ends_has_no_memory() {
        let (mut child, input) = child();
        let pid = child.id();
        let mut back_end = KernelBackEnd::new(pid as i32, [0, 0], session(Choice::Hints), None)
            .expect("our own child");
        assert!(back_end.has_memory());
        back_end.look().expect("it runs");
        assert_ne!(back_end.used(), [0, 0]);
        drop(input);
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let flags = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: it writes to the place, and leaves the child as it is.
        let ended = unsafe { libc::waitid(libc::P_PID, pid, info.as_mut_ptr(), flags) };
        assert_eq!(ended, 0);
        assert!(!back_end.has_memory());
        let room = crate::policy::Room {
            fast_limit: 0,
            fast_used: 0,
            keep_free: 0,
            slow_room: 0,
            promote: 0,
            interval: 1,
            ping_pong: 0,
            cooling: 1,
        };
        let first = back_end.units()[0].0;
        let error = back_end.migrate(Reason::Demotion, &[first], &room);
        let error = error.expect_err("it has no memory").to_string();
        assert!(error.contains("move_pages"), "{error}");
        child.wait().expect("it has ended");
    }

    #[test]
    fn tracking_damon_is_an_error_without_damon() {
        let no_damon = tempfile::tempdir().expect("a directory");
        let pid = std::process::id() as i32;
        let session = session(Choice::Damon);
        let error = RemoteProcess::new(pid, [0, 0], session, no_damon.path()).expect_err("none");
        assert!(matches!(error, TierError::Damon { .. }), "{error}");
    }
}
