//! A switch on one thread or several: ports, channels, and what is done with packets.
//!
//! Each pair of a port is received from by one thread, which also sends its packets: the order of a flow is
//! that of one thread. Any thread sends to any port: a queue to the guest has a lock, held for a turn at most, and the
//! copies are made by the channels of the thread that sends. The first thread, which calls [`Switch::step`],
//! also handles the messages of all front ends; what these change is under the queues' locks.

mod answer;
mod balance;
mod change;
mod generate;
mod learn;
mod mode;
mod moves;
mod report;
mod thread;
mod turns;
mod worker;

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use mode::Mode;
pub use report::{ChannelReport, PortReport, QueueReport, Report, ThreadReport};
pub use thread::IDLE_STEPS;
pub use turns::Turns;
pub use worker::BURST;

use crate::VhostError;
use crate::affinity::bind;
use crate::backend::Event;
use crate::copy::Channels;
use crate::notify;
use crate::port::Port;
use generate::Generator;
use learn::Table;
use moves::Move;
use thread::Thread;
use turns::Watch;
use worker::{CONTROL_EVERY, Worker};

/// Longest sleep while a port waits for its former memory to be unmapped, or for copies.
const UNMAPPING: Duration = Duration::from_millis(1);
/// Time between two looks at the threads' loads.
const BALANCE: Duration = Duration::from_secs(1);

/// A port of the switch.
#[derive(Debug)]
struct Slot {
    name: String,
    port: Arc<Port>,
    /// It is closed, and goes when its copies have ended.
    leaving: bool,
}

/// A switch on one thread or several.
#[derive(Debug)]
pub struct Switch {
    threads: Vec<Arc<Thread>>,
    /// Cores that threads are bound to, as far as they are.
    cores: Vec<usize>,
    running: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    /// A port that is removed leaves a gap, which the next one takes.
    ports: Vec<Option<Slot>>,
    table: Arc<RwLock<Table>>,
    moves: Vec<Move>,
    removed: Vec<PortReport>,
    /// Copies that the core has made for ports that are gone.
    removed_by_core: u64,
    born: Instant,
    handed_over: u64,
    stayed: u64,
    /// The thread that the next pair of a new port goes to.
    next_thread: usize,
    balanced: Instant,
    balances: bool,
    watch: Watch,
    steps: u32,
}

impl Switch {
    /// A switch on the calling thread of these ports, whose copies these channels make.
    ///
    /// # Panics
    /// Where [`Switch::with_threads`] has an error.
    pub fn new(ports: Vec<Port>, channels: Channels, mode: Mode) -> Switch {
        let mut switch = Switch::with_threads(vec![channels], mode).expect("a switch");
        for (at, port) in ports.into_iter().enumerate() {
            switch.add_port(&at.to_string(), port);
        }
        switch
    }

    /// A switch without ports on as many threads as there are lists of channels; those of thread N were made with
    /// [`crate::copy::Channel::of_thread`] N.
    ///
    /// # Errors
    /// The process has no file descriptor left, or the kernel no asynchronous I/O for notifications.
    pub fn with_threads(channels: Vec<Channels>, mode: Mode) -> Result<Switch, VhostError> {
        notify::prepare()?;
        let table = Arc::<RwLock<Table>>::default();
        let thread = |channels| Thread::new(Worker::new(channels, mode, table.clone()));
        Ok(Switch {
            threads: channels.into_iter().map(thread).collect::<Result<_, _>>()?,
            cores: Vec::new(),
            running: Vec::new(),
            stop: Arc::default(),
            ports: Vec::new(),
            table,
            moves: Vec::new(),
            removed: Vec::new(),
            removed_by_core: 0,
            born: Instant::now(),
            handed_over: 0,
            stayed: 0,
            next_thread: 0,
            balanced: Instant::now(),
            balances: true,
            watch: Watch::new(),
            steps: 0,
        })
    }

    /// Binds the calling thread to the first of these cores, and starts the other threads on the others, one on
    /// each. `may_sleep`: they sleep when there is nothing to do.
    ///
    /// # Errors
    /// A core that there is not; no thread can be started.
    ///
    /// # Panics
    /// If there are not as many cores as threads.
    pub fn start(&mut self, cores: &[usize], may_sleep: bool) -> Result<(), VhostError> {
        assert_eq!(cores.len(), self.threads.len(), "a core for each thread");
        let error = |core: usize| move |source| VhostError::Core { core, source };
        self.cores = cores.to_vec();
        bind(cores[0]).map_err(error(cores[0]))?;
        for (thread, core) in self.threads.iter().zip(cores).skip(1) {
            let (thread, core, stop) = (thread.clone(), *core, self.stop.clone());
            let (to, bound) = std::sync::mpsc::channel();
            let name = format!("vhost-{core}");
            let running = std::thread::Builder::new().name(name).spawn(move || {
                let is_bound = bind(core);
                let works = is_bound.is_ok();
                // Who started it waits for this.
                let _ = to.send(is_bound);
                if works {
                    thread.run(&stop, may_sleep);
                }
            });
            self.running.push(running.map_err(error(core))?);
            let bound = bound.recv().expect("a thread that began");
            bound.map_err(error(core))?;
        }
        Ok(())
    }

    /// Whether pairs move to other threads when the load shifts. They do unless this was said.
    pub fn set_balances(&mut self, balances: bool) {
        self.balances = balances;
    }

    /// Threads.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Adds a port, which all threads send to from now on; its pairs go to the threads in turn. Returns its number.
    pub fn add_port(&mut self, name: &str, port: Port) -> usize {
        let gap = self.ports.iter().position(Option::is_none);
        let at = gap.unwrap_or_else(|| {
            self.ports.push(None);
            self.ports.len() - 1
        });
        let port = Arc::new(port);
        for thread in &self.threads {
            thread.between_steps().add_port(at, port.clone());
        }
        for pair in 0..port.pairs() {
            let thread = &self.threads[self.next_thread];
            thread.between_steps().take_pair(at, pair);
            thread.wake();
            self.next_thread = (self.next_thread + 1) % self.threads.len();
        }
        self.watch.add(at);
        self.ports[at] = Some(Slot {
            name: name.to_owned(),
            port,
            leaving: false,
        });
        debug_assert!(self.each_pair_has_one_thread());
        at
    }

    /// Begins to remove a port: its connection is closed. It goes, with its socket, when its copies have ended. False
    /// if there is no such port.
    pub fn remove_port(&mut self, at: usize, events: &mut Vec<Event>) -> bool {
        let Some(Some(slot)) = self.ports.get_mut(at) else {
            return false;
        };
        slot.leaving = true;
        if let Port::Vhost(port) = &*slot.port {
            port.endpoint().close(Instant::now(), events);
        }
        true
    }

    /// Does something else with packets from now on; those of [`Mode::TxOnly`] have so many bytes (64
    /// to 9000). Returns whether it does: not while copies are in flight.
    pub fn set_mode(&mut self, mode: Mode, generated_bytes: usize) -> bool {
        let mut in_flight = 0;
        self.each_port(|_, port| port.each_queue(|queue| in_flight += queue.in_flight()));
        if in_flight > 0 {
            return false;
        }
        for thread in &self.threads {
            let mut worker = thread.between_steps();
            worker.mode = mode;
            worker.generator = Generator::new(generated_bytes);
        }
        true
    }

    /// Moves a burst from each queue of the first thread, or from as many as a port's turn is long enough for. Returns
    /// whether there was anything to do.
    #[inline]
    pub fn step(&mut self, events: &mut Vec<Event>) -> bool {
        let busy = self.threads[0].work().step();
        // Nothing is received from a pair on its way.
        self.advance_moves();
        self.steps += 1;
        if !busy || self.steps >= CONTROL_EVERY {
            self.steps = 0;
            self.poll_control(events);
        }
        busy
    }

    /// Accepts connections, handles messages of all ports, and moves pairs.
    ///
    /// # Panics
    /// If another thread has.
    pub fn poll_control(&mut self, events: &mut Vec<Event>) {
        self.watch.read();
        let mut done = false;
        for (at, slot) in self.ports.iter().enumerate() {
            let Some(slot) = slot else {
                continue;
            };
            let now = Instant::now();
            match (&*slot.port, slot.leaving) {
                (Port::Vhost(port), true) => port.endpoint().finish_leaving(now),
                (port, _) => done |= port.poll_control(now, events),
            }
            self.watch.end_control(at, now.elapsed());
        }
        if done {
            // There may be other eventfds to wait on.
            self.threads.iter().skip(1).for_each(|thread| thread.wake());
        }
        self.advance_moves();
        self.finish_removing();
        let now = Instant::now();
        let period = now - self.balanced;
        if self.balances && self.threads.len() > 1 && period >= BALANCE {
            self.balanced = now;
            self.balance(period);
        }
        if let Some(ended) = self.running.iter().position(JoinHandle::is_finished)
            && !self.stop.load(Ordering::Relaxed)
        {
            match self.running.swap_remove(ended).join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("threads end when they are told to"),
            }
        }
    }

    /// Forgets ports that are closed and have no copies in flight.
    fn finish_removing(&mut self) {
        for at in 0..self.ports.len() {
            let gone = |slot: &mut Slot| match &*slot.port {
                Port::Vhost(port) => slot.leaving && !port.endpoint().is_leaving(),
                Port::Tap(_) | Port::Xdp(_) => slot.leaving,
            };
            if self.ports[at].as_mut().is_none_or(|slot| !gone(slot)) {
                continue;
            }
            self.moves.retain(|m| m.port() != at);
            let mut turns = self.watch.turns()[at];
            for thread in &self.threads {
                let mut worker = thread.between_steps();
                worker.remove_port(at);
                turns = turns.max(worker.watch.turns()[at]);
            }
            let table = self.table.write();
            table.unwrap_or_else(PoisonError::into_inner).forget(at);
            let seconds = self.born.elapsed().as_secs_f64();
            let last = self.port_report(at, turns, seconds, &BTreeMap::new());
            self.removed_by_core += last.as_ref().map_or(0, PortReport::by_core);
            self.removed.extend(last);
            self.ports[at] = None;
        }
    }

    /// Sleeps until there may be something to do for the first thread, or `other` is readable, or for at most this
    /// long. Copies in flight are not waited for.
    pub fn wait(&mut self, other: Option<BorrowedFd<'_>>, at_most: Duration) {
        let mut at_most = if self.moves.is_empty() {
            at_most
        } else {
            UNMAPPING
        };
        let vhost = self
            .ports
            .iter()
            .flatten()
            .filter_map(|slot| match &*slot.port {
                Port::Vhost(port) => Some((port.endpoint(), slot.leaving)),
                Port::Tap(_) | Port::Xdp(_) => None,
            });
        let endpoints: Vec<_> = vhost.collect();
        let mut others: Vec<BorrowedFd<'_>> = other.into_iter().collect();
        for (endpoint, leaving) in &endpoints {
            if endpoint.is_unmapping() || endpoint.is_leaving() || endpoint.backend.is_waiting() {
                at_most = UNMAPPING;
            }
            others.extend(endpoint.wait_on().filter(|_| !leaving));
        }
        self.threads[0].sleep(&others, at_most);
    }

    /// Ends: connections are closed once their copies have ended, for at most this long. Returns
    /// whether all have.
    pub fn close(&mut self, deadline: Duration, events: &mut Vec<Event>) -> bool {
        self.stop.store(true, Ordering::SeqCst);
        self.threads.iter().for_each(|thread| thread.wake());
        for running in self.running.drain(..) {
            if let Err(panic) = running.join() {
                std::panic::resume_unwind(panic);
            }
        }
        let until = Instant::now() + deadline;
        let now = Instant::now();
        let ports = || self.ports.iter().flatten().map(|slot| &*slot.port);
        let vhost = || {
            ports().filter_map(|port| match port {
                Port::Vhost(port) => Some(port),
                Port::Tap(_) | Port::Xdp(_) => None,
            })
        };
        vhost().for_each(|port| port.endpoint().close(now, events));
        loop {
            let now = Instant::now();
            self.threads
                .iter()
                .for_each(|thread| thread.work().discard());
            vhost().for_each(|port| port.endpoint().finish_leaving(now));
            let leaving = vhost().any(|port| port.endpoint().is_leaving());
            if !leaving || now >= until {
                return !leaving;
            }
        }
    }
}

impl Drop for Switch {
    /// Threads of their own end with it.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.threads.iter().for_each(|thread| thread.wake());
        for running in self.running.drain(..) {
            // Its panic was printed.
            let _ = running.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Packet;
    use crate::port::{VhostPort, VhostSetup};

    /// A pair that has drained is handed over by the next step, however busy the thread is.
    #[test]
    fn a_pair_is_handed_over_within_two_steps() {
        let dir = tempfile::tempdir().expect("a directory");
        let lists = vec![Channels::new(), Channels::new()];
        let mut switch = Switch::with_threads(lists, Mode::TxOnly).expect("threads");
        switch.set_balances(false);
        for name in ["a", "b", "c"] {
            let setup = VhostSetup::default();
            let port = VhostPort::open(&dir.path().join(name), &setup, &mut []);
            switch.add_port(name, Port::Vhost(Box::new(port.expect("a socket"))));
        }
        assert!(switch.step(&mut Vec::new()), "it generates packets");
        // The second thread has the second port's.
        assert!(switch.move_pair(2, 0, 1));
        for _ in 0..2 {
            assert!(switch.step(&mut Vec::new()), "the first port's are left");
        }
        assert_eq!((switch.moving(), switch.thread_of(2, 0)), (0, Some(1)));
    }

    /// A switch with these ports, and a packet from the first one's guest.
    fn with_packet(dir: &std::path::Path, names: &[&str]) -> Switch {
        let ports = names.iter().map(|name| {
            let port = VhostPort::open(&dir.join(name), &VhostSetup::default(), &mut []);
            Port::Vhost(Box::new(port.expect("a socket")))
        });
        let switch = Switch::new(ports.collect(), Channels::new(), Mode::Io);
        let inject = |port: &VhostPort| port.queues().lock(1).inject(Packet::from_bytes(&[7; 60]));
        switch.each_port(|at, port| match port {
            Port::Vhost(port) if at == 0 => inject(port),
            _ => {}
        });
        switch
    }

    /// Packets that the first port's queues have dropped: to the guest, from it.
    fn dropped(switch: &Switch) -> [u64; 2] {
        let queues = &switch.report(1.0).ports[0].queues;
        [0, 1].map(|queue| queues[queue].counters.drops.disabled)
    }

    #[test]
    fn packets_for_a_peer_that_was_removed_are_dropped_and_counted() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut alone = with_packet(dir.path(), &["a"]);
        alone.step(&mut Vec::new());
        assert_eq!(dropped(&alone), [1, 0], "wired to itself");
        let mut switch = with_packet(dir.path(), &["b", "c"]);
        assert!(switch.remove_port(1, &mut Vec::new()));
        switch.poll_control(&mut Vec::new());
        assert_eq!(switch.take_removed().len(), 1);
        switch.step(&mut Vec::new());
        assert_eq!(dropped(&switch), [0, 1]);
    }

    #[test]
    fn packets_that_come_while_it_closes_are_counted() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut switch = with_packet(dir.path(), &["a", "b"]);
        assert!(switch.close(Duration::from_secs(10), &mut Vec::new()));
        assert_eq!(dropped(&switch), [0, 1]);
    }

    /// A turn that is over takes no further pair, and the next one begins there.
    #[test]
    fn a_turn_that_is_over_leaves_the_other_pairs_to_the_next() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut setup = VhostSetup::default();
        setup.options.queue_pairs = 3;
        let port = VhostPort::open(&dir.path().join("a"), &setup, &mut []).expect("a socket");
        let ports = vec![Port::Vhost(Box::new(port))];
        let mut switch = Switch::new(ports, Channels::new(), Mode::Io);
        let mut begins = |turn| {
            switch.threads[0].work().turn = turn;
            switch.step(&mut Vec::new());
            switch.threads[0].work().next_pair(0)
        };
        assert_eq!(begins(Duration::MAX), 0);
        assert_eq!([(); 4].map(|()| begins(Duration::ZERO)), [1, 2, 0, 1]);
        assert_eq!(begins(Duration::MAX), 1);
    }
}
