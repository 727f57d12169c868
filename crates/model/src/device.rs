//! A device in modelled time: its engines, and what its ports have done.

use dray_clock::{Duration, EventQueue, Time};
use dray_device::{ConfigError, Device, DeviceConfig};
use dray_platform::Outstanding;

use crate::engine::{EngineAt, EngineRun};
use crate::world::Event;

#[derive(Debug)]
pub(crate) struct DeviceRun {
    pub(crate) device: Device,
    pub(crate) engines: Vec<EngineRun>,
    /// Engines that serve a work queue, by its id.
    pub(crate) serving: Vec<Vec<u16>>,
    /// No ENQCMD is answered before.
    pub(crate) accept_free: Time,
    /// ENQCMD that have reached the device and wait for their answer.
    pub(crate) enqcmd_waiting: u64,
    /// Time that the read port has delivered data, booked at the start of each descriptor.
    pub(crate) inbound: Duration,
    /// Descriptors between their acceptance and their record, a batch counted once.
    pub(crate) in_progress: u32,
}

impl DeviceRun {
    /// Device `index`, `alone` in its machine; its engines get the next flow slots.
    pub(crate) fn new(
        index: usize,
        config: DeviceConfig,
        alone: bool,
        flows: &mut Vec<EngineAt>,
        events: &mut EventQueue<Event>,
    ) -> Result<DeviceRun, ConfigError> {
        let mut engines: Vec<EngineRun> = Vec::new();
        for group in &config.groups {
            let limit = match (group.use_read_buffer_limit, config.read_buffer_limit) {
                (true, limit) if limit > 0 => limit,
                _ => u16::MAX,
            };
            // A group that may have all of them is not limited: the platform says how many there are.
            let allowed = match group.read_buffers_allowed {
                0 => u16::MAX,
                allowed if allowed >= config.capabilities.max_read_buffers => u16::MAX,
                allowed => allowed,
            };
            let buffers = allowed.min(limit).into();
            for engine in &group.engines {
                let at = EngineAt::new(index, engines.len());
                let (flow, stream) = (flows.len(), events.stream());
                let run = EngineRun::new(*engine, flow, stream, at, buffers, alone);
                engines.push(EngineRun {
                    group: group.id,
                    ..run
                });
                flows.push(at);
            }
        }
        let device = Device::new(config)?;
        let queues = device.config().capabilities.max_work_queues;
        let position = |id: &u16| engines.iter().position(|e| e.id == *id);
        let serving = (0..queues)
            .map(|wq| {
                let ids = device.engines_of(wq).iter();
                ids.filter_map(position).map(|i| i as u16).collect()
            })
            .collect();
        Ok(DeviceRun {
            device,
            engines,
            serving,
            accept_free: Time::ZERO,
            enqcmd_waiting: 0,
            inbound: Duration::ZERO,
            in_progress: 0,
        })
    }

    /// How long a line of a descriptor that starts now waits at the read port for those of the engines that move
    /// data.
    #[inline]
    pub(crate) fn wait_at_port(&self, outstanding: &Outstanding) -> Duration {
        let others = self.engines.iter().filter_map(|engine| {
            let cost = engine.costs.get(engine.current?.cost);
            Some((engine.group, cost.service.outstanding))
        });
        outstanding.wait(others)
    }
}
