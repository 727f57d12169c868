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
        self.sent(wait).rate
    }

    /// Its rate if its bytes wait for `wait`, and how fast it falls there.
    fn sent(&self, wait: f64) -> Sent {
        let time = self.elsewhere + wait;
        let free = self.window / time;
        if time > 0.0 && free < self.demand {
            Sent {
                rate: free,
                fall: free / time,
            }
        } else {
            Sent {
                rate: self.demand,
                fall: 0.0,
            }
        }
    }
}

/// A rate that depends on a waiting time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) rate: f64,
    /// By how much it falls for each unit of time that the bytes wait longer.
    pub(super) fall: f64,
}

/// What `loops` send together if their bytes wait for `wait`.
pub(super) fn sent(loops: &[Loop], wait: f64) -> Sent {
    let mut sum = Sent::default();
    for flow in loops {
        let Sent { rate, fall } = flow.sent(wait);
        sum.rate += rate;
        sum.fall += fall;
    }
    sum
}

/// The rate alone of [`sent`].
pub(super) fn rate(loops: &[Loop], wait: f64) -> f64 {
    sent(loops, wait).rate
}

/// For how long the bytes of `loops` must wait, if not longer than `least`, so that they send `amount` together. The search
/// begins at `guess`.
pub(super) fn wait_for(loops: &[Loop], amount: f64, least: f64, guess: f64) -> f64 {
    if let [flow] = loops {
        return match flow.rate(least) <= amount {
            true => least,
            false => least.max(flow.window / amount - flow.elsewhere),
        };
    }
    if rate(loops, least) <= amount {
        return least;
    }
    let window: f64 = loops.iter().map(|flow| flow.window).sum();
    fall_to(amount, least, window / amount, guess, |wait| {
        sent(loops, wait)
    })
}

/// Where `sent`, of which the rate never rises, has come down to `amount`, between `low` and `high`; `high` if it is above
/// there. The search begins at `guess`.
///
/// Newton's method for the inverse of the rate, which is a straight line for one flow and nearly one for flows of like
/// latency.
pub(super) fn fall_to(
    amount: f64,
    low: f64,
    high: f64,
    guess: f64,
    mut sent: impl FnMut(f64) -> Sent,
) -> f64 {
    let start = if guess > low && guess < high {
        guess
    } else {
        low
    };
    search(low, high.max(low), start, |at| {
        let Sent { rate, fall } = sent(at);
        let excess = rate - amount;
        if excess.abs() <= EXACT * amount {
            return None;
        }
        Some(Step {
            is_low: excess > 0.0,
            newton: at + rate / amount * (excess / fall),
        })
    })
}

/// What is known of a place that is not where it is searched for.
pub(super) struct Step {
    /// The place is too low.
    pub(super) is_low: bool,
    /// The next place by Newton's method.
    pub(super) newton: f64,
}

/// The place between `low` and `high` at which `step` returns nothing; `high` if there is none in reach. Begins at `start`,
/// goes on by Newton's method, and halves the interval where that leaves it or shortens it little.
pub(super) fn search(
    mut low: f64,
    mut high: f64,
    start: f64,
    mut step: impl FnMut(f64) -> Option<Step>,
) -> f64 {
    let mut at = start;
    let mut width = f64::INFINITY;
    for number in 0..STEPS {
        let Some(Step { is_low, newton }) = step(at) else {
            return at;
        };
        if is_low {
            low = at;
        } else {
            high = at;
        }
        let slow = number % 4 == 3 && high - low > 0.5 * std::mem::replace(&mut width, high - low);
        at = if newton > low && newton < high && !slow {
            newton
        } else {
            0.5 * (low + high)
        };
        if at <= low || at >= high {
            break;
        }
    }
    high
}

/// Part of a rate or a capacity by which the result may differ: well below where waiting times count as settled.
pub(super) const EXACT: f64 = 1e-13;
/// Steps of a search at most.
const STEPS: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_flow_is_its_window_by_its_time() {
        let loops = [(f64::INFINITY, 8.0, 1.0), (3.0, 4.0, 0.0), (0.5, 4.0, 0.0)].map(
            |(demand, window, elsewhere)| Loop {
                demand,
                window,
                elsewhere,
            },
        );
        assert_eq!(loops.map(|flow| flow.rate(0.0)), [8.0, 3.0, 0.5]);
        assert_eq!(loops.map(|flow| flow.rate(1.0)), [4.0, 3.0, 0.5]);
        assert_eq!(wait_for(&loops, 20.0, 0.25, 0.0), 0.25);
        for guess in [0.0, 0.9, 3.0, 1e12, f64::NAN] {
            let wait = wait_for(&loops, 4.5, 0.0, guess);
            assert!((rate(&loops, wait) - 4.5).abs() < 1e-12, "{wait} {guess}");
        }
        // No flow waits less than for something else.
        assert_eq!(wait_for(&loops, 4.5, 10.0, 0.0), 10.0);
        assert_eq!(wait_for(&loops[..1], 4.0, 0.0, 0.0), 1.0);
        assert_eq!(wait_for(&loops[2..], 4.0, 0.0, 0.0), 0.0);
    }

    #[test]
    fn the_search_for_a_delay_ends_after_few_steps() {
        let loops: Vec<Loop> = (1..500)
            .map(|k| Loop {
                demand: f64::from(k % 7 + 1),
                window: f64::from(k % 11 + 1) * 100.0,
                elsewhere: f64::from(k % 13),
            })
            .collect();
        for amount in [1e-9, 1.0, 100.0, 1900.0] {
            let mut calls = 0;
            let found = fall_to(amount, 0.0, 1e15, 0.0, |wait| {
                calls += 1;
                sent(&loops, wait)
            });
            let off = rate(&loops, found) / amount - 1.0;
            assert!(off.abs() < 1e-12, "{off} {found} {amount}");
            assert!(calls < 64, "{calls} {amount}");
        }
        let level = |rate| move |_: f64| Sent { rate, fall: 0.0 };
        assert_eq!(fall_to(1.0, 1.0, 2.0, 1.5, level(2.0)), 2.0);
        assert!(fall_to(1.0, 1.0, 2.0, 1.5, level(0.5)) < 1.0 + 1e-9);
        // A step at 1.25, and an infinite rate before it.
        let step = |wait| Sent {
            rate: if wait < 1.25 { f64::INFINITY } else { 0.5 },
            fall: 0.0,
        };
        assert!((fall_to(1.0, 1.0, 2.0, 0.0, step) - 1.25).abs() < 1e-9);
    }
}
