//! What handles ask for, between two descriptors, and what follows from it for rings and engines.

use std::time::Instant;

use dray_device::WorkQueueConfig;
use dray_ring::Gate;
use dray_spec::WorkQueueMode;
use dray_spec::registers::{DeviceState, WorkQueueState};

use super::{Dispatcher, LATE};
use crate::SharedMemory;
use crate::request::When;

impl<M: SharedMemory> Dispatcher<M> {
    /// Whether the time has come for something that handles of the device have asked for.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        !self.requests.is_empty() && self.requests.iter().any(|r| self.has_come(r.when))
    }

    fn has_come(&self, when: When) -> bool {
        match when {
            When::Now => true,
            When::CommandEnded => !self.function.is_command_active(),
            When::EnginesIdle => self.engines.iter().all(|engine| engine.outstanding == 0),
            When::At(time) => time <= Instant::now(),
        }
    }

    /// Serves what handles of the device have asked for, where the time has come.
    #[cold]
    pub(super) fn serve_requests(&mut self) {
        let (inspections, mut requests) = self.shared.take_requests();
        if !inspections.is_empty() {
            // What was written before is there, and nobody waits meanwhile.
            self.take_submissions();
            for inspection in inspections {
                inspection(&self.function);
            }
        }
        self.requests.append(&mut requests);
        if self.is_due() {
            self.run_requests();
        }
    }

    /// Changes the device as handles of it have asked for.
    ///
    /// Writers wait meanwhile: all that was accepted before is in the device's queues by then, and
    /// what comes after meets the queues as they are left.
    fn run_requests(&mut self) {
        self.settle();
        let requests = std::mem::take(&mut self.requests);
        let mut answers = Vec::new();
        for mut request in requests {
            if self.has_come(request.when) {
                match (request.action)(&mut self.function, &mut self.effects) {
                    Err(when) => request.when = when,
                    Ok(answer) => {
                        answers.push(answer);
                        continue;
                    }
                }
            }
            self.requests.push(request);
        }
        self.free();
        self.arrange();
        self.apply_effects();
        for answer in answers {
            answer();
        }
    }

    /// Holds the rings, and waits until what writers have claimed is there.
    fn settle(&mut self) {
        for source in &self.sources {
            source.reader.ring().hold();
        }
        // Also what has come late to queues that are disabled by now: it is refused.
        self.live = (0..self.sources.len()).collect();
        let for_others = self.shared.is_for_others();
        let since = Instant::now();
        loop {
            let worked = self.take_submissions() || (for_others && self.skip_departed());
            if worked {
                continue;
            }
            if !self.sources.iter().any(|s| s.reader.is_awaited()) {
                if !self.sources.iter().any(|s| s.reader.is_behind()) {
                    self.shared.free_departed();
                }
                break;
            }
            if for_others && since.elapsed() > LATE {
                for source in &mut self.sources {
                    source.reader.expect_later();
                }
                break;
            }
            std::thread::yield_now();
        }
        if for_others {
            self.restore_rings();
        }
    }

    /// What other processes may have spoilt is as the dispatcher knows it to be.
    fn restore_rings(&mut self) {
        for source in &mut self.sources {
            source.reader.restore_counters();
            if !self.shared.is_stopping() {
                source.reader.ring().resume();
            }
            // Asked again, for who stops the device says so first and ends the rings then.
            if self.shared.is_stopping() {
                source.reader.ring().end();
            }
        }
    }

    /// Rings open and close with their queues, engines follow their groups.
    pub(super) fn arrange(&mut self) {
        self.live.clear();
        // The queues of a device that has halted keep their states, and take nothing (spec 5.7).
        let takes = self.function.state() == DeviceState::Enabled;
        for (index, source) in self.sources.iter().enumerate() {
            let ring = source.reader.ring();
            let wq = source.portal.wq;
            let state = self.function.queue_state(wq);
            if state != Some(WorkQueueState::Disabled) {
                self.live.push(index);
            }
            let enabled = takes && state == Some(WorkQueueState::Enabled);
            match self.function.queue(wq) {
                Some(queue) if enabled => ring.open(gate(queue)),
                _ => ring.close(),
            }
        }
        let groups = &self.function.config().groups;
        let is_active = |id| groups.iter().any(|group| group.engines.contains(&id));
        for engine in &mut self.engines {
            engine.active = is_active(engine.id);
        }
        let active = self.engines.iter().filter(|engine| engine.active);
        let alone = self.executes || active.count() == 1;
        for engine in &mut self.engines {
            engine.alone = alone;
        }
    }
}

/// What the ring of a queue lets in.
fn gate(queue: &WorkQueueConfig) -> Gate {
    Gate {
        dedicated: queue.mode == WorkQueueMode::Dedicated,
        size: queue.size,
        threshold: queue.threshold,
    }
}
