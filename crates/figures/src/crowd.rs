//! A closed loop of operations on the modelled machine: one core, or several at once.

use dray_clock::Time;
use dray_model::{ChannelId, World};
use dray_workload::{ClosedLoop, Exec, Measured, Op, Plan, Refill, Together};

use crate::company::{Neighbour, Sharing};
use crate::model::{Model, Window, channel};
use crate::setup::Setup;
use crate::workload::{What, Workload};
use crate::{FiguresError, Metrics};

/// Runs an offload or a software workload with all that works beside it.
pub(crate) fn run(model: &Model, w: &Workload, window: Window) -> Result<Metrics, FiguresError> {
    let setup = Setup::new(&model.platform, &model.profile, w)?;
    let mut crowd = Crowd {
        model,
        world: model.world(&setup)?,
        streams: Vec::new(),
        channels: Vec::new(),
    };
    let software = w.what == What::Software;
    let cores = match software {
        true => 1,
        false => w.company.cores(),
    };
    for core in 0..cores {
        let device = core % w.company.devices.max(1);
        let queue = (!software).then_some((device, setup.wq));
        crowd.add(w, queue, setup.depth, window)?;
    }
    if let Some(beside) = w.company.beside.filter(|_| !software) {
        let neighbour = copies(w, beside);
        let entries = setup.devices[0].work_queues.last();
        let tenants = match beside.sharing {
            Sharing::Queue => 2,
            _ => 1,
        };
        let depth = entries.map_or(1, |queue| u32::from(queue.size) / tenants);
        crowd.add(&neighbour, Some((0, setup.beside)), depth, window)?;
    }
    crowd.measure(w, cores.into())
}

/// What a neighbour does.
fn copies(w: &Workload, beside: Neighbour) -> Workload {
    Workload {
        op: Op::Move,
        size: beside.size,
        batch: 1,
        list: None,
        ..*w
    }
}

struct Crowd<'a> {
    model: &'a Model,
    world: World,
    streams: Vec<ClosedLoop>,
    channels: Vec<ChannelId>,
}

impl Crowd<'_> {
    fn add(
        &mut self,
        w: &Workload,
        queue: Option<(u16, u16)>,
        depth: u32,
        window: Window,
    ) -> Result<(), FiguresError> {
        let options = channel(w, queue, depth);
        let slots = options.depth * options.batch;
        let id = self.world.open(options).ok_or(FiguresError::NoWorkQueue)?;
        let buffers = self.model.buffers(&mut self.world, w, slots.into())?;
        let (warm_up, count) = window.operations(slots.into(), options.batch.into());
        let lists = w.list.map_or(1, |list| u64::from(list.members(w)));
        // Whole lists alone count.
        let (warm_up, count) = (
            warm_up.next_multiple_of(lists),
            count.next_multiple_of(lists),
        );
        let stream = ClosedLoop::new(Plan {
            operations: w.operations(buffers),
            exec: Exec::Async,
            refill: Refill::AllThenSubmit,
            round: lists,
            queue: options.depth,
            batch: options.batch,
            warm_up,
            count,
        });
        self.streams.push(stream);
        self.channels.push(id);
        Ok(())
    }

    /// Runs all; the first `own` streams are the workload, the rest its neighbours.
    fn measure(mut self, w: &Workload, own: usize) -> Result<Metrics, FiguresError> {
        let mut streams = std::mem::take(&mut self.streams);
        if streams.len() > 1 {
            let together = Together::new(streams.len());
            streams = streams.into_iter().map(|s| s.with(&together)).collect();
        }
        self.world.run(&mut streams)?;
        let measured: Vec<Measured> = streams.iter().map(ClosedLoop::measured).collect();
        let failed = measured.iter().map(|m| m.failed).sum();
        if failed > 0 {
            return Err(FiguresError::Failed { operations: failed });
        }
        let (mine, beside) = measured.split_at(own);
        let first = self.world.channel(self.channels[0]);
        let since = first.now().since(Time::ZERO).as_ns().max(1.0);
        let busy = first.busy().as_ns() / since;
        let mut metrics = Metrics::of(mine, w.bytes())
            .with("busy_share", busy)
            .with("free_share", 100.0 * (1.0 - busy));
        if let (Some(period), Some(list)) = (metrics.get("period_ns"), w.list) {
            // All parts of a list are copied at the same time.
            let members = f64::from(list.members(w)) * mine.len() as f64;
            metrics = metrics.with("list_ns", period * members);
        }
        if let Some(retries) = self.retries() {
            metrics = metrics.with("retry_share", retries);
        }
        if let (false, Some(neighbour)) = (beside.is_empty(), w.company.beside) {
            let of = Metrics::of(beside, u64::from(neighbour.size));
            let latency = of.get("latency_ns").unwrap_or_default() / 1000.0;
            metrics = metrics
                .with("beside_gbps", of.get("throughput_gbps").unwrap_or_default())
                .with("beside_latency_us", latency);
        }
        Ok(metrics)
    }

    /// ENQCMD answered with retry, in percent of all.
    fn retries(&self) -> Option<f64> {
        let counters = self.channels.iter().map(|id| self.world.channel(*id));
        let (retries, submitted) = counters
            .map(|c| c.counters())
            .fold((0, 0), |sum, c| (sum.0 + c.retries, sum.1 + c.submitted));
        (submitted > 0).then(|| 100.0 * retries as f64 / (retries + submitted) as f64)
    }
}
