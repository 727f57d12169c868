//! The supervisor's thread: what its tracees stop for, one event after the other.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use super::cpuid;
use super::mapping::{self, Pending};
use super::preload;
use super::ptrace::{self, Event, Tid};
use super::space::Space;
use super::trap::{self, Verdict};
use crate::clients::Clients;
use crate::processes::process_of;
use crate::serial_executor::SerialExecutor;

/// A thread of a program.
#[derive(Debug)]
pub(super) struct Tracee {
    /// Its process.
    pub(super) process: Tid,
    /// The address space of its process; with the last thread in it the portals end.
    pub(super) space: Rc<RefCell<Space>>,
    /// The system call that is being done for it.
    pub(super) pending: Option<Pending>,
    /// The call at the entry of its program that makes CPUID stop it.
    pub(super) entry: Option<cpuid::Request>,
}

/// What stops the tracees' system calls that map and unmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stops {
    /// A filter (seccomp(2)) that the thread has installed itself; the others do not stop.
    Filter,
    /// ptrace(2), at each system call: the program ran before it was traced.
    EveryCall,
}

/// The tracees, and where they stop.
#[derive(Debug)]
pub(super) struct Supervisor {
    stops: Stops,
    clients: Arc<Clients>,
    executor: SerialExecutor,
    tracees: HashMap<Tid, Tracee>,
    /// New tracees whose first stop came before the event of their parent.
    early: HashSet<Tid>,
}

impl Supervisor {
    pub(super) fn new(stops: Stops, clients: Arc<Clients>, executor: SerialExecutor) -> Supervisor {
        Supervisor {
            stops,
            clients,
            executor,
            tracees: HashMap::new(),
            early: HashSet::new(),
        }
    }

    /// A thread of a process without portals.
    pub(super) fn begin(&mut self, tid: Tid, process: Tid) {
        let fresh = Tracee {
            process,
            space: Rc::default(),
            pending: None,
            entry: None,
        };
        self.tracees.insert(tid, fresh);
    }

    /// A process that runs, with all its threads, as long as it has none of them in a portal. They stop
    /// before they run their own code again.
    ///
    /// # Errors
    /// Its first thread cannot be traced.
    pub(super) fn adopt(&mut self, process: Tid) -> io::Result<()> {
        ptrace::seize(process)?;
        let space = Rc::<RefCell<Space>>::default();
        let mut found = vec![process];
        // A thread that one of them starts is seized with it, unless it began before.
        while !found.is_empty() {
            for tid in found.drain(..) {
                // An error is its end.
                let _ = ptrace::interrupt(tid);
                let thread = Tracee {
                    process,
                    space: space.clone(),
                    pending: None,
                    entry: None,
                };
                self.tracees.insert(tid, thread);
            }
            let threads = std::fs::read_dir(format!("/proc/{process}/task"))?;
            let numbers = threads.filter_map(|one| one.ok()?.file_name().to_str()?.parse().ok());
            let unknown = numbers.filter(|tid| !self.tracees.contains_key(tid));
            found = unknown.filter(|tid| ptrace::seize(*tid).is_ok()).collect();
        }
        Ok(())
    }

    fn go_on(&self, tid: Tid, signal: i32) -> io::Result<()> {
        match self.stops {
            Stops::Filter => ptrace::go_on(tid, signal),
            Stops::EveryCall => ptrace::go_on_until_call(tid, signal),
        }
    }

    /// Supervises until all have ended.
    pub(super) fn run(&mut self) {
        while let Some((tid, event)) = ptrace::wait() {
            // An error means that it has been killed meanwhile; its end is another event.
            let _ = self.attend(tid, event);
        }
    }

    /// Waits until the one tracee of this thread has executed its program, and traces it no more.
    ///
    /// # Errors
    /// It has been killed meanwhile.
    pub(super) fn leave_after_execution() -> io::Result<()> {
        while let Some((tid, event)) = ptrace::wait() {
            match event {
                Event::Ended => break,
                Event::Executed(_) => {
                    preload::withhold(tid)?;
                    return ptrace::detach(tid);
                }
                Event::Signal(signal) => ptrace::go_on(tid, signal)?,
                Event::Stopped => ptrace::stay_stopped(tid)?,
                _ => ptrace::go_on(tid, 0)?,
            }
        }
        Ok(())
    }

    fn attend(&mut self, tid: Tid, event: Event) -> io::Result<()> {
        match event {
            Event::Ended => {
                self.early.remove(&tid);
                self.tracees.remove(&tid);
                self.release()
            }
            Event::Goes if !self.tracees.contains_key(&tid) => {
                self.early.insert(tid);
                Ok(())
            }
            Event::Goes => self.go_on(tid, 0),
            Event::Stopped => ptrace::stay_stopped(tid),
            Event::Started(child) => self.started(tid, child),
            Event::Executed(former) => {
                self.tracees.remove(&former);
                // Whichever thread it was: it has its process's number now.
                self.begin(tid, tid);
                preload::withhold(tid)?;
                if cpuid::can_fault_cpuid()
                    && let Some(tracee) = self.tracees.get_mut(&tid)
                {
                    tracee.entry = cpuid::begin(tid)?;
                    if tracee.entry.is_some() {
                        return ptrace::go_on_until_call(tid, 0);
                    }
                }
                self.go_on(tid, 0)
            }
            Event::SystemCall | Event::SystemCallDone if self.is_at_entry(tid) => {
                self.at_entry(tid, event)
            }
            Event::SystemCall => self.system_call(tid),
            Event::SystemCallDone => {
                if let Some(tracee) = self.tracees.get_mut(&tid)
                    && let Some(pending) = tracee.pending.take()
                {
                    mapping::finish(tid, tracee, pending)?;
                }
                self.go_on(tid, 0)
            }
            Event::Signal(signal) => self.signal(tid, signal),
        }
    }

    /// A tracee has started a thread or a process.
    fn started(&mut self, tid: Tid, child: Tid) -> io::Result<()> {
        let flags = mapping::clone_flags(tid)?;
        if let Some(parent) = self.tracees.get(&tid) {
            let process = match flags & libc::CLONE_THREAD as u64 {
                0 => child,
                _ => parent.process,
            };
            let space = match flags & libc::CLONE_VM as u64 {
                0 => Rc::new(RefCell::new(parent.space.borrow().forked())),
                _ => parent.space.clone(),
            };
            let child_of = Tracee {
                process,
                space,
                pending: None,
                entry: None,
            };
            self.tracees.insert(child, child_of);
        }
        if self.early.remove(&child) {
            // An error is the child's end.
            let _ = self.go_on(child, 0);
        }
        self.go_on(tid, 0)
    }

    /// Continues the tracees that no event will announce, because the process that started them has ended. If it
    /// has not, the event comes later.
    fn release(&mut self) -> io::Result<()> {
        for tid in std::mem::take(&mut self.early) {
            let process = process_of(tid as u32).map_or(tid, |process| process as Tid);
            let space = self.tracees.get(&process).map(|other| other.space.clone());
            let orphan = Tracee {
                process,
                space: space.unwrap_or_default(),
                pending: None,
                entry: None,
            };
            self.tracees.insert(tid, orphan);
            let _ = self.go_on(tid, 0);
        }
        Ok(())
    }

    fn system_call(&mut self, tid: Tid) -> io::Result<()> {
        let Some(tracee) = self.tracees.get_mut(&tid) else {
            return self.go_on(tid, 0);
        };
        tracee.pending = mapping::begin(tid, tracee, &self.clients, &self.executor)?;
        match tracee.pending {
            Some(_) => ptrace::go_on_until_call(tid, 0),
            None => self.go_on(tid, 0),
        }
    }

    fn signal(&mut self, tid: Tid, signal: i32) -> io::Result<()> {
        let verdict = match self.tracees.get(&tid) {
            Some(tracee) if matches!(signal, libc::SIGSEGV | libc::SIGILL) => {
                trap::answer(tid, &tracee.space.borrow(), signal)?
            }
            _ => Verdict::Deliver(signal),
        };
        match verdict {
            Verdict::Done => self.go_on(tid, 0),
            Verdict::Deliver(signal) if self.is_at_entry(tid) => {
                ptrace::go_on_until_call(tid, signal)
            }
            Verdict::Deliver(signal) => self.go_on(tid, signal),
        }
    }

    /// Whether a tracee makes the call at the entry of its program.
    fn is_at_entry(&self, tid: Tid) -> bool {
        self.tracees
            .get(&tid)
            .is_some_and(|tracee| tracee.entry.is_some())
    }

    /// A call of a tracee at the entry of its program begins, or is done: execve(2) itself, or the one that it makes there.
    fn at_entry(&mut self, tid: Tid, event: Event) -> io::Result<()> {
        if event == Event::SystemCallDone
            && let Some(tracee) = self.tracees.get_mut(&tid)
            && let Some(request) = tracee.entry
            && cpuid::end(tid, request)?
        {
            tracee.entry = None;
            return self.go_on(tid, 0);
        }
        ptrace::go_on_until_call(tid, 0)
    }
}

/// This process needs no signals for tracees that stop: only this thread waits for them.
pub(super) fn quieten() {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeros are an action: the default, nothing masked, no flags.
    let action = unsafe { action.assume_init_mut() };
    action.sa_flags = libc::SA_NOCLDSTOP;
    // SAFETY: the action is one, and has no handler; SIGCHLD has none in this process.
    unsafe { libc::sigaction(libc::SIGCHLD, action, std::ptr::null_mut()) };
}
