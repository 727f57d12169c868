//! What a switch has counted, as data.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Switch, Turns};
use crate::backend::ControlStats;
use crate::copy::Channel;
use crate::port::Port;
use crate::queue::{Queue, QueueStats};
use crate::ring::Direction;

/// A queue's counters.
#[derive(Debug, Clone, Serialize)]
pub struct QueueReport {
    /// Index in the port.
    pub index: usize,
    /// `to-guest` or `from-guest`.
    pub direction: &'static str,
    /// Whether packets flow.
    pub live: bool,
    /// The thread that receives from it; none sends to a guest alone.
    pub thread: Option<usize>,
    /// Packets whose copies are in flight.
    pub in_flight: usize,
    /// Why its ring was stopped.
    pub broken: Option<String>,
    /// Packets per second, since the report before or since the beginning.
    pub packets_per_second: f64,
    /// Their bytes per second.
    pub bytes_per_second: f64,
    /// Time stamp counter ticks per packet, in calls that moved one.
    pub cycles_per_packet: Option<f64>,
    /// Share of calls that moved none.
    #[serde(rename = "empty_polls_share")]
    pub empty_polls: Option<f64>,
    /// Its counters.
    #[serde(flatten)]
    pub counters: QueueStats,
}

/// A port's counters.
#[derive(Debug, Clone, Serialize)]
pub struct PortReport {
    /// Socket or interface.
    pub name: String,
    /// Whether a front end is connected.
    pub connected: bool,
    /// How long it kept the other ports waiting, at most.
    #[serde(flatten)]
    pub turns: Turns,
    /// The control path's counters.
    pub control: ControlStats,
    /// Its queues.
    pub queues: Vec<QueueReport>,
}

/// A channel's counters.
#[derive(Debug, Clone, Serialize)]
pub struct ChannelReport {
    /// Its name.
    pub name: String,
    /// Who executes.
    pub executor: &'static str,
    /// The thread that uses it.
    pub thread: usize,
    /// Copies taken.
    pub copies: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Copies that failed.
    pub failed: u64,
    /// The same by the name of their status.
    pub failures: BTreeMap<&'static str, u64>,
    /// Copies in flight.
    pub in_flight: usize,
}

/// A thread's counters.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadReport {
    /// The core that it is bound to.
    pub core: Option<usize>,
    /// Queue pairs that it receives from.
    pub pairs: usize,
    /// Packets taken from ports.
    pub packets_switched: u64,
}

/// What a switch has counted.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Seconds since it began.
    #[serde(rename = "elapsed_s")]
    pub seconds: f64,
    /// Packets taken from ports.
    pub packets_switched: u64,
    /// Copies by who made them: `core`, and the executors of the channels.
    pub copies_by_executor: BTreeMap<&'static str, u64>,
    /// Truncated memory files survived in this process.
    pub memory_faults: u64,
    /// Queue pairs that went to another thread.
    pub pairs_moved: u64,
    /// By thread.
    pub threads: Vec<ThreadReport>,
    /// By port.
    pub ports: Vec<PortReport>,
    /// By channel.
    pub channels: Vec<ChannelReport>,
}

impl Report {
    /// Makes rates those since an earlier report of the same switch.
    pub fn rates_since(&mut self, earlier: &Report) {
        let seconds = self.seconds - earlier.seconds;
        for (port, queue) in self.ports.iter_mut().flat_map(queues_of) {
            let before = earlier.ports.iter().find(|before| before.name == *port);
            let mut queues = before.into_iter().flat_map(|before| &before.queues);
            let Some(before) = queues.find(|before| before.index == queue.index) else {
                continue;
            };
            let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
            let (now, before) = (&queue.counters, &before.counters);
            queue.packets_per_second = rate(now.packets, before.packets);
            queue.bytes_per_second = rate(now.bytes, before.bytes);
        }
    }
}

fn queues_of(port: &mut PortReport) -> impl Iterator<Item = (&String, &mut QueueReport)> {
    let name = &port.name;
    port.queues.iter_mut().map(move |queue| (name, queue))
}

impl PortReport {
    /// Copies that the core has made for it.
    pub(super) fn by_core(&self) -> u64 {
        let of =
            |c: &QueueStats| c.copies_core + c.copies_small + c.copies_no_room + c.copies_repeated;
        self.queues.iter().map(|queue| of(&queue.counters)).sum()
    }
}

impl Switch {
    /// What was counted in so many seconds.
    pub fn report(&self, seconds: f64) -> Report {
        let mut threads = Vec::new();
        let (mut channels, mut owners) = (Vec::new(), Vec::new());
        let mut copies_by_executor: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut turns = self.watch.turns().to_vec();
        for (at, thread) in self.threads.iter().enumerate() {
            let mut worker = thread.between_steps();
            let ports = (0..self.ports.len()).filter(|port| self.ports[*port].is_some());
            let before = owners.len();
            let mut pairs = Vec::new();
            for port in ports {
                pairs.extend(worker.own(port).iter().map(|own| ((port, own.pair), at)));
            }
            owners.append(&mut pairs);
            threads.push(ThreadReport {
                core: self.cores.get(at).copied(),
                pairs: owners.len() - before,
                packets_switched: worker.packets_switched,
            });
            for (most, of) in turns.iter_mut().zip(worker.watch.turns()) {
                *most = most.max(*of);
            }
            for (executor, copies) in &worker.closed_copies {
                *copies_by_executor.entry(*executor).or_default() += copies;
            }
            let open = worker.channels.iter().filter(|c| !c.is_closed());
            channels.extend(open.map(|c| channel_report(at, c)));
        }
        let owners: BTreeMap<(usize, usize), usize> = owners.into_iter().collect();
        let ports = turns.into_iter().enumerate();
        let ports = ports.filter_map(|(at, turns)| self.port_report(at, turns, seconds, &owners));
        let ports: Vec<PortReport> = ports.collect();
        let core: u64 = ports.iter().map(PortReport::by_core).sum();
        *copies_by_executor.entry("core").or_default() += core + self.removed_by_core;
        for channel in &channels {
            let made: &mut u64 = copies_by_executor.entry(channel.executor).or_default();
            *made += channel.copies - channel.failed;
        }
        Report {
            copies_by_executor,
            seconds,
            packets_switched: threads.iter().map(|thread| thread.packets_switched).sum(),
            memory_faults: crate::memory::faults(),
            pairs_moved: self.moved().0,
            threads,
            ports,
            channels,
        }
    }
}

impl Switch {
    /// What was counted for a port; `owners` are the threads of pairs.
    pub(super) fn port_report(
        &self,
        at: usize,
        turns: Turns,
        seconds: f64,
        owners: &BTreeMap<(usize, usize), usize>,
    ) -> Option<PortReport> {
        let slot = self.ports[at].as_ref()?;
        let (connected, control) = match &*slot.port {
            Port::Vhost(port) => {
                let endpoint = port.endpoint();
                (endpoint.is_connected(), *endpoint.backend.stats())
            }
            Port::Tap(_) | Port::Xdp(_) => (true, ControlStats::default()),
        };
        let mut queues = Vec::new();
        slot.port.each_queue(|queue| {
            let owner = owners.get(&(at, queue.index() / 2)).copied();
            queues.push(queue_report(queue, seconds, owner));
        });
        Some(PortReport {
            name: slot.name.clone(),
            connected,
            turns,
            control,
            queues,
        })
    }
}

fn queue_report(queue: &Queue, seconds: f64, owner: Option<usize>) -> QueueReport {
    let counters = *queue.stats();
    let polls = counters.polls_busy + counters.polls_empty;
    let ratio = |a: u64, b: u64| (b > 0).then(|| a as f64 / b as f64);
    let from_guest = queue.direction() == Direction::FromGuest;
    QueueReport {
        index: queue.index(),
        direction: match from_guest {
            false => "to-guest",
            true => "from-guest",
        },
        live: queue.is_live(),
        thread: owner.filter(|_| from_guest),
        in_flight: queue.in_flight(),
        broken: queue.broken().map(|fault| fault.to_string()),
        packets_per_second: counters.packets as f64 / seconds,
        bytes_per_second: counters.bytes as f64 / seconds,
        cycles_per_packet: ratio(counters.busy_cycles, counters.packets),
        empty_polls: ratio(counters.polls_empty, polls),
        counters,
    }
}

fn channel_report(thread: usize, channel: &Channel) -> ChannelReport {
    let (copies, bytes, failed) = channel.counts();
    ChannelReport {
        name: channel.name().to_owned(),
        executor: channel.executor(),
        thread,
        copies,
        bytes,
        failed,
        failures: channel.failures().clone(),
        in_flight: channel.in_flight(),
    }
}
