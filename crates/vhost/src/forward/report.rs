//! What a switch has counted, as data.

use serde::Serialize;

use super::Switch;
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
    /// Time stamp counter ticks per packet, in calls that moved one.
    pub cycles_per_packet: Option<f64>,
    /// Share of calls that moved none.
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
    /// Copies in flight.
    pub in_flight: usize,
}

/// What a switch has counted.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Seconds since it began.
    pub seconds: f64,
    /// Packets taken from ports.
    pub packets_switched: u64,
    /// Truncated memory files survived in this process.
    pub memory_faults: u64,
    /// By port.
    pub ports: Vec<PortReport>,
    /// By channel.
    pub channels: Vec<ChannelReport>,
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
                    cycles_per_packet: ratio(counters.busy_cycles, counters.packets),
                    empty_polls: ratio(counters.polls_empty, polls),
                    counters,
                }
            });
            PortReport {
                name: names.get(at).cloned().unwrap_or_default(),
                connected,
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
                in_flight: channel.in_flight(),
            }
        });
        Report {
            seconds,
            packets_switched: self.packets_switched(),
            memory_faults: crate::memory::faults(),
            ports: ports.collect(),
            channels: channels.collect(),
        }
    }
}
