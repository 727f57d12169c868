//! A channel: one mover, used by any number of queues.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use dray_spec::Status;

use super::engine::{Copy, CopyEngine, Done};

/// Copies polled at once.
const POLL: usize = 64;

/// What copies in flight point into: kept until the last of them has ended.
pub(crate) type Keep = Arc<dyn Any + Send + Sync>;

/// The channels of one thread. Queues name them by index.
pub type Channels = Vec<Channel>;

/// A queue's place at a channel.
#[derive(Default)]
struct Member {
    /// Ends that another queue's poll has found.
    inbox: Vec<Done>,
    in_flight: usize,
    live: bool,
    keep: Option<Keep>,
}

/// One mover, used by any number of queues of a thread.
pub struct Channel {
    name: String,
    lane: usize,
    engine: Box<dyn CopyEngine>,
    staged: Vec<Copy>,
    members: Vec<Member>,
    in_flight: usize,
    done: Box<[Done; POLL]>,
    copies: u64,
    bytes: u64,
    /// Copies that failed, by the name of their status.
    failures: BTreeMap<&'static str, u64>,
}

/// A copy's token: its queue's place, and the number that the queue gave it.
#[inline]
fn token(member: u32, sequence: u32) -> u64 {
    u64::from(member) << 32 | u64::from(sequence)
}

impl Channel {
    /// A channel over a mover.
    pub fn new(name: impl Into<String>, engine: Box<dyn CopyEngine>) -> Channel {
        Channel {
            name: name.into(),
            lane: 0,
            engine,
            staged: Vec::new(),
            members: Vec::new(),
            in_flight: 0,
            done: Box::new([Done::default(); POLL]),
            copies: 0,
            bytes: 0,
            failures: BTreeMap::new(),
        }
    }

    /// The same for the thread with this number: a queue that several threads use has places for each.
    pub fn of_thread(mut self, lane: usize) -> Channel {
        self.lane = lane;
        self
    }

    /// The number of the thread that uses it.
    pub(crate) fn lane(&self) -> usize {
        self.lane
    }

    /// Its name, such as `wq0.1`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who executes.
    pub fn executor(&self) -> &'static str {
        self.engine.executor()
    }

    /// Copies made, bytes of them, and copies that failed.
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.copies, self.bytes, self.failures.values().sum())
    }

    /// Copies that failed, by the name of their status.
    pub fn failures(&self) -> &BTreeMap<&'static str, u64> {
        &self.failures
    }

    /// Copies in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Gives a queue a place.
    pub(crate) fn register(&mut self) -> u32 {
        let free = self
            .members
            .iter()
            .position(|m| !m.live && m.in_flight == 0);
        let at = free.unwrap_or_else(|| {
            self.members.push(Member::default());
            self.members.len() - 1
        });
        self.members[at].live = true;
        at as u32
    }

    /// Takes a queue's place back. What its copies in flight point into is kept until they end.
    pub(crate) fn unregister(&mut self, member: u32, keep: Keep) {
        let member = &mut self.members[member as usize];
        member.live = false;
        member.inbox.clear();
        if member.in_flight > 0 {
            member.keep = Some(keep);
        }
    }

    /// Whether copies of a queue are in flight, or their ends have not been polled.
    pub(crate) fn has_copies_of(&self, member: u32) -> bool {
        let member = &self.members[member as usize];
        member.in_flight > 0 || !member.inbox.is_empty()
    }

    /// Whether a queue is registered, or copies are in flight: it cannot be taken away then.
    pub fn is_in_use(&self) -> bool {
        self.in_flight > 0 || self.members.iter().any(|m| m.live || m.in_flight > 0)
    }

    /// Lets go of the mover; there must be neither a queue nor a copy. The channel's place is free then.
    ///
    /// # Panics
    /// If it is in use.
    pub fn close(&mut self) {
        assert!(!self.is_in_use(), "a channel in use");
        self.engine = Box::new(Closed);
        self.name.clear();
    }

    /// Whether its mover is gone.
    pub fn is_closed(&self) -> bool {
        self.name.is_empty()
    }

    /// How many copies the engine takes: asked before a burst is staged.
    #[inline]
    pub(crate) fn begin(&mut self) -> usize {
        debug_assert!(self.staged.is_empty());
        self.engine.room()
    }

    /// Adds a copy to the burst that the next submission starts. There must be room. The end comes
    /// back with `sequence`.
    ///
    /// # Safety
    /// As [`CopyEngine::submit`].
    #[inline]
    pub(crate) unsafe fn stage(
        &mut self,
        member: u32,
        sequence: u32,
        (source, destination, len): (u64, u64, u32),
    ) {
        self.staged.push(Copy {
            source,
            destination,
            token: token(member, sequence),
            len,
        });
        self.bytes += u64::from(len);
    }

    /// Starts what a queue has staged; how many copies these were.
    #[inline]
    pub(crate) fn submit(&mut self, member: u32) -> u64 {
        let count = self.staged.len();
        if count > 0 {
            self.members[member as usize].in_flight += count;
            self.in_flight += count;
            self.copies += count as u64;
            // SAFETY: `stage` had its callers promise it for each copy.
            unsafe { self.engine.submit(&self.staged) };
            self.staged.clear();
        }
        count as u64
    }

    /// Hands the ends of a queue's copies to `each`, by their numbers and whether they were made;
    /// those of other queues wait in their places.
    #[inline]
    pub(crate) fn poll(&mut self, member: u32, mut each: impl FnMut(u32, bool)) {
        let Channel {
            engine,
            done,
            members,
            failures,
            ..
        } = self;
        loop {
            // First what other queues' polls have found, which is accounted for.
            let inbox = &mut members[member as usize].inbox;
            let polls = inbox.is_empty();
            let count = match polls {
                true if self.in_flight == 0 => return,
                true => engine.poll(&mut done[..]),
                false => take_from(inbox, &mut done[..]),
            };
            let mut own = 0;
            for end in &done[..count] {
                let ok = end.status.is_success();
                if polls && !ok {
                    count_failure(failures, end.status);
                }
                if (end.token >> 32) as u32 == member {
                    own += 1;
                    each(end.token as u32, ok);
                } else {
                    hand_over(members, *end);
                }
            }
            if polls {
                members[member as usize].in_flight -= own;
                self.in_flight -= count;
                if count < POLL {
                    return;
                }
            }
        }
    }

    /// Takes ends of copies: what abandoned ones pointed into is let go of, the others' are kept for
    /// their queues.
    pub fn reap(&mut self) {
        if self.in_flight > 0 {
            let place = self.register();
            self.poll(place, |_, _| {});
            self.unregister(place, Arc::new(()));
        }
    }
}

/// The mover of a channel that was closed.
struct Closed;

impl CopyEngine for Closed {
    fn executor(&self) -> &'static str {
        "none"
    }

    fn room(&self) -> usize {
        0
    }

    unsafe fn submit(&mut self, copies: &[Copy]) {
        assert!(copies.is_empty(), "there is no room");
    }

    fn poll(&mut self, _into: &mut [Done]) -> usize {
        0
    }
}

/// Moves ends from a list, as many as there is room for; how many they are.
#[cold]
fn take_from(list: &mut Vec<Done>, into: &mut [Done]) -> usize {
    let count = list.len().min(into.len());
    into[..count].copy_from_slice(&list[..count]);
    list.drain(..count);
    count
}

#[cold]
fn count_failure(failures: &mut BTreeMap<&'static str, u64>, status: Status) {
    *failures.entry(status.name()).or_default() += 1;
}

/// Keeps the completion of another queue's copy for it; for a queue that is gone, releases what was kept for it.
fn hand_over(members: &mut [Member], end: Done) {
    let Some(of) = members.get_mut((end.token >> 32) as usize) else {
        return;
    };
    of.in_flight -= 1;
    if of.live {
        of.inbox.push(end);
    } else if of.in_flight == 0 {
        of.keep = None;
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel")
            .field("name", &self.name)
            .field("executor", &self.executor())
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}

impl Drop for Channel {
    /// A mover's copies must not write into memory that is gone: what they point into is leaked if
    /// they do not end with the mover.
    fn drop(&mut self) {
        for member in &mut self.members {
            if let Some(keep) = member.keep.take() {
                std::mem::forget(keep);
            }
        }
    }
}
