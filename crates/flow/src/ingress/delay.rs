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
    root(least, window / amount, |wait| rate(loops, wait) > amount)
}

/// Where `is_above` turns from true to false between `low` and `high`.
pub(super) fn root(low: f64, high: f64, mut is_above: impl FnMut(f64) -> bool) -> f64 {
    let (mut low, mut high) = (low, high.max(low));
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if is_above(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Halvings after which a double has no more bits to find, beside those that lie below a part of 1e-4 of the first interval.
const HALVINGS: usize = 64;

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
        // Nobody waits less than for something else.
        assert_eq!(wait_for(&loops, 4.5, 10.0), 10.0);
    }
}
