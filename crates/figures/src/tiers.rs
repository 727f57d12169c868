//! Pages that change tier in modelled time: one call, and a program on two tiers.

mod copies;
mod guesses;
mod program;

pub(crate) use guesses::guesses;
pub(crate) use program::{KnownPrograms, tiering};

use std::sync::LazyLock;

use dray_platform::Distance;
use dray_tier::modelled::{CopyTimes, MigrationParameters, Pages, Pattern, System};

use crate::model::{Model, Window};
use crate::workload::Workload;
use crate::{FiguresError, Metric, Metrics};
use copies::copies;

/// Base pages of a huge page.
const HUGE: u32 = 512;
/// Seconds that a program on two tiers runs, if no later one is asked for: one that allocates as it
/// goes, and others.
const RUN_S: [u64; 2] = [120, 60];
const GIB: u64 = 1 << 30;

/// The parameters of page migration, read once.
fn built_in() -> &'static MigrationParameters {
    static BUILT_IN: LazyLock<MigrationParameters> = LazyLock::new(MigrationParameters::built_in);
    &BUILT_IN
}

/// Memory of the slow tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tiers {
    pub(crate) system: System,
    /// `None`: there are no tiers.
    pub(crate) slow: Option<Slow>,
    pub(crate) promotes: bool,
    pub(crate) pages: Pages,
    /// Base pages of a folio.
    pub(crate) folio: u64,
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
            folio: 1,
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
        Some(Slow::Pm) => persistent(model, built_in()).map(Some),
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

/// One call.
///
/// # Errors
/// What the profile or the platform cannot run.
pub(crate) fn call(model: &Model, w: &Workload, window: Window) -> Result<Metrics, FiguresError> {
    let copies = copies(model, w, w.tiers.promotes, window)?;
    Ok(call_with(w, &copies, built_in()))
}

fn call_with(w: &Workload, copies: &CopyTimes, p: &MigrationParameters) -> Metrics {
    let m = w.tiers;
    let time = m.system.call(m.pages, &p.in_folios(m.folio), copies);
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

#[cfg(test)]
mod tests {
    use dray_experiment::Point;
    use dray_idxd::Profile;
    use dray_platform::PAGE_BYTES;

    use super::*;
    use crate::sensitivity::COUNTS;

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
    fn the_fitted_line_gives_the_time_of_a_list_of_512_pages() {
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
        assert!(rate <= built_in().pm_write, "{rate}");
    }

    #[test]
    fn migrated_volume_grows_and_then_stays_constant() {
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
    fn large_folios_migrate_faster_than_single_pages() {
        let rest = |folio: u64| {
            let point = point("migrate-call", "kernel", "dram").with("base_pages", 1024);
            of(point.with("folio", folio), Metric::MigrateRest)
        };
        assert!(rest(4) < 0.6 * rest(1) && rest(16) < 0.8 * rest(4) && rest(256) < rest(16));
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

    /// Every guess of `platforms/migration.toml` is named by what it moves, or cannot move anything that much.
    #[test]
    fn every_guess_of_page_migration_is_named() {
        let systems = [
            "kernel",
            "concurrent-threads",
            "concurrent-dsa",
            "user-core",
        ];
        let mut named: Vec<String> = Vec::new();
        for system in systems {
            for point in [
                point("migrate-call", system, "pm").with("base_pages", 1024),
                point("migrate-call", system, "pm").with("huge_pages", 4),
                point("migrate-call", system, "dram")
                    .with("base_pages", 1024)
                    .with("folio", 16),
                point("migrate-call", system, "dram").with("base_pages", 8),
                point("tiering", system, "pm").with("working_set", "large"),
            ] {
                let w = Workload::from_point(&point).unwrap();
                let found = guesses(&model(), &w).unwrap().into_iter();
                named.extend(found.map(|(_, words)| words));
            }
        }
        let p = built_in();
        let line = model().platform.parameters().cpu_line_latency.as_ns();
        for (name, stated) in p.list().filter(|(_, stated)| stated.guess) {
            let is_named = named
                .iter()
                .any(|words| words.starts_with(&format!("{name} = ")));
            match name {
                // What one access in thousands costs more than a line of memory.
                "hint_fault" => {
                    assert!(!is_named && p.sampled * stated.range[1] / line < COUNTS);
                }
                _ => assert!(is_named, "{name} moves nothing: {named:?}"),
            }
        }
    }
}
