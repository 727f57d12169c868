//! How good a schedule is.

/// Over all jobs. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// From the first arrival to the last end.
    pub makespan: f64,
    /// Mean of end minus arrival.
    pub mean: f64,
    /// The 99th percentile of it (nearest rank).
    pub p99: f64,
    /// Jain's index of `time alone / (end - arrival)`: 1 if all jobs are slowed down alike.
    pub jain: f64,
}

impl Metrics {
    pub(super) fn new(known: &[f64], ends: &[f64], alone: &[f64]) -> Self {
        let pairs = ends.iter().zip(known);
        let mut times: Vec<f64> = pairs.map(|(end, known)| end - known).collect();
        if let Some(job) = times.iter().position(|time| time.is_nan() || *time <= 0.0) {
            panic!(
                "job {job} ends at {} s and is known from {} s on",
                ends[job], known[job]
            );
        }
        let first = known.iter().copied().fold(f64::INFINITY, f64::min);
        let last = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let count = times.len().max(1) as f64;
        let speeds = || alone.iter().zip(&times).map(|(alone, time)| alone / time);
        let (sum, squares) =
            speeds().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        let jain = if squares > 0.0 {
            sum * sum / (count * squares)
        } else {
            1.0
        };
        let mean = times.iter().sum::<f64>() / count;
        times.sort_by(f64::total_cmp);
        let rank = ((times.len() as f64 * 0.99).ceil() as usize).max(1) - 1;
        Self {
            makespan: if times.is_empty() { 0.0 } else { last - first },
            mean,
            p99: times.get(rank).copied().unwrap_or(0.0),
            jain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_two_jobs_are_those_computed_by_hand() {
        let metrics = Metrics::new(&[0.0, 1.0], &[2.0, 5.0], &[1.0, 2.0]);
        assert_eq!(metrics.makespan, 5.0);
        assert_eq!(metrics.mean, 3.0);
        assert_eq!(metrics.p99, 4.0);
        assert_eq!(metrics.jain, 1.0);
    }

    #[test]
    fn p99_of_a_hundred_is_the_99th() {
        let known = vec![0.0; 100];
        let ends: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(Metrics::new(&known, &ends, &known).p99, 99.0);
    }
}
