//! Where a mean or a median is, from a sample.

use std::f64::consts::PI;

use serde::Serialize;

/// An estimate and where it is with a probability of at least 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// The mean of two values or more, by Student's distribution.
    pub fn of_mean(values: &[f64]) -> Interval {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let half = student(count - 1.0) * error;
        Interval {
            value: mean,
            low: mean - half,
            high: mean + half,
        }
    }

    /// The median, between two of the values, whatever they are distributed like (the sign test). Fewer than six are too
    /// few for 95 %.
    pub fn of_median(values: &[f64]) -> Option<Interval> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        // How many values are below the median is like the heads of so many coins.
        let (mut exactly, mut at_most, mut outside) = (0.5f64.powi(count as i32), 0.0, None);
        for heads in 0..count {
            at_most += exactly;
            if at_most > 0.025 {
                break;
            }
            outside = Some(heads);
            exactly *= (count - heads) as f64 / (heads + 1) as f64;
        }
        let outside = outside?;
        Some(Interval {
            value: (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0,
            low: sorted[outside],
            high: sorted[count - 1 - outside],
        })
    }
}

/// The 97.5 % quantile of Student's distribution: exact for 1 and 2 degrees of freedom, and from the normal one's
/// (Cornish and Fisher's series; Abramowitz and Stegun, 26.7.5) within 1 % for more.
fn student(freedom: f64) -> f64 {
    match freedom {
        1.0 => return (0.475 * PI).tan(),
        2.0 => return 0.95 * (2.0f64 / (4.0 * 0.975 * 0.025)).sqrt(),
        _ => {}
    }
    let z: f64 = 1.959_964;
    let power = |n: i32| z.powi(n);
    z + (power(3) + z) / (4.0 * freedom)
        + (5.0 * power(5) + 16.0 * power(3) + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * z)
            / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [
            (1.0, 12.706),
            (2.0, 4.303),
            (3.0, 3.182),
            (5.0, 2.571),
            (20.0, 2.086),
            (100.0, 1.984),
        ] {
            let got = student(freedom);
            assert!((got / expected - 1.0).abs() < 0.01, "{freedom}: {got}");
        }
        let interval = Interval::of_mean(&[1.0, 2.0, 3.0, 4.0]);
        assert!((interval.value - 2.5).abs() < 1e-12);
        assert!((interval.high - interval.low - 2.0 * 3.182 * 0.6455).abs() < 0.05);
    }

    /// Ranks of Hollander and Wolfe's tables of the sign test.
    #[test]
    fn the_interval_of_a_median_has_the_ranks_of_the_tables() {
        for (count, rank) in [(6, 1), (9, 2), (12, 3), (21, 6), (30, 10)] {
            let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            let interval = Interval::of_median(&values).expect("enough values");
            assert_eq!(interval.value, (f64::from(count) + 1.0) / 2.0);
            let ends = (f64::from(rank), f64::from(count + 1 - rank));
            assert_eq!((interval.low, interval.high), ends, "{count}");
        }
        assert_eq!(Interval::of_median(&[1.0; 5]), None);
    }
}
