//! Counters for people.

use dray_vhost::forward::{QueueReport, Report};
use dray_vhost::queue::{Drops, QueueStats};

use crate::print::{plain, right};
use crate::terminal::Columns;

const HEAD: [&str; 10] = [
    "port",
    "queue",
    "packets",
    "Mpps",
    "GB/s",
    "dropped",
    "no buffer",
    "cycles/packet",
    "empty",
    "in flight",
];

/// Size bins of a queue: see [`dray_vhost::queue::SIZE_BINS`].
const SIZES: [&str; 7] = [
    "to 64",
    "65-127",
    "128-255",
    "256-511",
    "512-1023",
    "1024-1518",
    "longer",
];

/// Why packets are dropped.
const CAUSES: [&str; 6] = [
    "descriptor",
    "header",
    "length",
    "disabled",
    "no buffer",
    "small buffer",
];

/// All counters, at the end.
pub(super) fn table(report: &Report) -> String {
    let mut table = plain(HEAD);
    for port in &report.ports {
        for queue in &port.queues {
            let counters = &queue.counters;
            let drops = counters.drops.total() - counters.drops.no_buffer;
            table.add_row([
                port.name.clone(),
                format!("{} {}", queue.index, queue.direction),
                counters.packets.to_string(),
                format!("{:.3}", counters.packets as f64 / report.seconds / 1e6),
                format!("{:.3}", counters.bytes as f64 / report.seconds / 1e9),
                drops.to_string(),
                counters.drops.no_buffer.to_string(),
                or_dash(queue.cycles_per_packet, |c| format!("{c:.0}")),
                or_dash(queue.empty_polls, |share| format!("{:.0} %", share * 100.0)),
                queue.in_flight.to_string(),
            ]);
        }
    }
    right(&mut table, 2);
    let mut text = format!(
        "{} packets in {:.1} s\n\n{table}\n",
        report.packets_switched, report.seconds
    );
    let all = rows(report, SIZES, |c| {
        (c.packets > 0).then_some(c.sizes.to_vec())
    });
    if let Some(table) = all {
        text += &format!("\npackets by bytes\n{table}\n");
    }
    if let Some(table) = rows(report, CAUSES, causes) {
        text += &format!("\ndropped packets by cause\n{table}\n");
    }
    let mut turns = plain(["port", "longest turn (us)", "longest control (us)"]);
    for port in &report.ports {
        let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
        turns.add_row([
            port.name.clone(),
            us(port.turns.longest_turn_ns),
            us(port.turns.longest_control_ns),
        ]);
    }
    right(&mut turns, 1);
    text += &format!("\nCPU time that a port kept the others waiting\n{turns}\n");
    if report.threads.len() > 1 {
        text += &threads(report);
    }
    for port in &report.ports {
        for queue in port.queues.iter().filter(|q| q.broken.is_some()) {
            let why = queue.broken.as_deref().unwrap_or_default();
            text += &format!("{} queue {}: stopped: {why}\n", port.name, queue.index);
        }
    }
    if !report.channels.is_empty() {
        let mut table = plain(["channel", "executor", "copies", "bytes", "failed"]);
        for channel in &report.channels {
            table.add_row([
                channel.name.clone(),
                channel.executor.to_owned(),
                channel.copies.to_string(),
                channel.bytes.to_string(),
                channel.failed.to_string(),
            ]);
        }
        right(&mut table, 2);
        text += &format!("\n{table}\n{}\n", by_core(report));
        for channel in report.channels.iter().filter(|c| c.failed > 0) {
            let causes = channel.failures.iter();
            let causes: Vec<String> = causes.map(|(name, n)| format!("{n} {name}")).collect();
            text += &format!("failed copies of {}: {}\n", channel.name, causes.join(", "));
        }
    }
    text
}

fn threads(report: &Report) -> String {
    let mut table = plain(["thread", "core", "pairs", "packets"]);
    for (at, thread) in report.threads.iter().enumerate() {
        table.add_row([
            at.to_string(),
            thread
                .core
                .map_or_else(|| "-".to_owned(), |core| core.to_string()),
            thread.pairs.to_string(),
            thread.packets_switched.to_string(),
        ]);
    }
    right(&mut table, 1);
    let moved = report.pairs_moved;
    format!("\n{table}\nqueue pairs that went to another thread: {moved}\n")
}

/// A row of counts for each queue that has some.
fn rows<const N: usize>(
    report: &Report,
    head: [&str; N],
    counts: impl Fn(&QueueStats) -> Option<Vec<u64>>,
) -> Option<Columns> {
    let mut table = plain(["port", "queue"].into_iter().chain(head));
    for port in &report.ports {
        for queue in &port.queues {
            if let Some(counts) = counts(&queue.counters) {
                let names = [
                    port.name.clone(),
                    format!("{} {}", queue.index, queue.direction),
                ];
                let counts = counts.iter().map(u64::to_string);
                table.add_row(names.into_iter().chain(counts));
            }
        }
    }
    right(&mut table, 2);
    (table.row_count() > 0).then_some(table)
}

/// Dropped packets in the order of [`CAUSES`], if there are any.
fn causes(counters: &QueueStats) -> Option<Vec<u64>> {
    let Drops {
        descriptor,
        header,
        length,
        disabled,
        no_buffer,
        small_buffer,
    } = counters.drops;
    let all = vec![
        descriptor,
        header,
        length,
        disabled,
        no_buffer,
        small_buffer,
    ];
    (counters.drops.total() > 0).then_some(all)
}

/// Packets that the core copied although there are channels, and why.
fn by_core(report: &Report) -> String {
    let queues = || report.ports.iter().flat_map(|port| &port.queues);
    let sum = |f: fn(&QueueReport) -> u64| queues().map(f).sum::<u64>();
    format!(
        "copied by the core: {} below the threshold, {} for want of room, {} repeated",
        sum(|q| q.counters.copies_small),
        sum(|q| q.counters.copies_no_room),
        sum(|q| q.counters.copies_repeated),
    )
}

fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// What the last second has brought.
pub(super) fn line(last: Option<&Report>, report: &Report) -> String {
    let totals = |report: &Report| {
        let queues = || report.ports.iter().flat_map(|port| &port.queues);
        let packets = |direction: &str| -> u64 {
            let of = queues().filter(|q| q.direction == direction);
            of.map(|q| q.counters.packets).sum()
        };
        let drops: u64 = queues().map(|q| q.counters.drops.total()).sum();
        (packets("from-guest"), packets("to-guest"), drops)
    };
    let now = totals(report);
    let (before, since) = last.map_or(((0, 0, 0), 0.0), |last| (totals(last), last.seconds));
    let seconds = report.seconds - since;
    let rate = |now: u64, before: u64| (now - before) as f64 / seconds / 1e6;
    let in_flight: usize = report
        .ports
        .iter()
        .flat_map(|port| &port.queues)
        .map(|q| q.in_flight)
        .sum();
    let copies = report.copies_by_executor.iter().map(|(executor, copies)| {
        let before = last.and_then(|last| last.copies_by_executor.get(executor));
        let rate = rate(*copies, before.copied().unwrap_or(0));
        format!(", copies by {executor} {rate:.3} M/s")
    });
    format!(
        "{:6.1} s  from guests {:.3} Mpps, to guests {:.3} Mpps, dropped {:.3} Mpps, {in_flight} in flight{}{}",
        report.seconds,
        rate(now.0, before.0),
        rate(now.1, before.1),
        rate(now.2, before.2),
        copies.collect::<String>(),
        polls(last, report),
    )
}

/// Ticks per packet and share of empty polls since the last report.
fn polls(last: Option<&Report>, report: &Report) -> String {
    let sums = |report: &Report| {
        let queues = report.ports.iter().flat_map(|port| &port.queues);
        queues.fold([0; 4], |sum, queue| {
            let c = &queue.counters;
            let of = [c.busy_cycles, c.packets, c.polls_empty, c.polls_busy];
            std::array::from_fn(|i| sum[i] + of[i])
        })
    };
    let (now, before) = (sums(report), last.map_or([0; 4], sums));
    let [cycles, packets, empty, busy] = std::array::from_fn(|i| (now[i] - before[i]) as f64);
    let mut text = String::new();
    if packets > 0.0 {
        text += &format!(", {:.0} cycles/packet", cycles / packets);
    }
    if empty + busy > 0.0 {
        text += &format!(", {:.0} % of polls empty", 100.0 * empty / (empty + busy));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dray_vhost::backend::ControlStats;
    use dray_vhost::forward::{ChannelReport, PortReport, ThreadReport, Turns};
    use dray_vhost::queue::DropCause;

    use super::*;

    fn report(seconds: f64, packets: u64) -> Report {
        let mut counters = QueueStats {
            packets,
            bytes: 64 * packets,
            busy_cycles: 50 * packets,
            polls_busy: packets,
            polls_empty: packets,
            ..QueueStats::default()
        };
        counters.sizes[0] = packets;
        counters.count_drops(DropCause::Header, 7);
        let queue = QueueReport {
            index: 1,
            direction: "from-guest",
            live: true,
            thread: Some(0),
            in_flight: 0,
            broken: None,
            packets_per_second: 0.0,
            bytes_per_second: 0.0,
            cycles_per_packet: Some(50.0),
            empty_polls: Some(0.5),
            counters,
        };
        Report {
            seconds,
            packets_switched: packets,
            copies_by_executor: BTreeMap::from([("core", packets)]),
            memory_faults: 0,
            pairs_moved: 3,
            threads: Vec::new(),
            ports: vec![PortReport {
                name: "s".to_owned(),
                connected: true,
                turns: Turns {
                    longest_turn_ns: 12_300,
                    longest_control_ns: 0,
                },
                control: ControlStats::default(),
                queues: vec![queue],
            }],
            channels: Vec::new(),
        }
    }

    #[test]
    fn tables_of_sizes_and_drop_causes_are_omitted_when_empty() {
        let text = table(&report(1.0, 3));
        assert!(text.contains("packets by bytes") && text.contains("1024-1518"));
        assert!(text.contains("dropped packets by cause") && text.contains("small buffer"));
        assert!(text.contains("longest turn (us)") && text.contains("12.3"));
        assert!(!table(&report(1.0, 0)).contains("packets by bytes"));
        assert!(!text.contains("another thread"));
        let mut two = report(1.0, 3);
        let thread = ThreadReport {
            core: Some(5),
            pairs: 1,
            packets_switched: 3,
        };
        two.threads = vec![thread.clone(), thread];
        assert!(table(&two).contains("another thread: 3"));
    }

    #[test]
    fn a_channel_whose_copies_failed_says_why() {
        let mut report = report(1.0, 3);
        report.channels = vec![ChannelReport {
            name: "wq0.1".to_owned(),
            executor: "hw",
            thread: 0,
            copies: 9,
            bytes: 900,
            failed: 4,
            failures: BTreeMap::from([("page_fault", 1), ("none", 3)]),
            in_flight: 0,
        }];
        let text = table(&report);
        assert!(
            text.contains("failed copies of wq0.1: 3 none, 1 page_fault\n"),
            "{text}"
        );
        report.channels[0].failed = 0;
        assert!(!table(&report).contains("failed copies"));
    }

    #[test]
    fn a_line_has_the_rates_since_the_report_before() {
        let (before, mut now) = (report(1.0, 1_000_000), report(3.0, 5_000_000));
        let line = line(Some(&before), &now);
        assert!(line.contains("from guests 2.000 Mpps"), "{line}");
        assert!(line.contains("copies by core 2.000 M/s"), "{line}");
        assert!(
            line.contains("50 cycles/packet, 50 % of polls empty"),
            "{line}"
        );
        now.rates_since(&before);
        let queue = &now.ports[0].queues[0];
        assert_eq!(queue.packets_per_second, 2e6);
        assert_eq!(queue.bytes_per_second, 128e6);
    }
}
