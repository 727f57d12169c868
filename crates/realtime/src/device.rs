//! A device that runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use dray_device::{Device, DeviceConfig, Effect, Portal};

use crate::dispatcher::Dispatcher;
use crate::engine::Engine;
use crate::shared::Shared;
use crate::worker::Worker;
use crate::{
    Engines, Event, Failure, MappedPortal, Options, SharedMemory, StartError, Stop, Stopped,
};

/// A virtual DSA whose engines are threads.
///
/// Its handle may be shared between threads. Dropping it stops the device as
/// [`Options::on_drop`] says, and waits for its threads.
#[derive(Debug)]
pub struct RealtimeDevice {
    shared: Arc<Shared>,
    config: DeviceConfig,
    dispatcher: Option<JoinHandle<()>>,
    engine_depth: usize,
    on_drop: Stop,
}

impl RealtimeDevice {
    /// Starts an enabled device that works on `memory`; `listener` is told of interrupts and
    /// software errors, on the dispatcher's thread.
    ///
    /// # Errors
    /// A configuration that cannot be enabled; no more threads.
    pub fn start<M: SharedMemory>(
        config: DeviceConfig,
        memory: M,
        options: Options,
        listener: impl FnMut(Event) + Send + 'static,
    ) -> Result<RealtimeDevice, StartError> {
        let device = Device::new(config.clone())?;
        let shared = Arc::new(Shared::new(&config.work_queues));
        let engines = engines(&config, &memory, &options, &shared)?;
        let name = "dray-dispatcher";
        let mut dispatcher = Dispatcher::new(
            shared.clone(),
            device,
            engines,
            memory,
            Box::new(listener),
            name.into(),
        );
        let inside = shared.clone();
        let run = move || {
            let run = AssertUnwindSafe(|| dispatcher.run(options.idle));
            if let Err(payload) = catch_unwind(run) {
                inside.fail(name, &*payload);
            }
            // First the engines' threads end, then nobody touches memory any more.
            drop(dispatcher);
            inside.end();
        };
        let dispatcher = thread::Builder::new()
            .name(name.into())
            .spawn(run)
            .map_err(|source| StartError::Thread {
                thread: name.into(),
                source,
            })?;
        Ok(RealtimeDevice {
            shared,
            config,
            dispatcher: Some(dispatcher),
            engine_depth: options.engine_depth.max(1),
            on_drop: options.on_drop,
        })
    }

    /// How it was configured when it was started.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// A portal to write descriptors to; `None` for a queue that is not there.
    pub fn map(&self, portal: Portal) -> Option<MappedPortal> {
        let queue = self.shared.queue(portal.wq)?;
        Some(MappedPortal::new(&self.shared, queue, portal.limited))
    }

    /// Entries of a work queue in use; `None` for a queue that is not there.
    pub fn occupancy(&self, wq: u16) -> Option<u16> {
        let queue = self.shared.queue(wq)?;
        u16::try_from(queue.ring.occupancy()).ok()
    }

    /// Descriptors that a full dedicated queue has lost; `None` for a queue that is not there.
    pub fn lost(&self, wq: u16) -> Option<u64> {
        self.shared.queue(wq).map(|queue| queue.ring.lost())
    }

    /// Descriptors of a work queue that may be under way at once: of those that were submitted, one
    /// has ended only when all but this many before it have.
    pub fn reach(&self, wq: u16) -> usize {
        let group = self.config.work_queues.iter().find(|q| q.id == wq);
        let engines = group
            .and_then(|q| self.config.groups.iter().find(|g| g.id == q.group))
            .map_or(0, |group| group.engines.len());
        engines.max(1) * self.engine_depth
    }

    /// Does something with the device between two descriptors, on the dispatcher's thread, and
    /// waits for it. All that was accepted before is in the device's queues by then. Effects are
    /// carried out afterwards.
    ///
    /// # Errors
    /// The device has stopped, or the dispatcher panicked over this.
    pub fn control<R: Send + 'static>(
        &self,
        action: impl FnOnce(&mut Device, &mut Vec<Effect>) -> R + Send + 'static,
    ) -> Result<R, Stopped> {
        let (answer, answered) = sync_channel(1);
        self.shared.request(Box::new(move |device, effects| {
            // Whoever asks waits for it.
            let _ = answer.send(action(device, effects));
        }))?;
        answered.recv().map_err(|_| Stopped)
    }

    /// Why the device has halted, if it has.
    pub fn failure(&self) -> Option<&Failure> {
        self.shared.failure()
    }

    /// Whether its threads have ended: no completion record is written any more.
    pub fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }

    /// Stops: the portals take nothing any more, work under way is drained or aborted, threads end.
    ///
    /// # Errors
    /// The device had halted.
    pub fn stop(mut self, how: Stop) -> Result<(), Failure> {
        self.end(how);
        match self.shared.failure() {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    fn end(&mut self, how: Stop) {
        self.shared.stop(how);
        if let Some(dispatcher) = self.dispatcher.take() {
            // A panic in it has been caught and told where it happened.
            let _ = dispatcher.join();
        }
    }
}

impl Drop for RealtimeDevice {
    fn drop(&mut self) {
        if self.dispatcher.is_some() {
            self.end(self.on_drop);
        }
    }
}

/// All engines of all groups, with or without threads of their own.
fn engines<M: SharedMemory>(
    config: &DeviceConfig,
    memory: &M,
    options: &Options,
    shared: &Arc<Shared>,
) -> Result<Vec<Engine>, StartError> {
    let ids: Vec<u16> = config
        .groups
        .iter()
        .flat_map(|group| group.engines.iter().copied())
        .collect();
    let depth = options.engine_depth.max(1);
    let threads = options.engines == Engines::Threads && ids.len() > 1;
    let engine = |id| {
        let name = format!("dray-engine-{id}");
        let worker = threads.then(|| {
            let (memory, shared) = (memory.clone(), shared.clone());
            Worker::start(name.clone(), depth, options.idle, memory, shared)
        });
        match worker.transpose() {
            Ok(worker) => Ok(Engine::new(id, worker, depth)),
            Err(source) => Err(StartError::Thread {
                thread: name,
                source,
            }),
        }
    };
    ids.into_iter().map(engine).collect()
}
