//! The modelled machine, and the loop that moves its time.

use std::sync::Arc;

use dray::{Application, Capabilities, Next, Operation};
use dray_clock::{Duration, EventQueue, Time};
use dray_device::{ConfigError, DeviceConfig, Effect, Payload, Portal, WorkQueueMode};
use dray_platform::{PlatformFile, RecordedParameters, SharedBandwidth};
use thiserror::Error;

use crate::batch_run::Run;
use crate::channel::{Channel, ChannelId, ChannelOptions};
use crate::device::DeviceRun;
use crate::engine::{Ending, EngineAt};
use crate::memory::Memory;
use crate::model_mover::ModelMover;
use crate::reads::{Reads, Services};
use crate::shared_cores::SharedCores;
use crate::software;

/// Something that happens at a time. Small, since events are copied often.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A posted write reaches its portal.
    Arrive { channel: ChannelId, unit: u32 },
    /// An ENQCMD reaches its portal.
    Enqcmd { channel: ChannelId },
    /// An engine may start a descriptor.
    Start { at: EngineAt },
    /// The descriptor list of an engine's first batch without one is there.
    ListRead { at: EngineAt },
    /// A completion record is written.
    Ended { pending: u32 },
    /// Members of a batch have ended together.
    Run { run: u32 },
    /// An engine may have room for what waits in its queues.
    Look { at: EngineAt },
    /// A core goes on.
    Core { channel: ChannelId },
}

/// No event is left, and still a core waits: descriptors were lost, or never submitted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{waiting} of the modelled cores wait for completions that will never come ({lost} descriptors were lost in full dedicated work queues)"
)]
pub struct Stalled {
    /// Cores that wait.
    pub waiting: usize,
    /// Descriptors lost.
    pub lost: u64,
}

/// How a world treats bytes and bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorldOptions {
    /// Whether payload bytes move.
    pub payload: Payload,
    /// Follow shared bandwidth even where one engine has it all to itself. The times are the same;
    /// tests show it.
    pub always_share: bool,
}

/// A modelled machine with its devices, cores and memory.
#[derive(Debug)]
pub struct World {
    pub(crate) platform: Arc<PlatformFile>,
    pub(crate) parameters: RecordedParameters,
    pub(crate) services: Services,
    /// Address space of the machine.
    pub memory: Memory,
    pub(crate) payload: Payload,
    pub(crate) channels: Vec<Channel>,
    pub(crate) devices: Vec<DeviceRun>,
    pub(crate) events: EventQueue<Event>,
    pub(crate) bandwidth: SharedBandwidth,
    /// Engine by flow slot of the shared bandwidth.
    pub(crate) flows: Vec<EngineAt>,
    pub(crate) shared_cores: SharedCores,
    pub(crate) solo: bool,
    pub(crate) now: Time,
    pub(crate) pending: Vec<Ending>,
    pub(crate) free_pending: Vec<u32>,
    pub(crate) runs: Vec<Run>,
    pub(crate) free_runs: Vec<u32>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) descriptors: u64,
}

/// The applications of a run, whatever their type.
trait Applications {
    fn count(&self) -> usize;

    /// A step of one of them; `None` if there is no such application.
    fn step(&mut self, index: usize, mover: &mut ModelMover<'_>) -> Option<Next>;
}

impl<A: Application> Applications for &mut [A] {
    fn count(&self) -> usize {
        self.len()
    }

    fn step(&mut self, index: usize, mover: &mut ModelMover<'_>) -> Option<Next> {
        self.get_mut(index)
            .map(|application| application.step(mover))
    }
}

impl World {
    /// A machine with these devices, the first on socket 0.
    ///
    /// # Errors
    /// What a device refuses to be enabled with.
    pub fn new(
        platform: Arc<PlatformFile>,
        devices: Vec<DeviceConfig>,
        options: WorldOptions,
    ) -> Result<World, ConfigError> {
        let mut events = EventQueue::new();
        let mut flows = Vec::new();
        let alone = devices.len() == 1;
        let mut runs = Vec::with_capacity(devices.len());
        for (index, config) in devices.into_iter().enumerate() {
            let run = DeviceRun::new(index, config, alone, &mut flows, &mut events)?;
            runs.push(run);
        }
        Ok(World {
            bandwidth: platform.shared_bandwidth(flows.len()),
            solo: flows.len() <= 1 && !options.always_share,
            flows,
            parameters: platform.recorded_parameters(),
            services: Services::default(),
            platform,
            memory: Memory::new(),
            payload: options.payload,
            channels: Vec::new(),
            devices: runs,
            events,
            now: Time::ZERO,
            pending: Vec::new(),
            free_pending: Vec::new(),
            runs: Vec::new(),
            free_runs: Vec::new(),
            effects: Vec::new(),
            descriptors: 0,
            shared_cores: SharedCores::default(),
        })
    }

    /// Adds a core with a work queue, or with software. `None` if there is no such queue.
    pub fn open(&mut self, options: ChannelOptions) -> Option<ChannelId> {
        let id = ChannelId(self.channels.len() as u32);
        let (device, wq, shared, capabilities) = match options.queue {
            None => (0, 0, false, Capabilities::software()),
            Some((device, wq)) => {
                let config = self.devices.get(usize::from(device))?.device.config();
                let queue = config.work_queues.iter().find(|q| q.id == wq)?;
                let capabilities = Capabilities::of_queue(config, queue);
                (
                    device,
                    wq,
                    queue.mode == WorkQueueMode::Shared,
                    capabilities,
                )
            }
        };
        let p = &self.parameters;
        let way = match self.platform.topology.socket_of_device(device) == options.socket {
            true => p.submit_to_wq(),
            false => p.submit_to_wq() + p.submit_remote(),
        };
        let portal = Portal { wq, limited: true };
        if let Some(of) = options.core_of {
            self.channels.get(of.index())?;
            self.shared_cores.join(id, of);
        }
        let stream = self.events.stream();
        self.channels.push(Channel::new(
            id,
            options,
            portal,
            shared,
            capabilities,
            way,
            stream,
        ));
        Some(id)
    }

    /// A channel.
    pub fn channel(&self, id: ChannelId) -> &Channel {
        &self.channels[id.index()]
    }

    /// All channels, in the order in which they were opened.
    pub fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.channels.iter()
    }

    /// The machine.
    pub fn platform(&self) -> &PlatformFile {
        &self.platform
    }

    /// The machine's parameters. What an application makes its steps depend on is read here, so that it stands
    /// in [`World::reads`].
    pub fn parameters(&self) -> &RecordedParameters {
        &self.parameters
    }

    /// What an operation takes on a core, all by itself: for applications that do some of their operations themselves.
    pub fn time_on_core(&mut self, operation: &Operation, options: &ChannelOptions) -> Duration {
        let platform = (&self.platform.topology, &self.parameters);
        software::time(operation.descriptor(), options, platform, &mut self.memory)
    }

    /// What has been read of the platform until now.
    pub fn reads(&self) -> Reads {
        self.services.with(&self.parameters)
    }

    /// Virtual time of the last event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Descriptors that engines have carried out.
    pub fn descriptors(&self) -> u64 {
        self.descriptors
    }

    /// Runs one application on each channel, in order, until all are done.
    ///
    /// # Errors
    /// [`Stalled`] if a core waits and no event is left.
    pub fn run<A: Application>(&mut self, mut applications: &mut [A]) -> Result<(), Stalled> {
        self.run_steps(&mut applications)
    }

    /// The loop is compiled once, in this crate, and not for each type of application where it is used.
    fn run_steps(&mut self, applications: &mut dyn Applications) -> Result<(), Stalled> {
        let mut left = applications.count().min(self.channels.len());
        for index in 0..left {
            self.wake(ChannelId(index as u32), self.channels[index].core.clock);
        }
        while left > 0 {
            match self.advance() {
                Some(Event::Core { channel }) => {
                    left -= usize::from(self.step(channel, applications));
                }
                Some(event) => self.happen(event),
                None => {
                    self.shared_cores.settle(&mut self.channels);
                    return Err(Stalled {
                        waiting: left,
                        lost: self.channels.iter().map(|c| c.counters.lost).sum(),
                    });
                }
            }
        }
        self.shared_cores.settle(&mut self.channels);
        Ok(())
    }

    /// Lets everything that is on its way end.
    pub fn settle(&mut self) {
        while let Some(event) = self.advance() {
            self.happen(event);
        }
    }

    /// Moves time to the next event. Data that has moved until then ends first.
    #[inline(always)]
    fn advance(&mut self) -> Option<Event> {
        while let Some((at, slot)) = self.bandwidth.next_finish()
            && self.events.next_time().is_none_or(|next| at <= next)
        {
            debug_assert!(self.now <= at, "time goes back from {} to {at}", self.now);
            self.now = at;
            self.bandwidth.finish(at, slot);
            self.flow_ended(slot);
        }
        let (at, event) = self.events.pop()?;
        debug_assert!(self.now <= at, "time goes back from {} to {at}", self.now);
        self.now = at;
        Some(event)
    }

    /// One step of an application. True if it was the last one.
    #[inline]
    fn step(&mut self, id: ChannelId, applications: &mut dyn Applications) -> bool {
        let channel = &mut self.channels[id.index()];
        channel.scheduled = false;
        if self.shared_cores.is_shared(id) {
            if !self.shared_cores.take(id, &mut self.channels) {
                return false;
            }
            // It looked at the records of all its channels until now.
            let channel = &mut self.channels[id.index()];
            if self.now > channel.core.clock {
                let mode = channel.options.wait;
                channel.core.wait(self.now, mode, &self.parameters);
            }
        }
        let channel = &mut self.channels[id.index()];
        channel.waiting = false;
        let mut mover = ModelMover {
            world: self,
            channel: id,
        };
        let Some(next) = applications.step(id.index(), &mut mover) else {
            return false;
        };
        let channel = &mut self.channels[id.index()];
        match next {
            Next::Done => return true,
            // The core is in an ENQCMD: it goes on with the answer.
            _ if channel.awaiting.is_some() => {}
            Next::Again => self.wake(id, self.channels[id.index()].core.clock),
            // It has not looked at all that is there.
            Next::Wait if channel.has_at_hand() => {
                self.wake(id, self.channels[id.index()].core.clock);
            }
            Next::Wait => {
                channel.waiting = true;
                if let Some((at, _)) = channel.visible.front().copied() {
                    self.wait_until(id, at);
                }
            }
        }
        false
    }

    #[inline]
    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { channel, unit } => self.arrive(channel, unit),
            Event::Enqcmd { channel } => self.answer_enqcmd(channel),
            Event::Start { at } => {
                self.engine_mut(at).start_at = None;
                self.pump(at);
            }
            Event::ListRead { at } => self.list_read(at),
            Event::Ended { pending } => self.ended(pending),
            Event::Run { run } => self.run_ended(run),
            Event::Look { at } => self.look(at),
            Event::Core { .. } => {}
        }
    }

    #[inline]
    pub(crate) fn wake(&mut self, id: ChannelId, at: Time) {
        let channel = &mut self.channels[id.index()];
        if !channel.scheduled {
            channel.scheduled = true;
            self.events
                .schedule(at.max(self.now), Event::Core { channel: id });
        }
    }

    /// The core of a waiting channel sees what becomes visible at `at`.
    #[inline]
    pub(crate) fn wait_until(&mut self, id: ChannelId, at: Time) {
        let channel = &mut self.channels[id.index()];
        if channel.waiting && !channel.scheduled {
            if self.shared_cores.is_shared(id) {
                // What its core does until then is not known yet.
                return self.wake(id, at);
            }
            let mode = channel.options.wait;
            channel.core.wait(at, mode, &self.parameters);
            let seen = channel.core.clock;
            self.wake(id, seen);
        }
    }
}
