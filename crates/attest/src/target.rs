//! The work queue that is attested: one of this machine, or one of a virtual device in this process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dray::hw::{QueueInfo, RawPortal, SubmitPath};
use dray_device::{
    Access, AddressSpace, DeviceConfig, Memory, Portal, Submission, WorkQueueConfig, WorkQueueMode,
};
use dray_realtime::{
    Engines, Event, MappedPortal, Options, ProcessMemory, RealtimeDevice, SharedMemory, Translation,
};
use dray_spec::{CompletionRecord, Descriptor, OpCap, Opcode, Status};

use crate::AttestError;
use crate::ground::Space;

/// How long a full queue is tried again, and a completion is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// What a device does otherwise than the specification says; for tests of what finds it. The defaults do nothing.
#[allow(unused_variables, reason = "names of arguments are documentation")]
pub trait Deviation: Send + Sync + 'static {
    /// Changes a descriptor before the device sees it, if it came through the portal.
    fn descriptor(&self, descriptor: &mut Descriptor) {}

    /// Changes the member of a batch before the device sees it; `None`: it changes none.
    fn member(&self) -> Option<fn(&mut Descriptor)> {
        None
    }

    /// Changes a record before it is written. `of`: the descriptor it belongs to, as it was submitted.
    fn record(&self, of: &Descriptor, record: &mut CompletionRecord) {}

    /// Changes what is written to memory.
    fn write(&self, bytes: &mut [u8]) {}

    /// Data become visible after the record.
    fn record_first(&self) -> bool {
        false
    }

    /// The status byte becomes visible before the rest of the record.
    fn status_first(&self) -> bool {
        false
    }
}

/// A device as it is.
#[derive(Debug, Clone, Copy)]
pub struct AsItIs;

impl Deviation for AsItIs {}

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
    submitted: Arc<Mutex<Submitted>>,
    deviation: Arc<dyn Deviation>,
}

impl std::fmt::Debug for dyn Deviation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deviation")
    }
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
        deviation: Arc<dyn Deviation>,
    ) -> Result<Target, AttestError> {
        let submitted: Arc<Mutex<Submitted>> = Arc::default();
        // SAFETY: the space has what is mapped, with its protections; cases and litmus cases do not touch what a
        // descriptor names until its record has been seen or the queue was drained.
        let memory = unsafe { ProcessMemory::new(space) };
        let memory = Altered {
            memory,
            deviation: deviation.clone(),
            submitted: submitted.clone(),
            held: Arc::default(),
        };
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
                submitted,
                deviation,
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

    /// Submits a descriptor; `list` are the members of a batch.
    ///
    /// # Safety
    /// What it and its list name must stay valid until it has ended.
    pub(crate) unsafe fn submit(
        &mut self,
        descriptor: &Descriptor,
        list: &[Descriptor],
    ) -> Result<(), AttestError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = match &mut self.door {
                Door::Hardware(portal) => {
                    let descriptor = as_instruction_takes(portal.submit_path(), descriptor);
                    // SAFETY: the caller's promise is the same.
                    unsafe { portal.submit(&descriptor) }?
                }
                Door::Virtual(device) => device.submit(descriptor, list),
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

impl Virtual {
    fn submit(&self, descriptor: &Descriptor, list: &[Descriptor]) -> Submission {
        let mut altered = *descriptor;
        self.deviation.descriptor(&mut altered);
        locked(&self.submitted).add(descriptor, list);
        self.portal.submit(&altered)
    }
}

/// Descriptors by the address of their record, as they were submitted.
#[derive(Debug, Default)]
struct Submitted {
    recent: Vec<Descriptor>,
}

/// Descriptors that are remembered.
const RECENT: usize = 512;

impl Submitted {
    fn add(&mut self, descriptor: &Descriptor, list: &[Descriptor]) {
        self.recent.push(*descriptor);
        self.recent.extend_from_slice(list);
        let surplus = self.recent.len().saturating_sub(RECENT);
        self.recent.drain(..surplus);
    }

    fn with_record(&self, address: u64) -> Option<Descriptor> {
        let mut recent = self.recent.iter().rev();
        recent.find(|d| d.completion_addr == address).copied()
    }
}

/// A write that is kept back: its address, and its bytes.
type HeldWrite = (u64, Vec<u8>);

/// Memory of this process as a device with a deviation uses it.
#[derive(Debug, Clone)]
struct Altered<S> {
    memory: ProcessMemory<S>,
    deviation: Arc<dyn Deviation>,
    submitted: Arc<Mutex<Submitted>>,
    held: Arc<Mutex<Vec<HeldWrite>>>,
}

impl<S: Translation> Memory for Altered<S> {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        self.memory.accessible(addr, len, access)
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        self.memory.read(addr, into);
        let Some(change) = self.deviation.member() else {
            return;
        };
        if !into.len().is_multiple_of(64) || !addr.is_multiple_of(64) {
            return;
        }
        for member in into.chunks_exact_mut(64) {
            let submitted = locked(&self.submitted);
            let Ok(mut descriptor) = zerocopy::FromBytes::read_from_bytes(&*member) else {
                continue;
            };
            // What is read of a list was told of when its batch was submitted.
            if submitted.recent.contains(&descriptor) {
                change(&mut descriptor);
                member.copy_from_slice(zerocopy::IntoBytes::as_bytes(&descriptor));
            }
        }
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        let mut bytes = from.to_vec();
        self.deviation.write(&mut bytes);
        match self.deviation.record_first() {
            true => locked(&self.held).push((addr, bytes)),
            false => self.memory.write(addr, &bytes),
        }
    }

    fn alternate(&mut self, space: AddressSpace) -> Option<&mut dyn Memory> {
        self.memory.alternate(space)
    }
}

impl<S: Translation + Clone> SharedMemory for Altered<S> {
    fn publish(&mut self, address: u64, record: &CompletionRecord) -> bool {
        let mut record = *record;
        if let Some(descriptor) = locked(&self.submitted).with_record(address) {
            self.deviation.record(&descriptor, &mut record);
        }
        let mut published = true;
        if record.status != 0 {
            if self.deviation.status_first() {
                self.memory.write(address, &[record.status]);
                std::thread::sleep(Duration::from_micros(200));
            }
            published = self.memory.publish(address, &record);
        }
        let held = std::mem::take(&mut *locked(&self.held));
        if !held.is_empty() {
            std::thread::sleep(Duration::from_micros(200));
        }
        for (address, bytes) in held {
            self.memory.write(address, &bytes);
        }
        published
    }
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
