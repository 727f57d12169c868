//! How a port shares what it lets through among the queues before it.

use super::delay::{self, Loop, Sent, Step};
use crate::level::{Share, water_level};

/// What a constraint lets through of a claim, seen alone.
pub(super) struct Offer<'a> {
    /// Flows that pass the constraint.
    pub(super) flows: &'a [Loop],
    /// All flows of the queue that take its edge.
    pub(super) over: &'a [Loop],
    /// What the queue waits for anything else.
    pub(super) least: f64,
    /// Bytes of its buffer, and the time beside its waiting that each takes room for.
    pub(super) buffer: f64,
    pub(super) round: f64,
    /// Of the bytes that leave the buffer, how many for each one of this claim.
    pub(super) load: f64,
    /// How long it waited before: where the search begins.
    pub(super) guess: f64,
}

/// What comes of an offer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// For how long its bytes wait; without end, if the buffer is full and the rest waits before it.
    pub(super) wait: f64,
    /// What it sends.
    pub(super) rate: f64,
}

impl Offer<'_> {
    /// For how long its bytes wait at most if they have the rate `amount`: then the buffer is full.
    pub(super) fn longest(&self, amount: f64) -> f64 {
        (self.buffer / (amount * self.load) - self.round).max(0.0)
    }

    /// What it sends if its bytes wait for `wait` in the buffer and as long as needed before it.
    fn held(&self, wait: f64) -> Sent {
        let time = wait.max(self.least);
        let mut free = delay::sent(self.flows, time);
        let room = self.buffer / (self.load * (time + self.round));
        if room < free.rate {
            free = Sent {
                rate: room,
                fall: room / (time + self.round),
            };
        }
        if wait < self.least {
            free.fall = 0.0;
        }
        free
    }

    /// For how long its bytes wait if all of its queue that takes the edge sends `level` together.
    fn wait_at(&self, level: f64) -> f64 {
        if level.is_infinite() {
            self.least
        } else {
            delay::wait_for(self.over, level, self.least, self.guess)
        }
    }
}

/// What `offers` get of `capacity` if the ingresses are served in turn. `level`, what each ingress gets at most, is where the
/// search begins, and is left there for the next one.
pub(super) fn in_turn(
    offers: &[Offer<'_>],
    capacity: f64,
    level: &mut f64,
    outcomes: &mut Vec<Outcome>,
) {
    let mut shares: Vec<Share> = offers
        .iter()
        .map(|offer| Share {
            cap: delay::rate(offer.over, offer.least),
            weight: 1.0,
        })
        .collect();
    let partly = |offer: &Offer<'_>| offer.flows.len() < offer.over.len();
    *level = if offers.iter().any(partly) {
        let most = shares.iter().map(|share| share.cap).fold(0.0, f64::max);
        level_for(offers, capacity, most.min(f64::MAX), *level)
    } else {
        water_level(&mut shares, capacity)
    };
    outcomes.extend(offers.iter().map(|offer| {
        let wait = offer.wait_at(*level);
        let rate = delay::rate(offer.flows, wait);
        Outcome { wait, rate }
    }));
}

/// The level, `most` if it is finite, at which the parts of `offers` that pass the constraint send `capacity`.
fn level_for(offers: &[Offer<'_>], capacity: f64, most: f64, guess: f64) -> f64 {
    let free = |offer: &Offer<'_>| delay::rate(offer.flows, offer.least);
    if offers.iter().map(free).sum::<f64>() <= capacity {
        return f64::INFINITY;
    }
    let start = if guess > 0.0 && guess < most {
        guess
    } else {
        (capacity / offers.len() as f64).min(most)
    };
    delay::search(0.0, most, start, |at| {
        let mut taken = 0.0;
        let mut slope = 0.0;
        for offer in offers {
            let wait = offer.wait_at(at);
            let part = delay::sent(offer.flows, wait);
            taken += part.rate;
            if wait > offer.least {
                slope += part.fall / delay::sent(offer.over, wait).fall;
            }
        }
        let missing = capacity - taken;
        if missing.abs() <= delay::EXACT * capacity {
            return None;
        }
        Some(Step {
            is_low: missing > 0.0,
            newton: at + missing / slope,
        })
    })
}

/// What `offers` get of `capacity` if all of them wait equally long: `wait`, where the search begins, and is left for the next
/// one.
pub(super) fn oldest_first(
    offers: &[Offer<'_>],
    capacity: f64,
    wait: &mut f64,
    outcomes: &mut Vec<Outcome>,
) {
    let taken = |wait: f64| {
        let mut sum = Sent::default();
        for offer in offers {
            let held = offer.held(wait);
            sum.rate += held.rate;
            sum.fall += held.fall;
        }
        sum
    };
    let loops = offers.iter().flat_map(|offer| offer.flows);
    let window: f64 = loops.map(|flow| flow.window).sum();
    *wait = if taken(0.0).rate <= capacity {
        0.0
    } else {
        delay::fall_to(capacity, 0.0, window / capacity, *wait, taken)
    };
    outcomes.extend(offers.iter().map(|offer| {
        let wait = wait.max(offer.least);
        let rate = offer.held(wait).rate;
        let free = delay::rate(offer.flows, wait);
        // With a full buffer the rest waits before it.
        let full = rate < free * (1.0 - 1e-12);
        Outcome {
            wait: if full { f64::INFINITY } else { wait },
            rate,
        }
    }));
}
