//! The end of a device one of whose threads has panicked: all that was accepted ends with an error, so that
//! no client waits for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use dray_device::{Effect, WorkQueueMode};
use dray_spec::{CompletionRecord, Descriptor, Flags, Status};
use zerocopy::transmute;

use super::{Dispatcher, LATE};
use crate::{SharedMemory, Stop};

/// What the records say: the device could not get at what it needs.
const FAILED: Status = Status::HARDWARE_ERROR_READ;

impl<M: SharedMemory> Dispatcher<M> {
    /// Ends everything that was accepted and has not ended. Each step may panic as the device did; those that
    /// follow are done all the same.
    pub(crate) fn fail(&mut self) {
        // Threads end, and leave what they have not begun: none works on memory whose descriptor has ended.
        self.shared.stop(Stop::Abort);
        let _ = attempt(|| self.engines.clear());
        let mut effects = self.sink.unapplied(&self.effects);
        let unended = || self.function.device().records_of_unended(FAILED);
        effects.extend(attempt(unended).unwrap_or_default());
        effects.extend(attempt(|| self.unread()).unwrap_or_default());
        for effect in effects {
            if let Effect::Record { address, pasid, .. } = effect {
                let record = CompletionRecord::with_status(FAILED);
                let _ = attempt(|| self.sink.publish(address, &record, pasid));
            }
        }
    }

    /// The records of descriptors that are in the rings still. Those that are claimed and not there yet are
    /// waited for a moment.
    fn unread(&mut self) -> Vec<Effect> {
        let mut records = Vec::new();
        let since = Instant::now();
        for source in &self.sources {
            source.reader.ring().end();
        }
        loop {
            for source in &mut self.sources {
                let queue = self.function.queue(source.portal.wq);
                let dedicated = queue.filter(|queue| queue.mode == WorkQueueMode::Dedicated);
                let reader = &mut source.reader;
                while let Some(words) = reader.next().or_else(|| reader.next_ahead()) {
                    let descriptor: Descriptor = transmute!(words);
                    let pasid = match dedicated {
                        Some(queue) => queue.pasid.unwrap_or(0),
                        None => descriptor.pasid(),
                    };
                    records.extend(failed(&descriptor, pasid));
                }
            }
            let behind = self.sources.iter().any(|source| source.reader.is_behind());
            if !behind || since.elapsed() > LATE {
                return records;
            }
            std::thread::yield_now();
        }
    }
}

fn failed(descriptor: &Descriptor, pasid: u32) -> Option<Effect> {
    let addressed = descriptor.flags().contains(Flags::COMPLETION_ADDRESS_VALID);
    addressed.then(|| Effect::Record {
        address: descriptor.completion_addr,
        record: CompletionRecord::with_status(FAILED),
        pasid,
    })
}

/// What a step gives, unless it panics.
fn attempt<R>(step: impl FnOnce() -> R) -> Option<R> {
    // What is left half done is looked at by no step that follows but for these.
    catch_unwind(AssertUnwindSafe(step)).ok()
}
