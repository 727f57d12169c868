//! Points on a DSA of this machine: configured, measured, put back as it was.

mod missing;
mod nodes;

pub use missing::NotMeasured;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use dray::WaitPolicy;
use dray::hw::{HwError, HwMover, HwOptions, Paths, QueueInfo, is_virtual};
use dray_config::{Directory, TemporaryConfig, survey, sysfs_root};
use dray_device::WorkQueueMode;
use dray_idxd::{DeviceProfile, Profile};
use dray_platform::{Cache, Distance, WaitMode};
use dray_workload::{
    Arena, Buffers, DeviceLoop, Exec, Op, Pages, Ring, available_cpus, cpuinfo, pin, text,
};
use serde_json::json;

use missing::Missing;
use nodes::Nodes;

use crate::setup::changed;
use crate::workload::Workload;
use crate::{FiguresError, Metric, Metrics};

/// Where the kernel says which memory nodes there are.
const NODES: &str = "/sys/devices/system/node";
/// Memory for all buffers of a point together, on each node that one of them is on.
const ARENA_BYTES: usize = 384 << 20;
/// Buffers are laid on pages: the two destinations of a dualcast must be alike in bits 11:0.
const PAGE: usize = 4096;
/// Rounds before the first that counts.
const WARM_UP: u64 = 8;
/// Least and most samples of a point, and the time after which no more are taken.
const SAMPLES: [u64; 2] = [27, 4000];
const RUN: Duration = Duration::from_millis(40);
/// Runs that the samples of a point are divided into.
const RUNS: usize = 9;
/// How long the kernel may take to make the file of a queue that it has enabled.
const DEVICE_FILE: Duration = Duration::from_secs(5);

/// A DSA of this machine to measure on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRequest {
    /// A queue that is measured as it is configured; `None`: the first device that nobody uses, whose
    /// configuration is changed from point to point and put back at the end.
    pub queue: Option<String>,
    /// Directory in which `dray config --undo` finds what was there before, if this process is killed.
    pub state: PathBuf,
}

/// What was measured on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredDevice {
    /// What the device is, and on which machine.
    pub description: String,
    /// It is the virtual device of `dray run`.
    pub is_virtual: bool,
    /// Points that are modelled only.
    pub not_measured: NotMeasured,
}

impl MeasuredDevice {
    /// One line for the report.
    pub fn describe(&self) -> String {
        let what = match self.is_virtual {
            true => "; the device is virtual: these are times of the emulation, not of hardware",
            false => "",
        };
        let points = match self.not_measured.count() {
            0 => String::new(),
            1 => "; one point is modelled only".to_owned(),
            n => format!("; {n} points are modelled only"),
        };
        format!("{}{what}{points}", self.description)
    }
}

/// Why a device of this machine cannot run a point, if it cannot: it runs one stream of operations on the
/// memory that there is.
pub(crate) fn why_not(w: &Workload, profile: &Profile, request: &DeviceRequest) -> Option<Missing> {
    static HERE: OnceLock<Nodes> = OnceLock::new();
    let nodes = *HERE.get_or_init(|| Nodes::read(Path::new(NODES), None));
    // A queue that is taken as it is configured is measured in no other configuration.
    let configured = || {
        request.queue.is_none()
            || configuration(profile, w).is_ok_and(|changed| changed.to_json() == profile.to_json())
    };
    missing::missing(w, nodes).or_else(|| (!configured()).then_some(Missing::Configuration))
}

/// The profile with what the point says otherwise.
fn configuration(profile: &Profile, w: &Workload) -> Result<Profile, FiguresError> {
    let profile = changed(profile, w)?;
    let Some(buffers) = w.read_buffers else {
        return Ok(profile);
    };
    let mut devices = profile.device_profiles().to_vec();
    for group in devices.iter_mut().flat_map(|device| &mut device.groups) {
        let allowed = i64::from(buffers);
        group.read_buffers_allowed = Some(allowed);
        let reserved = group.read_buffers_reserved;
        group.read_buffers_reserved = reserved.map(|reserved| reserved.min(allowed));
    }
    Ok(Profile::of(devices))
}

/// The profile of one queue as it is configured, for the model beside it.
///
/// # Errors
/// There is no driver, or no such queue.
pub fn configured_queue(name: &str) -> Result<Profile, FiguresError> {
    let tree = Directory::open(&sysfs_root()).map_err(dray_config::ConfigError::from)?;
    let machine = survey(&tree)?;
    for device in machine.device_profiles() {
        for group in &device.groups {
            let queues = &group.grouped_workqueues;
            if let Some(queue) = queues.iter().find(|queue| queue.dev == name) {
                let group = dray_idxd::GroupProfile {
                    grouped_workqueues: vec![queue.clone()],
                    ..group.clone()
                };
                return Ok(Profile::of(vec![DeviceProfile {
                    groups: vec![group],
                    ungrouped_workqueues: Vec::new(),
                    ungrouped_engines: Vec::new(),
                    ..device.clone()
                }]));
            }
        }
    }
    let queues: Vec<String> = Paths::from_environment()
        .discover()?
        .iter()
        .map(QueueInfo::name)
        .collect();
    Err(FiguresError::Hardware(HwError::NoSuchQueue {
        name: name.to_owned(),
        available: queues.join(", "),
    }))
}

/// A device with memory to measure on. Dropping it puts the device's configuration back.
#[derive(Debug)]
pub(crate) struct DeviceBench {
    // First, so that it is closed before the configuration is put back.
    mover: Option<(String, HwMover)>,
    config: Option<TemporaryConfig>,
    queue: Option<String>,
    /// On the nodes that were needed.
    arenas: Vec<(Option<u16>, Arena)>,
    nodes: Nodes,
    pinned: bool,
    samples: PathBuf,
}

impl DeviceBench {
    /// Takes the device and memory; keeps the calling thread on one core. Raw samples are appended to the
    /// file `samples`.
    ///
    /// # Errors
    /// No device, or one that is in use; no memory.
    pub(crate) fn new(
        request: &DeviceRequest,
        samples: &Path,
    ) -> Result<DeviceBench, FiguresError> {
        let config = match &request.queue {
            Some(_) => None,
            None => Some(TemporaryConfig::begin(&sysfs_root(), &request.state, None)?),
        };
        let local = match (&config, &request.queue) {
            (Some(config), _) => node_of(config.device()),
            (None, Some(queue)) => queue_file(queue)?.numa_node.map(|node| node as u16),
            (None, None) => None,
        };
        let nodes = Nodes::read(Path::new(NODES), local);
        let cpus = available_cpus();
        let near = cpus
            .iter()
            .find(|cpu| local.is_none_or(|node| is_on(**cpu, node)));
        let cpu = near.or(cpus.first()).copied().unwrap_or(0);
        let pinned = pin(cpu);
        let mut bench = DeviceBench {
            mover: None,
            config,
            queue: request.queue.clone(),
            arenas: Vec::new(),
            nodes,
            pinned,
            samples: samples.to_owned(),
        };
        bench.arena(Distance::Local)?;
        Ok(bench)
    }

    /// First address of the memory at such a distance from the device.
    fn arena(&mut self, distance: Distance) -> Result<u64, FiguresError> {
        let node = self.nodes.at(distance);
        if let Some((_, arena)) = self.arenas.iter().find(|(of, _)| *of == node) {
            return Ok(arena.start());
        }
        let arena = Arena::new(ARENA_BYTES, Pages::Transparent, node);
        let arena = arena.map_err(|source| FiguresError::Memory { source })?;
        let start = arena.start();
        self.arenas.push((node, arena));
        Ok(start)
    }

    /// Puts the device back as it was: what was measured on.
    ///
    /// # Errors
    /// It cannot be put back.
    pub(crate) fn finish(
        mut self,
        not_measured: NotMeasured,
    ) -> Result<MeasuredDevice, FiguresError> {
        let name = match (&self.config, &self.queue) {
            (Some(config), _) => config.device().to_owned(),
            (None, queue) => queue.clone().unwrap_or_default(),
        };
        let version = self.mover.as_ref().map(|(_, mover)| mover.info().version);
        self.mover = None;
        if let Some(config) = &mut self.config {
            config.put_back()?;
        }
        let what = match is_virtual() {
            true => "virtual device of dray run",
            false => "DSA",
        };
        let version = version.map_or(String::new(), |version| format!(", version {version:#x}"));
        let pinned = match self.pinned {
            true => "pinned to one core",
            false => "not pinned",
        };
        let processor = cpuinfo("model name").unwrap_or("unknown processor".to_owned());
        let kernel = text("/proc/sys/kernel/osrelease").unwrap_or_default();
        Ok(MeasuredDevice {
            description: format!(
                "{name} ({what}{version}), {processor}, Linux {kernel}; one thread, {pinned}; buffers rotate over {} MiB; median of {RUNS} runs, samples in {}",
                ARENA_BYTES >> 20,
                self.samples.file_name().unwrap_or_default().display(),
            ),
            is_virtual: is_virtual(),
            not_measured,
        })
    }

    /// The configuration that a point needs, for putting points of the same together.
    pub(crate) fn configuration(profile: &Profile, w: &Workload) -> String {
        configuration(profile, w).map_or(String::new(), |profile| profile.to_json())
    }

    /// Runs one point, and keeps its samples under these names.
    ///
    /// # Errors
    /// The configuration is refused; the queue cannot be opened; operations that fail or never end.
    pub(crate) fn run(
        &mut self,
        profile: &Profile,
        w: &Workload,
        figure: &str,
        point: &str,
    ) -> Result<Metrics, FiguresError> {
        let profile = configuration(profile, w)?;
        let depth = self.open(&profile, w)?;
        let batch = w.batch.max(1);
        let round = u64::from(depth * batch);
        let bases = [self.arena(w.nodes[0])?, self.arena(w.nodes[1])?];
        let buffers = DeviceBench::buffers(w, round, bases);
        let work = DeviceLoop {
            operations: w.operations(buffers),
            exec: match round {
                1 => Exec::Sync,
                _ if depth == 1 => Exec::Sync,
                _ => Exec::Async,
            },
            round,
            queue: depth,
            batch,
            wait: match w.wait {
                WaitMode::Poll => WaitPolicy::Spin,
                WaitMode::Pause => WaitPolicy::Pause,
                WaitMode::Umwait => WaitPolicy::Umwait,
            },
        };
        let Some((_, mover)) = &mut self.mover else {
            return Err(FiguresError::NoWorkQueue);
        };
        // SAFETY: the buffers lie in the arena, which nobody else uses and which outlives the mover's use
        // of it; operations that use the same write the same bytes, all of one pattern.
        let warm = unsafe { work.run(mover, WARM_UP, || {}, |_| false) };
        let mut taken = 0;
        let enough = |elapsed: Duration| {
            taken += 1;
            taken >= SAMPLES[0] && elapsed >= RUN
        };
        let measured = match warm.failed + warm.stalled {
            // SAFETY: as above.
            0 => unsafe { work.run(mover, SAMPLES[1], || {}, enough) },
            _ => warm,
        };
        if measured.stalled > 0 {
            // The device may still write to it.
            std::mem::forget(std::mem::take(&mut self.arenas));
            return Err(FiguresError::NothingCompletes {
                operations: measured.stalled,
            });
        }
        if measured.failed > 0 {
            return Err(FiguresError::Failed {
                operations: measured.failed,
            });
        }
        let queue = mover.info().name();
        let samples: Vec<u64> = measured
            .samples
            .iter()
            .map(|s| s.as_nanos() as u64)
            .collect();
        self.keep(&json!({
            "figure": figure,
            "point": point,
            "queue": queue,
            "virtual": is_virtual(),
            "operations_per_sample": round,
            "nanoseconds": samples,
        }))?;
        let operations = (samples.len() as u64 * round).max(1) as f64;
        let [low, period, high] = spread(&samples).map(|ns| ns / round as f64);
        let each = |time: Duration| time.as_nanos() as f64 / operations;
        let prepare = each(measured.preparing);
        let submit = each(measured.busy.saturating_sub(measured.preparing));
        let throughput = w.bytes() as f64 / period.max(f64::MIN_POSITIVE);
        Ok(Metrics::single(Metric::Throughput, throughput)
            // All of a round are outstanding all the time.
            .with(Metric::Latency, period * round as f64)
            .with(Metric::Period, period)
            .with(Metric::Prepare, prepare)
            .with(Metric::Submit, submit)
            .with(Metric::Wait, (period - prepare - submit).max(0.0))
            .with(Metric::Rate, 1e3 / period.max(f64::MIN_POSITIVE))
            .with(Metric::PeriodLow, low)
            .with(Metric::PeriodHigh, high))
    }

    /// Opens the queue of a profile, configured so; how many descriptors are outstanding.
    fn open(&mut self, profile: &Profile, w: &Workload) -> Result<u32, FiguresError> {
        let key = format!("{} {}", profile.to_json(), w.portal_rotates);
        let device = profile.device_profiles().first();
        let device = device.ok_or(FiguresError::NoWorkQueue)?;
        if self.mover.as_ref().is_none_or(|(known, _)| *known != key) {
            self.mover = None;
            let queues = device.groups.iter().flat_map(|g| &g.grouped_workqueues);
            let first = queues.map(|queue| queue.dev.as_str()).next();
            let first = first.ok_or(FiguresError::NoWorkQueue)?;
            let name = match &mut self.config {
                None => first.to_owned(),
                Some(config) => {
                    config.configure(device)?;
                    let number = config.device().trim_start_matches("dsa").to_owned();
                    let index = first.rsplit_once('.').map_or("0", |(_, index)| index);
                    format!("wq{number}.{index}")
                }
            };
            let info = queue_file(&name)?;
            let slots = 2 * u32::from(info.entries) * w.batch.max(1);
            let options = HwOptions {
                slots: slots.max(4096) as usize,
                portal_rotates: w.portal_rotates,
                ..HwOptions::default()
            };
            self.mover = Some((key, HwMover::open(&info, options)?));
        }
        let entries = self.mover.as_ref().map_or(1, |(_, mover)| {
            let info = mover.info();
            match info.mode {
                WorkQueueMode::Dedicated | WorkQueueMode::Shared => u32::from(info.entries),
            }
        });
        Ok(w.depth.unwrap_or(entries).max(1))
    }

    /// Rings that take equal parts of the arena; data that is to be in a cache is used again.
    /// They begin at `from` and `to`, which may be one.
    fn buffers(w: &Workload, outstanding: u64, [from, to]: [u64; 2]) -> Buffers {
        let offset = (w.dst_align % 64) as usize;
        let stride = (w.largest().max(64) as usize).next_multiple_of(match w.op {
            Op::Dualcast => PAGE,
            _ => 64,
        });
        let part = (ARENA_BYTES / 3) & !(PAGE - 1);
        let most = ((part - PAGE) / stride).max(1) as u64;
        let cached = w.hot || w.cache == Cache::Llc;
        let count = match cached {
            true => outstanding.min(most),
            false => most,
        };
        let ring = |start: u64, index: usize, offset: usize| Ring {
            base: start + (index * part + offset) as u64,
            stride: stride as u64,
            count,
        };
        Buffers {
            src: ring(from, 0, 0),
            dst: ring(to, 1, offset),
            dst2: ring(to, 2, offset),
        }
    }

    /// Appends one line to the file of samples.
    fn keep(&self, line: &serde_json::Value) -> Result<(), FiguresError> {
        let failed = |source| FiguresError::Samples {
            path: self.samples.clone(),
            source,
        };
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.samples);
        let mut file = file.map_err(failed)?;
        file.write_all(format!("{line}\n").as_bytes())
            .map_err(failed)
    }
}

/// The node that sysfs has a device on.
fn node_of(device: &str) -> Option<u16> {
    let file = sysfs_root()
        .join("bus/dsa/devices")
        .join(device)
        .join("numa_node");
    text(file.to_str()?)?.parse().ok()
}

/// Whether a processor is on a node.
fn is_on(cpu: u16, node: u16) -> bool {
    Path::new(&format!("{NODES}/node{node}/cpu{cpu}")).exists()
}

/// A queue that was enabled, once its file is there.
fn queue_file(name: &str) -> Result<QueueInfo, FiguresError> {
    let start = Instant::now();
    loop {
        let found = Paths::from_environment().discover();
        let queue = match &found {
            Ok(queues) => queues.iter().find(|queue| queue.name() == name).cloned(),
            Err(_) => None,
        };
        match (queue, found) {
            (Some(queue), _) => return Ok(queue),
            (None, Err(error)) if start.elapsed() >= DEVICE_FILE => return Err(error.into()),
            (None, Ok(queues)) if start.elapsed() >= DEVICE_FILE => {
                let names: Vec<String> = queues.iter().map(QueueInfo::name).collect();
                return Err(FiguresError::Hardware(HwError::NoSuchQueue {
                    name: name.to_owned(),
                    available: names.join(", "),
                }));
            }
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// The means of the runs that the samples are divided into: the shortest but one, the median, the longest
/// but one.
fn spread(samples: &[u64]) -> [f64; 3] {
    let each = samples.len().div_ceil(RUNS).max(1);
    let mean = |run: &[u64]| run.iter().sum::<u64>() as f64 / run.len().max(1) as f64;
    let mut runs: Vec<f64> = samples.chunks(each).map(mean).collect();
    runs.sort_by(f64::total_cmp);
    let last = runs.len().saturating_sub(1);
    let at = |index: usize| runs.get(index.min(last)).copied().unwrap_or(0.0);
    [at(1), at(runs.len() / 2), at(last.saturating_sub(1))]
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;

    use super::*;

    fn request(queue: Option<&str>) -> DeviceRequest {
        DeviceRequest {
            queue: queue.map(str::to_owned),
            state: PathBuf::new(),
        }
    }

    #[test]
    fn only_one_stream_on_local_memory_is_measured() {
        let profile = Profile::named("1e1w-d").unwrap();
        let measured = |point: Point, queue| {
            let w = Workload::from_point(&point).unwrap();
            why_not(&w, &profile, &request(queue)).is_none()
        };
        let plain = Point::default().with("op", "memmove").with("mode", "async");
        assert!(measured(plain.clone(), None));
        assert!(measured(plain.clone(), Some("wq0.0")));
        // The queue stays as it is.
        assert!(measured(plain.with("wq_size", 16), None));
        assert!(!measured(plain.with("wq_size", 16), Some("wq0.0")));
        assert!(!measured(plain.with("kind", "burst"), None));
        for (name, value) in [("cores", 2), ("neighbour_size", 4096)] {
            assert!(!measured(plain.with(name, value), None), "{name}");
        }
    }

    #[test]
    fn the_spread_leaves_out_the_ends() {
        let samples: Vec<u64> = (1..=9).collect();
        assert_eq!(spread(&samples), [2.0, 5.0, 8.0]);
        assert_eq!(spread(&[7]), [7.0; 3]);
        assert_eq!(spread(&[]), [0.0; 3]);
    }

    #[test]
    fn a_configuration_has_the_read_buffers_of_its_point() {
        let profile = Profile::named("1e1w-d").unwrap();
        let point = Point::default().with("read_buffers", 24);
        let w = Workload::from_point(&point).unwrap();
        let changed = configuration(&profile, &w).unwrap();
        let group = &changed.device_profiles()[0].groups[0];
        assert_eq!(group.read_buffers_allowed, Some(24));
    }
}
