//! From the samples of a point's threads to its metrics.

use std::time::Duration;

use dray_workload::{MeasuredLoop, Rounds};

use super::streams::Stream;
use crate::workload::Workload;
use crate::{Metric, Metrics};

/// Runs that the samples of a thread are divided into.
pub(super) const RUNS: usize = 9;

/// The metrics of a point, of all threads of the workload together. `in_step`: they copied lists together,
/// a part each.
pub(super) fn metrics(
    w: &Workload,
    streams: &[Stream],
    measured: &[MeasuredLoop],
    in_step: bool,
) -> Metrics {
    let all: Vec<(&Stream, &MeasuredLoop)> = streams.iter().zip(measured).collect();
    let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(s, _)| !s.is_neighbour);
    let [low, period, high] = match in_step {
        true => {
            let samples: Vec<&[u64]> = own.iter().map(|(_, m)| &m.samples[..]).collect();
            let round: u64 = own.iter().map(|(stream, _)| stream.round()).sum();
            spread(&last_parts(&samples)).map(|ns| ns / round as f64)
        }
        false => {
            let periods: Vec<[f64; 3]> = own.iter().map(|(s, m)| periods(s, m)).collect();
            [0, 1, 2].map(|which| together(periods.iter().map(|period| period[which])))
        }
    };
    // All of a round are outstanding all the time.
    let latencies = own
        .iter()
        .map(|(s, m)| periods(s, m)[1] * s.outstanding() as f64);
    let latency = latencies.sum::<f64>() / own.len().max(1) as f64;
    let ended = |(stream, found): &(&Stream, &MeasuredLoop)| {
        found.rounds.samples.len() as u64 * stream.round()
    };
    let operations = own.iter().map(ended).sum::<u64>().max(1) as f64;
    let each = |time: fn(&Rounds) -> Duration| {
        let times = own.iter().map(|(_, m)| time(&m.rounds).as_nanos() as f64);
        times.sum::<f64>() / operations
    };
    let prepare = each(|rounds| rounds.preparing);
    let submit = each(|rounds| rounds.busy.saturating_sub(rounds.preparing));
    // What a core waits of its own period; the period of all is shorter.
    let wait = period * own.len() as f64 - prepare - submit;
    let per = |amount: f64, period: f64| amount / period.max(f64::MIN_POSITIVE);
    let mut metrics = Metrics::single(Metric::Throughput, per(w.bytes() as f64, period))
        .with(Metric::Latency, latency)
        .with(Metric::Period, period)
        .with(Metric::Prepare, prepare)
        .with(Metric::Submit, submit)
        .with(Metric::Wait, wait.max(0.0))
        .with(Metric::Rate, per(1e3, period))
        .with(Metric::PeriodLow, low)
        .with(Metric::PeriodHigh, high);
    if let Some(list) = w.list {
        // All parts of a list are copied at the same time.
        let channels: usize = own.iter().map(|(stream, _)| stream.devices.len()).sum();
        let members = f64::from(list.members(w)) * channels as f64;
        metrics = metrics.with(Metric::List, period * members);
    }
    if let Some((stream, found)) = others.first() {
        let period = periods(stream, found)[1];
        let bytes = stream.work.bytes() as f64;
        metrics = metrics
            .with(Metric::NeighbourThroughput, per(bytes, period))
            .with(
                Metric::NeighbourLatency,
                period * stream.outstanding() as f64 / 1000.0,
            );
    }
    metrics
}

/// Nanoseconds for each operation of one thread: shortest but one, median and longest but one.
fn periods(stream: &Stream, found: &MeasuredLoop) -> [f64; 3] {
    spread(&found.samples).map(|ns| ns / stream.round() as f64)
}

/// The period of several threads together: their rates add up.
fn together(periods: impl Iterator<Item = f64>) -> f64 {
    let rate: f64 = periods.map(|ns| 1.0 / ns.max(f64::MIN_POSITIVE)).sum();
    1.0 / rate.max(f64::MIN_POSITIVE)
}

/// The time of each list, which is that of its last part.
fn last_parts(threads: &[&[u64]]) -> Vec<u64> {
    let count = threads.iter().map(|samples| samples.len()).min();
    let longest = |list: usize| threads.iter().map(|samples| samples[list]).max();
    (0..count.unwrap_or(0)).filter_map(longest).collect()
}

/// The means of the runs that the samples are divided into: the shortest but one, the median, the longest
/// but one.
fn spread(samples: &[u64]) -> [f64; 3] {
    let each = samples.len().div_ceil(RUNS).max(1);
    let mean = |run: &[u64]| run.iter().sum::<u64>() as f64 / run.len().max(1) as f64;
    let mut runs: Vec<f64> = samples.chunks(each).map(mean).collect();
    runs.sort_by(f64::total_cmp);
    let last = runs.len().saturating_sub(1);
    let at = |index: usize| runs.get(index.min(last)).copied().unwrap_or(0.0);
    [at(1), at(runs.len() / 2), at(last.saturating_sub(1))]
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;

    use super::*;
    use crate::device::streams::streams;

    #[test]
    fn the_spread_excludes_the_extremes() {
        let samples: Vec<u64> = (1..=9).collect();
        assert_eq!(spread(&samples), [2.0, 5.0, 8.0]);
        assert_eq!(spread(&[7]), [7.0; 3]);
        assert_eq!(spread(&[]), [0.0; 3]);
    }

    fn found(samples: &[u64]) -> MeasuredLoop {
        MeasuredLoop {
            rounds: Rounds {
                samples: samples.iter().copied().map(Duration::from_nanos).collect(),
                ..Rounds::default()
            },
            samples: samples.to_vec(),
            pinned: true,
        }
    }

    #[test]
    fn rates_of_devices_are_summed_without_the_neighbour() {
        let point = Point::default().with("devices", 2).with("size", 4096);
        let w = Workload::from_point(&point).unwrap();
        let threads = streams(&w, [128, 128]);
        let metrics = metrics(&w, &threads, &[found(&[1000; 9]), found(&[500; 9])], false);
        let period = metrics.get(Metric::Period).unwrap();
        assert!((period - 1000.0 / 3.0).abs() < 1e-6, "{period}");
        assert_eq!(metrics.get(Metric::Latency), Some(750.0));

        let point = Point::default()
            .with("neighbour_size", 65536)
            .with("sharing", "device");
        let w = Workload::from_point(&point).unwrap();
        let threads = streams(&w, [64, 64]);
        let metrics = super::metrics(&w, &threads, &[found(&[800; 9]), found(&[6553; 9])], false);
        assert_eq!(metrics.get(Metric::Period), Some(800.0));
        let beside = metrics.get(Metric::NeighbourThroughput).unwrap();
        assert!((beside - 65536.0 / 6553.0).abs() < 1e-6, "{beside}");
    }

    #[test]
    fn the_time_of_a_list_is_that_of_its_last_part() {
        let point = Point::default().with("devices", 2).with("pages", 8);
        let w = Workload::from_point(&point).unwrap();
        let threads = streams(&w, [128, 128]);
        let parts = [found(&[100, 300, 100]), found(&[200, 200, 200])];
        let metrics = metrics(&w, &threads, &parts, true);
        assert_eq!(metrics.get(Metric::List), Some(200.0));
        let bytes = 8.0 * 4096.0;
        let throughput = metrics.get(Metric::Throughput).unwrap();
        assert!((throughput - bytes / 200.0).abs() < 1e-6, "{throughput}");
    }
}
