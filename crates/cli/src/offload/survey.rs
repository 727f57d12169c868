//! `dray offload --survey -- PROGRAM`: what a program copies, and what a device would save.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use dray_figures::{FiguresError, Model, Used};
use dray_offload::calls::Call;
use dray_offload::launch::{Launch, launch};
use dray_offload::settings;
use dray_offload::survey::{Alignment, Survey, SurveyFile};
use dray_output::Output;
use dray_platform::PlatformFile;
use dray_run::Ending;

use super::saving::{Buffers, CallTimes, Estimator, Ranged, SIZES};
use super::site_names::SiteNames;
use super::{Args, page, summary};
use crate::configured::{self, Configured};
use crate::print;

/// Calls of one function and size.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BySize {
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) seen: u64,
    /// Calls whose destination begins at a cache line.
    pub(super) aligned: u64,
    /// One call; `None` below the smallest size that is looked at.
    pub(super) times: Option<CallTimes>,
}

/// A call site of the program.
#[derive(Debug, Clone)]
pub(super) struct CallSite {
    pub(super) name: String,
    pub(super) call: Call,
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) seen: u64,
    pub(super) to: Alignment,
    pub(super) from: Alignment,
    /// Median nanoseconds since the call before, to a power of two.
    pub(super) gap_ns: f64,
    pub(super) core_ns: Ranged,
    pub(super) saved_ns: [Ranged; 3],
}

/// What a survey says.
pub(super) struct SurveyResult {
    pub(super) command: String,
    pub(super) platform: String,
    pub(super) config: String,
    pub(super) programs: u64,
    pub(super) lost: u64,
    pub(super) elapsed_s: f64,
    /// Nanoseconds that the recording of one call took, and how many were timed.
    pub(super) overhead_ns: f64,
    pub(super) timed: u64,
    pub(super) sizes: BTreeMap<(usize, u64), BySize>,
    pub(super) sites: Vec<CallSite>,
    pub(super) guesses: Vec<String>,
}

impl SurveyResult {
    pub(super) fn calls(&self) -> u64 {
        self.sizes.values().map(|size| size.calls).sum()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.sizes.values().map(|size| size.bytes).sum()
    }

    /// Core time of all calls that are looked at, in ns.
    pub(super) fn core_ns(&self) -> Ranged {
        let each = self.sizes.values().filter_map(|size| {
            let times = size.times?;
            Some(times.core.map(|ns| ns * size.calls as f64))
        });
        each.fold(Ranged::default(), Ranged::plus)
    }

    /// Core time that is saved if only sizes are offloaded that save some, by way of waiting.
    pub(super) fn saved_ns(&self) -> [Ranged; 3] {
        [0, 1, 2].map(|way| {
            let each = self.sizes.values().filter_map(|size| {
                let saved = size.times?.saved()[way];
                Some(saved.map(|ns| ns.max(0.0) * size.calls as f64))
            });
            each.fold(Ranged::default(), Ranged::plus)
        })
    }

    /// The smallest size from which on offload saves core time, by call and way.
    pub(super) fn least_bytes(&self, call: Call, way: usize) -> Option<u64> {
        let mut found = None;
        let sizes = self.sizes.iter().rev();
        for ((_, from), size) in sizes.filter(|((of, _), _)| *of == call as usize) {
            match size.times {
                Some(times) if times.saved()[way].value > 0.0 => found = Some(*from),
                _ => break,
            }
        }
        found
    }
}

pub(super) fn run(args: &Args, library: &[u8]) -> anyhow::Result<ExitCode> {
    let platform = PlatformFile::resolve(&args.platform).map_err(FiguresError::from)?;
    let chosen = configured::profile(args.config.as_deref(), "1e1w-d");
    let Configured { profile, name } = chosen.map_err(FiguresError::from)?;
    Used::of(&profile)?;
    let stats_file = args.stats_file.as_deref();
    let stats_file = stats_file.map(Output::prepare).transpose()?;
    let directory = tempfile::Builder::new().prefix("dray-offload-").tempdir()?;
    let path = directory.path().join("survey");
    let file = SurveyFile::create(&path)?;
    let mut variables: Vec<(&'static str, OsString)> = vec![
        (settings::MOVER, "cpu".into()),
        (settings::SURVEY, path.into()),
    ];
    variables.extend(super::run::calls(args));
    let clock = Clock::start();
    let ended = launch(&Launch {
        directory: directory.path(),
        library,
        variables: &variables,
        program: &args.program,
    })?;
    let (elapsed_s, ns_per_cycle) = clock.stop();
    let survey = file.read();
    drop(directory);
    let words: Vec<String> = args
        .program
        .iter()
        .map(|w| w.display().to_string())
        .collect();
    let mut found = SurveyResult {
        command: words.join(" "),
        platform: platform.name.clone(),
        config: name,
        programs: survey.processes,
        lost: survey.lost,
        elapsed_s,
        overhead_ns: survey.cycles as f64 * ns_per_cycle / survey.timed.max(1) as f64,
        timed: survey.timed,
        sizes: sizes(&survey),
        sites: Vec::new(),
        guesses: Vec::new(),
    };
    let calls: Vec<Call> = Call::ALL
        .into_iter()
        .filter(|call| {
            let mut sizes = found.sizes.keys();
            sizes.any(|(of, from)| *of == *call as usize && *from >= SIZES[0])
        })
        .collect();
    let mut estimator = Estimator::new(Model::new(platform, profile), &calls)?;
    for ((call, from), size) in &mut found.sizes {
        if *from >= SIZES[0] {
            let buffers = Buffers::new(size.calls, size.seen, size.aligned);
            let mean = size.bytes / size.calls;
            size.times = Some(estimator.times(Call::ALL[*call], mean, buffers)?);
        }
    }
    found.guesses = estimator
        .guesses
        .iter()
        .map(|p| p.name.to_owned())
        .collect();
    found.sites = sites(&survey, &mut estimator, ns_per_cycle)?;
    if let Some(path) = &args.report {
        dray_output::write(path, page::html(&found)?.as_bytes())?;
        eprintln!("dray offload: the report is {}", path.display());
    }
    if args.stats || stats_file.is_none() {
        eprint!("{}", summary::text(&found));
    }
    if let Some(file) = stats_file {
        file.write(print::document(&summary::json(&found))?.as_bytes())?;
    }
    match ended.signal {
        Some(signal) => Ending::Signalled(signal).pass_on(),
        None => Ending::Exited(ended.code).pass_on(),
    }
}

/// Real time, in seconds and in cycles.
struct Clock {
    start: Instant,
    cycles: u64,
}

impl Clock {
    fn start() -> Clock {
        Clock {
            start: Instant::now(),
            cycles: dray_offload::survey::cycles(),
        }
    }

    /// Seconds, and nanoseconds of a cycle.
    fn stop(self) -> (f64, f64) {
        let cycles = dray_offload::survey::cycles().saturating_sub(self.cycles);
        let elapsed = self.start.elapsed().as_secs_f64();
        (elapsed, elapsed * 1e9 / cycles.max(1) as f64)
    }
}

fn sizes(survey: &Survey) -> BTreeMap<(usize, u64), BySize> {
    let mut sizes: BTreeMap<(usize, u64), BySize> = BTreeMap::new();
    for site in &survey.sites {
        for size in &site.sizes {
            let sum = sizes
                .entry((site.call as usize, size.from_bytes))
                .or_default();
            sum.calls += size.calls;
            sum.bytes += size.bytes;
            sum.seen += size.seen;
            sum.aligned += size.aligned;
        }
    }
    sizes
}

/// All call sites, those first whose offload saves most.
fn sites(
    survey: &Survey,
    estimator: &mut Estimator,
    ns_per_cycle: f64,
) -> Result<Vec<CallSite>, FiguresError> {
    let mut names = SiteNames::default();
    let mut sites: BTreeMap<(String, usize), (CallSite, Vec<u64>)> = BTreeMap::new();
    for counted in &survey.sites {
        let name = names.name(&counted.path, counted.offset);
        let (site, gaps) = sites
            .entry((name.clone(), counted.call as usize))
            .or_insert_with(|| {
                let site = CallSite {
                    name,
                    call: counted.call,
                    calls: 0,
                    bytes: 0,
                    seen: 0,
                    to: Alignment::default(),
                    from: Alignment::default(),
                    gap_ns: 0.0,
                    core_ns: Ranged::default(),
                    saved_ns: [Ranged::default(); 3],
                };
                (site, vec![0; counted.gaps.len()])
            });
        for (sum, count) in [(&mut site.to, counted.to), (&mut site.from, counted.from)] {
            sum.page += count.page;
            sum.line += count.line;
            sum.other += count.other;
        }
        for (sum, count) in gaps.iter_mut().zip(&counted.gaps) {
            *sum += count;
        }
        for size in &counted.sizes {
            site.calls += size.calls;
            site.bytes += size.bytes;
            site.seen += size.seen;
            if size.from_bytes < SIZES[0] {
                continue;
            }
            let calls = size.calls as f64;
            let mean = size.bytes / size.calls;
            let times = estimator.times(
                counted.call,
                mean,
                Buffers::new(size.calls, size.seen, size.aligned),
            )?;
            site.core_ns = site.core_ns.plus(times.core.map(|ns| ns * calls));
            for (sum, saved) in site.saved_ns.iter_mut().zip(times.saved()) {
                *sum = sum.plus(saved.map(|ns| ns.max(0.0) * calls));
            }
        }
    }
    let mut sites: Vec<CallSite> = sites
        .into_values()
        .map(|(mut site, gaps)| {
            let half = gaps.iter().sum::<u64>().div_ceil(2);
            let mut sum = 0;
            let median = gaps.iter().position(|count| {
                sum += count;
                sum >= half
            });
            site.gap_ns = 2_f64.powi(median.unwrap_or(0) as i32) * ns_per_cycle;
            site
        })
        .collect();
    sites.sort_by(|a, b| {
        let key = |site: &CallSite| (site.saved_ns[2].value, site.bytes as f64);
        key(b)
            .partial_cmp(&key(a))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    Ok(sites)
}
