//! Rates of closed-loop flows by what they wait.

/// A flow in front of one queue: what it sends depends on what it waits there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    /// What it sends at most.
    pub(super) demand: f64,
    /// Bytes that it keeps in flight.
    pub(super) window: f64,
    /// How long a byte is on its way beside the waiting in question.
    pub(super) elsewhere: f64,
}

impl Loop {
    /// Its rate if its bytes wait for `wait`.
    pub(super) fn rate(&self, wait: f64) -> f64 {
        let time = self.elsewhere + wait;
        if time > 0.0 {
            self.demand.min(self.window / time)
        } else {
            self.demand
        }
    }
}

/// What `loops` send together if their bytes wait for `wait`.
pub(super) fn rate(loops: &[Loop], wait: f64) -> f64 {
    loops.iter().map(|flow| flow.rate(wait)).sum()
}

/// For how long the bytes of `loops` must wait, if not longer than `least`, so that they send `amount` together.
pub(super) fn wait_for(loops: &[Loop], amount: f64, least: f64) -> f64 {
    if rate(loops, least) <= amount {
        return least;
    }
    let window: f64 = loops.iter().map(|flow| flow.window).sum();
    root(least, window / amount, |wait| rate(loops, wait) - amount)
}

/// Where `excess`, which never rises, is no longer positive between `low` and `high`; `high` if it is positive there.
///
/// Regula falsi with the Illinois rule; the interval is halved where that gains little.
pub(super) fn root(low: f64, high: f64, mut excess: impl FnMut(f64) -> f64) -> f64 {
    let (mut low, mut high) = (low, high.max(low));
    let (mut above, mut below) = (excess(low), excess(high));
    if above <= 0.0 {
        return low;
    }
    let mut moved_low = None;
    for _ in 0..STEPS {
        if below >= 0.0 || high - low <= f64::EPSILON * high {
            break;
        }
        let width = high - low;
        let secant = low + width * (above / (above - below));
        let inside = secant > low && secant < high;
        let middle = match inside {
            true => secant,
            false => 0.5 * (low + high),
        };
        if middle <= low || middle >= high {
            break;
        }
        let value = excess(middle);
        if value > 0.0 {
            (low, above) = (middle, value);
            if moved_low == Some(true) {
                below *= 0.5;
            }
            moved_low = Some(true);
        } else {
            (high, below) = (middle, value);
            if moved_low == Some(false) {
                above *= 0.5;
            }
            moved_low = Some(false);
        }
        if high - low > 0.5 * width {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            let value = excess(middle);
            match value > 0.0 {
                true => (low, above) = (middle, value),
                false => (high, below) = (middle, value),
            }
            moved_low = None;
        }
    }
    high
}

/// Steps after which a double has no more bits to find: each halves the interval at least.
const STEPS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_from_windows_and_times() {
        let loops = [(f64::INFINITY, 8.0, 1.0), (3.0, 4.0, 0.0), (0.5, 4.0, 0.0)].map(
            |(demand, window, elsewhere)| Loop {
                demand,
                window,
                elsewhere,
            },
        );
        assert_eq!(loops.map(|flow| flow.rate(0.0)), [8.0, 3.0, 0.5]);
        assert_eq!(loops.map(|flow| flow.rate(1.0)), [4.0, 3.0, 0.5]);
        assert_eq!(wait_for(&loops, 20.0, 0.25), 0.25);
        let wait = wait_for(&loops, 4.5, 0.0);
        assert!((rate(&loops, wait) - 4.5).abs() < 1e-12, "{wait}");
        let mut calls = 0;
        let found = root(0.0, 1e9, |wait| {
            calls += 1;
            rate(&loops, wait) - 4.5
        });
        assert!((found - wait).abs() < 1e-12 * wait, "{found} {wait}");
        assert!(calls < 64, "{calls}");
        assert_eq!(root(1.0, 2.0, |_| 1.0), 2.0);
        assert_eq!(root(1.0, 2.0, |_| -1.0), 1.0);
        assert_eq!(
            root(1.0, 2.0, |x| if x < 1.25 {
                f64::INFINITY
            } else {
                1.25 - x
            }),
            1.25
        );
        // Nobody waits less than for something else.
        assert_eq!(wait_for(&loops, 4.5, 10.0), 10.0);
    }
}
