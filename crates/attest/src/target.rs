//! The work queue that is attested: one of this machine, or one of a virtual device in this process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dray::hw::{QueueInfo, RawPortal, SubmitPath};
use dray_device::{DeviceConfig, Portal, Submission, WorkQueueConfig, WorkQueueMode};
use dray_realtime::{
    Deviation, Engines, Event, MappedPortal, Options, ProcessMemory, RealtimeDevice,
};
use dray_spec::{Descriptor, OpCap, Opcode, Status};

use crate::AttestError;
use crate::ground::Space;

/// How long a full queue is tried again, and a completion is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// What takes descriptors.
#[derive(Debug)]
enum Door {
    Hardware(Box<RawPortal>),
    Virtual(Box<Virtual>),
}

/// The work queue that is attested.
#[derive(Debug)]
pub struct Target {
    name: String,
    config: DeviceConfig,
    door: Door,
}

#[derive(Debug)]
struct Virtual {
    // Dropped first: its threads use the memory.
    _device: RealtimeDevice,
    portal: MappedPortal,
    errors: Arc<Mutex<Vec<(Status, u64)>>>,
}

impl Target {
    /// A work queue of this machine.
    ///
    /// # Errors
    /// It cannot be opened, or is configured as no device can be.
    pub fn hardware(queue: &QueueInfo) -> Result<Target, AttestError> {
        let name = queue.name();
        let profile = dray_figures::configured_queue(&name)?;
        let invalid = |source| AttestError::Configuration {
            queue: name.clone(),
            source: Box::new(source),
        };
        let config = profile.devices().map_err(invalid)?.into_iter().next();
        let config = config.ok_or_else(|| {
            AttestError::Hardware(dray::hw::HwError::NoQueues {
                path: queue.path.clone(),
            })
        })?;
        let portal = RawPortal::open(queue, None)?;
        Ok(Target {
            name,
            config: alone(config),
            door: Door::Hardware(Box::new(portal)),
        })
    }

    /// Work queue 0 of a virtual device in this process, as `config` has it.
    pub(crate) fn virtual_device(
        config: DeviceConfig,
        space: Space,
        deviation: Option<Deviation>,
    ) -> Result<Target, AttestError> {
        // SAFETY: the space has what is mapped, with its protections; cases and litmus cases do not touch what a
        // descriptor names until its record has been seen or the queue was drained.
        let memory = unsafe { ProcessMemory::new(space) };
        let errors: Arc<Mutex<Vec<(Status, u64)>>> = Arc::default();
        let reported = errors.clone();
        let listener = move |event| {
            if let Event::SoftwareError {
                status, address, ..
            } = event
            {
                locked(&reported).push((status, address));
            }
        };
        let options = Options {
            engines: Engines::Threads,
            deviation,
            ..Options::default()
        };
        let device = RealtimeDevice::start(config.clone(), memory, options, listener)?;
        let portal = Portal {
            wq: 0,
            limited: true,
        };
        let portal = device.map(portal);
        let portal = portal.ok_or(AttestError::Hardware(dray::hw::HwError::NoQueues {
            path: "wq0.0".into(),
        }))?;
        Ok(Target {
            name: "virtual".to_owned(),
            config,
            door: Door::Virtual(Box::new(Virtual {
                _device: device,
                portal,
                errors,
            })),
        })
    }

    /// Its name: `wq0.1`, or `virtual`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device with this queue as its queue 0, and no other.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// The queue.
    pub fn queue(&self) -> &WorkQueueConfig {
        &self.config.work_queues[0]
    }

    /// Whether the device has the operation and the queue lets it through.
    pub fn takes(&self, opcode: Opcode) -> bool {
        let code = opcode as u8;
        OpCap(self.config.capabilities.op_cap).supports(code)
            && OpCap(self.queue().op_config).supports(code)
    }

    /// How descriptors are submitted.
    pub fn submit_path(&self) -> &'static str {
        match (&self.door, self.queue().mode) {
            (Door::Hardware(portal), _) => match portal.submit_path() {
                SubmitPath::Movdir64b => "movdir64b",
                SubmitPath::Enqcmd => "enqcmd",
                SubmitPath::Write => "write",
            },
            (Door::Virtual(_), WorkQueueMode::Dedicated) => "movdir64b",
            (Door::Virtual(_), WorkQueueMode::Shared) => "enqcmd",
        }
    }

    /// Whether software errors can be told apart: on a machine they are the driver's.
    pub(crate) fn tells_errors(&self) -> bool {
        matches!(self.door, Door::Virtual(_))
    }

    /// The descriptor comes from user space: its privilege and PASID are not the submitter's to say.
    pub(crate) fn is_hardware(&self) -> bool {
        matches!(self.door, Door::Hardware(_))
    }

    /// Software errors since the last call.
    pub(crate) fn take_errors(&mut self) -> Vec<(Status, u64)> {
        match &self.door {
            Door::Virtual(device) => std::mem::take(&mut locked(&device.errors)),
            Door::Hardware(_) => Vec::new(),
        }
    }

    /// Submits a descriptor.
    ///
    /// # Safety
    /// What it and the list of a batch name must stay valid until it has ended.
    pub(crate) unsafe fn submit(&mut self, descriptor: &Descriptor) -> Result<(), AttestError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = match &mut self.door {
                Door::Hardware(portal) => {
                    let descriptor = as_instruction_takes(portal.submit_path(), descriptor);
                    // SAFETY: the caller's promise is the same.
                    unsafe { portal.submit(&descriptor) }?
                }
                Door::Virtual(device) => device.portal.submit(descriptor),
            };
            match answer {
                Submission::Accepted => return Ok(()),
                Submission::Retry if Instant::now() < until => std::thread::yield_now(),
                Submission::Retry | Submission::Lost | Submission::Ignored => {
                    return Err(AttestError::Full {
                        queue: self.name.clone(),
                        seconds: PATIENCE.as_secs(),
                    });
                }
            }
        }
    }
}

/// ENQCMD fills in PASID and privilege, and raises a general protection fault where something is there already (SDM).
fn as_instruction_takes(path: SubmitPath, descriptor: &Descriptor) -> Descriptor {
    let pasid_priv = match path {
        SubmitPath::Enqcmd => 0,
        SubmitPath::Movdir64b | SubmitPath::Write => descriptor.pasid_priv,
    };
    Descriptor {
        pasid_priv,
        ..*descriptor
    }
}

/// The device with its first queue as queue 0.
fn alone(mut config: DeviceConfig) -> DeviceConfig {
    config.work_queues.truncate(1);
    let group = config.work_queues.first().map(|queue| queue.group);
    config.groups.retain(|of| Some(of.id) == group);
    for queue in &mut config.work_queues {
        queue.id = 0;
    }
    let batches = config
        .work_queues
        .iter()
        .any(|queue| queue.max_batch_size > 1);
    if config.capabilities.version < 0x200 && batches {
        // Where programs may write descriptors, the driver takes batches out of `op_cap` (INTEL-SA-01084). A device of
        // version 1 has no OPCFG that would hold them back.
        let operations = OpCap(config.capabilities.op_cap).with(Opcode::Batch);
        config.capabilities.op_cap = operations.0;
    }
    config
}

fn locked<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_has_the_batches_that_the_driver_hides() {
        let queue = WorkQueueConfig::new(3, WorkQueueMode::Dedicated, 16);
        let mut config = DeviceConfig::sapphire_rapids(1, vec![queue]);
        let all = config.capabilities.op_cap;
        config.capabilities.op_cap[0] &= !(1 << 1);
        let found = alone(config.clone());
        assert_eq!(
            (found.capabilities.op_cap, found.work_queues[0].id),
            (all, 0)
        );
        config.capabilities.version = 0x200;
        let without = config.capabilities.op_cap;
        assert_eq!(alone(config).capabilities.op_cap, without);
    }

    #[test]
    fn enqcmd_is_given_no_pasid() {
        let descriptor = Descriptor::noop().with_pasid(7).with_privileged();
        let enqcmd = as_instruction_takes(SubmitPath::Enqcmd, &descriptor);
        assert_eq!(enqcmd, Descriptor::noop());
        let movdir64b = as_instruction_takes(SubmitPath::Movdir64b, &descriptor);
        assert_eq!(movdir64b, descriptor);
    }
}
