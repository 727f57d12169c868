//! What a switch has counted, as data.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Switch, Turns};
use crate::backend::ControlStats;
use crate::port::Port;
use crate::queue::QueueStats;
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
    /// By port.
    pub ports: Vec<PortReport>,
    /// By channel.
    pub channels: Vec<ChannelReport>,
}

impl Report {
    /// Makes rates those since an earlier report of the same switch.
    pub fn rates_since(&mut self, earlier: &Report) {
        let seconds = self.seconds - earlier.seconds;
        let queues = self.ports.iter_mut().flat_map(|port| &mut port.queues);
        let before = earlier.ports.iter().flat_map(|port| &port.queues);
        for (queue, before) in queues.zip(before) {
            let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
            let (now, before) = (&queue.counters, &before.counters);
            queue.packets_per_second = rate(now.packets, before.packets);
            queue.bytes_per_second = rate(now.bytes, before.bytes);
        }
    }
}

/// Copies that the core has made for a queue.
fn by_core(counters: &QueueStats) -> u64 {
    counters.copies_core
        + counters.copies_small
        + counters.copies_no_room
        + counters.copies_repeated
}

impl Switch {
    /// What was counted in so many seconds; `names` are the ports'.
    pub fn report(&self, seconds: f64, names: &[String]) -> Report {
        let ports = self.ports().iter().enumerate().map(|(at, port)| {
            let (connected, control) = match port {
                Port::Vhost(port) => (port.endpoint.is_connected(), *port.endpoint.backend.stats()),
                Port::Tap(_) | Port::Xdp(_) => (true, ControlStats::default()),
            };
            let queues = port.queues().iter().map(|queue| {
                let counters = *queue.stats();
                let polls = counters.polls_busy + counters.polls_empty;
                let ratio = |a: u64, b: u64| (b > 0).then(|| a as f64 / b as f64);
                QueueReport {
                    index: queue.index(),
                    direction: match queue.direction() {
                        Direction::ToGuest => "to-guest",
                        Direction::FromGuest => "from-guest",
                    },
                    live: queue.is_live(),
                    in_flight: queue.in_flight(),
                    broken: queue.broken().map(|fault| fault.to_string()),
                    packets_per_second: counters.packets as f64 / seconds,
                    bytes_per_second: counters.bytes as f64 / seconds,
                    cycles_per_packet: ratio(counters.busy_cycles, counters.packets),
                    empty_polls: ratio(counters.polls_empty, polls),
                    counters,
                }
            });
            PortReport {
                name: names.get(at).cloned().unwrap_or_default(),
                connected,
                turns: self.turns()[at],
                control,
                queues: queues.collect(),
            }
        });
        let channels = self.channels().iter().map(|channel| {
            let (copies, bytes, failed) = channel.counts();
            ChannelReport {
                name: channel.name().to_owned(),
                executor: channel.executor(),
                copies,
                bytes,
                failed,
                failures: channel.failures().clone(),
                in_flight: channel.in_flight(),
            }
        });
        let queues = self.ports().iter().flat_map(Port::queues);
        let core = queues.map(|queue| by_core(queue.stats())).sum();
        let mut copies_by_executor = BTreeMap::from([("core", core)]);
        for channel in self.channels() {
            let (copies, _, failed) = channel.counts();
            *copies_by_executor.entry(channel.executor()).or_default() += copies - failed;
        }
        Report {
            copies_by_executor,
            seconds,
            packets_switched: self.packets_switched(),
            memory_faults: crate::memory::faults(),
            ports: ports.collect(),
            channels: channels.collect(),
        }
    }
}
