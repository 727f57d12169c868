//! From a value to a place on an axis, and the ticks of that axis.

use crate::number;

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    /// `None` for a grid line without a number.
    pub(crate) label: Option<String>,
}

/// An axis from `low` to `high`, both of which are ticks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    ticks: Vec<Tick>,
}

/// Where no value says how long an axis is, and where values are too small to divide by.
const TINY: f64 = 1e-290;

impl Scale {
    /// A linear axis that holds 0 and all values, with steps of 1, 2 or 5 and about `wanted` of
    /// them.
    pub(crate) fn linear(values: impl IntoIterator<Item = f64>, wanted: u32) -> Self {
        let (mut low, mut high) = (0.0f64, 0.0f64);
        for value in values {
            low = low.min(value);
            high = high.max(value);
        }
        if high - low < TINY {
            high = 1.0;
        }
        let (mantissa, exponent) = step((high - low) / f64::from(wanted.max(1)));
        let size = number::scaled(mantissa, exponent);
        let first = (low / size).floor() as i64;
        let last = (high / size).ceil() as i64;
        let ticks: Vec<Tick> = (first..=last)
            .map(|count| {
                let value = number::scaled(count * mantissa, exponent);
                Tick {
                    value,
                    label: Some(number::tick(count * mantissa, exponent, high.max(-low))),
                }
            })
            .collect();
        Self {
            low: number::scaled(first * mantissa, exponent),
            high: number::scaled(last * mantissa, exponent),
            log: false,
            ticks,
        }
    }

    /// A logarithmic axis that holds all values, which are above 0; it ends at 1, 2 or 5 times a
    /// power of ten.
    pub(crate) fn logarithmic(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for value in values {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        let first = below(low);
        let mut last = above(high);
        if last == first {
            last += 1;
        }
        // The bar of the lowest value must have a height.
        let height = log2(low) - log2(stop(first));
        let length = log2(stop(last)) - log2(stop(first));
        let first = if height < length / 20.0 {
            first - 1
        } else {
            first
        };
        let (low, high) = (stop(first), stop(last));
        Self {
            low,
            high,
            log: true,
            ticks: log_ticks(first, last),
        }
    }

    /// Where a value stands: 0 at the lower end, 1 at the upper one.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let place = if self.log {
            let low = log2(self.low);
            (log2(value) - low) / (log2(self.high) - low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.clamp(0.0, 1.0)
    }

    /// Where bars start: at 0, or at the lower end of a logarithmic axis.
    pub(crate) fn base(&self) -> f64 {
        if self.log { self.low } else { 0.0 }
    }

    pub(crate) fn ticks(&self) -> &[Tick] {
        &self.ticks
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `least`.
fn step(least: f64) -> (i64, i32) {
    let exponent = number::exponent(least);
    [1, 2, 5]
        .into_iter()
        .map(|mantissa| (mantissa, exponent))
        .find(|(mantissa, exponent)| number::scaled(*mantissa, *exponent) >= least)
        .unwrap_or((1, exponent + 1))
}

/// Stops of a logarithmic axis, numbered: three to a decade, 1, 2 and 5.
fn stop(index: i32) -> f64 {
    let mantissa = [1, 2, 5][usize::try_from(index.rem_euclid(3)).unwrap_or(0)];
    number::scaled(mantissa, index.div_euclid(3))
}

/// The last stop that is not above a value.
fn below(value: f64) -> i32 {
    let decade = number::exponent(value) * 3;
    (decade..decade + 3)
        .rev()
        .find(|index| stop(*index) <= value)
        .unwrap_or(decade)
}

/// The first stop that is not below a value.
fn above(value: f64) -> i32 {
    let decade = number::exponent(value) * 3;
    (decade..decade + 3)
        .find(|index| stop(*index) >= value)
        .unwrap_or(decade + 3)
}

/// Over two decades and less every stop has a number, above that each power of ten has (or, over
/// many decades, some have), and the other multiples get a line without one.
fn log_ticks(first: i32, last: i32) -> Vec<Tick> {
    let (low, high) = (stop(first), stop(last));
    let decades = (last - first) / 3;
    let every = (decades / 7 + 1).max(1);
    let mut ticks = Vec::new();
    for decade in first.div_euclid(3)..=last.div_euclid(3) {
        for mantissa in 1..10 {
            let value = number::scaled(mantissa, decade);
            if value < low || value > high {
                continue;
            }
            let labelled = match mantissa {
                1 => decade.rem_euclid(every) == 0,
                2 | 5 => decades <= 2,
                _ => false,
            };
            if labelled || decades <= 5 {
                ticks.push(Tick {
                    value,
                    label: labelled.then(|| number::tick(mantissa, decade, value)),
                });
            }
        }
    }
    ticks
}

/// Base 2 logarithm of a positive number, from additions, multiplications and divisions only, which
/// give the same bits on every machine; right to about 1e-15.
fn log2(value: f64) -> f64 {
    const BIAS: i64 = 1023;
    let (value, shift) = if value < f64::MIN_POSITIVE {
        (value * 18_014_398_509_481_984.0, 54)
    } else {
        (value, 0)
    };
    let bits = value.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - BIAS;
    let mut mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 (t + t^3/3 + t^5/5 + ...) with t = (m - 1) / (m + 1), here below 0.172.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let mut sum = 0.0;
    for odd in (1..=21).rev().step_by(2) {
        sum = sum * t * t + 1.0 / f64::from(odd);
    }
    (exponent - shift) as f64 + 2.0 * t * sum / std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale
            .ticks
            .iter()
            .filter_map(|t| t.label.as_deref())
            .collect()
    }

    #[test]
    fn linear_steps_are_1_2_or_5() {
        let scale = Scale::linear([3.0, 31.4], 5);
        assert_eq!(labels(&scale), ["0", "10", "20", "30", "40"]);
        let scale = Scale::linear([0.9], 5);
        assert_eq!(labels(&scale), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let scale = Scale::linear([-3.0, 4.0], 5);
        assert_eq!(labels(&scale), ["-4", "-2", "0", "2", "4"]);
    }

    #[test]
    fn a_linear_scale_without_values_ends_at_1() {
        let scale = Scale::linear([], 5);
        assert_eq!((scale.low, scale.high), (0.0, 1.0));
        assert_eq!(Scale::linear([0.0], 5).high, 1.0);
    }

    #[test]
    fn a_logarithmic_scale_ends_at_1_2_or_5_and_labels_decades() {
        let scale = Scale::logarithmic([0.3, 270.0]);
        assert_eq!((scale.low, scale.high), (0.2, 500.0));
        assert_eq!(labels(&scale), ["1", "10", "100"]);
        let scale = Scale::logarithmic([1.0, 30.0]);
        assert_eq!(labels(&scale), ["0.5", "1", "2", "5", "10", "20", "50"]);
    }

    #[test]
    fn places_are_fractions_of_the_axis() {
        let scale = Scale::linear([31.4], 6);
        assert_eq!(scale.place(0.0), 0.0);
        assert_eq!(scale.place(20.0), 0.5);
        let scale = Scale::logarithmic([0.2, 900.0]);
        assert!((scale.place(10.0) - 0.5).abs() < 1e-12);
        assert_eq!(scale.place(scale.low), 0.0);
    }

    #[test]
    fn log2_agrees_with_the_standard_library() {
        for value in [
            1.0, 2.0, 0.5, 1024.0, 10.0, 1e-300, 1e300, 3.7e-310, 1.4, 1.5,
        ] {
            let error = (log2(value) - value.log2()).abs();
            assert!(error < 1e-12, "log2({value}) is off by {error}");
        }
    }

    proptest! {
        #[test]
        fn values_are_within_a_linear_axis(values in prop::collection::vec(-1e300..1e300f64, 0..9), wanted in 1u32..9) {
            let scale = Scale::linear(values.clone(), wanted);
            prop_assert!(scale.ticks.len() >= 2 && scale.ticks.len() <= 2 * wanted as usize + 3);
            for value in values {
                prop_assert!(scale.low <= value && value <= scale.high);
            }
            prop_assert!(scale.ticks.windows(2).all(|w| w[0].value < w[1].value));
        }

        #[test]
        fn values_are_within_a_logarithmic_axis(exponents in prop::collection::vec(-299i32..299, 1..9), m in 1.0..10.0f64) {
            let values: Vec<f64> = exponents.iter().map(|e| m * number::scaled(1, *e)).collect();
            let scale = Scale::logarithmic(values.clone());
            for value in values {
                prop_assert!(scale.low < value && value <= scale.high);
            }
            prop_assert!(scale.ticks.iter().filter(|t| t.label.is_some()).count() >= 2);
            prop_assert!(scale.ticks.iter().filter(|t| t.label.is_some()).count() <= 20);
            prop_assert!(scale.ticks.windows(2).all(|w| w[0].value < w[1].value));
        }
    }
}
