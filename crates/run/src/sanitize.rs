//! Rules of asynchronous copies, watched while programs run.
//!
//! What is known is what devices see: when a descriptor was accepted and when it ended. While it is in flight its submitter
//! cannot have seen its completion, so that what touches the same bytes then is ordered by nothing but a fence.

mod announced;
mod books;
mod budget;
mod events;
mod finding;
mod flight;
mod in_flight;
mod pace;
mod reporter;
mod resume;
mod suppressions;
mod unordered;
mod unwritten;
mod watch;
mod watches;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dray_realtime::{Event, Watch};
use dray_remote::Spaces;

use crate::RunError;
use crate::error::system;
use crate::processes::Pid;
use crate::sites::Sites;
use books::Books;
use budget::Budget;
pub use finding::{Class, Finding};
use reporter::Report;
pub use suppressions::{SuppressionError, Suppressions};

/// Between two looks at what was found.
const PAUSE: Duration = Duration::from_millis(20);

/// What was found in a session, by class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// How often, also where it was not said.
    pub counts: BTreeMap<Class, u64>,
    /// How often, by line of the suppressions that was used.
    pub suppressed: BTreeMap<String, u64>,
    /// Descriptors that were followed.
    pub descriptors: u64,
    /// Of those from portals, how many were looked at closely: their memory, and with time for their program to go on.
    pub observed: u64,
    /// Time that detectors by the device alone have taken (overlap, record, resume, field, close, lost).
    pub books: Duration,
    /// Time that looks at memory have taken (source, destination, lifetime).
    pub looks: Duration,
    /// Time that descriptors waited for their programs to go on.
    pub waits: Duration,
    /// Those that were said: at most 20 of a class and a place.
    pub said: Vec<Finding>,
}

impl Findings {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// What is to be found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sanitize {
    /// What is not to be reported.
    pub suppressions: Suppressions,
}

/// The books of a session, which the listeners of its devices write.
#[derive(Debug, Clone)]
pub(crate) struct Sanitizer {
    books: Arc<Mutex<Books>>,
    /// By device: has those wait who submit.
    watches: Arc<Mutex<HashMap<u32, Watched>>>,
}

/// A device whose submitters wait, or do not.
#[derive(Debug)]
struct Watched {
    watch: Watch,
    set: bool,
}

impl Sanitizer {
    /// `limited`: what repeats is looked at for a share of the time only. `library`: what programs are served to load.
    pub(crate) fn new(
        spaces: Arc<Spaces>,
        wanted: &Sanitize,
        limited: bool,
        library: Option<&'static [u8]>,
    ) -> Sanitizer {
        let mut books = Books::new(spaces, Budget::new(limited));
        books.reporter.sites = Sites::serving(library);
        books.reporter.suppressions = wanted.suppressions.clone();
        Sanitizer {
            books: Arc::new(Mutex::new(books)),
            watches: Arc::default(),
        }
    }

    /// A device runs.
    pub(crate) fn watch(&self, device: u32, watch: Watch) {
        watch.set(true);
        lock(&self.books).calls.insert(device, watch.clone());
        let watched = Watched { watch, set: true };
        lock(&self.watches).insert(device, watched);
    }

    /// Enters an event of a device; says what it finds.
    pub(crate) fn take_in(
        &self,
        device: u32,
        event: &Event,
        owner: impl FnOnce(u32) -> Option<Pid>,
    ) {
        let mut books = lock(&self.books);
        books.take_in(device, event, owner);
        if *event == Event::Held {
            let own = books.submitters.remove(&device).unwrap_or_default();
            drop(books);
            let since = Instant::now();
            for pid in &own {
                if !pace::wait(*pid) {
                    self.closed(None, *pid);
                }
            }
            self.charge(device, since, !own.is_empty());
        }
    }

    /// Programs had time to go on; whether those who submit next wait.
    fn charge(&self, device: u32, since: Instant, waited: bool) {
        let mut books = lock(&self.books);
        if waited {
            let time = since.elapsed();
            books.reporter.findings.waits += time;
            books.budget.spend(time);
        }
        let wanted = books.budget.has_credit();
        drop(books);
        if let Some(watched) = lock(&self.watches).get_mut(&device)
            && watched.set != wanted
        {
            watched.set = wanted;
            watched.watch.set(wanted);
        }
    }

    /// A process has ended, or has unmapped its portal of a device.
    pub(crate) fn closed(&self, device: Option<u32>, pid: Pid) {
        lock(&self.books).close(device, pid);
    }

    /// Descriptors that full queues of a device have lost.
    pub(crate) fn lost(&self, device: u32, queues: impl Iterator<Item = (u16, u64)>) {
        let mut books = lock(&self.books);
        for (wq, count) in queues {
            books.reporter.report(Report {
                class: Class::Lost,
                pid: None,
                at: format!("wq{device}.{wq}"),
                party: None,
                other: None,
                caller: None,
                detail: format!(
                    "{} lost",
                    dray_output::counted(count as usize, "descriptor")
                ),
                mend: Class::Lost.fix(),
            });
        }
    }

    /// Starts a thread that says what is found: devices do not wait for who reads it. After the last fork of this process.
    ///
    /// # Errors
    /// No more threads.
    pub(crate) fn begin(&self) -> Result<(), RunError> {
        let books = Arc::downgrade(&self.books);
        let run = move || {
            while let Some(books) = books.upgrade() {
                say(&books);
                drop(books);
                std::thread::sleep(PAUSE);
            }
        };
        let thread = std::thread::Builder::new().name("dray-sanitize".into());
        thread.spawn(run).map_err(system("starting a thread"))?;
        Ok(())
    }

    pub(crate) fn end(&self) -> Findings {
        say(&self.books);
        let books = lock(&self.books);
        Findings {
            books: books.time,
            looks: books.watches.time,
            ..books.reporter.findings.clone()
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says what was found since the last time. Nobody may read it. One caller at a time: who returns knows that all is said,
/// and kept, that was found before.
fn say(books: &Mutex<Books>) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = lock(&ONE);
    let found = std::mem::take(&mut lock(books).reporter.found);
    for finding in &found {
        let _ = writeln!(io::stderr(), "{finding}");
    }
    lock(books).reporter.findings.said.extend(found);
}

#[cfg(test)]
mod tests;
