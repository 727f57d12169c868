//! Points on the devices of this machine, one after the other.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use dray::hw::{HwError, HwMover, HwOptions, OpenQueue, is_virtual};
use dray_config::{ConfigError, TemporaryConfig, sysfs_root};
use dray_device::WorkQueueMode;
use dray_idxd::{DeviceProfile, Profile};
use dray_platform::Distance;
use dray_workload::{
    Arena, LoopOnDevice, MeasuredLoop, Pages, available_cpus, cpuinfo, pin, run_on_devices, text,
};
use serde_json::json;

use super::configuration::{configuration, queues};
use super::memory::{ARENA_BYTES, buffers};
use super::nodes::Nodes;
use super::queue::queue_file;
use super::results::{RUNS, metrics};
use super::streams::{Stream, is_in_step, streams};
use super::{DeviceRequest, MeasuredDevice, NODES, NotMeasured};
use crate::workload::Workload;
use crate::{FiguresError, Metrics};

/// Devices with memory to measure on. Dropping it puts the devices' configuration back.
#[derive(Debug)]
pub(crate) struct DeviceBench {
    // First, so that they are closed before the configuration is put back.
    opened: Option<Opened>,
    config: Option<TemporaryConfig>,
    /// What the devices are configured as.
    configured: Option<String>,
    queue: Option<String>,
    /// On the nodes that were needed.
    arenas: Vec<(Option<u16>, Arena)>,
    nodes: Nodes,
    /// CPUs that this program may use.
    available: Vec<u16>,
    pinned: bool,
    version: Option<u32>,
    samples: PathBuf,
}

/// The movers of each thread, for points that need the same.
#[derive(Debug)]
struct Opened {
    key: String,
    threads: Vec<Vec<HwMover>>,
}

impl DeviceBench {
    /// Takes a device and memory. Raw samples are appended to the file `samples`.
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
        let mut bench = DeviceBench {
            opened: None,
            config,
            configured: None,
            queue: request.queue.clone(),
            arenas: Vec::new(),
            nodes,
            available: available_cpus(),
            pinned: true,
            version: None,
            samples: samples.to_owned(),
        };
        // Memory that is bound to no node comes from that of the thread which touches it first.
        if let Some(cpu) = bench.cpus(Distance::Local).first() {
            pin(*cpu);
        }
        bench.arena(Distance::Local)?;
        Ok(bench)
    }

    /// CPUs for threads at such a distance from the device.
    fn cpus(&self, distance: Distance) -> Vec<u16> {
        self.nodes.cpus(Path::new(NODES), &self.available, distance)
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

    /// Puts the devices back as they were: what was measured on.
    ///
    /// # Errors
    /// They cannot be put back.
    pub(crate) fn finish(
        mut self,
        not_measured: NotMeasured,
    ) -> Result<MeasuredDevice, FiguresError> {
        let name = self.name();
        self.put_back()?;
        let what = match is_virtual() {
            true => "virtual device of dray run",
            false => "DSA",
        };
        let version = self
            .version
            .map_or(String::new(), |version| format!(", version {version:#x}"));
        let pinned = match self.pinned {
            true => "each thread pinned to one core",
            false => "threads not pinned",
        };
        let processor = cpuinfo("model name").unwrap_or("unknown processor".to_owned());
        let kernel = text("/proc/sys/kernel/osrelease").unwrap_or_default();
        Ok(MeasuredDevice {
            description: format!(
                "{name} ({what}{version}), {processor}, Linux {kernel}; {pinned}; buffers rotate over {} MiB; median of {RUNS} runs, samples in {}",
                ARENA_BYTES >> 20,
                self.samples.file_name().unwrap_or_default().display(),
            ),
            is_virtual: is_virtual(),
            not_measured,
        })
    }

    /// Puts the devices back after a failure, which is returned with what then fails.
    pub(crate) fn abandon(mut self, failure: FiguresError) -> FiguresError {
        match self.put_back() {
            Ok(()) => failure,
            Err(back) => FiguresError::NotPutBack {
                failure: Box::new(failure),
                device: self.name(),
                back,
            },
        }
    }

    fn put_back(&mut self) -> Result<(), ConfigError> {
        self.opened = None;
        self.config
            .as_mut()
            .map_or(Ok(()), TemporaryConfig::put_back)
    }

    /// The devices, or the queue.
    fn name(&self) -> String {
        match (&self.config, &self.queue) {
            (Some(config), _) => config.devices().collect::<Vec<_>>().join(", "),
            (None, queue) => queue.clone().unwrap_or_default(),
        }
    }

    /// The configuration that a point needs, for putting points of the same together.
    pub(crate) fn configuration(profile: &Profile, w: &Workload) -> String {
        configuration(profile, w).map_or(String::new(), |profile| profile.to_json())
    }

    /// Runs one point, and keeps its samples under these names.
    ///
    /// # Errors
    /// The configuration is refused; a queue cannot be opened; operations that fail or never end.
    pub(crate) fn run(
        &mut self,
        profile: &Profile,
        w: &Workload,
        figure: &str,
        point: &str,
    ) -> Result<Metrics, FiguresError> {
        let profile = configuration(profile, w)?;
        let streams = self.open(&profile, w)?;
        let bases = [self.arena(w.nodes[0])?, self.arena(w.nodes[1])?];
        let cpus = self.cpus(w.tenants.core_node);
        let Some(opened) = &mut self.opened else {
            return Err(FiguresError::NoWorkQueue);
        };
        let queues = |movers: &Vec<HwMover>| {
            let names = movers.iter().map(|mover| mover.info().name());
            names.collect::<Vec<_>>().join(" ")
        };
        let queues: Vec<String> = opened.threads.iter().map(queues).collect();
        let work = streams.iter().zip(&mut opened.threads).enumerate();
        let work = work.map(|(thread, (stream, movers))| {
            let threads = [thread, streams.len()];
            let found = buffers(&stream.work, stream.outstanding(), bases, threads);
            LoopOnDevice {
                cpu: cpus.get(thread).copied().unwrap_or_default(),
                movers,
                work: stream.closed_loop(found),
            }
        });
        let in_step = is_in_step(w, &streams);
        // SAFETY: the buffers lie in the arenas, which nothing else uses and which outlive the movers' use
        // of them; operations that use the same write the same bytes, all of one pattern.
        let measured = unsafe { run_on_devices(work.collect(), in_step) };
        let ended_badly = |m: &MeasuredLoop| m.rounds.stalled + m.rounds.failed > 0;
        let disabled = opened.threads.iter().flatten().find_map(disabled);
        let stalled = measured.iter().map(|m| m.rounds.stalled).sum();
        if stalled > 0 {
            // The device may still write to it.
            std::mem::forget(std::mem::take(&mut self.arenas));
            let nothing_completes = FiguresError::NothingCompletes {
                operations: stalled,
            };
            return Err(disabled.map_or(nothing_completes, FiguresError::from));
        }
        if let Some(error) = disabled.filter(|_| measured.iter().any(ended_badly)) {
            return Err(error.into());
        }
        let failed = measured.iter().map(|m| m.rounds.failed).sum();
        if failed > 0 {
            return Err(FiguresError::Failed { operations: failed });
        }
        self.pinned &= measured.iter().all(|m| m.pinned);
        for ((stream, measured), queue) in streams.iter().zip(&measured).zip(queues) {
            let mut line = json!({
                "figure": figure,
                "point": point,
                "queue": queue,
                "virtual": is_virtual(),
                "operations_per_sample": stream.round(),
                "nanoseconds": measured.samples,
            });
            if stream.is_neighbour {
                line["neighbour"] = true.into();
            }
            self.keep(&line)?;
        }
        Ok(metrics(w, &streams, &measured, in_step))
    }

    /// Opens the queues of all threads of a point, on devices that are configured as `profile` says.
    fn open(&mut self, profile: &Profile, w: &Workload) -> Result<Vec<Stream>, FiguresError> {
        let devices = profile.device_profiles();
        let configured = profile.to_json();
        if self.configured.as_ref() != Some(&configured) {
            self.opened = None;
            self.configure(devices)?;
            self.configured = Some(configured);
        }
        let mut infos = Vec::new();
        for (index, device) in devices.iter().enumerate() {
            let numbers = queues(device, &w.tenants).ok_or(FiguresError::NoWorkQueue)?;
            let name = match &self.config {
                Some(config) => config.devices().nth(index),
                None => Some(device.dev.as_str()),
            };
            let number = name.unwrap_or_default().trim_start_matches("dsa");
            let [own, neighbour] = numbers.map(|queue| queue_file(&format!("wq{number}.{queue}")));
            infos.push([own?, neighbour?]);
        }
        let first = infos.first().ok_or(FiguresError::NoWorkQueue)?;
        let streams = streams(w, [first[0].entries, first[1].entries]);
        let outstanding = streams.iter().map(|stream| 2 * stream.outstanding()).max();
        let options = HwOptions {
            slots: outstanding.unwrap_or_default().max(4096) as usize,
            portal_rotates: w.portal_rotates,
            // What is measured is the device.
            page_faults: 0,
            ..HwOptions::default()
        };
        let of_each: Vec<_> = streams
            .iter()
            .map(|s| (&s.devices, s.is_neighbour))
            .collect();
        let key = format!("{options:?} {of_each:?}");
        if self.opened.as_ref().is_some_and(|opened| opened.key == key) {
            return Ok(streams);
        }
        self.opened = None;
        self.version = Some(first[0].version);
        // The kernel lets one client open a dedicated queue: threads share what is open.
        let mut shared = Vec::new();
        for (index, [own, _]) in infos.iter().enumerate() {
            let own_threads = streams.iter().filter(|stream| !stream.is_neighbour);
            let channels = own_threads.flat_map(|stream| &stream.devices);
            let is_shared = channels.filter(|device| **device == index).count() > 1
                && own.mode == WorkQueueMode::Dedicated;
            shared.push(match is_shared {
                true => Some(OpenQueue::open(own, options)?),
                false => None,
            });
        }
        let mut threads = Vec::new();
        for stream in &streams {
            let mut movers = Vec::new();
            for device in &stream.devices {
                let [own, neighbour] = &infos[*device];
                movers.push(match (&shared[*device], stream.is_neighbour) {
                    (_, true) => HwMover::open(neighbour, options)?,
                    (Some(queue), false) => queue.mover()?,
                    (None, false) => HwMover::open(own, options)?,
                });
            }
            threads.push(movers);
        }
        self.opened = Some(Opened { key, threads });
        Ok(streams)
    }

    /// Configures as many devices as there are profiles, where it is this program that configures them.
    fn configure(&mut self, devices: &[DeviceProfile]) -> Result<(), FiguresError> {
        let Some(config) = &mut self.config else {
            return Ok(());
        };
        // Unknown until it is done.
        self.configured = None;
        let there = config.take(devices.len())?;
        if there < devices.len() {
            return Err(FiguresError::Limit {
                what: "devices",
                value: devices.len() as u64,
                limit: there as u64,
                field: "of devices that no program uses",
            });
        }
        Ok(config.configure_all(devices)?)
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

/// That the queue of a mover was disabled under it, if it was.
fn disabled(mover: &HwMover) -> Option<HwError> {
    match mover.failure()? {
        HwError::Disabled { path } => Some(HwError::Disabled { path: path.clone() }),
        _ => None,
    }
}
