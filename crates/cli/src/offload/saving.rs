//! What a device would save of what a survey has counted, by the model.

use std::collections::BTreeMap;

use dray_experiment::Point;
use dray_figures::{Comparison, FiguresError, Guesses, Metric, Model, Workload};
use dray_offload::calls::Call;
use dray_platform::Parameter;
use rayon::prelude::*;

/// Sizes that are looked at, in bytes; smaller calls are never worth a descriptor, larger ones take
/// several.
pub(super) const SIZES: [u64; 2] = [512, 2 << 20];
/// Outstanding operations of an asynchronous program.
pub(super) const DEPTH: u64 = 16;

/// A number, and how far it can be off within the ranges of guesses and wherever the buffers are.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Ranged {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Ranged {
    fn of(value: f64, others: impl Iterator<Item = f64>) -> Ranged {
        let begin = Ranged {
            value,
            low: value,
            high: value,
        };
        others.fold(begin, |range, other| Ranged {
            low: range.low.min(other),
            high: range.high.max(other),
            ..range
        })
    }

    pub(super) fn map(self, f: impl Fn(f64) -> f64) -> Ranged {
        let (a, b) = (f(self.low), f(self.high));
        Ranged {
            value: f(self.value),
            low: a.min(b),
            high: a.max(b),
        }
    }

    pub(super) fn plus(self, other: Ranged) -> Ranged {
        Ranged {
            value: self.value + other.value,
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }
}

/// One call, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Times {
    /// The core does it.
    pub(super) core: Ranged,
    /// The device does it, and the core waits.
    pub(super) latency: Ranged,
    /// Core time saved by a core that polls, that waits with UMWAIT, and that goes on meanwhile.
    pub(super) polling: Ranged,
    pub(super) umwait: Ranged,
    pub(super) asynchronous: Ranged,
}

/// Ways to use the device, as in results.
pub(super) const WAYS: [&str; 3] = ["polling", "umwait", "asynchronous"];

impl Times {
    pub(super) fn saved(&self) -> [Ranged; 3] {
        [self.polling, self.umwait, self.asynchronous]
    }
}

/// What the model says of one call on one variant of the machine.
#[derive(Debug, Clone, Copy)]
struct Said {
    core: f64,
    latency: f64,
    saved: [f64; 3],
}

/// Estimates times of calls, each size once.
pub(super) struct Estimator {
    model: Model,
    /// The machine with one guess at one end of its range.
    variants: Vec<Model>,
    pub(super) guesses: Vec<Parameter>,
    /// From memory, from the cache, and all that could be.
    known: BTreeMap<(usize, u64), (Said, Said, Vec<Said>)>,
}

fn operation(call: Call) -> &'static str {
    match call {
        Call::Memcpy | Call::Memmove => "memmove",
        Call::Memset => "fill",
        Call::Memcmp => "compare",
    }
}

fn workload(call: Call, size: u64, depth: u64, place: &str) -> Result<Workload, FiguresError> {
    Workload::from_point(
        &Point::default()
            .with("op", operation(call))
            .with("size", size)
            .with("depth", depth)
            .with("placement", place),
    )
}

fn say(model: &Model, call: Call, size: u64, place: &str) -> Result<Said, FiguresError> {
    let one = Comparison::run(model, &workload(call, size, 1, place)?)?;
    let many = Comparison::run(model, &workload(call, size, DEPTH, place)?)?;
    let (device, core) = one.period();
    let (asleep, working) = one.core_time();
    let (handed_over, of_many) = many.core_time();
    Ok(Said {
        core,
        latency: one.device.get(Metric::Latency).unwrap_or(device),
        saved: [core - device, working - asleep, of_many - handed_over],
    })
}

impl Estimator {
    /// On this machine; the guesses that matter for these calls are looked for.
    pub(super) fn new(model: Model, calls: &[Call]) -> Result<Estimator, FiguresError> {
        let mut guesses: Vec<Parameter> = Vec::new();
        for &call in calls {
            for (depth, place) in [(1, "dram"), (DEPTH, "llc")] {
                let found = Guesses::of(&model, &workload(call, 65536, depth, place)?)?;
                let found = [found.device, found.core, found.core_time];
                for guess in found.into_iter().flatten() {
                    if guesses.iter().all(|known| known.name != guess.name) {
                        guesses.push(guess);
                    }
                }
            }
        }
        let mut variants = Vec::new();
        for guess in &guesses {
            for end in guess.range {
                if end != guess.value {
                    let platform = model.platform.with(guess.name, end)?;
                    variants.push(Model {
                        platform: platform.into(),
                        ..model.clone()
                    });
                }
            }
        }
        Ok(Estimator {
            model,
            variants,
            guesses,
            known: BTreeMap::new(),
        })
    }

    /// A call of so many bytes, of which this part finds its buffers in the cache.
    pub(super) fn times(
        &mut self,
        call: Call,
        size: u64,
        in_cache: f64,
    ) -> Result<Times, FiguresError> {
        // A descriptor's worth of it, to a power of two's eighth.
        let parts = (size as f64 / SIZES[1] as f64).max(1.0);
        let step = (1_u64 << size.max(8).ilog2()) / 8;
        let size = (size / step * step).clamp(SIZES[0], SIZES[1]);
        let key = (call as usize, size);
        if !self.known.contains_key(&key) {
            let dram = say(&self.model, call, size, "dram")?;
            let llc = say(&self.model, call, size, "llc")?;
            let variants = self.variants.par_iter();
            let elsewhere = variants.flat_map(|variant| {
                let places = ["dram", "llc"].into_par_iter();
                places.map(move |place| say(variant, call, size, place))
            });
            let mut others: Vec<Said> = elsewhere.collect::<Result<_, _>>()?;
            others.extend([dram, llc]);
            self.known.insert(key, (dram, llc, others));
        }
        let (dram, llc, others) = &self.known[&key];
        let ranged = |of: &dyn Fn(&Said) -> f64| {
            let value = of(dram) * (1.0 - in_cache) + of(llc) * in_cache;
            Ranged::of(value, others.iter().map(of)).map(|ns| ns * parts)
        };
        Ok(Times {
            core: ranged(&|said| said.core),
            latency: ranged(&|said| said.latency),
            polling: ranged(&|said| said.saved[0]),
            umwait: ranged(&|said| said.saved[1]),
            asynchronous: ranged(&|said| said.saved[2]),
        })
    }
}
