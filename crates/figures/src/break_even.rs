//! The size from which the device is worth it.

use dray_experiment::Point;

use crate::company::Company;
use crate::model::{Model, Window};
use crate::workload::{What, Workload};
use crate::{FiguresError, Metrics};

/// Smallest and largest size that is looked at, in bytes.
const SIZES: (u32, u32) = (64, 4 << 20);

/// The sizes from which a modelled device beats the modelled core beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakEven {
    /// Bytes from which the device has more throughput than one core; `None`: at no size that the
    /// work queue allows.
    pub throughput: Option<u32>,
    /// Bytes from which to prepare and to submit takes the core less time than to do the work
    /// itself, whoever is faster.
    pub core_time: Option<u32>,
}

/// One operation on the device and on the core.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// On the device.
    pub device: Metrics,
    /// On the core.
    pub core: Metrics,
}

impl Comparison {
    /// Runs a workload on the modelled device and on the modelled core.
    ///
    /// # Errors
    /// What the profile or the platform cannot run.
    pub fn run(model: &Model, w: &Workload) -> Result<Comparison, FiguresError> {
        Comparison::within(model, w, Window::Full)
    }

    fn within(model: &Model, w: &Workload, window: Window) -> Result<Comparison, FiguresError> {
        let device = Workload {
            what: What::Offload,
            ..*w
        };
        let core = Workload {
            what: What::Software,
            depth: Some(1),
            batch: 1,
            company: Company::ALONE,
            ..*w
        };
        Ok(Comparison {
            device: model.run_for(&device, window)?,
            core: model.run_for(&core, window)?,
        })
    }

    /// Core time of one operation on the device against that on the core, in nanoseconds.
    pub fn core_time(&self) -> (f64, f64) {
        let of = |name| self.device.get(name).unwrap_or_default();
        let core = self.core.get("period_ns").unwrap_or_default();
        (of("prepare_ns") + of("submit_ns"), core)
    }

    /// Time from one completion to the next, on the device and on the core, in nanoseconds.
    pub fn period(&self) -> (f64, f64) {
        let of = |metrics: &Metrics| metrics.get("period_ns").unwrap_or_default();
        (of(&self.device), of(&self.core))
    }
}

impl BreakEven {
    /// Looks for both sizes: by powers of two from the largest down, then closer, to a sixteenth.
    ///
    /// # Errors
    /// What the profile or the platform cannot run at any size.
    pub fn of(model: &Model, point: &Point) -> Result<BreakEven, FiguresError> {
        BreakEven::find(model, &Workload::from_point(point)?)
    }

    pub(crate) fn find(model: &Model, w: &Workload) -> Result<BreakEven, FiguresError> {
        let at = |size: u32| Comparison::within(model, &Workload { size, ..*w }, Window::Short);
        let mut found = [None; 2];
        let mut largest = SIZES.1;
        // What the queue does not take is no candidate.
        let mut compared = loop {
            match at(largest) {
                Ok(compared) => break compared,
                Err(FiguresError::Limit { what: "size", .. }) if largest > SIZES.0 => largest /= 2,
                Err(error) => return Err(error),
            }
        };
        let mut open = [true; 2];
        let mut size = largest;
        loop {
            for (which, open) in open.iter_mut().enumerate() {
                *open &= wins(&compared, which);
                if *open {
                    found[which] = Some(size);
                }
            }
            if size == SIZES.0 || open == [false; 2] {
                break;
            }
            size /= 2;
            compared = at(size)?;
        }
        for (which, found) in found.iter_mut().enumerate() {
            let Some(mut wins_at) = found.filter(|size| *size > SIZES.0) else {
                continue;
            };
            let mut loses_at = wins_at / 2;
            let step = (wins_at / 16).max(1);
            while wins_at - loses_at > step {
                let between = loses_at + (wins_at - loses_at) / 2;
                match wins(&at(between)?, which) {
                    true => wins_at = between,
                    false => loses_at = between,
                }
            }
            *found = Some(wins_at);
        }
        Ok(BreakEven {
            throughput: found[0],
            core_time: found[1],
        })
    }

    /// What was found; a size that there is not is left out.
    pub(crate) fn metrics(self) -> Metrics {
        let named = [
            ("break_even_bytes", self.throughput),
            ("core_break_even_bytes", self.core_time),
        ];
        named
            .into_iter()
            .filter_map(|(name, size)| Some((name, f64::from(size?))))
            .fold(Metrics::default(), |metrics, (name, size)| {
                metrics.with(name, size)
            })
    }
}

fn wins(compared: &Comparison, which: usize) -> bool {
    let (device, core) = match which {
        0 => compared.period(),
        _ => compared.core_time(),
    };
    device < core
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dray_device::Payload;
    use dray_idxd::Profile;

    use super::*;

    fn model() -> Model {
        Model {
            platform: Arc::new(dray_platform::builtin("spr-2s").unwrap()),
            profile: Profile::named("1e1w-d").unwrap(),
            payload: Payload::Skipped,
        }
    }

    #[test]
    fn the_device_wins_from_there_and_not_a_step_before() {
        let model = model();
        let point = Point::default().with("depth", 1u64);
        let w = Workload::from_point(&point).unwrap();
        let from = BreakEven::of(&model, &point).unwrap().throughput.unwrap();
        let device_wins = |size: u32| {
            let compared = Comparison::run(&model, &Workload { size, ..w }).unwrap();
            let (device, core) = compared.period();
            device < core
        };
        assert!(device_wins(from) && device_wins(from * 2), "{from}");
        assert!(!device_wins(from - from / 8), "{from}");
    }

    #[test]
    fn depth_brings_it_down() {
        let model = model();
        let at = |depth: u64| {
            let point = Point::default().with("depth", depth);
            BreakEven::of(&model, &point).unwrap().throughput.unwrap()
        };
        assert!(
            at(1) > at(4) && at(4) > at(32),
            "{} {} {}",
            at(1),
            at(4),
            at(32)
        );
    }
}
