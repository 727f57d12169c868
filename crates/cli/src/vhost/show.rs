//! Counters for people.

use dray_vhost::forward::{QueueReport, Report};

use crate::print::{plain, right};

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
    }
    text
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
    format!(
        "{:6.1} s  from guests {:.3} Mpps, to guests {:.3} Mpps, dropped {:.3} Mpps, {in_flight} in flight",
        report.seconds,
        rate(now.0, before.0),
        rate(now.1, before.1),
        rate(now.2, before.2),
    )
}
