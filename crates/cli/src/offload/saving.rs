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

    /// Weights the other by `part`, and this by the rest.
    fn mixed(self, other: Ranged, part: f64) -> Ranged {
        match part {
            0.0 => self,
            1.0 => other,
            part => self
                .map(|ns| ns * (1.0 - part))
                .plus(other.map(|ns| ns * part)),
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
pub(super) struct CallTimes {
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
pub(super) const WAITS: [&str; 3] = ["polling", "umwait", "asynchronous"];

impl CallTimes {
    /// Weights the other by `part`, and this by the rest.
    fn mixed(&self, other: &CallTimes, part: f64) -> CallTimes {
        CallTimes {
            core: self.core.mixed(other.core, part),
            latency: self.latency.mixed(other.latency, part),
            polling: self.polling.mixed(other.polling, part),
            umwait: self.umwait.mixed(other.umwait, part),
            asynchronous: self.asynchronous.mixed(other.asynchronous, part),
        }
    }

    pub(super) fn saved(&self) -> [Ranged; 3] {
        [self.polling, self.umwait, self.asynchronous]
    }
}

/// What the model says of one call on one variant of the machine.
#[derive(Debug, Clone, Copy)]
struct Estimate {
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
    known: BTreeMap<(usize, u64, Destination), Estimates>,
}

impl Buffers {
    /// Of so many calls, of which `seen` find their buffers in the cache and `aligned` write to the start of a line.
    pub(super) fn new(calls: u64, seen: u64, aligned: u64) -> Buffers {
        let part = |some: u64| some as f64 / calls.max(1) as f64;
        Buffers {
            in_cache: part(seen),
            aligned: part(aligned),
        }
    }
}

/// What the model says of one call: from memory, from the cache, and all that could be.
type Estimates = (Estimate, Estimate, Vec<Estimate>);

/// Where destinations begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Destination {
    /// At a cache line.
    Aligned,
    /// Within one: the device reads the lines at both ends before it writes them.
    Unaligned,
}

impl Destination {
    /// As the axis `dst_align` of experiments has it, in bytes.
    const fn alignment(self) -> u64 {
        match self {
            Destination::Aligned => 64,
            Destination::Unaligned => 8,
        }
    }
}

/// What a survey has counted of calls of one size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffers {
    /// The part that finds its buffers in the cache, 0 to 1.
    pub(super) in_cache: f64,
    /// The part whose destination begins at a cache line, 0 to 1.
    pub(super) aligned: f64,
}

fn operation(call: Call) -> &'static str {
    match call {
        Call::Memcpy | Call::Memmove => "memmove",
        Call::Memset => "fill",
        Call::Memcmp => "compare",
    }
}

fn workload(
    call: Call,
    size: u64,
    depth: u64,
    placement: &str,
    to: Destination,
) -> Result<Workload, FiguresError> {
    Workload::from_point(
        &Point::default()
            .with("op", operation(call))
            .with("size", size)
            .with("depth", depth)
            .with("placement", placement)
            .with("dst_align", to.alignment().to_string()),
    )
}

fn estimate(
    model: &Model,
    call: Call,
    size: u64,
    placement: &str,
    to: Destination,
) -> Result<Estimate, FiguresError> {
    let one = Comparison::run(model, &workload(call, size, 1, placement, to)?)?;
    let many = Comparison::run(model, &workload(call, size, DEPTH, placement, to)?)?;
    let (device, core) = one.period();
    let (asleep, working) = one.core_time();
    let (handed_over, of_many) = many.core_time();
    Ok(Estimate {
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
                let found = Guesses::of(
                    &model,
                    &workload(call, 65536, depth, place, Destination::Aligned)?,
                )?;
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

    /// A call of so many bytes.
    pub(super) fn times(
        &mut self,
        call: Call,
        size: u64,
        buffers: Buffers,
    ) -> Result<CallTimes, FiguresError> {
        // A comparison writes nothing.
        let unaligned = match call {
            Call::Memcmp => 0.0,
            _ => 1.0 - buffers.aligned,
        };
        let aligned = match unaligned {
            1.0 => None,
            _ => Some(self.times_to(call, size, buffers.in_cache, Destination::Aligned)?),
        };
        let other = match unaligned {
            0.0 => None,
            _ => Some(self.times_to(call, size, buffers.in_cache, Destination::Unaligned)?),
        };
        Ok(match (aligned, other) {
            (Some(times), None) | (None, Some(times)) => times,
            (Some(times), Some(other)) => times.mixed(&other, unaligned),
            (None, None) => CallTimes::default(),
        })
    }

    fn times_to(
        &mut self,
        call: Call,
        size: u64,
        in_cache: f64,
        to: Destination,
    ) -> Result<CallTimes, FiguresError> {
        // A descriptor's worth of it, to a power of two's eighth.
        let parts = (size as f64 / SIZES[1] as f64).max(1.0);
        let step = (1_u64 << size.max(8).ilog2()) / 8;
        let size = (size / step * step).clamp(SIZES[0], SIZES[1]);
        let key = (call as usize, size, to);
        if !self.known.contains_key(&key) {
            let dram = estimate(&self.model, call, size, "dram", to)?;
            let llc = estimate(&self.model, call, size, "llc", to)?;
            let variants = self.variants.par_iter();
            let elsewhere = variants.flat_map(|variant| {
                let placements = ["dram", "llc"].into_par_iter();
                placements.map(move |placement| estimate(variant, call, size, placement, to))
            });
            let mut others: Vec<Estimate> = elsewhere.collect::<Result<_, _>>()?;
            others.extend([dram, llc]);
            self.known.insert(key, (dram, llc, others));
        }
        let (dram, llc, others) = &self.known[&key];
        let ranged = |of: &dyn Fn(&Estimate) -> f64| {
            let value = of(dram) * (1.0 - in_cache) + of(llc) * in_cache;
            Ranged::of(value, others.iter().map(of)).map(|ns| ns * parts)
        };
        Ok(CallTimes {
            core: ranged(&|said| said.core),
            latency: ranged(&|said| said.latency),
            polling: ranged(&|said| said.saved[0]),
            umwait: ranged(&|said| said.saved[1]),
            asynchronous: ranged(&|said| said.saved[2]),
        })
    }
}

#[cfg(test)]
mod tests {
    use dray_platform::PlatformFile;

    use super::*;

    #[test]
    fn unaligned_destinations_take_the_device_longer() {
        let platform = PlatformFile::resolve("spr-2s").expect("a platform");
        let profile = crate::configured::profile(None, "1e1w-d").expect("a profile");
        let model = Model::new(platform, profile.profile);
        let mut estimator = Estimator {
            model,
            variants: Vec::new(),
            guesses: Vec::new(),
            known: BTreeMap::new(),
        };
        let mut latency = |call, aligned| {
            let buffers = Buffers {
                in_cache: 0.5,
                aligned,
            };
            let times = estimator.times(call, 16384, buffers).expect("it runs");
            times.latency.value
        };
        let [all, half, none] = [1.0, 0.5, 0.0].map(|aligned| latency(Call::Memcpy, aligned));
        assert!(all < half && half < none, "{all} {half} {none}");
        assert!((half - f64::midpoint(all, none)).abs() < 1e-6);
        // A comparison writes nothing.
        assert_eq!(latency(Call::Memcmp, 1.0), latency(Call::Memcmp, 0.0));
    }
}
