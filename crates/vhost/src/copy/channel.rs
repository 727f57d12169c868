//! A channel: one mover, used by any number of queues.

use std::any::Any;
use std::sync::Arc;

use super::engine::{Copy, CopyEngine, Done};

/// Copies polled at once.
const POLL: usize = 64;

/// What copies in flight point into: kept until the last of them has ended.
pub(crate) type Keep = Arc<dyn Any + Send + Sync>;

/// The channels of one thread. Queues name them by index.
pub type Channels = Vec<Channel>;

/// A copy of a queue that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished {
    /// Sequence number of the packet's slot.
    pub(crate) slot: u32,
    pub(crate) copy: Copy,
    pub(crate) ok: bool,
}

/// A queue's place at a channel.
#[derive(Default)]
struct Member {
    /// Ends that another queue's poll has found.
    inbox: Vec<Finished>,
    in_flight: usize,
    live: bool,
    keep: Option<Keep>,
}

#[derive(Debug, Clone, Copy)]
struct Op {
    copy: Copy,
    member: u32,
    slot: u32,
}

/// One mover, used by any number of queues of a thread.
pub struct Channel {
    name: String,
    engine: Box<dyn CopyEngine>,
    ops: Vec<Op>,
    free: Vec<u32>,
    staged: Vec<Copy>,
    members: Vec<Member>,
    copies: u64,
    bytes: u64,
    failed: u64,
}

impl Channel {
    /// A channel over a mover.
    pub fn new(name: impl Into<String>, engine: Box<dyn CopyEngine>) -> Channel {
        Channel {
            name: name.into(),
            engine,
            ops: Vec::new(),
            free: Vec::new(),
            staged: Vec::new(),
            members: Vec::new(),
            copies: 0,
            bytes: 0,
            failed: 0,
        }
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
        (self.copies, self.bytes, self.failed)
    }

    /// Copies in flight.
    pub fn in_flight(&self) -> usize {
        self.members.iter().map(|m| m.in_flight).sum()
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

    /// Copies that can be staged and submitted now.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.engine.room().saturating_sub(self.staged.len())
    }

    /// Adds a copy to the burst that the next submission starts. There must be room.
    ///
    /// # Safety
    /// As [`CopyEngine::submit`].
    #[inline]
    pub(crate) unsafe fn stage(&mut self, member: u32, slot: u32, mut copy: Copy) {
        let token = match self.free.pop() {
            Some(token) => token,
            None => self.grow(),
        };
        copy.token = token;
        self.ops[token as usize] = Op { copy, member, slot };
        self.members[member as usize].in_flight += 1;
        self.staged.push(copy);
        self.copies += 1;
        self.bytes += u64::from(copy.len);
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        self.ops.push(Op {
            copy: Copy {
                source: 0,
                destination: 0,
                len: 0,
                token: 0,
            },
            member: 0,
            slot: 0,
        });
        (self.ops.len() - 1) as u32
    }

    /// Starts what was staged.
    #[inline]
    pub(crate) fn submit(&mut self) {
        if !self.staged.is_empty() {
            // SAFETY: `stage` had its callers promise it for each copy.
            unsafe { self.engine.submit(&self.staged) };
            self.staged.clear();
        }
    }

    /// Hands the ends of a queue's copies to `each`; those of other queues wait in their places.
    #[inline]
    pub(crate) fn poll(&mut self, member: u32, mut each: impl FnMut(Finished)) {
        let mine = &mut self.members[member as usize];
        if !mine.inbox.is_empty() {
            mine.inbox.drain(..).for_each(&mut each);
        }
        let mut done = [Done::default(); POLL];
        loop {
            let count = self.engine.poll(&mut done);
            for end in &done[..count] {
                let Some(op) = self.ops.get(end.token as usize).copied() else {
                    continue;
                };
                self.free.push(end.token);
                self.failed += u64::from(!end.ok);
                let of = &mut self.members[op.member as usize];
                of.in_flight -= 1;
                let finished = Finished {
                    slot: op.slot,
                    copy: op.copy,
                    ok: end.ok,
                };
                if op.member == member {
                    each(finished);
                } else if of.live {
                    of.inbox.push(finished);
                } else if of.in_flight == 0 {
                    of.keep = None;
                }
            }
            if count < POLL {
                return;
            }
        }
    }

    /// Takes ends of copies: what abandoned ones pointed into is let go of, the others' are kept for
    /// their queues.
    pub fn reap(&mut self) {
        if self.members.iter().any(|m| m.in_flight > 0) {
            let place = self.register();
            self.poll(place, |_| {});
            self.unregister(place, Arc::new(()));
        }
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
