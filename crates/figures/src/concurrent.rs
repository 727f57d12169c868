//! A closed loop of operations on the modelled machine: one core, or several at once.

use dray_clock::Time;
use dray_model::{ChannelId, ChannelOptions, Reads, World};
use dray_workload::{ClosedLoop, Exec, Measured, Op, Plan, Together};

use crate::ceiling::ceiling;
use crate::model::{Model, Window, channel};
use crate::setup::Setup;
use crate::tenants::{Neighbour, Sharing};
use crate::workload::{What, Workload};
use crate::{FiguresError, Metric, Metrics};

/// Runs an offload or a software workload with all tenants of its devices.
///
/// # Errors
/// What the profile or the platform cannot run, and a throughput above the narrowest resource on
/// its way: a window that is too short for the bursts in which operations end is made longer.
pub(crate) fn run(model: &Model, w: &Workload, window: Window) -> Result<Metrics, FiguresError> {
    let metrics = known(model, w, window)?;
    if window != Window::Full || w.what == What::Software {
        return Ok(metrics);
    }
    let ceiling = ceiling(w, &model.platform);
    let above = |metrics: &Metrics| {
        let of = |metric| metrics.get(metric).unwrap_or_default();
        let neighbour = match w.op {
            // Both copy through the same ports.
            Op::Move => of(Metric::NeighbourThroughput),
            _ => 0.0,
        };
        of(Metric::Throughput) + neighbour > ceiling
    };
    if !above(&metrics) {
        return Ok(metrics);
    }
    let metrics = known(model, w, Window::Longer(8))?;
    match above(&metrics) {
        false => Ok(metrics),
        true => Err(FiguresError::AboveCeiling {
            throughput: metrics.get(Metric::Throughput).unwrap_or_default(),
            ceiling,
        }),
    }
}

fn known(model: &Model, w: &Workload, window: Window) -> Result<Metrics, FiguresError> {
    // One operation at a time takes equally long in every window.
    let single = w.depth == Some(1) && w.batch == 1 && w.tenants.neighbour.is_none();
    let window = match single || w.what == What::Software {
        true => Window::Probe,
        false => window,
    };
    let run = || run_for(model, w, window);
    model.known.of(model, w, window, run)
}

/// Runs a loop, and says what it has read of the platform.
pub(crate) fn run_for(
    model: &Model,
    w: &Workload,
    window: Window,
) -> Result<(Metrics, Reads), FiguresError> {
    let setup = Setup::new(&model.platform, &model.profile, w)?;
    let mut run = ConcurrentRun {
        model,
        world: model.world(&setup)?,
        streams: Vec::new(),
        channels: Vec::new(),
    };
    let software = w.what == What::Software;
    let (cores, channels) = match software {
        true => (1, 1),
        // Where there are fewer cores than devices, each feeds several.
        false => (w.tenants.cores(), w.tenants.cores().max(w.tenants.devices)),
    };
    for channel in 0..channels {
        let device = channel % w.tenants.devices.max(1);
        let queue = (!software).then_some((device, setup.wq));
        let feeder = run
            .channels
            .get(usize::from(channel % cores.max(1)))
            .copied();
        run.add(w, queue, setup.depth, window, feeder)?;
    }
    if let Some(neighbour) = w.tenants.neighbour.filter(|_| !software) {
        let copies = copies(w, neighbour);
        let entries = setup.devices[0].work_queues.last();
        let tenants = match neighbour.sharing {
            Sharing::Queue => 2,
            _ => 1,
        };
        // A tenant that finds no free entry submits again: one descriptor may always be outstanding.
        let depth = entries.map_or(1, |queue| (u32::from(queue.size) / tenants).max(1));
        run.add(&copies, Some((0, setup.neighbour)), depth, window, None)?;
    }
    run.measure(w, channels.into())
}

/// What a neighbour does.
pub(crate) fn copies(w: &Workload, neighbour: Neighbour) -> Workload {
    Workload {
        op: Op::Move,
        size: neighbour.size,
        batch: 1,
        list: None,
        ..*w
    }
}

struct ConcurrentRun<'a> {
    model: &'a Model,
    world: World,
    streams: Vec<ClosedLoop>,
    channels: Vec<ChannelId>,
}

impl ConcurrentRun<'_> {
    fn add(
        &mut self,
        w: &Workload,
        queue: Option<(u16, u16)>,
        depth: u32,
        window: Window,
        core_of: Option<ChannelId>,
    ) -> Result<(), FiguresError> {
        let options = ChannelOptions {
            core_of,
            ..channel(w, queue, depth)
        };
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
            round: lists,
            queue: options.depth,
            batch: options.batch,
            warm_up,
            count,
            bounded: false,
        });
        self.streams.push(stream);
        self.channels.push(id);
        Ok(())
    }

    /// Runs all; the first `own` streams are the workload, the rest its neighbours.
    fn measure(mut self, w: &Workload, own: usize) -> Result<(Metrics, Reads), FiguresError> {
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
        let (mine, others) = measured.split_at(own);
        let first = self.world.channel(self.channels[0]);
        let since = first.now().since(Time::ZERO).as_ns().max(1.0);
        let busy = first.busy().as_ns() / since;
        let mut metrics = Metrics::of(mine, w.bytes())
            .with(Metric::BusyShare, busy)
            .with(Metric::FreeShare, 100.0 * (1.0 - busy));
        if let (Some(period), Some(list)) = (metrics.get(Metric::Period), w.list) {
            // All parts of a list are copied at the same time.
            let members = f64::from(list.members(w)) * mine.len() as f64;
            metrics = metrics.with(Metric::List, period * members);
        }
        if let Some(retries) = self.retries() {
            metrics = metrics.with(Metric::RetryShare, retries);
        }
        if let (false, Some(neighbour)) = (others.is_empty(), w.tenants.neighbour) {
            let of = Metrics::of(others, u64::from(neighbour.size));
            let latency = of.get(Metric::Latency).unwrap_or_default() / 1000.0;
            metrics = metrics
                .with(
                    Metric::NeighbourThroughput,
                    of.get(Metric::Throughput).unwrap_or_default(),
                )
                .with(Metric::NeighbourLatency, latency);
        }
        Ok((metrics, self.world.reads()))
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

#[cfg(test)]
mod tests {
    use dray_experiment::Point;
    use dray_idxd::Profile;

    use super::*;

    fn metrics(profile: &str, point: Point) -> Metrics {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let model = Model::new(platform, Profile::named(profile).unwrap());
        model.run(&Workload::from_point(&point).unwrap()).unwrap()
    }

    /// What a core submits to several devices it submits one after the other.
    #[test]
    fn a_core_that_feeds_several_devices_is_slower_than_one_for_each() {
        let of = |cores: u64, devices: u64, size: u64, submit: &str| {
            let point = Point::default()
                .with("mode", "async")
                .with("cores", cores)
                .with("devices", devices)
                .with("submit", submit)
                .with("size", size);
            metrics("1e1w-s", point).get(Metric::Rate).unwrap()
        };
        for submit in ["enqcmd", "movdir64b"] {
            // Small ones are bound by the core: four devices do no more than one.
            let (one, fed) = (of(1, 1, 64, submit), of(1, 4, 64, submit));
            assert!((fed / one - 1.0).abs() < 0.15, "{submit}: {fed} and {one}");
            let each = of(4, 4, 64, submit);
            assert!(each > 3.0 * fed, "{submit}: {each} and {fed}");
            // Large ones are bound by the devices: one core keeps four at work.
            let (one, fed) = (of(1, 1, 1 << 20, submit), of(1, 4, 1 << 20, submit));
            let times = fed / one;
            assert!(times > 3.0, "{submit}: {times} times");
        }
    }

    /// Two batches end together: a window that begins or ends between them would count one too many.
    #[test]
    fn large_batches_are_no_faster_than_the_ports() {
        let point = Point::default()
            .with("mode", "async")
            .with("batch", 256)
            .with("wq_size", 2)
            .with("size", 1 << 20);
        let found = metrics("4e1w-s", point).get(Metric::Throughput).unwrap();
        assert!((31.0..31.7).contains(&found), "{found}");
    }

    /// At depth 2 on a shared queue every completion that comes during an ENQCMD frees its slot:
    /// two operations are in flight all the time but for their submission.
    #[test]
    fn a_completion_during_an_enqcmd_frees_its_slot() {
        let at = |depth: u64| {
            let point = Point::default()
                .with("submit", "enqcmd")
                .with("depth", depth)
                .with("size", 64);
            metrics("1e1w-s", point)
        };
        let (one, two) = (at(1), at(2));
        let in_flight =
            |m: &Metrics| m.get(Metric::Latency).unwrap() / m.get(Metric::Period).unwrap();
        assert!(in_flight(&one) > 0.95, "{}", in_flight(&one));
        assert!(in_flight(&two) > 1.95, "{}", in_flight(&two));
    }
}
