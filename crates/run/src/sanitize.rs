//! Rules of asynchronous copies, watched while programs run.
//!
//! What is known is what devices see: when a descriptor was accepted and when it ended. While it is in flight its submitter
//! cannot have seen its completion, so that what touches the same bytes then is ordered by nothing but a fence.

mod accesses;
mod events;
mod finding;
mod flight;
mod pace;
mod resume;
mod watch;
mod watches;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dray_device::WorkId;
use dray_realtime::Event;
use dray_remote::Spaces;
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use crate::RunError;
use crate::error::system;
use crate::processes::Pid;
use accesses::Accesses;
pub use finding::{Class, Finding};
use flight::{Flight, race};
use resume::{Follow, Partial};
use watch::Change;
use watches::Watches;

/// Findings of a class and a process that are said; more are counted.
const SAID: u64 = 20;
/// Partial completions of a process whose rest is waited for; older ones are forgotten.
const PARTIALS: usize = 64;
/// Between two looks at what was found.
const PAUSE: Duration = Duration::from_millis(20);

/// What was found in a session, by class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// How often, also where it was not said.
    pub counts: BTreeMap<Class, u64>,
    /// Descriptors that were looked at.
    pub descriptors: u64,
    /// Time that the looks at their memory have taken.
    pub looks: Duration,
    /// Those that were said: at most 20 of a class and a process.
    pub said: Vec<Finding>,
}

impl Findings {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// The books of a session, which the listeners of its devices write.
#[derive(Debug, Clone)]
pub(crate) struct Sanitizer(Arc<Mutex<Books>>);

impl Sanitizer {
    pub(crate) fn new(spaces: Arc<Spaces>) -> Sanitizer {
        Sanitizer(Arc::new(Mutex::new(Books {
            spaces: Some(spaces),
            ..Books::default()
        })))
    }

    /// Enters an event of a device; says what it finds.
    pub(crate) fn take_in(
        &self,
        device: u32,
        event: &Event,
        owner: impl FnOnce(u32) -> Option<Pid>,
    ) {
        let mut books = lock(&self.0);
        books.take_in(device, event, owner);
        if *event == Event::Held {
            let own = books.submitters.remove(&device).unwrap_or_default();
            drop(books);
            for pid in own {
                if !pace::wait(pid) {
                    self.closed(None, pid);
                }
            }
        }
    }

    /// A process has ended, or has unmapped its portal of a device.
    pub(crate) fn closed(&self, device: Option<u32>, pid: Pid) {
        lock(&self.0).close(device, pid);
    }

    /// Descriptors that full queues of a device have lost.
    pub(crate) fn lost(&self, device: u32, queues: impl Iterator<Item = (u16, u64)>) {
        let mut books = lock(&self.0);
        for (wq, count) in queues {
            books.report(Finding {
                class: Class::Lost,
                pid: None,
                place: format!("wq{device}.{wq}"),
                descriptor: None,
                other: None,
                detail: format!(
                    "{} lost",
                    dray_output::counted(count as usize, "descriptor")
                ),
            });
        }
    }

    /// Starts a thread that says what is found: devices do not wait for who reads it. After the last fork of this process.
    ///
    /// # Errors
    /// No more threads.
    pub(crate) fn begin(&self) -> Result<(), RunError> {
        let books = Arc::downgrade(&self.0);
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
        say(&self.0);
        let books = lock(&self.0);
        Findings {
            looks: books.watches.time,
            ..books.findings.clone()
        }
    }
}

fn lock(books: &Mutex<Books>) -> MutexGuard<'_, Books> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says what was found since the last time. Nobody may read it.
fn say(books: &Mutex<Books>) {
    let found = std::mem::take(&mut lock(books).found);
    for finding in &found {
        let _ = writeln!(io::stderr(), "{finding}");
    }
    lock(books).findings.said.extend(found);
}

/// What descriptors are called: by device and handle.
type Key = (u32, WorkId);

/// `K`: what a descriptor is called until it has ended.
#[derive(Debug)]
struct Books<K = Key> {
    flights: HashMap<K, Flight<K>>,
    /// Members of each batch in flight since its last fence.
    since_fence: HashMap<K, Vec<Flight<K>>>,
    partials: HashMap<Pid, Vec<Partial>>,
    said: HashMap<(Class, Option<Pid>), u64>,
    findings: Findings,
    found: Vec<Finding>,
    /// Where it is known whether an address space is still there.
    spaces: Option<Arc<Spaces>>,
    /// The last that has ended, by device: the record of no other can be missing.
    last: HashMap<u32, Flight<K>>,
    /// Processes of what was accepted since the last pause of each device.
    submitters: HashMap<u32, BTreeSet<Pid>>,
    watches: Watches<K>,
}

impl<K> Default for Books<K> {
    fn default() -> Books<K> {
        Books {
            flights: HashMap::new(),
            since_fence: HashMap::new(),
            partials: HashMap::new(),
            said: HashMap::new(),
            findings: Findings::default(),
            found: Vec::new(),
            spaces: None,
            last: HashMap::new(),
            submitters: HashMap::new(),
            watches: Watches::default(),
        }
    }
}

impl<K: Copy + Eq + Hash> Books<K> {
    fn accept(&mut self, key: K, flight: Flight<K>) {
        self.findings.descriptors += 1;
        self.compare(&flight);
        self.share_record(&flight);
        self.resume(&flight);
        if flight.descriptor.opcode() == Ok(Opcode::Batch) {
            self.since_fence.insert(key, Vec::new());
        }
        if let Some(spaces) = self.spaces.as_ref().filter(|_| !flight.closed) {
            self.watches.accept(key, &flight, spaces);
        }
        self.flights.insert(key, flight);
    }

    fn start(&mut self, key: K) {
        let change = self.spaces.as_ref();
        let change = change.and_then(|spaces| self.watches.start(key, spaces));
        if let Some(flight) = self.flights.get(&key).copied() {
            self.changed(&flight, change);
        }
    }

    /// A program has changed memory in flight.
    fn changed(&mut self, flight: &Flight<K>, change: Option<Change>) {
        let (class, detail) = match change {
            None => return,
            // What is gone with its program is another matter.
            Some(_) if flight.closed || self.is_gone(flight) => return,
            Some(Change::Source(detail)) => (Class::Source, detail),
            Some(Change::Destination(detail)) => (Class::Destination, detail),
            Some(Change::Lifetime(detail)) => (Class::Lifetime, detail),
        };
        self.finding(class, flight, None, detail);
    }

    fn start_member(&mut self, key: K, batch: K, member: Flight<K>) {
        self.findings.descriptors += 1;
        self.compare(&member);
        self.share_record(&member);
        self.resume(&member);
        let mut before = self.since_fence.remove(&batch).unwrap_or_default();
        if member.descriptor.flags().contains(Flags::FENCE) {
            before.clear();
        }
        // Members without a fence between them run in any order, whatever this device did.
        if let Some((other, bytes)) = before.iter().find_map(|other| {
            let bytes = race(&member, other)?;
            Some((other.descriptor, bytes))
        }) {
            let detail = format!(
                "members of a batch without a fence between them access {}",
                finding::range(&bytes)
            );
            self.finding(Class::Overlap, &member, Some(other), detail);
        }
        before.push(member);
        self.since_fence.insert(batch, before);
        let change = self.spaces.as_ref();
        let change = change.and_then(|s| self.watches.start_member(key, batch, &member, s));
        self.changed(&member, change);
        self.flights.insert(key, member);
    }

    /// Beside all that is in flight of the same process, but for its own batch.
    fn compare(&mut self, flight: &Flight<K>) {
        let conflict = self.flights.iter().find_map(|(id, other)| {
            // Members of one batch, and the batch itself, are compared apart.
            let own = flight
                .batch
                .is_some_and(|batch| batch == *id || other.batch == Some(batch));
            let beside = !own && other.pid == flight.pid;
            let bytes = beside.then(|| race(flight, other))?;
            Some((other.descriptor, bytes?))
        });
        if let Some((other, bytes)) = conflict {
            let detail = format!(
                "two descriptors in flight access {}",
                finding::range(&bytes)
            );
            self.finding(Class::Overlap, flight, Some(other), detail);
        }
    }

    fn share_record(&mut self, flight: &Flight<K>) {
        let Some(record) = flight.accesses.record() else {
            return;
        };
        let mut others = self.flights.values();
        let shared =
            others.find(|other| other.pid == flight.pid && other.accesses.record() == Some(record));
        if let Some(other) = shared.map(|other| other.descriptor) {
            let detail = format!("two descriptors in flight have their record at {record:#x}");
            return self.finding(Class::Record, flight, Some(other), detail);
        }
        let spaces = self.spaces.as_ref();
        let stale = spaces.and_then(|spaces| spaces.read_byte(flight.pasid, record));
        if let Some(status) = stale.filter(|status| *status != 0) {
            let detail = format!("the record at {record:#x} has the status {status:#04x} already");
            self.finding(Class::Record, flight, None, detail);
        }
    }

    fn resume(&mut self, flight: &Flight<K>) {
        let Some(partials) = flight.pid.and_then(|pid| self.partials.get_mut(&pid)) else {
            return;
        };
        // Whose buffers are used for something else is over.
        partials.retain(|partial| {
            let follow = partial.follow(&flight.descriptor);
            follow != Follow::Other
                || Accesses::of(&partial.descriptor)
                    .conflict(&flight.accesses)
                    .is_none()
        });
        let follows = partials.iter().enumerate().find_map(|(index, partial)| {
            let follow = partial.follow(&flight.descriptor);
            (follow != Follow::Other).then_some((index, *partial, follow))
        });
        let Some((index, partial, follow)) = follows else {
            return;
        };
        partials.remove(index);
        if let Follow::Wrong(why) = follow {
            self.finding(
                Class::Resume,
                flight,
                Some(partial.descriptor),
                why.to_owned(),
            );
        }
    }

    fn end(&mut self, key: K, record: Option<&CompletionRecord>) {
        self.since_fence.remove(&key);
        let change = self.spaces.as_ref();
        let change = change.and_then(|s| self.watches.end(key, record.is_some(), s));
        let Some(flight) = self.flights.remove(&key) else {
            return;
        };
        self.changed(&flight, change);
        let Some(record) = record else {
            return self.given_up(&flight);
        };
        let status = record.status();
        self.last.insert(flight.device, flight);
        if flight.closed || status != Status::SUCCESS && self.is_gone(&flight) {
            return self.given_up(&flight);
        }
        if let (Some(partial), Some(pid)) = (Partial::of(&flight.descriptor, record), flight.pid) {
            let partials = self.partials.entry(pid).or_default();
            partials.retain(|known| known.follow(&flight.descriptor) == Follow::Other);
            if partials.len() == PARTIALS {
                partials.remove(0);
            }
            partials.push(partial);
        }
        // Errors of fields have codes from 0x10 on; before them are results and page faults.
        if status.code() >= Status::BAD_OPCODE.code() {
            self.finding(Class::Field, &flight, None, finding::status(status));
        }
    }

    /// What is in flight when a process or a mapping ends.
    fn close(&mut self, device: Option<u32>, pid: Pid) {
        if device.is_none() {
            self.partials.remove(&pid);
        }
        let is_of = |flight: &Flight<K>| {
            flight.pid == Some(pid) && device.is_none_or(|device| device == flight.device)
        };
        let open = self.flights.values_mut();
        let open = open.filter(|flight| is_of(flight) && flight.batch.is_none());
        let open: Vec<Flight<K>> = open
            .map(|flight| {
                let before = *flight;
                flight.closed = true;
                before
            })
            .collect();
        for flight in open {
            self.given_up(&flight);
        }
    }

    /// Whether its process has ended, or executes another program.
    fn is_gone(&self, flight: &Flight<K>) -> bool {
        let spaces = self.spaces.as_ref().filter(|_| flight.pasid != 0);
        spaces.is_some_and(|spaces| !spaces.is_there(flight.pasid))
    }

    fn given_up(&mut self, flight: &Flight<K>) {
        if !flight.closed {
            let detail =
                "it was in flight when its process, its mapping or its queue ended".to_owned();
            self.finding(Class::Close, flight, None, detail);
        }
    }

    fn finding(
        &mut self,
        class: Class,
        flight: &Flight<K>,
        other: Option<Descriptor>,
        detail: String,
    ) {
        self.report(Finding {
            class,
            pid: flight.pid,
            place: format!("wq{}.{}", flight.device, flight.wq),
            descriptor: Some(flight.descriptor),
            other,
            detail,
        });
    }

    fn report(&mut self, finding: Finding) {
        *self.findings.counts.entry(finding.class).or_default() += 1;
        let said = self.said.entry((finding.class, finding.pid)).or_default();
        *said += 1;
        if *said <= SAID {
            self.found.push(finding);
        }
    }
}

#[cfg(test)]
mod tests;
