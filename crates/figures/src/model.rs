//! One point on the modelled device, or on the modelled core beside it.

use std::sync::Arc;

use dray_device::Payload;
use dray_idxd::Profile;
use dray_model::{ChannelId, ChannelOptions, Reads, World, WorldOptions};
use dray_platform::{Cache, Distance, MemoryLocation, PAGE_BYTES, PlatformFile};
use dray_workload::{Buffers, Burst, Op, Ring};

use crate::break_even::BreakEven;
use crate::fault::Faulting;
use crate::setup::{Setup, node};
use crate::tiers::{self, Slow, Tiers};
use crate::workload::{What, Workload};
use crate::{FiguresError, KnownRuns, Metric, Metrics, concurrent, migration, vhost};

/// What a model run depends on.
#[derive(Debug, Clone)]
pub struct Model {
    /// The machine.
    pub platform: Arc<PlatformFile>,
    /// The device's configuration, before a point changes it.
    pub profile: Profile,
    /// Whether payload bytes move.
    pub payload: Payload,
    /// Runs that need not be made again.
    pub known: KnownRuns,
}

/// How long a stream runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Window {
    /// Until nothing changes any more.
    Full,
    /// So many times as long as that.
    Longer(u64),
    /// As short as a fit that runs thousands of points can bear.
    Short,
    /// Enough to see whether a parameter matters.
    Probe,
}

impl Window {
    /// Operations that do not count, and that do.
    pub(crate) fn operations(self, slots: u64, batch: u64) -> (u64, u64) {
        // The first fillings of the queue do not count: a core that was held up by its own burst
        // sees many completions at once, and the window must not begin there.
        match (self, slots) {
            (_, 1) => (2, 8),
            (Window::Full, n) if n <= 1024 => (8 * n, (16 * n).max(1024)),
            (Window::Full, n) => (2 * n, 2 * n),
            (Window::Longer(times), n) => {
                let (warm_up, count) = Window::Full.operations(n, batch);
                (warm_up, times * count)
            }
            (Window::Probe, n) => (2 * n + 2 * batch, (2 * n).max(2 * batch).max(64)),
            (Window::Short, n) => (2 * n + 2 * batch, (8 * batch).max(256)),
        }
    }
}

/// A world with one core and one queue.
struct Alone {
    world: World,
    channel: ChannelId,
    buffers: Buffers,
    slots: usize,
}

/// Payload bytes are checked on at most this much memory for each buffer ring.
const BACKED_BYTES: u64 = 16 << 20;

impl Model {
    /// A machine that counts time and moves no bytes.
    pub fn new(platform: PlatformFile, profile: Profile) -> Model {
        Model {
            platform: platform.into(),
            profile,
            payload: Payload::Skipped,
            known: KnownRuns::default(),
        }
    }

    /// Runs one point.
    ///
    /// # Errors
    /// A configuration that the device cannot take, a point that the profile cannot run (with the
    /// limit and the fix), a result that is not what the operations should have made.
    pub fn run(&self, w: &Workload) -> Result<Metrics, FiguresError> {
        self.run_for(w, Window::Full)
    }

    /// Runs one point for as long as `window` says.
    pub(crate) fn run_for(&self, w: &Workload, window: Window) -> Result<Metrics, FiguresError> {
        if let Some(other) = tiers::with_persistent_memory(self, w)? {
            let cxl = Tiers {
                slow: Some(Slow::PmAsCxl),
                ..w.tiers
            };
            let w = Workload { tiers: cxl, ..*w };
            return other.run_for(&w, window);
        }
        match w.what {
            What::Offload | What::Software => concurrent::run(self, w, window),
            What::MigrateCall => tiers::call(self, w, window),
            What::Tiering => tiers::tiering(self, w, window),
            What::BreakEven => BreakEven::find(self, w).map(BreakEven::metrics),
            What::Burst => self.once(w, || self.burst(w)),
            What::Overflow => self.once(w, || self.overflow(w)),
            What::Fault => self.once(w, || self.fault(w)),
            What::Migration => match w.migration {
                Some(migration) => migration::run(self, w, migration),
                None => Ok(Metrics::default()),
            },
            What::Vhost => match w.switching {
                Some(switching) => vhost::run(self, w, switching, window),
                None => Ok(Metrics::default()),
            },
        }
    }

    /// What is equally long in every window.
    fn once(
        &self,
        w: &Workload,
        run: impl FnOnce() -> Result<(Metrics, Reads), FiguresError>,
    ) -> Result<Metrics, FiguresError> {
        self.known.of(self, w, Window::Probe, run)
    }

    fn burst(&self, w: &Workload) -> Result<(Metrics, Reads), FiguresError> {
        let mut alone = self.alone(w)?;
        let mut burst = [Burst::new(w.operations(alone.buffers), w.count.into())];
        alone.world.run(&mut burst)?;
        let metrics = Metrics::single(Metric::Burst, burst[0].took().as_ns());
        Ok((metrics, alone.world.reads()))
    }

    fn overflow(&self, w: &Workload) -> Result<(Metrics, Reads), FiguresError> {
        let mut alone = self.alone(w)?;
        let sized = Workload {
            size: w.payload.max(1),
            op: match w.payload {
                0 => Op::Nop,
                _ => Op::Move,
            },
            ..*w
        };
        let burst = Burst::new(sized.operations(alone.buffers), w.count.into());
        alone.world.run(&mut [burst])?;
        alone.world.settle();
        let counters = alone.world.channel(alone.channel).counters();
        let accepted = counters.submitted - counters.lost;
        let metrics = Metrics::single(Metric::Accepted, accepted as f64);
        Ok((metrics, alone.world.reads()))
    }

    fn fault(&self, w: &Workload) -> Result<(Metrics, Reads), FiguresError> {
        let mut alone = self.alone(w)?;
        let mut run = [Faulting::new(*w, alone.buffers, alone.slots)];
        alone.world.run(&mut run)?;
        if run[0].failed > 0 {
            return Err(FiguresError::Failed {
                operations: run[0].failed,
            });
        }
        let per_page = run[0].took.as_ns() / run[0].pages() as f64;
        let metrics = Metrics::single(Metric::FaultPage, per_page);
        Ok((metrics, alone.world.reads()))
    }

    /// One core with one queue.
    fn alone(&self, w: &Workload) -> Result<Alone, FiguresError> {
        let setup = Setup::new(&self.platform, &self.profile, w)?;
        let mut world = self.world(&setup)?;
        let options = channel(w, Some((0, setup.wq)), setup.depth);
        let slots = (options.depth * options.batch) as usize;
        Ok(Alone {
            channel: world.open(options).ok_or(FiguresError::NoWorkQueue)?,
            buffers: self.buffers(&mut world, w, slots as u64)?,
            slots,
            world,
        })
    }

    /// A machine with the devices of a setup.
    pub(crate) fn world(&self, setup: &Setup) -> Result<World, FiguresError> {
        let options = WorldOptions {
            payload: self.payload,
            ..WorldOptions::default()
        };
        let world = World::new(self.platform.clone(), setup.devices.clone(), options);
        world.map_err(FiguresError::from)
    }

    /// Buffers for a workload. Data that is to come from memory is walked over a ring of 128, data
    /// in a cache is used again and again.
    pub(crate) fn buffers(
        &self,
        world: &mut World,
        w: &Workload,
        slots: u64,
    ) -> Result<Buffers, FiguresError> {
        let cached = w.cache == Cache::Llc || w.hot;
        let mut count = match cached {
            true => slots,
            false => slots.max(128),
        };
        let size = w.largest().max(u64::from(w.payload)).max(64);
        let align = match w.op {
            Op::Dualcast => PAGE_BYTES,
            _ => 64,
        };
        let stride = size.next_multiple_of(align);
        let backed = self.payload == Payload::Moved;
        if backed {
            count = count.min((BACKED_BYTES / stride).max(1));
        }
        let mut ring = |distance: Distance, offset: u64| -> Result<(Ring, _), FiguresError> {
            let place = MemoryLocation {
                node: node(&self.platform, distance)?,
                cache: w.cache,
            };
            let region = world
                .memory
                .allocate(count * stride + offset, place, backed);
            let base = world.memory.region(region).base + offset;
            Ok((
                Ring {
                    base,
                    stride,
                    count,
                },
                region,
            ))
        };
        let offset = w.dst_align % 64;
        let (src, src_region) = ring(w.nodes[0], 0)?;
        let (dst, dst_region) = ring(w.nodes[1], offset)?;
        let (dst2, _) = ring(w.nodes[1], offset)?;
        if w.what == What::Fault {
            match w.op {
                Op::Compare | Op::ComparePattern | Op::Crc => world.memory.evict(src_region),
                _ => world.memory.evict(dst_region),
            }
        }
        Ok(Buffers { src, dst, dst2 })
    }
}

/// How the workload uses a queue.
pub(crate) fn channel(w: &Workload, queue: Option<(u16, u16)>, depth: u32) -> ChannelOptions {
    ChannelOptions {
        socket: u16::from(w.tenants.core_node == Distance::Remote),
        queue,
        batch: match queue {
            Some(_) => w.batch,
            None => 1,
        },
        depth,
        wait: w.wait,
        portal_rotates: w.portal_rotates,
        prepared: matches!(w.what, What::Burst | What::Overflow),
        hot: w.hot,
        non_temporal: w.op == Op::NtFill,
        random: w.random,
        kernel: w.kernel,
        core_of: None,
    }
}
