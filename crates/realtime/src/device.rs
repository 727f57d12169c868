//! A device that runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dray_device::{DeviceConfig, Effect, Function, Hardware, Portal};
use dray_spec::registers::{self, Command, CommandError, CommandRegister, CommandStatus};

use crate::clients::Client;
use crate::dispatcher::Dispatcher;
use crate::engine::Engine;
use crate::request::{Answer, Request, When};
use crate::shared::Shared;
use crate::watch::Watch;
use crate::worker::Worker;
use crate::{
    Engines, Event, Failure, MappedPortal, Options, SharedMemory, StartError, Stop, Stopped,
};
use dray_ring::{RegionLayout, SharedRegionFile};
use dray_ring::{Ring, WrongKind};

/// A virtual DSA whose engines are threads.
///
/// Its handle may be shared between threads. Dropping it stops the device as
/// [`Options::on_drop`] says, and waits for its threads.
#[derive(Debug)]
pub struct RealtimeDevice {
    shared: Arc<Shared>,
    hardware: Hardware,
    config: DeviceConfig,
    dispatcher: Option<JoinHandle<()>>,
    engine_depth: usize,
    on_drop: Stop,
}

impl RealtimeDevice {
    /// Starts an enabled device that works on `memory`; `listener` gets interrupts, software
    /// errors and aborts, on the dispatcher's thread. There is no driver: see
    /// [`Function::enabled`].
    ///
    /// # Errors
    /// A configuration that cannot be enabled; no more threads.
    pub fn start<M: SharedMemory>(
        config: DeviceConfig,
        memory: M,
        options: Options,
        listener: impl FnMut(Event) + Send + 'static,
    ) -> Result<RealtimeDevice, StartError> {
        let function = Function::enabled(&config)?;
        let engines = config.groups.iter().flat_map(|group| &group.engines);
        let mut threads: Vec<u16> = engines.copied().collect();
        if threads.len() == 1 {
            threads.clear();
        }
        RealtimeDevice::run(function, config, &threads, memory, options, listener)
    }

    /// Starts a device as it is, for a driver to enable and configure, by
    /// [`control`](RealtimeDevice::control). Every engine that the part has gets a thread, if
    /// engines have threads.
    ///
    /// # Errors
    /// No more threads.
    pub fn start_function<M: SharedMemory>(
        function: Function,
        memory: M,
        options: Options,
        listener: impl FnMut(Event) + Send + 'static,
    ) -> Result<RealtimeDevice, StartError> {
        let engines = function.hardware().engine_cap.engines();
        let threads: Vec<u16> = (0..engines.into()).collect();
        let config = function.config().clone();
        RealtimeDevice::run(function, config, &threads, memory, options, listener)
    }

    fn run<M: SharedMemory>(
        mut function: Function,
        config: DeviceConfig,
        threads: &[u16],
        memory: M,
        options: Options,
        listener: impl FnMut(Event) + Send + 'static,
    ) -> Result<RealtimeDevice, StartError> {
        if options.steps {
            function.record_lifecycle();
        }
        let hardware = function.hardware().clone();
        let layout = RegionLayout {
            queues: hardware.wq_cap.work_queues().into(),
            entries: hardware.wq_cap.total_entries().max(1),
        };
        let shared = Arc::new(Shared::new(layout, options.shared, options.deviation)?);
        if options.is_prompt() {
            shared.region.doorbell().watch(true);
        }
        if options.chaos.is_some() {
            function.hold_batches();
        }
        if options.hold {
            shared.region.doorbell().trace(options.times);
        }
        let all = u16::from(hardware.engine_cap.engines());
        let engines = engines(all, threads, &memory, &options, &shared)?;
        let name = "dray-dispatcher";
        let mut dispatcher = Dispatcher::new(
            shared.clone(),
            function,
            engines,
            memory,
            Box::new(listener),
            &options,
            name.into(),
        );
        let inside = shared.clone();
        let run = move || {
            let run = AssertUnwindSafe(|| dispatcher.run(options.idle));
            if let Err(payload) = catch_unwind(run) {
                inside.fail(name, &*payload);
            }
            if inside.failure().is_some() {
                dispatcher.fail();
            }
            // First the engines' threads end, then no thread touches memory any more.
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
            hardware,
            config,
            dispatcher: Some(dispatcher),
            engine_depth: options.depth(),
            on_drop: options.on_drop,
        })
    }

    /// The handle by which submitters are told to wait.
    pub fn watch(&self) -> Watch {
        Watch(self.shared.region.clone())
    }

    /// How it was configured when it was started.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// What the part is.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    /// CPU time of the thread that looks for descriptors while it does so by itself, for clients that may not
    /// make system calls.
    pub fn polling_time(&self) -> Duration {
        self.shared.polling_time()
    }

    /// A portal to write descriptors to; `None` for a queue that the part does not have. What is
    /// written to a queue that is not enabled meets what hardware has there: nothing.
    pub fn map(&self, portal: Portal) -> Option<MappedPortal> {
        let ring = self.shared.ring(portal.wq)?;
        Some(MappedPortal::new(&self.shared, ring, portal))
    }

    /// What another process [attaches](crate::Attachment::new) to; `None` if the device was not
    /// started [for that](Options::shared).
    pub fn region(&self) -> Option<&SharedRegionFile> {
        self.shared.region_file.as_ref()
    }

    /// A name for a process that is to attach; `None` if there are four thousand already. Names of
    /// those that have left are given again.
    pub fn admit(&self) -> Option<Client> {
        self.shared.clients.admit()
    }

    /// A process that was admitted is dead or has unmapped the region: it will write nothing any more.
    /// What it has submitted is in the device's queues when this returns, and no thread waits for what
    /// it was about to submit.
    ///
    /// # Errors
    /// The device has stopped.
    pub fn abandon(&self, client: Client) -> Result<(), Stopped> {
        self.shared.leave(&client);
        self.control(|_, _| ())
    }

    /// Entries of a work queue in use; `None` for a queue that the part does not have.
    pub fn occupancy(&self, wq: u16) -> Option<u16> {
        u16::try_from(self.shared.ring(wq)?.occupancy()).ok()
    }

    /// Descriptors that a full dedicated queue has lost; `None` for a queue that the part does not
    /// have.
    pub fn lost(&self, wq: u16) -> Option<u64> {
        self.shared.ring(wq).map(Ring::lost)
    }

    /// Deferrable writes that a full queue has turned away; `None` for a queue that the part does not
    /// have.
    pub fn retried(&self, wq: u16) -> Option<u64> {
        self.shared.ring(wq).map(Ring::retried)
    }

    /// Writes of the kind that a queue does not take; `None` for a queue that the part does not have.
    pub fn wrong_kind(&self, wq: u16) -> Option<WrongKind> {
        self.shared.ring(wq).map(Ring::wrong_kind)
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
    /// waits for it: reads and writes registers, PCI's controls. All that was accepted before is in
    /// the device's queues by then, and writers wait meanwhile. Effects are carried out afterwards.
    ///
    /// # Errors
    /// The device has stopped, or the dispatcher panicked over this.
    pub fn control<R: Send + 'static>(
        &self,
        action: impl FnOnce(&mut Function, &mut Vec<Effect>) -> R + Send + 'static,
    ) -> Result<R, Stopped> {
        let mut action = Some(action);
        self.attempt(When::Now, move |function, effects| {
            let action = action.take().ok_or(When::Now)?;
            Ok(action(function, effects))
        })
    }

    /// Reads something of the device between two descriptors, on the dispatcher's thread, and waits for
    /// it. Writers go on meanwhile: what this thread has written to portals before is in the device's
    /// queues by then, or behind what others are writing.
    ///
    /// # Errors
    /// The device has stopped, or the dispatcher panicked over this.
    pub fn inspect<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Function) -> R + Send + 'static,
    ) -> Result<R, Stopped> {
        let (answer, answered) = sync_channel(1);
        // The caller waits for it.
        let inspection = move |function: &Function| drop(answer.send(read(function)));
        self.shared.inspect(Box::new(inspection))?;
        answered.recv().map_err(|_| Stopped)
    }

    /// Issues an administrative command (spec 3.15) and waits for its end: work in flight may have
    /// to end first. The result is what CMDSTATUS says. A command in progress is waited for.
    ///
    /// # Errors
    /// The device has stopped before the end of the command.
    pub fn command(
        &self,
        command: Command,
        operand: u32,
    ) -> Result<Result<u16, CommandError>, Stopped> {
        let register = CommandRegister::of(command, operand).into_bits();
        let mut issued = false;
        self.attempt(When::CommandEnded, move |function, effects| {
            if !std::mem::replace(&mut issued, true) {
                function.write32(registers::CMD, register, effects);
                if function.is_command_active() {
                    return Err(When::CommandEnded);
                }
            }
            let status = CommandStatus::from(function.read32(registers::CMDSTATUS));
            Ok(match status.error() {
                0 => Ok(status.result()),
                error => Err(CommandError(error)),
            })
        })
    }

    /// Function level reset (spec 5.7): the device halts, what was in it is given up, and once no
    /// engine touches memory any more all is as after power-on, with PCI's controls off.
    ///
    /// # Errors
    /// The device has stopped before that.
    pub fn reset(&self) -> Result<(), Stopped> {
        let mut halted = false;
        self.attempt(When::Now, move |function, effects| {
            if !std::mem::replace(&mut halted, true) {
                function.begin_reset(effects);
                return Err(When::EnginesIdle);
            }
            function.reset(effects);
            Ok(())
        })
    }

    /// Has the dispatcher do something until it comes to an end, and waits for that.
    fn attempt<R: Send + 'static>(
        &self,
        when: When,
        mut action: impl FnMut(&mut Function, &mut Vec<Effect>) -> Result<R, When> + Send + 'static,
    ) -> Result<R, Stopped> {
        let (answer, answered) = sync_channel(1);
        let action = move |function: &mut Function, effects: &mut Vec<Effect>| {
            let result = action(function, effects)?;
            let answer = answer.clone();
            // The caller waits for it.
            Ok(Box::new(move || drop(answer.send(result))) as Answer)
        };
        self.shared.request(Request {
            when,
            action: Box::new(action),
        })?;
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
            // A panic in it has been caught and reported where it happened.
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

/// Engines 0 to `all`, some with threads of their own.
fn engines<M: SharedMemory>(
    all: u16,
    threads: &[u16],
    memory: &M,
    options: &Options,
    shared: &Arc<Shared>,
) -> Result<Vec<Engine>, StartError> {
    let depth = options.depth();
    let engine = |id| {
        let name = format!("dray-engine-{id}");
        let threads = options.engines != Engines::Dispatcher && threads.contains(&id);
        let worker = threads.then(|| {
            let (memory, shared) = (memory.clone(), shared.clone());
            Worker::start(name.clone(), depth, options.idle, memory, shared, id.into())
        });
        match worker.transpose() {
            Ok(worker) => Ok(Engine::new(id, worker, depth)),
            Err(source) => Err(StartError::Thread {
                thread: name,
                source,
            }),
        }
    };
    (0..all).map(engine).collect()
}
