//! Threads that request supervision before they execute a program.
//!
//! Each gets a thread of the launcher that traces it and all that it starts: ptrace(2) is for one
//! thread alone, and one that waits for its tracees cannot be given others.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use dray_wire::{Hold, Reason, Supervise as Asked, Supervised};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SendFlags, send};
use zerocopy::IntoBytes;

use super::Supervise;
use super::notes::Notes;
use super::opener::lack;
use super::ptrace::{self, Tid};
use super::supervisor::{Stops, Supervisor, quieten};
use crate::Require;
use crate::clients::Clients;
use crate::processes::{field, process_of};
use crate::serial_executor::SerialExecutor;

/// Name of the threads that trace; it distinguishes them from debuggers, in every session.
const THREAD: &str = "dray-supervisor";

/// Messages to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// What the session says.
    By(Supervise),
    /// There is nothing for them: paths are redirected for programs that load the library alone.
    FindNothing,
}

/// Answers the requests of threads for supervision.
#[derive(Debug)]
pub(crate) struct Supervision {
    rule: Rule,
    clients: Arc<Clients>,
    executor: SerialExecutor,
    notes: Notes,
}

impl Supervision {
    /// For a session with this rule.
    pub(crate) fn new(
        rule: Rule,
        clients: Arc<Clients>,
        executor: SerialExecutor,
    ) -> Arc<Supervision> {
        quieten();
        let notes = Notes::default();
        Arc::new(Supervision {
            rule,
            clients,
            executor,
            notes,
        })
    }

    /// Answers the request of a thread on this connection.
    pub(crate) fn answer(self: &Arc<Self>, connection: Arc<OwnedFd>, asked: Asked) {
        if self.rule == Rule::FindNothing {
            self.notes.finds_nothing(asked.reason, asked.name());
        }
        let untraced = matches!(self.rule, Rule::By(Supervise::Never) | Rule::FindNothing);
        if untraced && asked.reason != Reason::LINKER {
            return say(&connection, Hold::LEFT_ALONE);
        }
        if asked.reason == Reason::MACHINE {
            self.notes.program(asked.reason, asked.name());
            return say(&connection, Hold::LEFT_ALONE);
        }
        let (supervision, with) = (self.clone(), connection.clone());
        let drive = move || supervision.drive(&with, &asked);
        let thread = thread::Builder::new().name(THREAD.into());
        if let Err(error) = thread.spawn(drive) {
            self.notes.refusal(asked.name(), &error);
            say(&connection, Hold::LEFT_ALONE);
        }
    }

    /// Before a thread's open(2) of a node is answered: has its process supervised if no portal would come
    /// of it otherwise, however the program was started.
    pub(crate) fn attend_opener(self: &Arc<Self>, thread: u32) {
        let wanted = matches!(self.rule, Rule::By(Supervise::Auto | Supervise::Always));
        // Where programs have to write there is nothing to be had by a portal.
        if !wanted || self.clients.rules().require == Some(Require::Write) {
            return;
        }
        let Some(process) = process_of(thread) else {
            return;
        };
        let Some(lack) = lack(thread, process) else {
            return;
        };
        let name = field(process, "Name:").unwrap_or_else(|| process.to_string());
        match self.adopt(process as Tid) {
            Ok(()) => self.notes.opener(lack, name.as_bytes()),
            Err(error) => self.notes.refusal(name.as_bytes(), &error),
        }
    }

    /// Traces a process that runs, and all that it starts. Returns when its system calls stop.
    fn adopt(self: &Arc<Self>, process: Tid) -> io::Result<()> {
        let (seized, answer) = channel();
        let supervision = self.clone();
        let drive = move || {
            let mut supervisor = supervision.supervisor(Stops::EveryCall);
            let adopted = supervisor.adopt(process);
            let traced = adopted.is_ok();
            // The thread that sent the request waits for it.
            let _ = seized.send(adopted);
            if traced {
                supervisor.run();
            }
        };
        thread::Builder::new().name(THREAD.into()).spawn(drive)?;
        let lost = || Err(io::Error::other("its supervisor has ended"));
        answer.recv().unwrap_or_else(|_| lost())
    }

    fn supervisor(&self, stops: Stops) -> Supervisor {
        Supervisor::new(stops, self.clients.clone(), self.executor.clone())
    }

    /// Traces a thread and all that it starts, until they have ended.
    fn drive(&self, connection: &OwnedFd, asked: &Asked) {
        let peer = socket_peercred(connection).map(|peer| peer.pid.as_raw_nonzero().get());
        let Some((process, tid)) = peer.ok().and_then(|process| {
            let tid = thread_of(process, asked.thread)?;
            Some((process, tid))
        }) else {
            // It has ended meanwhile.
            return say(connection, Hold::LEFT_ALONE);
        };
        if is_supervised(tid) {
            return say(connection, Hold::HELD);
        }
        if let Err(error) = ptrace::seize(tid) {
            self.notes.refusal(asked.name(), &error);
            return say(connection, Hold::LEFT_ALONE);
        }
        if self.rule == Rule::FindNothing {
            // Without a filter: it is traced only until its environment is changed.
            say(connection, Hold::HELD);
            // An error is its end.
            let _ = Supervisor::leave_after_execution();
            return;
        }
        self.notes.program(asked.reason, asked.name());
        let mut supervisor = self.supervisor(Stops::Filter);
        supervisor.begin(tid, process);
        say(connection, Hold::SEIZED);
        supervisor.run();
    }
}

/// A process that does not take the answer has been killed.
fn say(connection: &OwnedFd, hold: Hold) {
    let answer = Supervised::new(hold);
    let _ = send(connection, answer.as_bytes(), SendFlags::NOSIGNAL);
}

/// The thread that a process calls by this number in its own namespace.
fn thread_of(process: Tid, number: u32) -> Option<Tid> {
    if number == 0 {
        return Some(process);
    }
    let threads = std::fs::read_dir(Path::new("/proc").join(process.to_string()).join("task"));
    threads.ok()?.find_map(|thread| {
        let tid: Tid = thread.ok()?.file_name().to_str()?.parse().ok()?;
        // The numbers in all namespaces, the thread's own last (proc(5)).
        let numbers = field(tid as u32, "NSpid:")?;
        let own = numbers.split_whitespace().next_back()?.parse();
        (own == Ok(number)).then_some(tid)
    })
}

/// Whether a thread is traced by a session: by this one, or by one that runs inside it.
pub(super) fn is_supervised(tid: Tid) -> bool {
    let tracer = field(tid as u32, "TracerPid:").and_then(|tracer| tracer.parse().ok());
    let Some(tracer) = tracer.filter(|tracer: &u32| *tracer != 0) else {
        return false;
    };
    process_of(tracer) == Some(std::process::id())
        || field(tracer, "Name:").is_some_and(|name| name == THREAD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_is_found_by_its_number_in_the_process() {
        let process = std::process::id() as Tid;
        assert_eq!(thread_of(process, 0), Some(process));
        let (number, numbers) = channel();
        let (end, until) = channel::<()>();
        let thread = thread::spawn(move || {
            let _ = number.send(rustix::thread::gettid().as_raw_nonzero().get());
            let _ = until.recv();
        });
        let tid = numbers.recv().unwrap();
        // This process has the number that its namespace gives it.
        assert_eq!(thread_of(process, tid as u32), Some(tid));
        drop(end);
        thread.join().unwrap();
        assert_eq!(thread_of(process, u32::MAX), None);
    }

    #[test]
    fn a_process_that_is_not_traced_is_not_supervised() {
        assert!(!is_supervised(Tid::MAX));
    }
}
