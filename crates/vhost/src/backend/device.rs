//! The device of one connection.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::VhostError;
use crate::memory::{DirtyLog, MemoryMap};
use crate::protocol::{
    Frame, Message, Options, Reply, Request, Session, VringAddress, VringConfig, encode,
};
use crate::queue::{QueueGuard, Queues};

/// What the control path has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ControlStats {
    /// Messages that were understood and granted.
    pub messages: u64,
    /// Messages that were refused.
    pub refused: u64,
    /// Requests with an id that is not known.
    pub unknown: u64,
    /// Connections that were made.
    pub connections: u64,
    /// Connections that ended by an error.
    pub broken_connections: u64,
    /// Connections that were closed because the port had one.
    pub surplus_connections: u64,
}

impl ControlStats {
    /// All of them: it changes with each.
    pub(super) fn sum(&self) -> u64 {
        self.messages + self.refused + self.connections + self.broken_connections
    }
}

/// What became of a message.
#[derive(Debug)]
pub enum Handled {
    /// It is done; bytes to answer, if any.
    Done(Option<Vec<u8>>),
    /// Copies in flight must end first: go on polling the queues, and call [`Backend::resume`].
    Waiting,
}

/// A message that waits for copies in flight.
#[derive(Debug)]
struct Pending {
    work: Work,
    queues: Vec<usize>,
    until: Instant,
}

#[derive(Debug)]
enum Work {
    Message {
        message: Message,
        id: u32,
        need_reply: bool,
    },
    Disconnect,
}

/// Where a packed ring stood when its connection broke; some front ends cannot say it (QEMU).
#[derive(Debug, Clone, Copy)]
pub(super) struct Saved {
    pub(super) address: VringAddress,
    pub(super) size: u32,
    pub(super) base: u32,
}

/// The device behind one port: what a connection has agreed on, its memory and its queues.
///
/// It does no I/O but notifications: messages come in as frames and answers go out as bytes.
#[derive(Debug)]
pub struct Backend {
    pub(super) session: Session,
    pub(super) memory: Arc<MemoryMap>,
    pub(super) vrings: Vec<VringConfig>,
    pub(super) queues: Queues,
    pub(super) saved: Vec<Option<Saved>>,
    /// Where written pages are logged while LOG_ALL is in force, and the eventfd that is signalled.
    pub(super) log: Option<Arc<DirtyLog>>,
    pub(super) log_event: Option<OwnedFd>,
    pub(super) stats: ControlStats,
    pub(super) errors: Vec<VhostError>,
    pending: Option<Pending>,
    drain_deadline: Duration,
}

/// Errors that are kept until they are taken.
const MAX_ERRORS: usize = 64;

impl Backend {
    /// A device without a front end.
    pub fn new(options: Options) -> Backend {
        let count = 2 * usize::from(options.queue_pairs.clamp(1, 128));
        Backend {
            session: Session::new(options),
            memory: Arc::new(MemoryMap::new(options.address_space)),
            vrings: (0..count).map(|_| VringConfig::default()).collect(),
            queues: Queues::new(count),
            saved: vec![None; count],
            log: None,
            log_event: None,
            stats: ControlStats::default(),
            errors: Vec::new(),
            pending: None,
            drain_deadline: Duration::from_secs(1),
        }
    }

    /// How long control messages wait for copies in flight. One second if it is never said.
    pub fn set_drain_deadline(&mut self, deadline: Duration) {
        self.drain_deadline = deadline;
    }

    /// What was agreed on.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The front end's memory.
    pub fn memory(&self) -> &MemoryMap {
        &self.memory
    }

    /// The queues: even ones to the guest, odd ones from it.
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// A queue by its index. Whoever holds it asks for no other, nor hands a message over: each waits for its lock.
    pub fn queue(&self, index: usize) -> QueueGuard<'_> {
        self.queues.lock(index)
    }

    /// The queue to the guest of a pair.
    pub fn to_guest(&self, pair: usize) -> QueueGuard<'_> {
        self.queue(2 * pair)
    }

    /// The queue from the guest of a pair.
    pub fn from_guest(&self, pair: usize) -> QueueGuard<'_> {
        self.queue(2 * pair + 1)
    }

    /// Queue pairs of the port.
    pub fn pairs(&self) -> usize {
        self.queues.len() / 2
    }

    /// What the control path has counted.
    pub fn stats(&self) -> &ControlStats {
        &self.stats
    }

    /// What the control path has counted, to add to.
    pub fn stats_mut(&mut self) -> &mut ControlStats {
        &mut self.stats
    }

    /// Messages that were refused since this was called last, the latest 64 at most.
    pub fn take_errors(&mut self) -> Vec<VhostError> {
        std::mem::take(&mut self.errors)
    }

    /// Carries a message out, or begins to.
    ///
    /// # Errors
    /// The connection cannot go on: a request with an answer of its own that cannot be answered.
    pub fn handle(&mut self, frame: Frame, now: Instant) -> Result<Handled, VhostError> {
        let id = frame.header.request;
        let need_reply = frame.header.needs_reply() && self.session.has_reply_ack();
        let message = match Message::parse(frame) {
            Ok(message) => message,
            Err(error) => return self.answer(id, need_reply, Err(error)).map(Handled::Done),
        };
        let queues = self.must_drain(&message);
        let work = Work::Message {
            message,
            id,
            need_reply,
        };
        self.begin(work, queues, now)
    }

    /// The connection has ended: stops all queues and forgets what was agreed on, once copies in
    /// flight have ended.
    ///
    /// # Errors
    /// None that matter: a drain that misses its deadline is counted.
    pub fn disconnect(&mut self, now: Instant) -> Result<Handled, VhostError> {
        self.pending = None;
        let queues = (0..self.queues.len()).collect();
        self.begin(Work::Disconnect, queues, now)
    }

    /// Whether a message waits for copies in flight.
    pub fn is_waiting(&self) -> bool {
        self.pending.is_some()
    }

    /// Goes on with what waits, if its copies have ended or its time is over.
    ///
    /// # Errors
    /// As [`Backend::handle`].
    pub fn resume(&mut self, now: Instant) -> Result<Handled, VhostError> {
        let Some(pending) = self.pending.take() else {
            return Ok(Handled::Done(None));
        };
        let in_flight = |q: &usize| self.queue(*q).in_flight();
        let in_flight: usize = pending.queues.iter().map(in_flight).sum();
        if in_flight > 0 && now < pending.until {
            self.pending = Some(pending);
            return Ok(Handled::Waiting);
        }
        // Until it is carried out no thread takes anything new.
        let result = match in_flight {
            0 => self.finish(pending.work),
            _ => self.miss(pending.work, &pending.queues, in_flight),
        };
        for queue in &pending.queues {
            self.queue(*queue).end_drain();
        }
        result.map(Handled::Done)
    }

    fn begin(
        &mut self,
        work: Work,
        queues: Vec<usize>,
        now: Instant,
    ) -> Result<Handled, VhostError> {
        for queue in &queues {
            self.queue(*queue).begin_drain();
        }
        self.pending = Some(Pending {
            work,
            queues,
            until: now + self.drain_deadline,
        });
        self.resume(now)
    }

    /// Copies did not end in time. Their queues are given up, their memory is kept until they end,
    /// and "stopped" is never answered.
    #[cold]
    fn miss(
        &mut self,
        work: Work,
        queues: &[usize],
        in_flight: usize,
    ) -> Result<Option<Vec<u8>>, VhostError> {
        for queue in queues {
            let mut queue = self.queue(*queue);
            if queue.in_flight() > 0 {
                queue.give_up();
            }
        }
        let error = VhostError::Drain { in_flight };
        match work {
            Work::Disconnect => {
                self.keep_error(error);
                self.finish(Work::Disconnect)
            }
            Work::Message { id, need_reply, .. } => self.answer(id, need_reply, Err(error)),
        }
    }

    fn finish(&mut self, work: Work) -> Result<Option<Vec<u8>>, VhostError> {
        match work {
            Work::Disconnect => {
                self.reset_connection();
                Ok(None)
            }
            Work::Message {
                message,
                id,
                need_reply,
            } => {
                let mut result = self.apply(message);
                if let Err(error) = self.start_ready() {
                    match result {
                        // What made the ring startable is what is refused.
                        Ok(None) => result = Err(error),
                        _ => self.keep_error(error),
                    }
                }
                self.answer(id, need_reply, result)
            }
        }
    }

    /// The answer to a request, if it has one.
    fn answer(
        &mut self,
        id: u32,
        need_reply: bool,
        result: Result<Option<Reply>, VhostError>,
    ) -> Result<Option<Vec<u8>>, VhostError> {
        let has_reply = Request::from_id(id).is_some_and(Request::has_reply);
        match result {
            Ok(Some(reply)) => {
                self.stats.messages += 1;
                Ok(Some(encode(id, reply)))
            }
            Ok(None) => {
                self.stats.messages += 1;
                Ok(need_reply.then(|| encode(id, Reply::Number(0))))
            }
            Err(error) if has_reply => {
                self.stats.refused += 1;
                Err(error)
            }
            Err(error) => {
                self.stats.refused += 1;
                self.keep_error(error);
                Ok(need_reply.then(|| encode(id, Reply::Number(1))))
            }
        }
    }

    pub(super) fn keep_error(&mut self, error: VhostError) {
        if self.errors.len() == MAX_ERRORS {
            self.errors.remove(0);
        }
        self.errors.push(error);
    }

    /// Queues whose copies must have ended before a message is carried out.
    fn must_drain(&self, message: &Message) -> Vec<usize> {
        let one = |index: u32| match (index as usize) < self.queues.len() {
            true => vec![index as usize],
            false => Vec::new(),
        };
        let all = || (0..self.queues.len()).collect();
        match message {
            Message::GetVringBase { index } => one(*index),
            Message::SetVringEnable {
                index,
                enable: false,
            } => one(*index),
            Message::SetMemTable(table) if !self.is_same_table(table) => all(),
            Message::RemMemReg(_) | Message::ResetDevice | Message::ResetOwner => all(),
            Message::SetStatus(0) => all(),
            _ => Vec::new(),
        }
    }
}
