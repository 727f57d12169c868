//! What an engine has started: descriptors are executed, lists of batches read.

use dray_device::{Action, DescriptorResult, ListRead, Task, Work, WorkId};

use super::Dispatcher;
use crate::SharedMemory;
use crate::worker::{ATTEMPTS, Order, execute};

impl<M: SharedMemory> Dispatcher<M> {
    #[inline]
    pub(super) fn begin(&mut self, index: usize, work: Work, batch: Option<WorkId>) {
        if self.scheduler.is_some() {
            return self.park(index, work, batch);
        }
        if self.sink.steps {
            let engine = self.engines[index].id;
            self.sink
                .tell_start(work.id, engine, batch, &mut self.function);
        }
        let Some(task) = self.function.start(&work) else {
            return;
        };
        if let Action::ReadList { .. } = task.action {
            self.engines[index].batch = Some(work.id);
            self.read_list(&task);
            return self.apply_effects();
        }
        let Some(outcome) = self.execute(index, &task) else {
            return;
        };
        self.function.done(work.id, &outcome, &mut self.effects);
        self.apply_effects();
    }

    /// Has an engine execute a task: how it ended, unless that is for its thread to report.
    #[inline]
    fn execute(&mut self, index: usize, task: &Task) -> Option<DescriptorResult> {
        let engine = &mut self.engines[index];
        let apart = !engine.alone || self.sink.memory.may_wait(task.blocks());
        match &mut engine.worker {
            Some(worker) if apart && matches!(task.action, Action::Execute(_)) => {
                engine.outstanding += 1;
                worker.order(Order {
                    task: *task,
                    plan: None,
                });
                None
            }
            _ => Some(execute(
                task,
                &mut self.sink.memory,
                &self.shared,
                &self.name,
            )),
        }
    }

    /// Reads the list of a batch, as far as it can be read (spec 8.3.2).
    pub(super) fn read_list(&mut self, task: &Task) {
        let memory = &mut self.sink.memory;
        let mut read = ListRead::default();
        for attempt in 1..=ATTEMPTS {
            read = task.read_list_in(memory, &mut self.list, M::enter);
            if memory.settle() {
                break;
            }
            if attempt == ATTEMPTS {
                // Memory that never says what it can do: no member runs.
                self.list.clear();
                let Action::ReadList { address, .. } = task.action else {
                    return;
                };
                read.fault = Some(address);
            }
        }
        if let Some(deviant) = &self.shared.deviant {
            deviant.listed(&mut self.list);
        }
        let effects = &mut self.effects;
        self.function.list_read(task.id, &self.list, read, effects);
    }
}
