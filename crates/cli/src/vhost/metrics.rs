//! The counters as OpenMetrics text (version 1.0).

use std::fmt::Write;

use dray_vhost::forward::{ChannelReport, PortReport, QueueReport, Report};

/// A family of samples.
struct Family<T> {
    name: &'static str,
    /// `counter`, whose samples end in `_total`, or `gauge`.
    counter: bool,
    help: &'static str,
    value: fn(&T) -> u64,
}

const fn counter<T>(name: &'static str, help: &'static str, value: fn(&T) -> u64) -> Family<T> {
    Family {
        name,
        counter: true,
        help,
        value,
    }
}

const fn gauge<T>(name: &'static str, help: &'static str, value: fn(&T) -> u64) -> Family<T> {
    Family {
        name,
        counter: false,
        help,
        value,
    }
}

const QUEUES: [Family<QueueReport>; 19] = [
    counter("packets", "Packets that went through.", |q| {
        q.counters.packets
    }),
    counter("bytes", "Their bytes, without virtio-net headers.", |q| {
        q.counters.bytes
    }),
    counter("notifications_sent", "Notifications to the driver.", |q| {
        q.counters.notifications_sent
    }),
    counter(
        "notifications_suppressed",
        "Notifications that the driver did not want.",
        |q| q.counters.notifications_suppressed,
    ),
    counter(
        "notifications_failed",
        "Notifications that the kernel refused.",
        |q| q.counters.notifications_failed,
    ),
    counter(
        "submitted",
        "Packets with a copy handed to a channel.",
        |q| q.counters.submitted,
    ),
    counter(
        "completed",
        "Packets whose copies by channels have all ended.",
        |q| q.counters.completed,
    ),
    counter("copies_channel", "Copies handed to channels.", |q| {
        q.counters.copies_channel
    }),
    counter(
        "copies_small",
        "Packets copied by the core, below the threshold.",
        |q| q.counters.copies_small,
    ),
    counter(
        "copies_no_room",
        "Packets copied by the core, no channel had room.",
        |q| q.counters.copies_no_room,
    ),
    counter(
        "copies_repeated",
        "Copies that failed and were repeated by the core.",
        |q| q.counters.copies_repeated,
    ),
    counter(
        "copies_core",
        "Packets copied by the core, as the queue works so.",
        |q| q.counters.copies_core,
    ),
    counter(
        "pages_not_logged",
        "Pages written that the log of a migration is too small for.",
        |q| q.counters.pages_not_logged,
    ),
    counter(
        "ring_faults",
        "Rings stopped because the driver broke a rule.",
        |q| q.counters.ring_faults,
    ),
    counter(
        "drain_timeouts",
        "Drains that missed their deadline.",
        |q| q.counters.drain_timeouts,
    ),
    counter("polls_busy", "Calls that moved a packet.", |q| {
        q.counters.polls_busy
    }),
    counter("polls_empty", "Calls that moved none.", |q| {
        q.counters.polls_empty
    }),
    gauge("live", "Whether packets flow.", |q| u64::from(q.live)),
    gauge("in_flight", "Packets whose copies are in flight.", |q| {
        q.in_flight as u64
    }),
];

const PORTS: [Family<PortReport>; 9] = [
    gauge("connected", "Whether a front end is connected.", |p| {
        u64::from(p.connected)
    }),
    gauge(
        "longest_turn_ns",
        "CPU time that the port kept others waiting, at most.",
        |p| p.turns.longest_turn_ns,
    ),
    gauge("longest_control_ns", "The same by messages.", |p| {
        p.turns.longest_control_ns
    }),
    counter("messages", "Messages granted.", |p| p.control.messages),
    counter("refused_messages", "Messages refused.", |p| {
        p.control.refused
    }),
    counter(
        "unknown_messages",
        "Messages with an unknown request.",
        |p| p.control.unknown,
    ),
    counter("connections", "Connections made.", |p| {
        p.control.connections
    }),
    counter(
        "broken_connections",
        "Connections ended by an error.",
        |p| p.control.broken_connections,
    ),
    counter(
        "surplus_connections",
        "Connections closed because the port had one.",
        |p| p.control.surplus_connections,
    ),
];

const CHANNELS: [Family<ChannelReport>; 4] = [
    counter("channel_copies", "Copies taken.", |c| c.copies),
    counter("channel_bytes", "Bytes of them.", |c| c.bytes),
    counter("channel_failed", "Copies that failed.", |c| c.failed),
    gauge("channel_in_flight", "Copies in flight.", |c| {
        c.in_flight as u64
    }),
];

/// All counters of a report.
pub(super) fn text(report: &Report) -> String {
    let mut out = String::new();
    let threads: Vec<(String, u64)> = (report.threads.iter().enumerate())
        .map(|(at, thread)| {
            let core = thread.core.map_or(String::new(), |core| core.to_string());
            (
                labels(&[("thread", &at.to_string()), ("core", &core)]),
                thread.packets_switched,
            )
        })
        .collect();
    head(
        &mut out,
        "packets_switched",
        true,
        "Packets taken from ports.",
    );
    for (labels, value) in threads {
        sample(&mut out, "packets_switched", true, &labels, value);
    }
    for (name, help, value) in [
        (
            "memory_faults",
            "Truncated memory files survived.",
            report.memory_faults,
        ),
        (
            "pairs_moved",
            "Queue pairs that went to another thread.",
            report.pairs_moved,
        ),
    ] {
        head(&mut out, name, true, help);
        sample(&mut out, name, true, "", value);
    }
    let queues = || {
        report
            .ports
            .iter()
            .flat_map(|p| p.queues.iter().map(move |q| (p, q)))
    };
    let of_queue = |port: &PortReport, queue: &QueueReport, more: &[(&str, &str)]| {
        let index = queue.index.to_string();
        let own = [
            ("port", &port.name[..]),
            ("queue", &index),
            ("direction", queue.direction),
        ];
        labels(&[&own[..], more].concat())
    };
    families(
        &mut out,
        &PORTS,
        report
            .ports
            .iter()
            .map(|p| (labels(&[("port", &p.name)]), p)),
    );
    families(
        &mut out,
        &QUEUES,
        queues().map(|(p, q)| (of_queue(p, q, &[]), q)),
    );
    head(&mut out, "drops", true, "Packets dropped, by cause.");
    for (port, queue) in queues() {
        let drops = &queue.counters.drops;
        for (cause, value) in [
            ("descriptor", drops.descriptor),
            ("header", drops.header),
            ("length", drops.length),
            ("disabled", drops.disabled),
            ("no_buffer", drops.no_buffer),
            ("small_buffer", drops.small_buffer),
        ] {
            let labels = of_queue(port, queue, &[("cause", cause)]);
            sample(&mut out, "drops", true, &labels, value);
        }
    }
    let of_channel = |c: &ChannelReport| {
        let thread = c.thread.to_string();
        labels(&[
            ("channel", &c.name),
            ("executor", c.executor),
            ("thread", &thread),
        ])
    };
    families(
        &mut out,
        &CHANNELS,
        report.channels.iter().map(|c| (of_channel(c), c)),
    );
    out + "# EOF\n"
}

/// Families whose samples these are; those of one family stand together.
fn families<'a, T: 'a>(
    out: &mut String,
    families: &[Family<T>],
    of: impl Iterator<Item = (String, &'a T)> + Clone,
) {
    for family in families {
        head(out, family.name, family.counter, family.help);
        for (labels, from) in of.clone() {
            sample(
                out,
                family.name,
                family.counter,
                &labels,
                (family.value)(from),
            );
        }
    }
}

fn head(out: &mut String, name: &str, counter: bool, help: &str) {
    let kind = if counter { "counter" } else { "gauge" };
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "# TYPE dray_vhost_{name} {kind}\n# HELP dray_vhost_{name} {help}\n"
    );
}

fn sample(out: &mut String, name: &str, counter: bool, labels: &str, value: u64) {
    let suffix = if counter { "_total" } else { "" };
    let _ = writeln!(out, "dray_vhost_{name}{suffix}{labels} {value}");
}

fn labels(pairs: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    let pairs: Vec<String> = pairs.iter().map(pair).collect();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        assert_eq!(
            labels(&[("a", "x"), ("b", "1\"2\\3\n4")]),
            "{a=\"x\",b=\"1\\\"2\\\\3\\n4\"}"
        );
    }
}
