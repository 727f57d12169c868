//! One point on the modelled device, or on the modelled core beside it.

use std::sync::Arc;

use dray::model::{ChannelOptions, World, WorldOptions};
use dray_clock::Time;
use dray_device::{Payload, WorkQueueMode};
use dray_idxd::Profile;
use dray_platform::{Cache, Distance, NodeId, PAGE_BYTES, Place, PlatformFile};

use crate::burst::Burst;
use crate::fault::Faulting;
use crate::stream::{Buffers, Ring, Stream};
use crate::workload::{Op, What, Workload};
use crate::{FiguresError, Metrics};

/// What a model run stands on.
#[derive(Debug, Clone)]
pub struct Model {
    /// The machine.
    pub platform: Arc<PlatformFile>,
    /// The device's configuration, before a point changes it.
    pub profile: Profile,
    /// Whether payload bytes move.
    pub payload: Payload,
}

/// How long a stream runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    /// Until nothing changes any more.
    Full,
    /// As short as a fit that runs thousands of points can bear.
    Short,
}

impl Window {
    /// Operations that do not count, and that do.
    fn operations(self, slots: u64, batch: u64) -> (u64, u64) {
        // The first fillings of the queue do not count: a core that was held up by its own burst
        // sees many completions at once, and the window must not begin there.
        match (self, slots) {
            (_, 1) => (2, 8),
            (Window::Full, n) if n <= 1024 => (8 * n, (16 * n).max(1024)),
            (Window::Full, n) => (2 * n, 2 * n),
            (Window::Short, n) => (2 * n + 2 * batch, (8 * batch).max(256)),
        }
    }
}

/// Payload bytes are checked on at most this much memory for each buffer ring.
const BACKED_BYTES: u64 = 16 << 20;

impl Model {
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
        let profile = self.profile_for(w)?;
        let mut configs = profile.devices()?;
        for config in &mut configs {
            for queue in &mut config.work_queues {
                queue.block_on_fault |= w.block_on_fault;
                if w.what == What::Overflow {
                    // Payloads above the usual limit of a queue hold its engines up for longest.
                    queue.max_transfer_size = config.capabilities.max_transfer_size;
                }
            }
        }
        let queue = configs
            .first()
            .and_then(|config| config.work_queues.first())
            .ok_or(FiguresError::NoWorkQueue)?;
        let software = w.what == What::Software;
        if !software {
            check_limits(w, queue.max_batch_size, queue.max_transfer_size)?;
        }
        let depth = match w.what {
            What::Burst | What::Overflow => w.count,
            What::Software => 1,
            _ => w.depth.unwrap_or(u32::from(queue.size)),
        };
        let wq = queue.id;
        let mut world = World::new(
            self.platform.clone(),
            configs[..1].to_vec(),
            WorldOptions {
                payload: self.payload,
                ..WorldOptions::default()
            },
        )?;
        let batch = match software {
            true => 1,
            false => w.batch,
        };
        let slots = (depth * batch) as usize;
        let channel = world
            .open(ChannelOptions {
                queue: (!software).then_some((0, wq)),
                batch,
                depth,
                wait: w.wait,
                portal_rotates: w.portal_rotates,
                prepared: matches!(w.what, What::Burst | What::Overflow),
                hot: w.hot,
                non_temporal: w.op == Op::NtFill,
                random: w.random,
                ..ChannelOptions::default()
            })
            .ok_or(FiguresError::NoWorkQueue)?;
        let buffers = self.buffers(&mut world, w, slots as u64)?;
        match w.what {
            What::Burst => {
                let mut burst = [Burst::new(*w, buffers)];
                world.run(&mut burst)?;
                Ok(Metrics::single("burst_ns", burst[0].took.as_ns()))
            }
            What::Overflow => {
                let sized = Workload {
                    size: w.payload.max(1),
                    op: match w.payload {
                        0 => Op::Noop,
                        _ => Op::Memmove,
                    },
                    ..*w
                };
                world.run(&mut [Burst::new(sized, buffers)])?;
                world.settle();
                let counters = world.channel(channel).counters();
                let accepted = counters.submitted - counters.lost;
                Ok(Metrics::single("accepted", accepted as f64))
            }
            What::Fault => {
                let mut run = [Faulting::new(*w, buffers, slots)];
                world.run(&mut run)?;
                if run[0].failed > 0 {
                    return Err(FiguresError::Failed {
                        operations: run[0].failed,
                    });
                }
                let per_page = run[0].took.as_ns() / run[0].pages() as f64;
                Ok(Metrics::single("fault_page_ns", per_page))
            }
            What::Offload | What::Software => {
                let (warm_up, count) = window.operations(slots as u64, batch.into());
                let mut stream = [Stream::new(*w, buffers, slots, warm_up, count)];
                world.run(&mut stream)?;
                let measured = stream[0].measured();
                if measured.failed > 0 {
                    return Err(FiguresError::Failed {
                        operations: measured.failed,
                    });
                }
                let channel = world.channel(channel);
                let busy =
                    channel.busy().as_ns() / channel.now().since(Time::ZERO).as_ns().max(1.0);
                Ok(Metrics::of(&measured, w.bytes()).with("busy_share", busy))
            }
        }
    }

    fn profile_for(&self, w: &Workload) -> Result<Profile, FiguresError> {
        let mut profile = self.profile.clone();
        if let Some(engines) = w.engines {
            profile = profile.with_engines(engines)?;
        }
        if let Some(shared) = w.shared {
            profile = profile.with_mode(match shared {
                true => WorkQueueMode::Shared,
                false => WorkQueueMode::Dedicated,
            })?;
        }
        if let Some(size) = w.wq_size {
            profile = profile.with_wq_size(size)?;
        }
        Ok(profile)
    }

    /// Buffers for a workload. Data that is to come from memory is walked over a ring of 128, data
    /// in a cache is used again and again.
    fn buffers(
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
        let size = w.bytes().max(u64::from(w.payload)).max(64);
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
            let place = Place {
                node: self.node(distance)?,
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

    /// The device is on socket 0.
    fn node(&self, distance: Distance) -> Result<NodeId, FiguresError> {
        let topology = &self.platform.topology;
        match distance {
            Distance::Local => Ok(NodeId(0)),
            Distance::Remote if topology.sockets > 1 => Ok(NodeId(1)),
            Distance::Remote => Err(self.no_node("remote", "sockets")),
            Distance::Cxl => topology
                .cxl_node()
                .ok_or_else(|| self.no_node("cxl", "cxl_nodes")),
        }
    }

    fn no_node(&self, node: &'static str, field: &'static str) -> FiguresError {
        FiguresError::NoNode {
            node,
            platform: self.platform.origin.clone(),
            field,
        }
    }
}

fn check_limits(w: &Workload, max_batch: u32, max_transfer: u64) -> Result<(), FiguresError> {
    if w.batch > max_batch {
        return Err(FiguresError::Limit {
            what: "batch",
            value: w.batch.into(),
            limit: max_batch.into(),
            field: "max_batch_size",
        });
    }
    let size = w.bytes().max(u64::from(w.payload));
    if size > max_transfer {
        return Err(FiguresError::Limit {
            what: "size",
            value: size,
            limit: max_transfer,
            field: "max_transfer_size",
        });
    }
    Ok(())
}
