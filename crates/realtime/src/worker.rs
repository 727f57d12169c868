//! A thread that is an engine.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use dray_device::{Action, DescriptorResult, Payload, Task, WorkId};
use dray_spec::Status;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::chaos::{ChaoticMemory, Piece, Plan};
use crate::idle_policy::IdlePolicy;
use crate::run_delay::RunDelay;
use crate::shared::Shared;
use crate::{Idle, SharedMemory, Stop};
use dray_ring::{CompletionBell, Doorbell, Futex};

/// How often a descriptor is executed whose memory fails. One that says what it can do needs fewer.
pub(crate) const ATTEMPTS: usize = 16;

/// A descriptor to execute, and what an adversary does with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    pub(crate) task: Task,
    pub(crate) plan: Option<Plan>,
}

/// How it ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    pub(crate) id: WorkId,
    pub(crate) outcome: DescriptorResult,
}

/// The dispatcher's end of an engine's thread.
#[derive(Debug)]
pub(crate) struct Worker {
    /// `None` once the thread is to end.
    orders: Option<Producer<Order>>,
    reports: Consumer<Report>,
    doorbell: Arc<Doorbell>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// A thread that holds at most `depth` descriptors.
    pub(crate) fn start<M: SharedMemory>(
        name: String,
        depth: usize,
        idle: Idle,
        memory: M,
        shared: Arc<Shared>,
        index: usize,
    ) -> io::Result<Worker> {
        let (orders, from) = RingBuffer::new(depth);
        let (to, reports) = RingBuffer::new(depth);
        let doorbell = Arc::new(Doorbell::new(
            Futex::default(),
            CompletionBell::new(Futex::default()),
        ));
        let engine = Engine {
            orders: from,
            reports: to,
            doorbell: doorbell.clone(),
            memory,
            shared,
            index,
            name: name.clone(),
        };
        let thread = thread::Builder::new().name(name).spawn(move || {
            let (shared, name) = (engine.shared.clone(), engine.name.clone());
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| engine.run(idle))) {
                shared.fail(&name, &*payload);
                // What it holds will not end: the dispatcher must not wait for it.
                shared.stop(Stop::Abort);
            }
        })?;
        Ok(Worker {
            orders: Some(orders),
            reports,
            doorbell,
            thread: Some(thread),
        })
    }

    /// Hands a descriptor over. There is room: the dispatcher keeps within the depth.
    #[inline]
    pub(crate) fn order(&mut self, order: Order) {
        if let Some(orders) = &mut self.orders {
            let sent = orders.push(order);
            debug_assert!(sent.is_ok(), "more orders than the engine holds");
            self.doorbell.ring();
        }
    }

    #[inline]
    pub(crate) fn report(&mut self) -> Option<Report> {
        self.reports.pop().ok()
    }

    #[inline]
    pub(crate) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }
}

impl Drop for Worker {
    /// Waits for what the thread is doing.
    fn drop(&mut self) {
        self.orders = None;
        self.doorbell.ring();
        if let Some(thread) = self.thread.take() {
            // A panic in it has been caught and reported where it happened.
            let _ = thread.join();
        }
    }
}

struct Engine<M> {
    orders: Consumer<Order>,
    reports: Producer<Report>,
    doorbell: Arc<Doorbell>,
    memory: M,
    shared: Arc<Shared>,
    /// Among the engines.
    index: usize,
    name: String,
}

impl<M: SharedMemory> Engine<M> {
    fn run(mut self, idle: Idle) {
        let mut idle_policy = IdlePolicy::new(idle);
        // The dispatcher is number 0.
        let number = self.index + 1;
        let mut delay = self.shared.is_for_others().then(|| RunDelay::new(number));
        loop {
            if let Ok(order) = self.orders.pop() {
                idle_policy.found();
                if !self.shared.is_aborting() {
                    self.execute(&order);
                }
                if let Some(delay) = &mut delay {
                    delay.worked(self.shared.region.doorbell());
                }
            } else if self.orders.is_abandoned() {
                return;
            } else if idle_policy.is_over() {
                let orders = &self.orders;
                let pending = || !orders.is_empty() || orders.is_abandoned();
                self.doorbell.sleep(pending, None);
                if let Some(delay) = &mut delay {
                    delay.look(self.shared.region.doorbell());
                }
                idle_policy.slept();
            }
        }
    }

    fn execute(&mut self, order: &Order) {
        let (memory, shared, name) = (&mut self.memory, &self.shared, &self.name);
        let outcome = match &order.plan {
            None => execute(&order.task, memory, shared, name),
            // Whoever blocks on a fault does so with nothing left to write.
            Some(plan) => execute_chaotically(&order.task, plan, false, memory, shared, name).0,
        };
        let sent = self.reports.push(Report {
            id: order.task.id,
            outcome,
        });
        debug_assert!(sent.is_ok(), "more reports than orders");
        self.shared.region.doorbell().ring();
    }
}

/// Executes a task. Where that panics, the descriptor ends with a hardware error, and the device
/// halts.
#[inline]
pub(crate) fn execute<M: SharedMemory>(
    task: &Task,
    memory: &mut M,
    shared: &Shared,
    name: &str,
) -> DescriptorResult {
    let attempt = || {
        for _ in 0..ATTEMPTS {
            let (outcome, held) = match &shared.deviant {
                None => (
                    task.execute_in(memory, Payload::Moved, M::enter),
                    Vec::new(),
                ),
                Some(deviant) => deviant.execute(task, memory),
            };
            if memory.settle() {
                if let Some(deviant) = &shared.deviant {
                    deviant.hold(held);
                }
                return outcome;
            }
        }
        DescriptorResult::status(Status::HARDWARE_ERROR_READ)
    };
    guarded(attempt, shared, name)
}

/// Executes a task as an adversary has it. With `tear` it may leave something to be written at its end.
pub(crate) fn execute_chaotically<M: SharedMemory>(
    task: &Task,
    plan: &Plan,
    tear: bool,
    memory: &mut M,
    shared: &Shared,
    name: &str,
) -> (DescriptorResult, Vec<Piece>) {
    let is_executed = matches!(task.action, Action::Execute(_));
    if let Some((plain, blocked)) = plan.error.filter(|_| is_executed) {
        let blocks = task.blocks();
        let status = if blocks { blocked } else { plain };
        return (DescriptorResult::status(status), Vec::new());
    }
    let mut rest = Vec::new();
    if is_executed && (plan.fault.is_some() || plan.lines.is_some() || plan.unrecorded) {
        let attempt = || {
            let mut chaotic = ChaoticMemory::new(memory, task, plan);
            let outcome = task.execute_in(&mut chaotic, Payload::Moved, ChaoticMemory::enter);
            let tear = tear && outcome.record.status() == Status::SUCCESS;
            rest = chaotic.write_out(tear);
            memory.settle().then_some(outcome)
        };
        if let Some(outcome) = guarded(attempt, shared, name) {
            return (outcome, rest);
        }
        rest.clear();
    }
    (execute(task, memory, shared, name), rest)
}

fn guarded<R: From<DescriptorResult>>(
    attempt: impl FnOnce() -> R,
    shared: &Shared,
    name: &str,
) -> R {
    // Of what the closure borrows only the memory is left half done, as by any descriptor that fails.
    match catch_unwind(AssertUnwindSafe(attempt)) {
        Ok(outcome) => outcome,
        Err(payload) => {
            shared.fail(name, &*payload);
            DescriptorResult::status(Status::HARDWARE_ERROR_READ).into()
        }
    }
}
