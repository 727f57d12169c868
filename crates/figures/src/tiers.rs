//! Pages that change tier in modelled time: one call, and a program on two tiers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use dray_platform::Distance;
use dray_tier::modelled::{
    CopyTimes, Linear, Machine, MigrationParameters, Pages, Pattern, Sample, System,
};
use dray_tier::policy;
use dray_workload::Op;

use crate::model::{Model, Window};
use crate::sensitivity::COUNTS;
use crate::tenants::Tenants;
use crate::workload::{What, Workload};
use crate::{FiguresError, Layout, List, Metric, Metrics};

/// Base pages of a huge page.
const HUGE: u32 = 512;
/// Pages of a batch on one device, by which the time of a further page is known.
const BATCH: u32 = 64;
/// Seconds that a program on two tiers runs, if no later one is asked for: one that allocates as it
/// goes, and others.
const RUN_S: [u64; 2] = [120, 60];
/// Seconds of the first and of the last phase.
const PHASE_S: usize = 10;
const GIB: u64 = 1 << 30;

/// Memory of the slow tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slow {
    /// DRAM of the other socket.
    Dram,
    /// CXL memory.
    Cxl,
    /// Persistent memory.
    Pm,
    /// Persistent memory on a platform whose CXL memory has been made of it.
    PmAsCxl,
}

/// What a program on two tiers accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WorkingSet {
    /// 5/8 of the fast tier, which was full before.
    Small,
    /// 27/32 of it, which was full before.
    Medium,
    /// 27/16 of it.
    Large,
    /// Five times the fast tier, allocated in 20 s.
    Graph500,
}

/// Two tiers, and what migrates between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiers {
    pub(crate) system: System,
    /// `None`: there are no tiers.
    pub(crate) slow: Option<Slow>,
    pub(crate) promotes: bool,
    pub(crate) pages: Pages,
    pub(crate) working_set: WorkingSet,
    pub(crate) policy: usize,
    pub(crate) second: Option<u64>,
    pub(crate) stable: bool,
}

impl Default for Tiers {
    fn default() -> Tiers {
        Tiers {
            system: System::Kernel,
            slow: None,
            promotes: false,
            pages: Pages::default(),
            working_set: WorkingSet::Large,
            policy: 0,
            second: None,
            stable: false,
        }
    }
}

impl Tiers {
    /// Seconds of the whole run.
    fn seconds(self) -> u64 {
        let [allocating, others] = RUN_S;
        let run = match self.working_set {
            WorkingSet::Graph500 => allocating,
            _ => others,
        };
        self.second.map_or(run, |second| second.max(run))
    }

    /// Memory of source and destination, as the devices see it.
    pub(crate) fn nodes(self) -> Option<[Distance; 2]> {
        let slow = match self.slow? {
            Slow::Dram => Distance::Remote,
            Slow::Cxl | Slow::Pm | Slow::PmAsCxl => Distance::Cxl,
        };
        Some(match self.promotes {
            true => [slow, Distance::Local],
            false => [Distance::Local, slow],
        })
    }
}

/// The machine with persistent memory where its CXL memory is, if the workload asks for that. Both are
/// a node of their own behind the same socket.
///
/// # Errors
/// A parameter that cannot have such a value.
pub(crate) fn with_persistent_memory(
    model: &Model,
    w: &Workload,
) -> Result<Option<Model>, FiguresError> {
    match w.tiers.slow {
        Some(Slow::Pm) => persistent(model, &MigrationParameters::built_in()).map(Some),
        _ => Ok(None),
    }
}

fn persistent(model: &Model, p: &MigrationParameters) -> Result<Model, FiguresError> {
    let near = model.platform.parameters().cpu_line_latency.as_ns();
    let mut platform = (*model.platform).clone();
    for (name, value) in [
        ("cxl_read", p.pm_read),
        ("cxl_write", p.pm_write),
        ("cxl_extra", (p.line_pm - near).max(0.0)),
        ("cpu_scale_cxl", p.pm_copy),
    ] {
        platform = platform.measured(name, value, [value, value], "platforms/migration.toml")?;
    }
    Ok(Model {
        platform: platform.into(),
        ..model.clone()
    })
}

/// Times of copies by what they depend on: many points stand on the same ones.
type Known = Mutex<HashMap<String, Arc<OnceLock<CopyTimes>>>>;
static KNOWN: OnceLock<Known> = OnceLock::new();

/// What copies take between the tiers of a workload.
fn copies(
    model: &Model,
    w: &Workload,
    promotes: bool,
    window: Window,
) -> Result<CopyTimes, FiguresError> {
    let tiers = Tiers {
        promotes,
        ..w.tiers
    };
    let nodes = tiers.nodes().unwrap_or(w.nodes);
    // These are parts of a sum: what a longer window changes in them is less than its guesses do.
    let window = match window {
        Window::Full | Window::Longer(_) => Window::Short,
        other => other,
    };
    let workload = Workload {
        nodes,
        what: What::Offload,
        tiers: Tiers {
            slow: None,
            ..Tiers::default()
        },
        ..*w
    };
    let values: Vec<u64> = model
        .platform
        .list()
        .iter()
        .map(|p| p.value.to_bits())
        .collect();
    let key = format!(
        "{:?} {values:x?} {} {workload:?} {window:?}",
        model.platform.topology,
        model.profile.to_json()
    );
    let known = {
        let known = KNOWN.get_or_init(Known::default);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(key).or_default().clone()
    };
    if let Some(times) = known.get() {
        return Ok(*times);
    }
    let times = copy_times(model, &workload, nodes, window)?;
    Ok(*known.get_or_init(|| times))
}

fn copy_times(
    model: &Model,
    w: &Workload,
    nodes: [Distance; 2],
    window: Window,
) -> Result<CopyTimes, FiguresError> {
    let time = |what: What, layout: Layout, pages: u32, depth: Option<u32>| {
        let tenants = match what {
            What::Software => Tenants::ALONE,
            _ => w.tenants,
        };
        let list = List {
            pages,
            layout,
            channels: None,
        };
        let workload = list.fill(Workload {
            what,
            op: Op::Move,
            nodes,
            depth,
            kernel: what == What::Software,
            tenants,
            ..*w
        });
        let metrics = model.run_for(&workload, window)?;
        Ok::<f64, FiguresError>(metrics.get(Metric::List).unwrap_or_default())
    };
    let devices = model.profile.devices()?;
    let queue = devices
        .first()
        .and_then(|device| device.work_queues.first());
    let batch = queue
        .map_or(1, |queue| queue.max_batch_size)
        .clamp(1, BATCH);
    let many = batch * u32::from(w.tenants.devices.max(1));
    let core = |layout, pages| time(What::Software, layout, pages, Some(1));
    let device = |layout, pages, depth| time(What::Offload, layout, pages, depth);
    let same = |each: f64| Linear { first: each, each };
    let one = device(Layout::Scattered, 1, Some(1))?;
    let all = device(Layout::Scattered, many, Some(1))?;
    Ok(CopyTimes {
        core_base: same(core(Layout::Scattered, 32)? / 32.0),
        core_huge: same(core(Layout::Contiguous, HUGE)?),
        device_base: Linear {
            first: one,
            each: (all - one).max(0.0) / f64::from(many.max(2) - 1),
        },
        device_huge: Linear {
            first: device(Layout::Contiguous, HUGE, Some(1))?,
            // The queue kept full: one behind the other.
            each: device(Layout::Contiguous, HUGE, None)?,
        },
        ceiling: ceiling(model, nodes),
    })
}

/// Bytes a nanosecond between two nodes, for any number of cores.
fn ceiling(model: &Model, nodes: [Distance; 2]) -> f64 {
    let p = model.platform.parameters();
    let rate = |femtoseconds: u64| 64e6 / femtoseconds.max(1) as f64;
    let side = |node: Distance, near: u64, cxl: u64| match node {
        Distance::Local => rate(near),
        Distance::Remote => rate(p.socket_link),
        Distance::Cxl => rate(cxl),
    };
    side(nodes[0], p.node_read, p.cxl_read).min(side(nodes[1], p.node_write, p.cxl_write))
}

/// One call.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn call(model: &Model, w: &Workload, window: Window) -> Result<Metrics, FiguresError> {
    let copies = copies(model, w, w.tiers.promotes, window)?;
    Ok(call_with(w, &copies, &MigrationParameters::built_in()))
}

fn call_with(w: &Workload, copies: &CopyTimes, p: &MigrationParameters) -> Metrics {
    let m = w.tiers;
    let time = m.system.call(m.pages, p, copies);
    let bytes = m.pages.bytes() as f64;
    Metrics::single(Metric::Migrate, time.total())
        .with(Metric::MigrateCopy, time.copy)
        .with(Metric::MigrateRest, time.rest)
        .with(
            Metric::Throughput,
            bytes / time.total().max(f64::MIN_POSITIVE),
        )
}

impl WorkingSet {
    fn pattern(self) -> Pattern {
        // NOMAD's tiers of 16 GB, and its micro-benchmarks of 10, 13.5 and 27 GB.
        let micro = |bytes, accessed_bytes| Pattern {
            fast_bytes: 16 * GIB,
            bytes,
            accessed_bytes,
            allocation_s: 0,
            huge_percent: 50,
            threads: 16,
        };
        match self {
            WorkingSet::Small => micro(20 * GIB, 10 * GIB),
            WorkingSet::Medium => micro(27 * GIB, 27 * GIB / 2),
            WorkingSet::Large => micro(27 * GIB, 27 * GIB),
            WorkingSet::Graph500 => Pattern {
                fast_bytes: 12 * GIB,
                bytes: 60 * GIB,
                accessed_bytes: 60 * GIB,
                allocation_s: 20,
                huge_percent: 100,
                threads: 16,
            },
        }
    }
}

/// Latency of a line of the fast and of the slow tier, in ns.
fn lines(model: &Model, slow: Option<Slow>, p: &MigrationParameters) -> [f64; 2] {
    let near = model.platform.parameters().cpu_line_latency.as_ns();
    let far = match slow {
        None | Some(Slow::Dram) => p.line_dram,
        Some(Slow::Cxl) => p.line_cxl,
        Some(Slow::Pm | Slow::PmAsCxl) => p.line_pm,
    };
    [near, far]
}

/// Runs by what they depend on, so that the seconds of one run are not many runs.
type Runs = Mutex<HashMap<String, Arc<OnceLock<Vec<Sample>>>>>;
static RUNS: OnceLock<Runs> = OnceLock::new();

/// A program on two tiers.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn tiering(
    model: &Model,
    w: &Workload,
    window: Window,
) -> Result<Metrics, FiguresError> {
    let p = MigrationParameters::built_in();
    let m = w.tiers;
    let down = copies(model, w, false, window)?;
    let up = copies(model, w, true, window)?;
    if matches!(window, Window::Probe) {
        return Ok(cost_of_a_unit(w, [&down, &up], &p));
    }
    let lines = lines(model, m.slow, &p);
    let pattern = m.working_set.pattern();
    let seconds = m.seconds();
    let key = format!(
        "{pattern:?} {:?} {} {down:?} {up:?} {lines:?} {seconds}",
        m.system, m.policy
    );
    let run = {
        let runs = RUNS.get_or_init(Runs::default);
        let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.entry(key).or_default().clone()
    };
    let samples = run.get_or_init(|| {
        let policy = policy::by_index(m.policy);
        Machine::new(pattern, m.system, policy, &p, [&down, &up], lines).run(seconds)
    });
    Ok(metrics(samples, &m))
}

/// What is asked of a run: a second, or a phase.
fn metrics(samples: &[Sample], m: &Tiers) -> Metrics {
    let a_second = |second: u64| (second as usize * samples_per_second(samples.len(), m)).max(1);
    let part = match m.second {
        Some(second) => {
            let end = a_second(second).min(samples.len());
            &samples[end.saturating_sub(a_second(1))..end]
        }
        None => {
            let len = (PHASE_S * samples_per_second(samples.len(), m)).min(samples.len());
            match m.stable {
                true => &samples[samples.len() - len..],
                false => &samples[..len],
            }
        }
    };
    let count = part.len().max(1) as f64;
    let mean = |of: fn(&Sample) -> f64| part.iter().map(of).sum::<f64>() / count;
    let moved = part.last().map_or(0, |last| last.demoted + last.promoted);
    Metrics::single(Metric::Migrated, moved as f64 / 1e9)
        .with(Metric::Accesses, mean(|s| s.mega_accesses))
        .with(Metric::FastShare, mean(|s| s.fast_share))
}

fn samples_per_second(samples: usize, m: &Tiers) -> usize {
    samples / m.seconds() as usize
}

/// Stands for a run where it is asked what a run rests on: the time to move 2 MiB down and up, as a
/// huge page and as base pages.
fn cost_of_a_unit(w: &Workload, copies: [&CopyTimes; 2], p: &MigrationParameters) -> Metrics {
    let of = |pages: Pages, copies: &CopyTimes| w.tiers.system.call(pages, p, copies).total();
    let huge = Pages { huge: 1, base: 0 };
    let base = Pages {
        huge: 0,
        base: u64::from(HUGE),
    };
    let all = match w.tiers.working_set {
        WorkingSet::Graph500 => copies.iter().map(|c| of(huge, c)).sum::<f64>(),
        _ => copies.iter().map(|c| of(huge, c) + of(base, c)).sum(),
    };
    Metrics::single(Metric::Migrated, all)
        .with(Metric::Accesses, all)
        .with(Metric::FastShare, all)
}

/// The guesses of `platforms/migration.toml` behind the metrics of a workload, in words.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn guesses(model: &Model, w: &Workload) -> Result<Vec<(Metric, String)>, FiguresError> {
    let built_in = MigrationParameters::built_in();
    let run = |p: &MigrationParameters| -> Result<Metrics, FiguresError> {
        let pm = match w.tiers.slow {
            Some(Slow::Pm) => Some(persistent(model, p)?),
            _ => None,
        };
        let mut w = *w;
        if pm.is_some() {
            w.tiers.slow = Some(Slow::PmAsCxl);
        }
        let model = pm.as_ref().unwrap_or(model);
        let copies = |promotes| copies(model, &w, promotes, Window::Probe);
        match w.what {
            What::MigrateCall => Ok(call_with(&w, &copies(w.tiers.promotes)?, p)),
            What::Tiering => {
                let cost = cost_of_a_unit(&w, [&copies(false)?, &copies(true)?], p);
                let line = lines(model, w.tiers.slow, p)[1];
                // The program waits for lines as it waits for pages.
                let cost = cost.iter().map(|(metric, value)| match metric {
                    Metric::Accesses => (metric, value * line),
                    _ => (metric, value),
                });
                Ok(cost.fold(Metrics::default(), |all, (m, v)| all.with(m, v)))
            }
            _ => model.run_for(&w, Window::Probe),
        }
    };
    let tiers = matches!(w.what, What::MigrateCall | What::Tiering);
    if !tiers && w.tiers.slow != Some(Slow::Pm) {
        return Ok(Vec::new());
    }
    let base = run(&built_in)?;
    let mut found = Vec::new();
    for (name, stated) in built_in.list().filter(|(_, stated)| stated.guess) {
        let unit = if stated.unit == "ratio" {
            ""
        } else {
            stated.unit.as_str()
        };
        let words = format!(
            "{name} = {} {unit} ({} to {})",
            stated.value, stated.range[0], stated.range[1]
        )
        .replace("  ", " ");
        for end in stated.range {
            let there = run(&built_in.with(name, end))?;
            for (metric, value) in base.iter() {
                let other = there.get(metric).unwrap_or(value);
                let moved = (other - value).abs() / value.abs().max(f64::MIN_POSITIVE) >= COUNTS;
                if moved && !found.contains(&(metric, words.clone())) {
                    found.push((metric, words.clone()));
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;
    use dray_idxd::Profile;
    use dray_platform::PAGE_BYTES;

    use super::*;

    fn model() -> Model {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        Model::new(platform, Profile::named("1e1w-d").unwrap())
    }

    fn point(kind: &str, system: &str, slow: &str) -> Point {
        Point::default()
            .with("kind", kind)
            .with("migrator", system)
            .with("slow", slow)
            .with("devices", 4)
    }

    fn of(point: Point, metric: Metric) -> f64 {
        let w = Workload::from_point(&point).unwrap();
        model().run(&w).unwrap().get(metric).unwrap()
    }

    #[test]
    fn the_largest_call_is_fastest_with_devices() {
        for slow in ["dram", "cxl", "pm"] {
            let time = |system: &str| {
                let point = point("migrate-call", system, slow)
                    .with("huge_pages", 24)
                    .with("base_pages", 1024);
                of(point, Metric::Migrate)
            };
            let (core, huge) = (time("kernel"), time("huge-dsa"));
            let (threads, devices) = (time("concurrent-threads"), time("concurrent-dsa"));
            // Four threads fill what CXL memory and PM take, as the devices do.
            let most = if slow == "dram" {
                threads
            } else {
                threads * 1.1
            };
            assert!(devices < most, "{slow}: {devices} {threads}");
            assert!(threads < core, "{slow}: {threads} {core}");
            assert!(
                devices < huge && huge < core,
                "{slow}: {devices} {huge} {core}"
            );
        }
    }

    #[test]
    fn batches_are_as_long_as_their_pages_make_them() {
        let w = Workload::from_point(&point("migrate-call", "kernel", "dram")).unwrap();
        let line = copies(&model(), &w, false, Window::Full)
            .unwrap()
            .device_base;
        let list = Point::default()
            .with("slow", "dram")
            .with("devices", 4)
            .with("pages", 512)
            .with("layout", "scattered");
        let found = of(list, Metric::List);
        let expected = line.of(512);
        assert!((found / expected - 1.0).abs() < 0.1, "{found} {expected}");
    }

    #[test]
    fn persistent_memory_is_slower_than_cxl_memory_to_write() {
        let copy = |slow: &str| {
            let list = Point::default()
                .with("slow", slow)
                .with("pages", u64::from(HUGE))
                .with("direction", "demote");
            of(list, Metric::List)
        };
        assert!(copy("pm") > copy("cxl"), "{} {}", copy("pm"), copy("cxl"));
        assert!(copy("cxl") > copy("dram"));
        let bytes = f64::from(HUGE) * PAGE_BYTES as f64;
        let rate = bytes / copy("pm");
        assert!(rate <= MigrationParameters::built_in().pm_write, "{rate}");
    }

    #[test]
    fn volume_grows_and_comes_to_rest() {
        let at = |second: u64| {
            let point = point("tiering", "huge-dsa", "dram")
                .with("working_set", "graph500")
                .with("policy", "memtis")
                .with("second", second);
            of(point, Metric::Migrated)
        };
        let (start, allocated, middle, end) = (at(5), at(20), at(80), at(120));
        assert!(start > 0.0 && start < allocated && allocated < middle && middle <= end);
        // From 80 to 120 s less is moved than in any 4 s of the start.
        assert!(end - middle < 0.2 * (allocated - start), "{middle} {end}");
    }

    #[test]
    fn guesses_are_named() {
        let w = |system| {
            let point = point("migrate-call", system, "pm").with("base_pages", 1024);
            Workload::from_point(&point).unwrap()
        };
        let names = |system| -> Vec<String> {
            let found = guesses(&model(), &w(system)).unwrap().into_iter();
            found
                .filter(|g| g.0 == Metric::Migrate)
                .map(|g| g.1)
                .collect()
        };
        let has = |found: &[String], name: &str| found.iter().any(|g| g.starts_with(name));
        assert!(has(&names("concurrent-dsa"), "page_together = 600 ns"));
        assert!(!has(&names("user-dsa"), "page_together"));
        assert!(has(&names("user-core"), "pm_copy = 2.5 ("));
    }
}
