//! A channel behind the [`Mover`] interface: each call charges the channel's core.

use dray::{
    BatchError, Capabilities, Completion, Full, Mover, Operation, Progress, Ticket, Timestamp,
};

use crate::channel::ChannelId;
use crate::software;
use crate::world::World;

/// Borrowed by an application for the length of a step.
#[derive(Debug)]
pub struct ModelMover<'w> {
    pub(crate) world: &'w mut World,
    pub(crate) channel: ChannelId,
}

// SAFETY: modelled memory is no memory of this process.
unsafe impl Mover for ModelMover<'_> {
    fn slots(&self) -> usize {
        self.world.channels[self.channel.index()].slots()
    }

    fn in_flight(&self) -> usize {
        self.world.channels[self.channel.index()].operations()
    }

    unsafe fn enqueue(&mut self, operation: &Operation) -> Result<Ticket, Full> {
        let parameters = &self.world.parameters;
        let channel = &mut self.world.channels[self.channel.index()];
        let slots = channel.slots();
        let ticket = channel.place(operation).ok_or(Full { slots })?;
        if channel.options.queue.is_some() && !channel.options.prepared {
            channel.core.work(parameters.prepare());
            channel.core.store(parameters);
        }
        Ok(ticket)
    }

    unsafe fn enqueue_batch(&mut self, operations: &[Operation]) -> Result<Ticket, BatchError> {
        let channel = &mut self.world.channels[self.channel.index()];
        let max = channel.options.batch;
        if operations.is_empty() || operations.len() > max as usize {
            return Err(BatchError::Size {
                operations: operations.len(),
                max,
            });
        }
        channel.close();
        if !channel.has_free_unit() {
            let slots = channel.slots();
            return Err(Full { slots }.into());
        }
        let mut first = None;
        for operation in operations {
            // SAFETY: the caller's promise is the same.
            let ticket = unsafe { self.enqueue(operation) }?;
            first.get_or_insert(ticket);
        }
        self.world.channels[self.channel.index()].close();
        first.ok_or(BatchError::Size { operations: 0, max })
    }

    fn submit(&mut self) -> Progress {
        let channel = &mut self.world.channels[self.channel.index()];
        channel.close();
        if channel.options.queue.is_none() {
            while let Some(unit) = channel.ready.pop_front() {
                software::run_unit(
                    channel,
                    unit,
                    (&self.world.platform.topology, &self.world.parameters),
                    &mut self.world.memory,
                    self.world.payload,
                );
                channel.counters.submitted += 1;
            }
            return Progress::Done;
        }
        if channel.shared {
            self.world.start_enqcmd(self.channel);
        } else {
            self.world.post_writes(self.channel);
        }
        let channel = &self.world.channels[self.channel.index()];
        match channel.ready.is_empty() && channel.awaiting.is_none() {
            true => Progress::Done,
            false => Progress::Pending,
        }
    }

    fn poll(&mut self, into: &mut [Completion]) -> usize {
        let channel = &mut self.world.channels[self.channel.index()];
        let mut count = 0;
        while count < into.len() {
            let Some(completion) = channel.next_completion() else {
                break;
            };
            into[count] = completion;
            count += 1;
        }
        // A look that finds nothing; one that finds something was part of the wait for it.
        if count == 0 && channel.options.queue.is_some() {
            channel.core.work(self.world.parameters.poll());
        }
        count
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_picoseconds(self.world.channels[self.channel.index()].core.clock.0)
    }

    fn capabilities(&self) -> Capabilities {
        self.world.channels[self.channel.index()].capabilities
    }

    fn spend(&mut self, picoseconds: u64) {
        let channel = &mut self.world.channels[self.channel.index()];
        channel.core.work(dray_clock::Duration(picoseconds));
    }

    unsafe fn touch(&mut self, addr: u64, write: bool) {
        let parameters = &self.world.parameters;
        let cost = match write {
            true => parameters.fault_touch_write(),
            false => parameters.fault_touch_read(),
        };
        self.world.memory.touch(addr);
        self.world.channels[self.channel.index()].core.work(cost);
    }
}
