//! A device and its socket: listening or connecting, again and again.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::connection::{Connection, Received};
use super::device::{Backend, Handled};
use super::listener::{Listener, connect};
use crate::VhostError;
use crate::notify;
use crate::protocol::Options;
use crate::queue;
use crate::ring::RingFault;

/// Time between attempts to connect.
const RETRY: Duration = Duration::from_millis(200);
/// Messages handled at one time; the queues have their turn then.
const MESSAGES: usize = 64;
/// Time after which no further message is handled at one time.
const TURN: Duration = Duration::from_micros(20);
/// Surplus connections closed at one time.
const SURPLUS: usize = 64;

/// Which side listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// This side listens (the socket is created and removed here).
    Server,
    /// This side connects, as often as it takes.
    Client,
}

/// Something to report.
#[derive(Debug)]
pub enum Event {
    /// A front end has connected.
    Connected,
    /// Its connection has ended.
    Disconnected,
    /// Its connection was ended because of this.
    Broken(VhostError),
    /// A message was refused, or a ring could not be started.
    Refused(VhostError),
    /// A ring was stopped, for its driver broke a rule.
    Stopped {
        /// The port's socket.
        path: PathBuf,
        /// Index of the queue.
        queue: usize,
        /// Why.
        fault: RingFault,
    },
}

/// A device behind a socket.
#[derive(Debug)]
pub struct Endpoint {
    path: PathBuf,
    listener: Option<Listener>,
    connection: Option<Connection>,
    /// The connection is gone, its copies are not.
    leaving: bool,
    retry: Instant,
    /// Faults of rings in this process that were looked at.
    ring_faults: u64,
    /// [`TURN`].
    turn: Duration,
    /// The device.
    pub backend: Backend,
}

impl Endpoint {
    /// Listens at a path, or begins to try to connect to it.
    ///
    /// # Errors
    /// The socket cannot be created, or the kernel has no asynchronous I/O for notifications.
    pub fn new(path: &Path, role: Role, options: Options) -> Result<Endpoint, VhostError> {
        notify::prepare()?;
        let listener = match role {
            Role::Server => Some(Listener::bind(path)?),
            Role::Client => None,
        };
        Ok(Endpoint {
            path: path.to_owned(),
            listener,
            connection: None,
            leaving: false,
            retry: Instant::now(),
            ring_faults: queue::ring_faults(),
            turn: TURN,
            backend: Backend::new(options),
        })
    }

    /// Where the socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a front end is connected.
    pub fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Whether its messages wait until another thread has unmapped former memory: no descriptor says when.
    pub(crate) fn is_unmapping(&self) -> bool {
        self.backend.memory().is_unmapping()
    }

    /// What to wait for if nothing is to be done: a connection, or messages.
    pub fn wait_on(&self) -> Option<BorrowedFd<'_>> {
        if self.is_unmapping() {
            return None;
        }
        match (&self.connection, &self.listener) {
            (Some(connection), _) => Some(connection.as_fd()),
            (None, listener) => listener.as_ref().map(AsFd::as_fd),
        }
    }

    /// Accepts, connects, handles messages. Waits for other threads to leave its queues, and for nothing else; call it often. Returns whether anything was done.
    pub fn poll(&mut self, now: Instant, events: &mut Vec<Event>) -> bool {
        let before = self.backend.stats().sum();
        self.go_on(now, events);
        self.report_stopped(events);
        self.backend.stats().sum() != before
    }

    fn go_on(&mut self, now: Instant, events: &mut Vec<Event>) {
        if self.leaving || self.backend.is_waiting() {
            match self.backend.resume(now) {
                Ok(Handled::Waiting) => return,
                Ok(Handled::Done(_)) if self.leaving => self.leaving = false,
                Ok(Handled::Done(answer)) => self.answer(answer, now, events),
                Err(error) => self.end(Event::Broken(error), now, events),
            }
        }
        if self.connection.is_none() {
            self.connect(now, events);
        }
        self.refuse_surplus();
        self.read(now, events);
        let refused = self.backend.take_errors();
        events.extend(refused.into_iter().map(Event::Refused));
    }

    fn report_stopped(&mut self, events: &mut Vec<Event>) {
        let faults = queue::ring_faults();
        if faults == self.ring_faults {
            return;
        }
        self.ring_faults = faults;
        for mut queue in self.backend.queues().iter() {
            if let Some(fault) = queue.take_fault() {
                events.push(Event::Stopped {
                    path: self.path.clone(),
                    queue: queue.index(),
                    fault,
                });
            }
        }
    }

    fn read(&mut self, now: Instant, events: &mut Vec<Event>) {
        let start = Instant::now();
        for at in 0..MESSAGES {
            // A front end waits until its former memory is unmapped.
            if self.is_unmapping() || (at > 0 && start.elapsed() >= self.turn) {
                return;
            }
            let Some(connection) = &mut self.connection else {
                return;
            };
            let files = connection.take_files();
            if !files.is_empty() {
                self.backend.memory().close_later(files);
            }
            let received = connection.flush().and_then(|()| connection.receive());
            let handled = match received {
                Ok(Received::Nothing) => return,
                Ok(Received::Closed) => {
                    return self.end(Event::Disconnected, now, events);
                }
                Ok(Received::Frame(frame)) => self.backend.handle(frame, now),
                Err(error) => Err(error),
            };
            match handled {
                Ok(Handled::Waiting) => return,
                Ok(Handled::Done(answer)) => self.answer(answer, now, events),
                Err(error) => return self.end(Event::Broken(error), now, events),
            }
        }
    }

    fn answer(&mut self, answer: Option<Vec<u8>>, now: Instant, events: &mut Vec<Event>) {
        if let (Some(answer), Some(connection)) = (answer, &mut self.connection)
            && let Err(error) = connection.send(&answer)
        {
            self.end(Event::Broken(error), now, events);
        }
    }

    fn end(&mut self, event: Event, now: Instant, events: &mut Vec<Event>) {
        if matches!(event, Event::Broken(_)) {
            self.backend.stats_mut().broken_connections += 1;
        }
        events.push(event);
        // Messages that have not been read may hold files.
        if let Some(connection) = self.connection.take() {
            self.backend.memory().close_later(connection);
        }
        self.retry = now + RETRY;
        self.leaving = !matches!(self.backend.disconnect(now), Ok(Handled::Done(_)));
    }

    /// Ends the connection, if there is one; copies in flight may still have to end.
    pub fn close(&mut self, now: Instant, events: &mut Vec<Event>) {
        if self.connection.is_some() {
            self.end(Event::Disconnected, now, events);
        }
    }

    /// Goes on with a connection that is gone.
    pub fn finish_leaving(&mut self, now: Instant) {
        if self.leaving {
            let waiting = matches!(self.backend.resume(now), Ok(Handled::Waiting));
            self.leaving = waiting;
        }
    }

    /// Whether copies of a connection that is gone have not ended.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    fn connect(&mut self, now: Instant, events: &mut Vec<Event>) {
        let stream = match &self.listener {
            Some(listener) => listener.accept(),
            None if now < self.retry => return,
            None => {
                self.retry = now + RETRY;
                connect(&self.path)
            }
        };
        // No front end yet: the usual case.
        if let Ok(connection) = stream.and_then(Connection::new) {
            self.connection = Some(connection);
            self.backend.stats_mut().connections += 1;
            events.push(Event::Connected);
        }
    }

    /// A device has one front end at a time.
    fn refuse_surplus(&mut self) {
        if self.is_unmapping() {
            return;
        }
        if let (Some(_), Some(listener)) = (&self.connection, &self.listener) {
            for _ in 0..SURPLUS {
                match listener.accept() {
                    Ok(surplus) => {
                        // What it has sent may hold files.
                        self.backend.memory().close_later(surplus);
                        self.backend.stats_mut().surplus_connections += 1;
                    }
                    Err(_) => return,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// GET_FEATURES, version 1, no payload; the answer has eight bytes more.
    const ASKS: [u8; 12] = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    const ANSWER: usize = 20;

    /// An endpoint, and a client that has asked five times.
    fn asked(dir: &Path) -> (Endpoint, UnixStream) {
        let path = dir.join("socket");
        let endpoint = Endpoint::new(&path, Role::Server, Options::default());
        let mut endpoint = endpoint.expect("a socket");
        let mut client = UnixStream::connect(&path).expect("it listens");
        client.set_nonblocking(true).expect("our own socket");
        while !endpoint.is_connected() {
            endpoint.poll(Instant::now(), &mut Vec::new());
        }
        client.write_all(&ASKS.repeat(5)).expect("room");
        (endpoint, client)
    }

    /// How many answers a turn that may take so long brings.
    fn answers(endpoint: &mut Endpoint, mut client: &UnixStream, turn: Duration) -> usize {
        endpoint.turn = turn;
        endpoint.poll(Instant::now(), &mut Vec::new());
        let mut buffer = [0; 64 * ANSWER];
        client.read(&mut buffer).map_or(0, |bytes| bytes / ANSWER)
    }

    /// Messages that come while a turn is over wait for the next one.
    #[test]
    fn a_turn_that_is_over_leaves_messages_to_the_next() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut endpoint, client) = asked(dir.path());
        for _ in 0..3 {
            assert_eq!(answers(&mut endpoint, &client, Duration::ZERO), 1);
        }
        assert_eq!(answers(&mut endpoint, &client, Duration::MAX), 2);
    }

    #[test]
    fn messages_wait_until_former_memory_is_unmapped() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut endpoint, client) = asked(dir.path());
        let held = endpoint.backend.memory().hold();
        assert_eq!(answers(&mut endpoint, &client, Duration::MAX), 0);
        assert!(endpoint.is_connected());
        drop(held);
        assert_eq!(answers(&mut endpoint, &client, Duration::MAX), 5);
    }
}
