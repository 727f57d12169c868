//! A back end that sends every packet back, and keeps what it was.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use dray_vhost::backend::{Endpoint, Event, Role};
use dray_vhost::copy::{Channel, CopyEngine};
use dray_vhost::net::{Packet, Pool};
use dray_vhost::protocol::{Options, features};

use crate::TIMEOUT;
use crate::capture::Captured;
use crate::testpmd::Testpmd;

/// What happens to one pair of queues.
#[derive(Default)]
pub struct Pair {
    /// On their way back.
    waiting: Vec<Packet>,
    /// What came, in order, if it is kept.
    pub seen: Vec<Captured>,
    /// Packets that came.
    pub count: u64,
    synchronous: bool,
    /// Packets that came since calls of the other kind had their turn.
    in_turn: usize,
}

/// A back end that sends every packet back.
pub struct Echo {
    pub endpoint: Endpoint,
    pub channels: Vec<Channel>,
    pub pairs: Vec<Pair>,
    /// Whether packets are kept.
    pub keeps: bool,
    pub connections: u32,
    pool: Pool,
}

impl fmt::Debug for Echo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pair in &self.pairs {
            let waiting = pair.waiting.len();
            writeln!(f, "{} packets came, {waiting} are waiting", pair.count)?;
        }
        for queue in self.endpoint.backend.queues().iter() {
            let (in_flight, broken) = (queue.in_flight(), queue.broken());
            let stats = queue.stats();
            writeln!(f, "{in_flight} in flight, broken {broken:?}, {stats:?}")?;
        }
        Ok(())
    }
}

impl Echo {
    pub fn new(path: &Path, role: Role, pairs: u16, engines: Vec<Box<dyn CopyEngine>>) -> Echo {
        let options = Options {
            // What comes back must be what the guest takes: without offloads it is.
            features: features::ALL & !features::OFFLOADS,
            queue_pairs: pairs,
            ..Options::default()
        };
        let endpoint = Endpoint::new(path, role, options).expect("a socket");
        let named = engines.into_iter().enumerate();
        let mut channels: Vec<Channel> = named
            .map(|(at, engine)| Channel::new(format!("wq0.{at}"), engine))
            .collect();
        for mut queue in endpoint.backend.queues().iter() {
            for channel in 0..channels.len() {
                queue.attach(&mut channels, channel);
            }
        }
        Echo {
            endpoint,
            channels,
            pairs: (0..pairs).map(|_| Pair::default()).collect(),
            keeps: true,
            connections: 0,
            pool: Pool::new(64),
        }
    }

    /// Moves a burst from each queue. Where there are channels, synchronous and asynchronous calls
    /// take turns by packets that came; the first wait for the copies of the others.
    pub fn step(&mut self) {
        let mut events = Vec::new();
        let now = Instant::now();
        self.endpoint.poll(now, &mut events);
        for event in events {
            match event {
                Event::Connected => self.connections += 1,
                Event::Disconnected => {}
                // A front end that is killed may leave half a message.
                Event::Broken(error) => println!("connection ended: {error:?}"),
                Event::Refused(error) => panic!("refused: {error:?}"),
                Event::Stopped { queue, fault, .. } => panic!("queue {queue}: {fault}"),
            }
        }
        let mut moved = 0;
        for at in 0..self.pairs.len() {
            moved += self.step_pair(at);
        }
        if moved == 0 {
            std::thread::yield_now();
        }
    }

    fn step_pair(&mut self, at: usize) -> usize {
        let Echo {
            endpoint,
            channels,
            pairs,
            pool,
            keeps,
            ..
        } = self;
        let pair = &mut pairs[at];
        if pair.in_turn >= 48 {
            (pair.in_turn, pair.synchronous) = (0, !pair.synchronous);
        }
        let synchronous = channels.is_empty() || pair.synchronous;
        let before = pair.waiting.len();
        let mut queue = endpoint.backend.from_guest(at);
        if before < 256 {
            let drained = queue.in_flight() == 0;
            let submitted = queue.stats().submitted;
            let count = match synchronous && drained {
                true => queue.dequeue(pool, &mut pair.waiting, 24),
                false => {
                    let max = if synchronous { 0 } else { 24 };
                    queue.try_dequeue(channels, pool, &mut pair.waiting, max)
                }
            };
            // Packets are counted when their copies start: so the turns change however long copies take.
            pair.in_turn += match synchronous {
                true if drained => count,
                true => 0,
                false => (queue.stats().submitted - submitted) as usize,
            };
        }
        let came = pair.waiting.len() - before;
        pair.count += came as u64;
        if *keeps {
            let new = &pair.waiting[before..];
            pair.seen
                .extend(new.iter().map(|p| Captured::of(p.bytes())));
        }
        let mut queue = endpoint.backend.to_guest(at);
        let mut done = Vec::new();
        queue.enqueue_poll(channels, &mut done);
        let sent = match synchronous {
            true => {
                let count = queue.enqueue(&pair.waiting);
                done.extend(pair.waiting.drain(..count));
                count
            }
            false => queue.enqueue_submit(channels, &mut pair.waiting),
        };
        done.drain(..).for_each(|packet| pool.put(packet));
        came + sent
    }

    /// Closes the connection when the copies in flight have ended.
    pub fn leave(&mut self) {
        let mut events = Vec::new();
        self.endpoint.close(Instant::now(), &mut events);
        let until = Instant::now() + TIMEOUT;
        while self.endpoint.is_leaving() {
            for at in 0..self.pairs.len() {
                self.step_pair(at);
            }
            self.endpoint.finish_leaving(Instant::now());
            assert!(Instant::now() < until, "copies that never end");
        }
    }

    /// Goes on until something is so.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&mut Echo) -> bool) {
        let until = Instant::now() + TIMEOUT;
        while !done(self) {
            assert!(Instant::now() < until, "{what}: {self:?}");
            for _ in 0..4 {
                self.step();
            }
        }
    }

    /// Goes on until testpmd says something.
    pub fn until_said(&mut self, testpmd: &mut Testpmd, text: &str) {
        let until = Instant::now() + TIMEOUT;
        while !testpmd.has_said(text) {
            let said = testpmd.said();
            assert!(Instant::now() < until, "no {text:?} in {said:#?}");
            for _ in 0..4 {
                self.step();
            }
        }
    }

    /// Goes on until testpmd has received so many packets at its first port, and ends it.
    pub fn end_after(&mut self, mut testpmd: Testpmd, total: usize) {
        let mut shown = 0u32;
        self.until("testpmd has not received all packets", |_| {
            shown += 1;
            if shown % 100 == 1 {
                testpmd.say("show port stats 0");
            }
            testpmd.has_said(&format!("RX-packets: {total} "))
        });
        testpmd.say("stop");
        self.until_said(&mut testpmd, "Done.");
        testpmd.say("quit");
        self.until("testpmd is still connected", |echo| {
            !echo.endpoint.is_connected()
        });
        testpmd.wait();
    }

    /// Packets that went each way of all pairs: from the guest, to the guest.
    pub fn counts(&self) -> [u64; 2] {
        let queues = self.endpoint.backend.queues();
        [1, 0].map(|way| {
            let of = queues.iter().skip(way).step_by(2);
            of.map(|queue| queue.stats().packets).sum()
        })
    }
}
