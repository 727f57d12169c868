//! What waiting for the slowest of many lines costs.
//!
//! Line latencies are a fixed part plus an exponentially distributed excess with mean `tau`. A
//! descriptor is done when its last line is. Lines start `spacing` apart, so a line that started
//! long before the end no longer matters: the end of n lines behaves like the maximum of
//! `(1 - q^n) / (1 - q)` lines that start together, `q = exp(-spacing / tau)`, whose mean excess is
//! `tau` times the harmonic number. Hence the slow, log-like rise of synchronous latency with size,
//! and its end. All in fixed-point integers: no libm, the same bits everywhere.

use std::sync::Arc;

use dray_clock::Duration;

/// Fraction bits of the fixed-point numbers here.
const ONE: u32 = 48;

/// Excess over the mean latency of one line, by number of lines.
#[derive(Debug, Clone)]
pub(crate) struct Spread {
    /// Mean excess of one line and time between two, which all follows from.
    of: (Duration, u64),
    /// Index n - 1; the last entry holds for all larger n.
    excess: Arc<[Duration]>,
}

impl Spread {
    /// For lines `spacing_fs` femtoseconds apart.
    pub(crate) fn new(tau: Duration, spacing_fs: u64) -> Spread {
        let mut excess = vec![Duration::ZERO];
        if tau.0 > 0 && spacing_fs > 0 {
            let q = exp_neg(ratio(u128::from(spacing_fs), u128::from(tau.0) * 1000));
            let step = (1u128 << ONE) - q;
            let mut power = q;
            // Beyond a remainder of 2^-10 the effective number of lines grows by under 0.1 %.
            while power > 1 << (ONE - 10) && excess.len() < 8192 {
                power = (power * q) >> ONE;
                let effective = ratio((1 << ONE) - power, step.max(1));
                let h = harmonic(effective).saturating_sub(1 << ONE);
                excess.push(Duration(((u128::from(tau.0) * h) >> ONE) as u64));
            }
        }
        Spread {
            of: (tau, spacing_fs),
            excess: excess.into(),
        }
    }

    /// The same for other lines; these are not worked out again if they are the same.
    pub(crate) fn or_new(&self, tau: Duration, spacing_fs: u64) -> Spread {
        match self.of == (tau, spacing_fs) {
            true => self.clone(),
            false => Spread::new(tau, spacing_fs),
        }
    }

    /// Mean excess of the slowest of `lines` over the mean of one.
    pub(crate) fn slowest_of(&self, lines: u64) -> Duration {
        let last = self.excess.len() as u64 - 1;
        self.excess[lines.saturating_sub(1).min(last) as usize]
    }
}

/// `a / b` with `ONE` fraction bits.
fn ratio(a: u128, b: u128) -> u128 {
    (a << ONE) / b
}

/// `exp(-x)`: the series of `exp(-x / 2^k)`, squared k times.
fn exp_neg(x: u128) -> u128 {
    let mut halvings = 0;
    let mut small = x;
    while small > 1 << (ONE - 3) {
        small >>= 1;
        halvings += 1;
    }
    let (mut sum, mut term) = (1i128 << ONE, 1i128 << ONE);
    for n in 1..12 {
        term = -((term * small as i128) >> ONE) / n;
        sum += term;
    }
    let mut value = sum.max(0) as u128;
    for _ in 0..halvings {
        value = (value * value) >> ONE;
    }
    value
}

/// Natural logarithm of `x >= 1`: digits of the binary logarithm by squaring, times ln 2.
fn ln(x: u128) -> u128 {
    const LN_2: u128 = 195_103_586_505_167; // ln 2 * 2^48
    let whole = 127 - x.leading_zeros() - ONE;
    let mut mantissa = x >> whole;
    let mut digits = u128::from(whole);
    for _ in 0..32 {
        mantissa = (mantissa * mantissa) >> ONE;
        digits <<= 1;
        if mantissa >= 2 << ONE {
            mantissa >>= 1;
            digits |= 1;
        }
    }
    (digits * LN_2) >> 32
}

/// Harmonic number of a real `x >= 1`, by its asymptotic series: exact to 0.3 % at 1.
fn harmonic(x: u128) -> u128 {
    const EULER: u128 = 162_471_765_835_184; // Euler's constant * 2^48
    let inverse = ratio(1 << ONE, x);
    let square = (inverse * inverse) >> ONE;
    let fourth = (square * square) >> ONE;
    ln(x) + EULER + inverse / 2 - square / 12 + fourth / 120
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{RngCore, SeedableRng};

    fn as_f64(x: u128) -> f64 {
        x as f64 / (1u64 << ONE) as f64
    }

    #[test]
    fn fixed_point_agrees_with_floating_point() {
        for x in [0.001f64, 0.03, 0.5, 1.0, 3.0, 9.0] {
            let fixed = (x * (1u64 << ONE) as f64) as u128;
            assert!(
                (as_f64(exp_neg(fixed)) - (-x).exp()).abs() < 1e-9,
                "exp {x}"
            );
        }
        for x in [1.0f64, 1.5, 2.0, 10.0, 1000.0] {
            let fixed = (x * (1u64 << ONE) as f64) as u128;
            assert!((as_f64(ln(fixed)) - x.ln()).abs() < 1e-8, "ln {x}");
        }
        let exact: f64 = (1..=40).map(|n| 1.0 / f64::from(n)).sum();
        assert!((as_f64(harmonic(40 << ONE)) - exact).abs() < 1e-6);
        assert!((as_f64(harmonic(1 << ONE)) - 1.0).abs() < 3e-3);
    }

    /// The oracle: follows each line, with a random excess, and takes the last to arrive.
    fn follow_lines(tau: f64, spacing: f64, lines: u64, rng: &mut ChaCha8Rng) -> f64 {
        let runs = 4000;
        let mut sum = 0.0;
        for _ in 0..runs {
            let last = (0..lines)
                .map(|i| {
                    let uniform = (rng.next_u32() as f64 + 1.0) / (u32::MAX as f64 + 1.0);
                    i as f64 * spacing - tau * uniform.ln()
                })
                .fold(0.0, f64::max);
            sum += last - (lines - 1) as f64 * spacing - tau;
        }
        sum / f64::from(runs)
    }

    #[test]
    fn the_closed_form_agrees_with_a_simulation_of_each_line() {
        let mut rng = ChaCha8Rng::seed_from_u64(0x6472_6179);
        for (tau, spacing) in [(58.0, 2.0), (85.0, 2.0), (37.0, 2.0), (60.0, 4.0)] {
            let spread = Spread::new(
                Duration((tau * 1000.0) as u64),
                (spacing * 1_000_000.0) as u64,
            );
            for lines in [1, 2, 4, 16, 64, 256, 1024] {
                let oracle = follow_lines(tau, spacing, lines, &mut rng);
                let closed = spread.slowest_of(lines).as_ns();
                assert!(
                    (closed - oracle).abs() < 0.12 * tau,
                    "tau {tau} spacing {spacing} lines {lines}: {closed} against {oracle}"
                );
            }
        }
    }

    #[test]
    fn the_slowest_of_more_lines_is_never_faster() {
        let spread = Spread::new(Duration::from_ns(60), 2_000_000);
        assert_eq!(spread.slowest_of(0), Duration::ZERO);
        assert_eq!(spread.slowest_of(1), Duration::ZERO);
        for n in 1..2000 {
            assert!(spread.slowest_of(n) <= spread.slowest_of(n + 1));
        }
        assert_eq!(
            Spread::new(Duration::ZERO, 1).slowest_of(99),
            Duration::ZERO
        );
    }
}
