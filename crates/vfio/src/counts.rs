//! Counts of the accesses through a door, and of the requests that it does not model.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dray_device::{Fidelity, FidelityCounts, WorkId};
use dray_realtime::Event;
use dray_spec::{Descriptor, Opcode};

/// One work queue's share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueCounts {
    /// Descriptors that have ended, members of batches among them.
    pub descriptors: u64,
    /// Of those, with a status other than success.
    pub failed: u64,
    /// Of those, with a page fault.
    pub page_faults: u64,
    /// Given up by an abort or a reset.
    pub abandoned: u64,
    /// Bytes that operations have processed: transfer sizes, or as far as they got.
    pub bytes: u64,
}

/// What went through a door.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// By work queue.
    pub queues: BTreeMap<u16, QueueCounts>,
    /// How true the execution of descriptors was to the specification.
    pub fidelity: FidelityCounts,
    /// Messages of clients.
    pub messages: u64,
    /// Interrupts sent.
    pub interrupts: u64,
    /// DMA_MAP and DMA_UNMAP.
    pub dma_maps: u64,
    /// What the function does not model, refuses or loses, by name.
    pub unmodelled: BTreeMap<&'static str, u64>,
}

impl Counts {
    /// As JSON, for scripts.
    pub fn to_json(&self) -> serde_json::Value {
        let queues: Vec<_> = self
            .queues
            .iter()
            .map(|(wq, counts)| {
                serde_json::json!({
                    "wq": wq,
                    "descriptors": counts.descriptors,
                    "failed": counts.failed,
                    "page_faults": counts.page_faults,
                    "abandoned": counts.abandoned,
                    "bytes": counts.bytes,
                })
            })
            .collect();
        let fidelity: BTreeMap<&str, u64> = Fidelity::ALL
            .map(|fidelity| (fidelity.name(), self.fidelity.of(fidelity)))
            .into();
        serde_json::json!({
            "queues": queues,
            "fidelity": fidelity,
            "messages": self.messages,
            "interrupts": self.interrupts,
            "dma_maps": self.dma_maps,
            "unmodelled": self.unmodelled,
        })
    }
}

#[derive(Debug)]
struct UnderWay {
    wq: u16,
    descriptor: Descriptor,
}

/// Where the log goes.
type Log = Box<dyn FnMut(&str) + Send>;

#[derive(Default)]
struct State {
    counts: Counts,
    under_way: HashMap<WorkId, UnderWay>,
    /// Gets the first of each that is not modelled.
    log: Option<Log>,
}

/// Counts that the door and the device's thread share.
#[derive(Clone, Default)]
pub(crate) struct SharedCounts(Arc<Mutex<State>>);

impl std::fmt::Debug for SharedCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SharedCounts").field(&self.get()).finish()
    }
}

impl SharedCounts {
    pub(crate) fn new(log: impl FnMut(&str) + Send + 'static) -> SharedCounts {
        SharedCounts(Arc::new(Mutex::new(State {
            log: Some(Box::new(log)),
            ..State::default()
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> Counts {
        self.lock().counts.clone()
    }

    /// Something that is not modelled: logged once by name, and counted.
    pub(crate) fn unmodelled(&self, what: &'static str) {
        let mut state = self.lock();
        let count = state.counts.unmodelled.entry(what).or_default();
        *count += 1;
        if *count == 1
            && let Some(log) = &mut state.log
        {
            log(what);
        }
    }

    pub(crate) fn message(&self) {
        self.lock().counts.messages += 1;
    }

    pub(crate) fn interrupt(&self) {
        self.lock().counts.interrupts += 1;
    }

    pub(crate) fn dma_map(&self) {
        self.lock().counts.dma_maps += 1;
    }

    /// The device is new: nothing is under way.
    pub(crate) fn forget(&self) {
        self.lock().under_way.clear();
    }

    /// What the device reports of its descriptors.
    pub(crate) fn record(&self, event: &Event) {
        let mut state = self.lock();
        match *event {
            Event::Accepted {
                id, wq, descriptor, ..
            } => {
                state.under_way.insert(id, UnderWay { wq, descriptor });
            }
            Event::Started {
                id,
                batch,
                descriptor,
                ..
            } => {
                // A member of a batch has a new name, and its batch's queue.
                let batch = batch.and_then(|batch| state.under_way.get(&batch));
                if let Some(wq) = batch.map(|batch| batch.wq) {
                    state.under_way.insert(id, UnderWay { wq, descriptor });
                }
            }
            Event::Ended { id, record } => {
                let Some(UnderWay { wq, descriptor }) = state.under_way.remove(&id) else {
                    return;
                };
                state.counts.fidelity.add(descriptor.opcode_byte(), 1);
                let queue = state.counts.queues.entry(wq).or_default();
                let Some(record) = record else {
                    queue.abandoned += 1;
                    return;
                };
                let status = record.status().code();
                let whole = matches!(status, 1 | 2);
                queue.descriptors += 1;
                queue.failed += u64::from(!whole);
                queue.page_faults += u64::from(matches!(status, 3 | 4 | 6 | 0x1a));
                let moves = !matches!(
                    descriptor.opcode(),
                    Err(_) | Ok(Opcode::Noop | Opcode::Batch | Opcode::Drain)
                );
                if moves {
                    queue.bytes += u64::from(match whole {
                        true => descriptor.size,
                        false => record.bytes_completed,
                    });
                }
            }
            _ => {}
        }
    }
}
