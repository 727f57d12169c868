//! What is in flight, and what it breaks of the rules.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_device::WorkId;
use dray_realtime::Watch as Device;
use dray_remote::Spaces;
use dray_spec::Accesses;
use dray_spec::{CompletionRecord, Descriptor, Opcode, Status};

use super::announced::{self, Announced, DESCRIPTOR};
use super::budget::Budget;
use super::finding::{self, Class};
use super::flight::{Flight, Party, race};
use super::in_flight::InFlight;
use super::reporter::{Report, Reporter};
use super::resume::{Follow, Partial};
use super::unordered::Unordered;
use super::unwritten::{Unwritten, meets};
use super::watch::Change;
use super::watches::Watches;
use crate::processes::Pid;
use crate::sites::PlaceId;

/// Partial completions of a process whose rest is waited for; older ones are forgotten.
const PARTIALS: usize = 64;

/// What descriptors are called: by device and handle.
pub(super) type Key = (u32, WorkId);

/// What a partial completion has left.
#[derive(Debug)]
struct Rest {
    partial: Partial,
    place: Option<PlaceId>,
    unwritten: Option<Unwritten>,
}

impl Rest {
    fn party(&self) -> Party {
        Party {
            descriptor: self.partial.descriptor,
            place: self.place,
        }
    }
}

/// `K`: what a descriptor is called until it has ended.
#[derive(Debug)]
pub(super) struct Books<K = Key> {
    pub(super) flights: InFlight<K>,
    announced: Announced<K>,
    /// Members of each batch in flight since its last fence.
    since_fence: BTreeMap<K, Unordered>,
    partials: HashMap<Pid, Vec<Rest>>,
    pub(super) reporter: Reporter,
    pub(super) spaces: Arc<Spaces>,
    /// The last that has ended, by device: the record of no other can be missing.
    pub(super) last: HashMap<u32, Flight<K>>,
    /// Processes of what was accepted since the last pause of each device, and is looked at closely.
    pub(super) submitters: HashMap<u32, BTreeSet<Pid>>,
    pub(super) watches: Watches<K>,
    pub(super) budget: Budget,
    /// By device: what programs say of calls that take memory away.
    pub(super) calls: HashMap<u32, Device>,
    /// Time that the detectors by the device alone have taken.
    pub(super) time: Duration,
}

impl<K: Copy + Ord> Books<K> {
    pub(super) fn new(spaces: Arc<Spaces>, budget: Budget) -> Books<K> {
        Books {
            flights: InFlight::new(),
            announced: Announced::new(),
            since_fence: BTreeMap::new(),
            partials: HashMap::new(),
            reporter: Reporter::default(),
            spaces,
            last: HashMap::new(),
            submitters: HashMap::new(),
            watches: Watches::default(),
            budget,
            calls: HashMap::new(),
            time: Duration::ZERO,
        }
    }
}

impl<K: Copy + Ord> Books<K> {
    /// Looks at the memory of a descriptor that was accepted: the list of a batch. `observed`: closely.
    pub(super) fn look(&mut self, key: K, flight: &Flight<K>, observed: bool) -> Vec<Descriptor> {
        self.reporter.findings.observed += u64::from(observed);
        if flight.closed {
            return Vec::new();
        }
        let list = match observed {
            true => announced::list(flight, &self.spaces),
            false => Vec::new(),
        };
        self.watches
            .accept(key, flight, &list, &self.spaces, observed);
        list
    }

    /// Compares a descriptor that was accepted with what is in flight.
    /// `list`: the members of a batch, as far as they are known. `status`: what stands where its record will be.
    pub(super) fn accept(
        &mut self,
        key: K,
        flight: Flight<K>,
        list: &[Descriptor],
        status: Option<u8>,
    ) {
        let since = Instant::now();
        self.reporter.findings.descriptors += 1;
        self.compare(&flight);
        self.share_record(&flight, status);
        self.resume(&flight);
        if flight.descriptor.opcode() == Ok(Opcode::Batch) {
            self.since_fence.insert(key, Unordered::default());
            self.announce(key, &flight, list);
        }
        self.flights.insert(key, flight);
        self.time += since.elapsed();
    }

    /// Compares the members of a batch that was accepted with all that is in flight: one finding stands for all.
    fn announce(&mut self, key: K, batch: &Flight<K>, list: &[Descriptor]) {
        let members: Vec<Flight<K>> = list.iter().map(|d| batch.member(key, d)).collect();
        let _ = members.iter().any(|member| self.compare(member));
        let _ = members.iter().any(|member| self.share_record(member, None));
        self.announced.insert(key, &members);
    }

    pub(super) fn start(&mut self, key: K) {
        let change = self.watches.start(key, &self.spaces);
        if let Some(flight) = self.flights.get(key).copied() {
            self.changed(&flight, change);
        }
    }

    /// The data of a descriptor is written, and its record is not.
    pub(super) fn executed(&mut self, key: K) {
        self.watches.executed(key, &self.spaces);
    }

    /// A program has changed memory in flight.
    fn changed(&mut self, flight: &Flight<K>, change: Option<Change>) {
        let mut caller = None;
        let (class, detail) = match change {
            None => return,
            // What is gone with its program is another matter.
            Some(_) if flight.closed || self.is_gone(flight) => return,
            Some(Change::Source(detail)) => (Class::Source, detail),
            Some(Change::Destination(detail)) => (Class::Destination, detail),
            Some(Change::Record(detail)) => (Class::Record, detail),
            Some(Change::Lifetime(detail, memory)) => match self.call(flight, memory) {
                None => (Class::Lifetime, detail),
                Some((name, place)) => {
                    caller = place;
                    (Class::Lifetime, format!("{detail}, by {name}"))
                }
            },
        };
        self.reporter.report(Report {
            caller,
            ..Report::of(class, flight, detail)
        });
    }

    /// The call by which a program has taken memory of a descriptor in flight away, and where it was, as far as the program
    /// says it.
    fn call(
        &mut self,
        flight: &Flight<K>,
        memory: (u64, u64),
    ) -> Option<(&'static str, Option<PlaceId>)> {
        let device = self.calls.get(&flight.device)?;
        let (noted, stack) = device.last_call(flight.pasid, memory, flight.calls)?;
        let sites = &mut self.reporter.sites;
        let place = flight
            .pid
            .and_then(|pid| sites.enter(pid, &noted.origin, &stack));
        Some((noted.call.name(), place))
    }

    pub(super) fn start_member(&mut self, key: K, batch: K, member: Flight<K>) {
        let since = Instant::now();
        self.reporter.findings.descriptors += 1;
        let of = self.flights.get(batch).copied();
        let place = self.announced.begin(batch, &member.descriptor);
        // What was announced was compared with all before its batch, and all behind it with it.
        if place.is_none() {
            self.compare(&member);
        }
        // Who looks at the record of the batch alone clears no others.
        self.share_record(&member, None);
        if let Some(detail) = of.and_then(|of| of_own_batch(&of, &member, place)) {
            self.finding(Class::Overlap, &member, of.map(|of| of.party()), detail);
        }
        self.resume(&member);
        let before = self.since_fence.entry(batch).or_default();
        if let Some((other, bytes)) = before.add(&member) {
            let detail = format!(
                "members of a batch without a fence between them access {}",
                finding::range(&bytes)
            );
            self.finding(Class::Overlap, &member, Some(other), detail);
        }
        self.time += since.elapsed();
        let change = self.watches.start_member(key, batch, &member, &self.spaces);
        self.changed(&member, change);
        self.flights.insert(key, member);
    }

    /// Beside all that is in flight of the same process, but for its own batch: whether that is a finding.
    fn compare(&mut self, flight: &Flight<K>) -> bool {
        let Some((other, bytes)) = self.conflict(flight) else {
            return false;
        };
        let detail = format!(
            "two descriptors in flight access {}",
            finding::range(&bytes)
        );
        self.finding(Class::Overlap, flight, Some(other), detail);
        true
    }

    /// Members of one batch, and the batch itself, are compared apart.
    fn conflict(&self, flight: &Flight<K>) -> Option<(Party, Range<u64>)> {
        let is_own = |id, batch: Option<K>| {
            let own = flight.batch;
            own.is_some_and(|own| own == id || batch == Some(own))
        };
        let begun = self.flights.beside(flight);
        let begun = begun.filter(|(id, other)| !is_own(*id, other.batch));
        let begun = begun.map(|(_, other)| (other.party(), race(flight, other)));
        let waiting = self.announced.members.beside(flight);
        let waiting = waiting.filter(|((batch, _), _)| !is_own(*batch, None));
        let waiting = waiting.map(|(_, other)| (other.party(), race(flight, other)));
        let mut all = begun.chain(waiting);
        all.find_map(|(party, bytes)| Some((party, bytes?)))
    }

    /// What stands where its record will be; `None` if it has none, or the program is gone.
    pub(super) fn record_status(&self, flight: &Flight<K>) -> Option<u8> {
        let record = flight.accesses.record()?;
        self.spaces.read_byte(flight.pasid, record)
    }

    /// Whether its record is another's in flight, or has a status already: that is a finding.
    fn share_record(&mut self, flight: &Flight<K>, status: Option<u8>) -> bool {
        let Some(record) = flight.accesses.record() else {
            return false;
        };
        let other = self.with_record(flight);
        let detail = match (other, status.filter(|_| flight.wants_record())) {
            (Some(_), _) => format!("two descriptors in flight have their record at {record:#x}"),
            (None, None | Some(0)) => return false,
            (None, Some(status)) => {
                format!("the record at {record:#x} has the status {status:#04x} already")
            }
        };
        self.finding(Class::Record, flight, other, detail);
        true
    }

    /// One in flight with the same record.
    fn with_record(&self, flight: &Flight<K>) -> Option<Party> {
        let begun = self.flights.with_record(flight);
        let begun = begun.map(|(_, other)| (other.party(), other.wants_record()));
        // A member that begins was compared with those when its batch was accepted.
        let begins = |batch| self.flights.get(batch).is_some();
        let begins = flight.batch.is_some_and(begins);
        let waiting = self.announced.members.with_record(flight);
        let waiting = waiting.filter(|((batch, _), _)| !begins && flight.batch != Some(*batch));
        let waiting = waiting.map(|(_, other)| (other.party(), other.wants_record()));
        // Of errors alone one may stand for several.
        let mut all = begun.chain(waiting);
        let shared = all.find(|(_, wanted)| *wanted || flight.wants_record())?;
        Some(shared.0)
    }

    fn resume(&mut self, flight: &Flight<K>) {
        let Some(partials) = flight.pid.and_then(|pid| self.partials.get_mut(&pid)) else {
            return;
        };
        let carried_on = partials.iter().find_map(|rest| {
            let part = rest.unwritten.as_ref()?;
            let spaces = &self.spaces;
            let is_it = part.is_carried_on(&flight.accesses, flight.pasid, spaces);
            is_it.then_some((rest.party(), part.start))
        });
        // Whose buffers are used for something else is over.
        partials.retain(|rest| {
            let follow = rest.partial.follow(&flight.descriptor);
            follow != Follow::Other
                || Accesses::of(&rest.partial.descriptor)
                    .conflict(&flight.accesses)
                    .is_none()
        });
        let all = partials.iter().enumerate();
        let follows = all.into_iter().find_map(|(index, rest)| {
            let follow = rest.partial.follow(&flight.descriptor);
            (follow != Follow::Other).then_some((index, rest.party(), follow))
        });
        if let Some((other, start)) = carried_on {
            let detail = format!(
                "it reads the destination of the second one, which ended at a page fault: nobody has written the bytes at {start:#x} since"
            );
            self.finding(Class::Resume, flight, Some(other), detail);
            return;
        }
        let Some((index, party, follow)) = follows else {
            return;
        };
        // A core may have done the rest.
        let unwritten = partials.remove(index).unwritten;
        let is_left = unwritten.is_some_and(|part| part.is_left(flight.pasid, &self.spaces));
        if let (Follow::Wrong(why), true) = (follow, is_left) {
            self.finding(Class::Resume, flight, Some(party), why.to_owned());
        }
    }

    pub(super) fn end(&mut self, key: K, record: Option<&CompletionRecord>) {
        self.since_fence.remove(&key);
        self.announced.end(key);
        let change = self.watches.end(key, record.is_some(), &self.spaces);
        let Some(flight) = self.flights.remove(key) else {
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
            partials.retain(|rest| rest.partial.follow(&flight.descriptor) == Follow::Other);
            if partials.len() == PARTIALS {
                partials.remove(0);
            }
            partials.push(Rest {
                unwritten: Unwritten::of(&partial, flight.pasid, &self.spaces),
                partial,
                place: flight.place,
            });
        }
        // Errors of fields have codes from 0x10 on; before them are results and page faults.
        if status.code() >= Status::BAD_OPCODE.code() {
            self.reporter.report(Report {
                mend: finding::mend(status),
                ..Report::of(Class::Field, &flight, finding::status(status))
            });
        }
    }

    /// What is in flight when a process or a mapping ends.
    pub(super) fn close(&mut self, device: Option<u32>, pid: Pid) {
        if device.is_none() {
            self.partials.remove(&pid);
        }
        let is_of = |flight: &Flight<K>| {
            flight.pid == Some(pid) && device.is_none_or(|device| device == flight.device)
        };
        let open = self.flights.values_mut();
        let open = open.filter(|flight| is_of(flight));
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
        // It may go on as another program, or another one with its number.
        self.reporter.sites.forget(pid);
        self.budget.forget(pid);
    }

    /// Whether its process has ended, or executes another program.
    pub(super) fn is_gone(&self, flight: &Flight<K>) -> bool {
        flight.pasid != 0 && !self.spaces.is_there(flight.pasid)
    }

    /// Of a batch one finding stands for its members.
    pub(super) fn given_up(&mut self, flight: &Flight<K>) {
        if !flight.closed && flight.batch.is_none() {
            let detail =
                "it was in flight when its process, its mapping or its queue ended".to_owned();
            self.finding(Class::Close, flight, None, detail);
        }
    }

    fn finding(&mut self, class: Class, flight: &Flight<K>, other: Option<Party>, detail: String) {
        self.reporter.report(Report {
            other,
            ..Report::of(class, flight, detail)
        });
    }
}

/// What a member in this place of the list does to its own batch: nothing orders that with the device's reads of the list, or
/// with the program's of the record.
fn of_own_batch<K>(batch: &Flight<K>, member: &Flight<K>, place: Option<usize>) -> Option<String> {
    let record = batch.accesses.record_range();
    let mut data = member.accesses.written();
    if record.is_some_and(|record| data.any(|range| meets(range, record))) {
        return Some("a member of a batch writes to the batch's record".to_owned());
    }
    // Those before it have been read; which one it is, is not always known.
    let read = (place? as u64 + 1) * DESCRIPTOR as u64;
    let list = batch.accesses.read().next()?;
    let left = (list.0.checked_add(read)?, list.1.checked_sub(read)?);
    let overwrites = left.1 > 0 && member.accesses.writes_to(left);
    overwrites.then(|| "a member of a batch writes to those behind it in the list".to_owned())
}
