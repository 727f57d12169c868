//! The modelled machine of a replay: a core and a work queue for each thread, and memory for its operands.

use std::collections::HashMap;
use std::sync::Arc;

use dray_device::{DeviceConfig, WorkQueueMode};
use dray_figures::{FiguresError, Model};
use dray_model::{ChannelOptions, World, WorldOptions};
use dray_platform::{Cache, MemoryLocation, NodeId};
use dray_recording::Kind;

use crate::operation::{Bases, operation, room};
use crate::program::{Part, Program, Steps};
use crate::way::{Placement, Way};
use crate::{ReplayError, Think};

/// Descriptors that a client of a shared queue may have in flight: more than any queue has entries.
const SHARED_DEPTH: u32 = 1024;

/// A work queue of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct UsedQueue {
    pub(crate) device: u16,
    pub(crate) wq: u16,
    shared: bool,
    entries: u32,
    max_transfer: u32,
    max_batch: u32,
}

/// The machine, and what each thread has of it.
pub(crate) struct Machine {
    pub(crate) world: World,
    /// By thread.
    pub(crate) queues: Vec<UsedQueue>,
    pub(crate) bases: Vec<Bases>,
    /// Time of each kind of operation on a core, in picoseconds.
    pub(crate) core_times: HashMap<(Part, [bool; 2]), u64>,
}

/// All queues of the devices.
fn all(devices: &[DeviceConfig]) -> Vec<UsedQueue> {
    let each = devices.iter().enumerate().flat_map(|(device, config)| {
        config.work_queues.iter().map(move |queue| UsedQueue {
            device: device as u16,
            wq: queue.id,
            shared: queue.mode == WorkQueueMode::Shared,
            entries: queue.size.into(),
            max_transfer: u32::try_from(queue.max_transfer_size).unwrap_or(u32::MAX),
            max_batch: queue.max_batch_size,
        })
    });
    each.collect()
}

/// The queue of each thread: of recorded descriptors the same one, where the machine has it; else one after the other.
fn assign(program: &Program, all: &[UsedQueue]) -> Vec<UsedQueue> {
    let threads = program.threads.iter().enumerate();
    let each = threads.map(|(index, thread)| {
        let place = match program.kind {
            Kind::Calls => index,
            Kind::Descriptors => thread.steps.first().map_or(0, |step| step.queue.into()),
        };
        let recorded = program
            .queues
            .get(place)
            .filter(|_| program.kind == Kind::Descriptors);
        let same = all
            .iter()
            .find(|queue| recorded.is_some_and(|r| (r.device, r.wq) == (queue.device, queue.wq)));
        *same.unwrap_or(&all[place % all.len()])
    });
    let mut queues: Vec<UsedQueue> = each.collect();
    // Clients of a dedicated queue divide its entries: what is written to a full one is lost.
    let of_all = queues.clone();
    for queue in &mut queues {
        let name = (queue.device, queue.wq);
        let clients = of_all.iter().filter(|q| (q.device, q.wq) == name).count() as u32;
        if !queue.shared {
            queue.entries /= clients.max(1);
        }
    }
    queues
}

/// Which operands are in the cache.
pub(crate) fn known(part: &Part, placement: Placement) -> [bool; 2] {
    match placement {
        Placement::Recorded => part.operands.known,
        Placement::Dram => [false; 2],
        Placement::Llc => [true; 2],
    }
}

/// Pieces that an operation has on a queue: their bytes.
pub(crate) fn pieces(bytes: u64, most: u32) -> impl Iterator<Item = u32> {
    let count = bytes.div_ceil(most.max(1).into()).max(1);
    (0..count).map(move |piece| (bytes - piece * u64::from(most)).min(most.into()) as u32)
}

impl Machine {
    pub(crate) fn new(
        model: &Model,
        program: &Program,
        way: Way,
        placement: Placement,
    ) -> Result<Machine, ReplayError> {
        let devices = model.profile.devices().map_err(FiguresError::from)?;
        let all = all(&devices);
        if all.is_empty() {
            return Err(FiguresError::NoWorkQueue.into());
        }
        let options = WorldOptions {
            payload: model.payload,
            ..WorldOptions::default()
        };
        let world = World::new(Arc::clone(&model.platform), devices, options)
            .map_err(FiguresError::from)?;
        let queues = assign(program, &all);
        let crowded = queues.iter().find(|queue| queue.entries == 0);
        if let Some(queue) = crowded.filter(|_| way != Way::Core) {
            let name = (queue.device, queue.wq);
            return Err(ReplayError::Crowded {
                queue: format!("wq{}.{}", queue.device, queue.wq),
                threads: queues.iter().filter(|q| (q.device, q.wq) == name).count(),
            });
        }
        let mut machine = Machine {
            world,
            queues,
            bases: Vec::new(),
            core_times: HashMap::new(),
        };
        for (thread, queue) in program.threads.iter().zip(machine.queues.clone()) {
            machine.open(thread, queue, way)?;
        }
        machine.time_on_core(program, way, placement);
        Ok(machine)
    }

    fn open(&mut self, thread: &Steps, queue: UsedQueue, way: Way) -> Result<(), ReplayError> {
        let largest = thread.steps.iter().filter(|step| step.is_batch);
        let members = largest.map(|step| step.count).max().unwrap_or(1);
        let batch = match way {
            Way::Recorded { batch, .. } if batch > 0 => members.min(batch),
            Way::Recorded { .. } => members,
            _ => 1,
        };
        if batch > 1 && batch > queue.max_batch {
            return Err(ReplayError::Batch {
                members: batch,
                limit: queue.max_batch,
            });
        }
        let channel = self.world.open(ChannelOptions {
            queue: Some((queue.device, queue.wq)),
            batch,
            depth: match queue.shared {
                true => SHARED_DEPTH,
                false => queue.entries.max(1),
            },
            wait: way.wait(),
            // The time that it takes is the thread's own, and was recorded.
            prepared: matches!(way, Way::Recorded { .. }),
            ..ChannelOptions::default()
        });
        channel.ok_or(FiguresError::NoWorkQueue)?;
        let bytes = thread
            .parts
            .iter()
            .map(|part| part.bytes)
            .max()
            .unwrap_or(0);
        let room = room(bytes.min(queue.max_transfer.into()) as u32);
        let mut pair = |cache| {
            [(); 2].map(|()| {
                let place = MemoryLocation {
                    node: NodeId(0),
                    cache,
                };
                let region = self.world.memory.allocate(room, place, false);
                self.world.memory.region(region).base
            })
        };
        let bases = Bases {
            in_memory: pair(Cache::Memory),
            in_cache: pair(Cache::Llc),
        };
        self.bases.push(bases);
        Ok(())
    }

    /// Works out what each kind of operation takes on a core.
    fn time_on_core(&mut self, program: &Program, way: Way, placement: Placement) {
        let queues = self.queues.clone();
        for (index, (thread, queue)) in program.threads.iter().zip(queues).enumerate() {
            // The thread's own: its regions have room for its largest operation.
            let bases = self.bases[index];
            for part in &thread.parts {
                let key = (*part, known(part, placement));
                let is_needed = !way.takes(part.bytes) || program.kind == Kind::Calls;
                if !is_needed || self.core_times.contains_key(&key) {
                    continue;
                }
                let mut time = 0;
                for bytes in pieces(part.bytes, queue.max_transfer) {
                    let operation = operation(part, bytes, key.1, (&bases, 0));
                    time += self
                        .world
                        .time_on_core(&operation, &ChannelOptions::default())
                        .0;
                }
                self.core_times.insert(key, time);
            }
        }
    }
}

impl UsedQueue {
    pub(crate) fn max_transfer(&self) -> u32 {
        self.max_transfer
    }
}

impl Think {
    pub(crate) fn is_recorded(self) -> bool {
        self == Think::Recorded
    }
}
