//! What is watched, by descriptor.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dray_remote::Spaces;
use dray_spec::Accesses;
use dray_spec::{Descriptor, Opcode};

use super::flight::Flight;
use super::watch::{Change, Watch};

/// Members of a batch that are watched; of larger ones these.
const MEMBERS: usize = 64;

/// A descriptor in flight.
#[derive(Debug)]
struct Watched {
    accesses: Accesses,
    watch: Watch,
    /// Of a batch: those of its members that have not begun.
    members: Vec<(Descriptor, Watch)>,
    /// All of the members' accesses.
    of_members: Vec<Accesses>,
    /// A batch whose members are not known: nothing can be said of memory while it is in flight.
    opaque: bool,
}

impl Watched {
    fn exclude(&mut self, other: &Accesses) {
        self.watch.exclude(other);
        for (_, watch) in &mut self.members {
            watch.exclude(other);
        }
    }

    fn accesses(&self) -> impl Iterator<Item = &Accesses> {
        std::iter::once(&self.accesses).chain(&self.of_members)
    }
}

/// All that is watched.
#[derive(Debug)]
pub(super) struct Watches<K> {
    watched: BTreeMap<K, Watched>,
    /// How many of them are looked at, and how many are opaque.
    looked_at: usize,
    opaque: usize,
    /// Time that the looks have taken.
    pub(super) time: Duration,
}

impl<K> Default for Watches<K> {
    fn default() -> Watches<K> {
        Watches {
            watched: BTreeMap::new(),
            looked_at: 0,
            opaque: 0,
            time: Duration::ZERO,
        }
    }
}

impl<K: Copy + Ord> Watches<K> {
    /// A descriptor has been accepted. `observed`: its memory is looked at; otherwise it counts for what others write.
    /// `list`: the members of a batch.
    pub(super) fn accept(
        &mut self,
        key: K,
        flight: &Flight<K>,
        list: &[Descriptor],
        spaces: &Spaces,
        observed: bool,
    ) {
        let observed = observed && self.opaque == 0;
        let is_batch = flight.descriptor.opcode() == Ok(Opcode::Batch);
        let mut watched = Watched {
            accesses: flight.accesses,
            watch: Watch::nothing(flight.pasid),
            members: Vec::new(),
            of_members: Vec::new(),
            opaque: is_batch && !observed,
        };
        if !observed {
            if watched.opaque {
                self.blind();
            } else if self.looked_at > 0 {
                self.watched
                    .values_mut()
                    .for_each(|other| other.exclude(&watched.accesses));
            }
            self.insert(key, watched);
            return;
        }
        let since = Instant::now();
        watched.watch = Watch::new(spaces, flight.pasid, &flight.accesses);
        if is_batch {
            watched.watch = watched.watch.of_list();
            let list = &list[..list.len().min(MEMBERS)];
            begin_members(&mut watched, flight.pasid, list, spaces);
        }
        for other in self.watched.values_mut() {
            for accesses in other.accesses() {
                watched.exclude(accesses);
            }
            for accesses in watched.accesses() {
                other.exclude(accesses);
            }
        }
        self.insert(key, watched);
        self.time += since.elapsed();
    }

    fn insert(&mut self, key: K, watched: Watched) {
        self.looked_at += usize::from(watched.watch.is_looked_at());
        self.opaque += usize::from(watched.opaque);
        self.watched.insert(key, watched);
    }

    fn remove(&mut self, key: K) -> Option<Watched> {
        let watched = self.watched.remove(&key)?;
        self.looked_at -= usize::from(watched.watch.is_looked_at());
        self.opaque -= usize::from(watched.opaque);
        Some(watched)
    }

    /// Nothing more is to be said of what is in flight: something writes that is not known.
    fn blind(&mut self) {
        self.looked_at = 0;
        for watched in self.watched.values_mut() {
            watched.watch.end();
            watched.members.clear();
        }
    }

    /// A descriptor is about to be executed: what has changed.
    pub(super) fn start(&mut self, key: K, spaces: &Spaces) -> Option<Change> {
        let watch = &mut self.watched.get_mut(&key)?.watch;
        if !watch.is_looked_at() {
            return None;
        }
        let since = Instant::now();
        let change = watch.at_start(spaces);
        if change.is_some() {
            watch.end();
            self.looked_at -= 1;
        }
        self.time += since.elapsed();
        change
    }

    /// A member of a batch is about to be executed.
    pub(super) fn start_member(
        &mut self,
        key: K,
        batch: K,
        flight: &Flight<K>,
        spaces: &Spaces,
    ) -> Option<Change> {
        let members = &mut self.watched.get_mut(&batch)?.members;
        let index = members.iter().position(|(d, _)| *d == flight.descriptor)?;
        let (_, watch) = members.remove(index);
        let watched = Watched {
            accesses: flight.accesses,
            watch,
            members: Vec::new(),
            of_members: Vec::new(),
            opaque: false,
        };
        self.insert(key, watched);
        self.start(key, spaces)
    }

    /// Its data is written, and its record is not.
    pub(super) fn executed(&mut self, key: K, spaces: &Spaces) {
        if let Some(watched) = self.watched.get_mut(&key)
            && watched.watch.is_looked_at()
        {
            let since = Instant::now();
            watched.watch.executed(spaces);
            self.time += since.elapsed();
        }
    }

    /// It has ended, and its record cannot be seen yet. `reported`: it has one.
    pub(super) fn end(&mut self, key: K, reported: bool, spaces: &Spaces) -> Option<Change> {
        let watched = self.remove(key)?;
        if !watched.watch.is_looked_at() {
            return None;
        }
        let since = Instant::now();
        let change = match reported {
            true => watched.watch.at_end(spaces),
            false => None,
        };
        self.time += since.elapsed();
        change
    }
}

fn begin_members(watched: &mut Watched, pasid: u32, list: &[Descriptor], spaces: &Spaces) {
    watched.of_members = list.iter().map(Accesses::of).collect();
    for (index, member) in list.iter().enumerate() {
        let mut watch = Watch::new(spaces, pasid, &watched.of_members[index]);
        // The order of members says nothing about what the program does.
        let others = watched.of_members.iter().enumerate();
        for (_, other) in others.filter(|(other, _)| *other != index) {
            watch.exclude(other);
        }
        watched.members.push((*member, watch));
    }
}
