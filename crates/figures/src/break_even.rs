//! The size from which the device is worth it.

use dray_platform::WaitMode;

use crate::model::{Model, Window};
use crate::setup::Setup;
use crate::tenants::Tenants;
use crate::workload::{What, Workload};
use crate::{FiguresError, Metric, Metrics};

/// Smallest and largest size that is looked at, in bytes.
const SIZES: (u32, u32) = (64, 4 << 20);

/// The sizes from which a modelled device beats the modelled core beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakEven {
    /// Bytes from which the device has more throughput than one core; `None`: at no size that the
    /// work queue allows.
    pub throughput: Option<u32>,
    /// Bytes from which offload takes less core time than to do the work itself, whatever is
    /// faster; see [`Comparison::core_time`].
    pub core_time: Option<u32>,
}

/// One operation on the device and on the core.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// On the device, the core waiting as the workload says.
    pub device: Metrics,
    /// On the device, the core waiting with UMWAIT.
    pub asleep: Metrics,
    /// On the core.
    pub core: Metrics,
}

/// Who should do the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The device has more throughput than the core.
    Offload,
    /// It has less, but a core that sleeps meanwhile spends less time of its own.
    SparesTheCore,
    /// Neither.
    Stay,
}

/// Which of the two sizes is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gain {
    Throughput,
    CoreTime,
}

/// How closely is looked.
#[derive(Debug, Clone, Copy)]
struct Search {
    window: Window,
    /// Parts of a size that the answer is closer than, or a cache line.
    parts: u32,
}

impl Search {
    /// Seconds for a chart of hundreds of points.
    const CHART: Search = Search {
        window: Window::Short,
        parts: 16,
    };
    /// To the cache line, by the same runs as a comparison.
    const LINE: Search = Search {
        window: Window::Full,
        parts: u32::MAX,
    };
    /// To the cache line, by shorter runs.
    const NEAR: Search = Search {
        window: Window::Short,
        parts: u32::MAX,
    };
    const LINE_BYTES: u32 = 64;

    fn wins(self, model: &Model, w: &Workload, gain: Gain) -> Result<bool, FiguresError> {
        let core = model.run_for(&on_core(w), self.window)?;
        let (device, core) = match gain {
            Gain::Throughput => (period(&model.run_for(&on_device(w), self.window)?), core),
            Gain::CoreTime => (busy(&model.run_for(&asleep(w), self.window)?), core),
        };
        Ok(device < period(&core))
    }

    /// By powers of two from `largest` down, as long as the device wins, then closer.
    fn find(
        self,
        model: &Model,
        w: &Workload,
        largest: u32,
        gain: Gain,
    ) -> Result<Option<u32>, FiguresError> {
        let at = |size: u32| self.wins(model, &Workload { size, ..*w }, gain);
        let (mut wins_at, mut size) = (None, largest);
        while at(size)? {
            wins_at = Some(size);
            if size <= SIZES.0 {
                return Ok(wins_at);
            }
            size /= 2;
        }
        let Some(mut wins_at) = wins_at else {
            return Ok(None);
        };
        let mut loses_at = size;
        let step = (wins_at / self.parts).max(Search::LINE_BYTES);
        while wins_at - loses_at > step {
            let between = loses_at + (wins_at - loses_at) / 2;
            match at(between)? {
                true => wins_at = between,
                false => loses_at = between,
            }
        }
        Ok(Some(wins_at))
    }
}

pub(crate) fn on_device(w: &Workload) -> Workload {
    Workload {
        what: What::Offload,
        ..*w
    }
}

pub(crate) fn asleep(w: &Workload) -> Workload {
    Workload {
        wait: WaitMode::Umwait,
        ..on_device(w)
    }
}

pub(crate) fn on_core(w: &Workload) -> Workload {
    Workload {
        what: What::Software,
        depth: Some(1),
        batch: 1,
        tenants: Tenants::ALONE,
        ..*w
    }
}

/// The largest size that is looked at: what the queue does not take is no candidate.
fn largest(model: &Model, w: &Workload) -> Result<u32, FiguresError> {
    let mut largest = SIZES.1;
    loop {
        let w = on_device(&Workload {
            size: largest,
            ..*w
        });
        match Setup::new(&model.platform, &model.profile, &w) {
            Ok(_) => return Ok(largest),
            Err(FiguresError::Limit { what: "size", .. }) if largest > SIZES.0 => largest /= 2,
            Err(error) => return Err(error),
        }
    }
}

fn period(metrics: &Metrics) -> f64 {
    metrics.get(Metric::Period).unwrap_or_default()
}

fn busy(metrics: &Metrics) -> f64 {
    period(metrics) * metrics.get(Metric::BusyShare).unwrap_or(1.0)
}

/// Throughput of the device by that of the core, by short runs.
pub(crate) fn gain(model: &Model, w: &Workload) -> Result<f64, FiguresError> {
    let device = model.run_for(&on_device(w), Window::Probe)?;
    let core = model.run_for(&on_core(w), Window::Probe)?;
    Ok(period(&core) / period(&device).max(f64::MIN_POSITIVE))
}

/// Core time of the work itself by that of its offload, by short runs.
pub(crate) fn core_gain(model: &Model, w: &Workload) -> Result<f64, FiguresError> {
    let device = model.run_for(&asleep(w), Window::Probe)?;
    let core = model.run_for(&on_core(w), Window::Probe)?;
    Ok(period(&core) / busy(&device).max(f64::MIN_POSITIVE))
}

impl Comparison {
    /// Runs a workload on the modelled device and on the modelled core.
    ///
    /// # Errors
    /// What the profile or the platform cannot run.
    pub fn run(model: &Model, w: &Workload) -> Result<Comparison, FiguresError> {
        Ok(Comparison {
            device: model.run(&on_device(w))?,
            asleep: model.run(&asleep(w))?,
            core: model.run(&on_core(w))?,
        })
    }

    /// Core time of one operation, offloaded and done by the core itself, in nanoseconds.
    ///
    /// Offloaded it is all time in which the core is not asleep, when it waits with UMWAIT: it
    /// prepares and submits, stalls at a full store queue or until ENQCMD is answered, wakes up,
    /// looks at records. A core that polls is never free: its core time is the whole period.
    pub fn core_time(&self) -> (f64, f64) {
        (busy(&self.asleep), period(&self.core))
    }

    /// Time from one completion to the next, on the device and on the core, in nanoseconds.
    pub fn period(&self) -> (f64, f64) {
        (period(&self.device), period(&self.core))
    }

    /// Who should do the work.
    pub fn verdict(&self) -> Verdict {
        let less = |(device, core): (f64, f64)| device < core;
        match (less(self.period()), less(self.core_time())) {
            (true, _) => Verdict::Offload,
            (false, true) => Verdict::SparesTheCore,
            (false, false) => Verdict::Stay,
        }
    }
}

impl BreakEven {
    /// Looks for both sizes: by powers of two from the largest down, then to the cache line.
    ///
    /// # Errors
    /// What the profile or the platform cannot run at any size.
    pub fn of(model: &Model, w: &Workload) -> Result<BreakEven, FiguresError> {
        BreakEven::search(model, w, Search::LINE)
    }

    /// The same to the cache line, by shorter runs.
    pub(crate) fn near(model: &Model, w: &Workload) -> Result<BreakEven, FiguresError> {
        BreakEven::search(model, w, Search::NEAR)
    }

    /// The same to a sixteenth, by shorter runs.
    pub(crate) fn find(model: &Model, w: &Workload) -> Result<BreakEven, FiguresError> {
        BreakEven::search(model, w, Search::CHART)
    }

    fn search(model: &Model, w: &Workload, search: Search) -> Result<BreakEven, FiguresError> {
        let largest = largest(model, w)?;
        Ok(BreakEven {
            throughput: search.find(model, w, largest, Gain::Throughput)?,
            core_time: search.find(model, w, largest, Gain::CoreTime)?,
        })
    }

    /// The first of both sizes alone, as [`BreakEven::of`] finds it.
    pub(crate) fn throughput_of(model: &Model, w: &Workload) -> Result<Option<u32>, FiguresError> {
        Search::LINE.find(model, w, largest(model, w)?, Gain::Throughput)
    }

    /// The first of both sizes alone, as [`BreakEven::near`] finds it.
    pub(crate) fn throughput_near(
        model: &Model,
        w: &Workload,
    ) -> Result<Option<u32>, FiguresError> {
        Search::NEAR.find(model, w, largest(model, w)?, Gain::Throughput)
    }

    /// What was found; a size that there is not is left out.
    pub(crate) fn metrics(self) -> Metrics {
        let named = [
            (Metric::BreakEven, self.throughput),
            (Metric::CoreBreakEven, self.core_time),
        ];
        named
            .into_iter()
            .filter_map(|(metric, size)| Some((metric, f64::from(size?))))
            .fold(Metrics::default(), |metrics, (metric, size)| {
                metrics.with(metric, size)
            })
    }
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;
    use dray_idxd::Profile;

    use super::*;

    fn model() -> Model {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        Model::new(platform, Profile::named("1e1w-d").unwrap())
    }

    fn workload(size: u64, depth: u64) -> Workload {
        let point = Point::default().with("size", size).with("depth", depth);
        Workload::from_point(&point).unwrap()
    }

    #[test]
    fn the_verdict_is_offload_from_the_break_even_size_on() {
        let model = model();
        let w = workload(4096, 1);
        let from = BreakEven::of(&model, &w).unwrap().throughput.unwrap();
        let verdict = |size: u32| {
            let compared = Comparison::run(&model, &Workload { size, ..w });
            compared.unwrap().verdict()
        };
        assert_eq!(verdict(from), Verdict::Offload, "{from}");
        assert_eq!(verdict(from * 2), Verdict::Offload, "{from}");
        assert_ne!(verdict(from - 64), Verdict::Offload, "{from}");
    }

    #[test]
    fn more_outstanding_descriptors_lower_the_break_even_size() {
        let model = model();
        let at = |depth: u64| {
            let even = BreakEven::find(&model, &workload(4096, depth));
            even.unwrap().throughput.unwrap()
        };
        assert!(
            at(1) > at(4) && at(4) > at(32),
            "{} {} {}",
            at(1),
            at(4),
            at(32)
        );
    }

    #[test]
    fn a_core_that_waits_for_its_store_queue_counts_as_busy() {
        let model = model();
        // From 57 descriptors on, the core waits for its store queue and no longer for records.
        let busy = |depth: u64| {
            let compared = Comparison::run(&model, &workload(256, depth)).unwrap();
            compared.core_time().0 / period(&compared.asleep)
        };
        for depth in [16, 48, 64, 100, 128] {
            let share = busy(depth);
            assert!(share > 0.9 && share <= 1.0, "{depth}: {share}");
        }
    }

    #[test]
    fn sleep_saves_core_time_where_an_operation_is_longer_than_a_wake_up() {
        let model = model();
        let compared = |size| Comparison::run(&model, &workload(size, 1)).unwrap();
        let (offloaded, own) = compared(256).core_time();
        assert!(offloaded > own, "{offloaded} {own}");
        let (offloaded, own) = compared(8192).core_time();
        assert!(offloaded < own, "{offloaded} {own}");
    }
}
