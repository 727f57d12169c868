//! Migrations that a kernel made, in modelled time: the copies of a trace by four systems.
//!
//! A trace says how many folios were copied together how often. Each such copy is run on the modelled device, or on
//! the modelled core as the kernel copies. What a migration does besides (unmapping, flushing translations, mapping
//! again) takes a constant time per folio: the published share of copying in the migration of 4 KiB pages by one core
//! says how long.

use std::collections::HashMap;
use std::sync::OnceLock;

use dray_platform::PAGE_BYTES;
use serde::Deserialize;

use crate::model::Window;
use crate::workload::{What, Workload};
use crate::{FiguresError, Layout, List, Metric, Metrics, Model, concurrent};

/// Copies of a guest, by workload.
const TRACE: &str = include_str!("../../../figures/traces/guest-migrations.csv");
/// Pages of a huge page.
const HUGE: u32 = 512;
/// Lists shorter than this are left to the core, as the kernel module's `dsa_copy_threshold` has it.
const THRESHOLD: u32 = 12;
/// Threads that copy a list together, as `limit_mt_num` has it.
const THREADS: u32 = 4;

/// Who copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum System {
    /// One core, folio by folio.
    Core,
    /// The device copies huge pages, the core the rest.
    HugePages,
    /// Folios that are migrated together are copied together, by four threads.
    Threads,
    /// The same by the device, huge pages over all of its channels.
    Device,
    /// The same, lists of few pages too.
    EveryList,
}

/// Whose migrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Trace {
    Demotion,
    Promotion,
    Compaction,
    Huge,
    /// All of them, and what move_pages moved besides.
    All,
}

impl Trace {
    /// Its name in the file; `None`: every name.
    fn name(self) -> Option<&'static str> {
        match self {
            Trace::Demotion => Some("demotion"),
            Trace::Promotion => Some("promotion"),
            Trace::Compaction => Some("compaction"),
            Trace::Huge => Some("huge"),
            Trace::All => None,
        }
    }
}

/// One point: a trace, a system, and how much of a migration is copying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Migration {
    pub(crate) trace: Trace,
    pub(crate) system: System,
    /// Percent of the time in which one core migrates 4 KiB pages.
    pub(crate) copy_share: u8,
    /// Copies of this order alone.
    pub(crate) order: Option<u32>,
}

/// Folios that were copied together.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Copied {
    workload: String,
    folios: u32,
    pub(crate) pages: u32,
    /// How often.
    pub(crate) count: u64,
}

impl Copied {
    /// Huge pages and nothing else.
    fn is_huge(&self) -> bool {
        self.pages == self.folios * HUGE
    }

    /// The order of the smallest range that holds its pages, as the kernel module counts it.
    pub(crate) fn order(&self) -> u32 {
        self.pages.next_power_of_two().ilog2()
    }
}

/// The copies of one trace.
pub(crate) fn copies(trace: Trace) -> Result<Vec<&'static Copied>, FiguresError> {
    // Read once: every point of a migration asks for them.
    static ALL: OnceLock<Vec<Copied>> = OnceLock::new();
    let all = match ALL.get() {
        Some(all) => all,
        None => {
            let all = read()?;
            ALL.get_or_init(|| all)
        }
    };
    let wanted = |copied: &&Copied| trace.name().is_none_or(|name| copied.workload == name);
    Ok(all.iter().filter(wanted).collect())
}

fn read() -> Result<Vec<Copied>, FiguresError> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(TRACE.as_bytes());
    let all: Result<Vec<Copied>, _> = reader.deserialize().collect();
    all.map_err(|source| FiguresError::Trace {
        source: Box::new(source),
    })
}

/// The times of lists, each run once.
struct Times<'a> {
    model: &'a Model,
    workload: &'a Workload,
    known: HashMap<(bool, u32, bool), f64>,
}

impl Times<'_> {
    /// Nanoseconds to copy pages, by the device or by the core; in one range, or each for itself.
    fn list(&mut self, by_device: bool, pages: u32, range: bool) -> Result<f64, FiguresError> {
        let key = (by_device, pages, range);
        if let Some(ns) = self.known.get(&key) {
            return Ok(*ns);
        }
        let layout = match range {
            true => Layout::Contiguous,
            false => Layout::Scattered,
        };
        let w = Workload {
            what: match by_device {
                true => What::Offload,
                false => What::Software,
            },
            kernel: !by_device,
            migration: None,
            ..*self.workload
        };
        // One list at a time: a few are as good as many.
        let list = List {
            pages,
            layout,
            channels: None,
        };
        let w = list.fill(w);
        let metrics = concurrent::run(self.model, &w, Window::Probe)?;
        let ns = metrics.get(Metric::List).unwrap_or_default();
        self.known.insert(key, ns);
        Ok(ns)
    }

    /// Nanoseconds in which a system copies what was copied together.
    fn copy(&mut self, system: System, copied: &Copied) -> Result<f64, FiguresError> {
        let core = f64::from(copied.pages) * self.list(false, 1, false)?;
        let huge = match (system, copied.is_huge()) {
            (System::HugePages | System::Device | System::EveryList, true) => {
                Some(f64::from(copied.folios) * self.list(true, HUGE, true)?)
            }
            _ => None,
        };
        Ok(match (system, huge) {
            (_, Some(huge)) => huge,
            (System::Core | System::HugePages, None) => core,
            (System::Threads, None) => core / f64::from(THREADS.min(copied.pages)),
            (System::Device, None) if copied.pages < THRESHOLD => core,
            (System::Device | System::EveryList, None) => self.batches(copied.pages)?,
        })
    }

    /// Nanoseconds in which the device copies scattered pages: in one batch, or in as many, one after the other, as
    /// the work queue's largest batch makes of them.
    fn batches(&mut self, pages: u32) -> Result<f64, FiguresError> {
        let devices = self.model.profile.devices()?;
        let queue = devices
            .first()
            .and_then(|device| device.work_queues.first());
        let most = queue.map_or(1, |queue| queue.max_batch_size.max(1));
        let most = most * u32::from(self.workload.tenants.devices.max(1));
        let (full, rest) = (pages / most, pages % most);
        let mut ns = 0.0;
        if full > 0 {
            ns += f64::from(full) * self.list(true, most, false)?;
        }
        if rest > 0 {
            ns += self.list(true, rest, false)?;
        }
        Ok(ns)
    }
}

/// The migrations of a trace.
///
/// # Errors
/// What the model refuses of a list.
pub(crate) fn run(model: &Model, w: &Workload, of: Migration) -> Result<Metrics, FiguresError> {
    let mut times = Times {
        model,
        workload: w,
        known: HashMap::new(),
    };
    // One core that migrates single pages copies for this share of its time.
    let share = f64::from(of.copy_share) / 100.0;
    let rest_ns = times.list(false, 1, false)? * (1.0 - share) / share;
    let (mut copy_ns, mut copied_lists, mut folios, mut pages) = (0.0, 0.0, 0.0, 0.0);
    for copied in copies(of.trace)? {
        if of.order.is_some_and(|order| copied.order() != order) {
            continue;
        }
        let count = copied.count as f64;
        copy_ns += count * times.copy(of.system, copied)?;
        copied_lists += count;
        folios += count * f64::from(copied.folios);
        pages += count * f64::from(copied.pages);
    }
    // The trace need not have copies of an order.
    if pages == 0.0 {
        return Ok(Metrics::default());
    }
    let total_ns = copy_ns + folios * rest_ns;
    Ok(Metrics::single(
        Metric::Throughput,
        pages * PAGE_BYTES as f64 / total_ns.max(f64::MIN_POSITIVE),
    )
    .with(Metric::MigrationPage, total_ns / pages)
    .with(Metric::CopyPage, copy_ns / pages)
    .with(Metric::List, copy_ns / copied_lists))
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;
    use dray_idxd::Profile;

    use super::*;

    const TRACES: [Trace; 5] = [
        Trace::Demotion,
        Trace::Promotion,
        Trace::Compaction,
        Trace::Huge,
        Trace::All,
    ];

    #[test]
    fn the_trace_has_copies_of_every_workload() {
        for trace in TRACES {
            let copies = copies(trace).unwrap();
            assert!(!copies.is_empty(), "{trace:?}");
            for copied in copies {
                assert!(copied.folios >= 1 && copied.pages >= copied.folios && copied.count >= 1);
            }
        }
    }

    fn run_point(trace: &str, system: &str, share: u64) -> Metrics {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let model = Model::new(platform, Profile::named("1e1w-d").unwrap());
        let point = Point::default()
            .with("kind", "migration")
            .with("trace", trace)
            .with("system", system)
            .with("copy_share", share);
        model.run(&Workload::from_point(&point).unwrap()).unwrap()
    }

    #[test]
    fn a_list_above_the_largest_batch_is_several_batches() {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let model = Model::new(platform, Profile::named("1e1w-d-bs32").unwrap());
        let workload = Workload::from_point(&Point::default()).unwrap();
        let mut times = Times {
            model: &model,
            workload: &workload,
            known: HashMap::new(),
        };
        let [one, full, both] = [1, 32, 65].map(|pages| times.batches(pages).unwrap());
        assert!(0.0 < one && one < full);
        assert_eq!(both, 2.0 * full + one);
        // No batch of the run was larger than the queue's largest.
        assert!(times.known.keys().all(|(_, pages, _)| *pages <= 32));
    }

    #[test]
    fn the_core_copies_for_the_given_share_of_its_time() {
        let metrics = run_point("promotion", "core", 25);
        let of = |metric| metrics.get(metric).unwrap();
        let share = of(Metric::CopyPage) / of(Metric::MigrationPage);
        // Some of the pages were copied in the moves before the promotion, several at a time.
        assert!((share - 0.25).abs() < 1e-9, "{share}");
    }

    #[test]
    fn a_point_with_an_order_has_only_copies_of_that_order() {
        let run = |order: u64, system: &str| {
            let platform = dray_platform::builtin("spr-2s").unwrap();
            let model = Model::new(platform, Profile::named("1e1w-d").unwrap());
            let point = Point::default()
                .with("kind", "migration")
                .with("trace", "all")
                .with("order", order)
                .with("system", system);
            model.run(&Workload::from_point(&point).unwrap()).unwrap()
        };
        let list = |order, system| run(order, system).get(Metric::List).unwrap();
        // Order 1 is two pages, order 9 in this trace 512.
        assert_eq!(list(1, "core"), 2.0 * list(0, "core"));
        assert_eq!(list(9, "core"), 512.0 * list(0, "core"));
        assert_eq!(list(3, "device"), list(3, "core"));
        assert!(list(3, "every-list") != list(3, "device"));
        assert_eq!(list(9, "every-list"), list(9, "device"));
        let point = Point::default()
            .with("kind", "migration")
            .with("trace", "huge")
            .with("order", 3);
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let model = Model::new(platform, Profile::named("1e1w-d").unwrap());
        let none = model.run(&Workload::from_point(&point).unwrap()).unwrap();
        assert_eq!(none, Metrics::default());
    }

    #[test]
    fn pages_that_the_core_copies_take_the_time_of_the_core() {
        let page = |trace, system| run_point(trace, system, 25).get(Metric::MigrationPage);
        // Nothing in a demotion of 4 KiB pages is a huge page.
        assert_eq!(page("demotion", "huge-pages"), page("demotion", "core"));
        assert!(page("huge", "huge-pages") < page("huge", "core"));
        assert_eq!(page("huge", "huge-pages"), page("huge", "device"));
        assert!(page("demotion", "device") < page("demotion", "core"));
    }
}
