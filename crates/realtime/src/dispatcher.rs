//! The thread that owns the device: it feeds the device from the rings, its engines from the device,
//! and carries out what the device says.
//!
//! A descriptor leaves its ring as soon as the dispatcher sees it and waits in the device's own
//! queue, where arbitration finds it; its entry is free only when the device has given it to an
//! engine. So what ring and queue hold together is what the ring counts, the device's queue has
//! always room, and the rules of who comes next are the device's alone.

mod chaos;
mod failure;
mod outage;
mod requests;
mod work;

use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_device::{Effect, Function, Member, Portal, Submission};
use dray_spec::{Descriptor, Flags};
use zerocopy::transmute;

use crate::effect_sink::EffectSink;
use crate::engine::Engine;
use crate::event::Listener;
use crate::idle_policy::IdlePolicy;
use crate::polling_time::PollingTime;
use crate::request::Request;
use crate::run_delay::RunDelay;
use crate::scheduler::Scheduler;
use crate::shared::Shared;
use crate::{Engines, Event, Idle, Options, SharedMemory};
use dray_ring::Reader;

/// How long the dispatcher waits for other processes that have claimed entries to write them, when it
/// must know what is in the queues. Then it takes the descriptors for ones that come later.
const LATE: Duration = Duration::from_millis(50);
/// Turns from one look for descriptors behind one that is not there yet to the next.
const AHEAD: u32 = 256;
/// How long it sleeps at most where another process could keep its doorbell from ringing.
const NAP: Duration = Duration::from_millis(100);

/// A work queue as the dispatcher sees it.
pub(crate) struct Source {
    portal: Portal,
    reader: Reader,
    /// Losses that have been reported.
    lost: u64,
}

pub(crate) struct Dispatcher<M> {
    shared: Arc<Shared>,
    function: Function,
    /// By work queue.
    sources: Vec<Source>,
    /// Those whose queues are not disabled: nothing is in the others.
    live: Vec<usize>,
    engines: Vec<Engine>,
    /// It carries out itself what need not wait, for however many engines.
    executes: bool,
    sink: EffectSink<M>,
    /// Those that are not over.
    requests: Vec<Request>,
    effects: Vec<Effect>,
    list: Vec<Descriptor>,
    name: String,
    /// When it saw that it is to stop.
    stopping: Option<Instant>,
    turns: u32,
    polling: PollingTime,
    hold: bool,
    /// The last look has found descriptors, and none starts before the next.
    held: bool,
    /// What an adversary has to choose from, if there is one.
    scheduler: Option<Scheduler>,
    /// Submitters wait, by an adversary that has descriptors end at once, until all of those have.
    prompt: bool,
    /// Some do.
    prompts: bool,
    /// Until when queues answer retry.
    retry_until: Option<Instant>,
    /// Software elsewhere issues the commands, and resets a device that has halted.
    is_driven: bool,
}

impl<M: SharedMemory> Dispatcher<M> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        function: Function,
        engines: Vec<Engine>,
        memory: M,
        listener: Listener,
        options: &Options,
        name: String,
    ) -> Dispatcher<M> {
        let sources = (0..).zip(&shared.rings).map(|(wq, ring)| Source {
            // The ring has applied the threshold.
            portal: Portal { wq, limited: false },
            reader: Reader::new(ring.clone()),
            lost: 0,
        });
        let mut dispatcher = Dispatcher {
            sources: sources.collect(),
            live: Vec::new(),
            shared: shared.clone(),
            function,
            engines,
            executes: options.engines == Engines::ThreadsThatWait,
            sink: EffectSink::new(shared, memory, listener, options.steps, options.chaos),
            requests: Vec::new(),
            effects: Vec::new(),
            list: Vec::new(),
            name,
            stopping: None,
            turns: 0,
            polling: PollingTime::default(),
            hold: options.hold,
            held: false,
            scheduler: options
                .chaos
                .map(|chaos| Scheduler::new(chaos, options.depth())),
            prompt: options.is_prompt(),
            prompts: false,
            retry_until: None,
            is_driven: options.driven,
        };
        dispatcher.arrange();
        dispatcher
    }

    /// Until the device is to stop, and has stopped.
    pub(crate) fn run(&mut self, idle: Idle) {
        let mut idle_policy = IdlePolicy::new(idle);
        let limit = self.shared.is_for_others().then_some(NAP);
        // Who shares the process shares its fate.
        let mut delay = self.shared.is_for_others().then(|| RunDelay::new(0));
        loop {
            if self.shared.is_aborting() {
                return;
            }
            if self.turn() {
                idle_policy.found();
                if let Some(delay) = &mut delay {
                    self.shared.region.doorbell().completions().ring();
                    delay.worked(self.shared.region.doorbell());
                }
            } else if self.shared.is_stopping() && self.is_quiet() {
                return;
            } else if idle_policy.is_over() {
                let shared = self.shared.clone();
                let limit = self.step_limit(limit);
                shared.region.doorbell().sleep(|| self.is_pending(), limit);
                self.polling.look(&shared);
                if let Some(delay) = &mut delay {
                    delay.look(shared.region.doorbell());
                }
                idle_policy.slept();
            }
        }
    }

    /// Looks everywhere once. Whether there was anything.
    #[inline]
    fn turn(&mut self) -> bool {
        let mut worked = false;
        if self.shared.is_requested() || self.is_due() {
            worked = true;
            self.serve_requests();
        }
        worked |= self.reap_reports();
        worked |= self.take_submissions();
        self.turns = self.turns.wrapping_add(1);
        if self.turns.is_multiple_of(AHEAD) {
            worked |= self.take_ahead();
        }
        if self.shared.has_departed() {
            worked |= self.skip_departed();
        }
        for index in 0..self.engines.len() {
            worked |= self.start(index);
        }
        // All that could begin has: what is chosen from does not depend on how far this turn has come.
        if !worked && self.scheduler.is_some() {
            worked = self.take_step();
        }
        if self.prompts {
            self.release_prompt();
        }
        worked
    }

    /// Takes in what the engines' threads have done.
    #[inline]
    fn reap_reports(&mut self) -> bool {
        let mut reaped = false;
        for index in 0..self.engines.len() {
            while let Some(report) = self.engines[index].worker.as_mut().and_then(|w| w.report()) {
                reaped = true;
                if self.scheduler.is_some() {
                    self.come_back(report);
                    continue;
                }
                self.engines[index].outstanding -= 1;
                self.function
                    .done(report.id, &report.outcome, &mut self.effects);
                self.apply_effects();
            }
        }
        reaped
    }

    /// Moves descriptors from the rings to the device's queues.
    #[inline]
    fn take_submissions(&mut self) -> bool {
        let mut found = false;
        let (mut overflows, mut refused) = (false, false);
        for index in &self.live {
            let source = &mut self.sources[*index];
            while let Some(words) = source.reader.next() {
                let origin = self.hold.then(|| source.reader.last_origin());
                found = true;
                let descriptor = received(&self.shared, words);
                let answer = self.function.submit(source.portal, &descriptor);
                if answer == Submission::Accepted {
                    if let Some(origin) = origin {
                        self.sink.submitted_from(origin);
                    }
                } else {
                    // What another process writes may come late, or be more than there is room for.
                    debug_assert!(self.shared.is_for_others(), "the ring knows the queue");
                    self.effects.push(refusal(source.portal.wq, &descriptor));
                    refused = true;
                }
            }
            let lost = source.reader.ring().lost();
            if lost != source.lost {
                source.lost = lost;
                overflows = true;
                // However many they are: the register holds one (spec 9.2.15).
                self.function.overflow(source.portal.wq, &mut self.effects);
            }
        }
        if overflows || refused || (found && self.sink.steps) {
            self.apply_effects();
        }
        self.prompts |= found && self.prompt;
        self.held = found && self.hold && !self.prompt;
        if self.held {
            self.release_watched();
        }
        if found && let Some(scheduler) = &mut self.scheduler {
            scheduler.hear();
        }
        found
    }

    /// Moves descriptors that are behind one which was claimed and is not there yet.
    #[cold]
    fn take_ahead(&mut self) -> bool {
        let (mut found, mut refused) = (false, false);
        for index in &self.live {
            let source = &mut self.sources[*index];
            while let Some(words) = source.reader.next_ahead() {
                let origin = self.hold.then(|| source.reader.last_origin());
                found = true;
                let descriptor = received(&self.shared, words);
                let answer = self.function.submit(source.portal, &descriptor);
                if answer == Submission::Accepted {
                    if let Some(origin) = origin {
                        self.sink.submitted_from(origin);
                    }
                } else {
                    self.effects.push(refusal(source.portal.wq, &descriptor));
                    refused = true;
                }
            }
        }
        if refused || (found && self.sink.steps) {
            self.apply_effects();
        }
        self.prompts |= found && self.prompt;
        if found && self.hold && !self.prompt {
            self.held = true;
            self.release_watched();
        }
        found
    }

    /// The listener has seen what was accepted: those who have submitted it may go on, and have time for that.
    #[cold]
    fn release_watched(&mut self) {
        for index in &self.live {
            self.sources[*index].reader.looked();
        }
        self.shared.region.doorbell().completions().ring();
        self.sink.tell(Event::Held);
    }

    /// Leaves out what processes that are gone have claimed.
    #[cold]
    fn skip_departed(&mut self) -> bool {
        let mut passed = false;
        for index in &self.live {
            let reader = &mut self.sources[*index].reader;
            while reader.pass(|client| self.shared.clients.is_gone(client)) {
                passed = true;
            }
        }
        passed
    }

    /// Entries whose descriptors have left the device's queues are free.
    #[inline]
    fn free(&mut self) {
        for index in &self.live {
            let source = &mut self.sources[*index];
            if source.reader.has_waiting() {
                let waiting = self
                    .function
                    .device()
                    .occupancy(source.portal.wq)
                    .unwrap_or(0);
                source.reader.free_but(waiting.into());
            }
        }
    }

    /// Has an engine start one thing, if there is something and it has room.
    #[inline]
    fn start(&mut self, index: usize) -> bool {
        let engine = &mut self.engines[index];
        if !engine.has_room() {
            return false;
        }
        if let Some(batch) = engine.batch {
            match self.function.next_member(batch) {
                Member::Work(work) => self.begin(index, work, Some(batch)),
                Member::Fenced => return false,
                Member::None => {
                    engine.batch = None;
                    if let Some(scheduler) = &mut self.scheduler {
                        scheduler.forget_batch(batch);
                    }
                }
            }
            return true;
        }
        let id = engine.id;
        if self.held || self.keeps_order(index) {
            return false;
        }
        let work = self.function.take(id, &mut self.effects);
        // Drains that wait for others have left their queue all the same.
        self.free();
        let Some(work) = work else {
            if !self.effects.is_empty() {
                self.apply_effects();
            }
            return false;
        };
        self.begin(index, work, None);
        true
    }

    /// Carries out what the device has said.
    #[inline]
    fn apply_effects(&mut self) {
        self.sink
            .apply_effects(&mut self.effects, &mut self.function);
    }

    /// Whether a look would find anything.
    fn is_pending(&self) -> bool {
        let source = |index: &usize| {
            let source = &self.sources[*index];
            let reader = &source.reader;
            reader.pending() || reader.pending_ahead() || reader.ring().lost() != source.lost
        };
        let reports = |e: &Engine| e.worker.as_ref().is_some_and(|w| w.has_reports());
        self.shared.is_requested()
            || self.is_due()
            || self.is_step_due()
            || self.shared.is_stopping()
            || self.live.iter().any(source)
            || self.engines.iter().any(reports)
    }

    /// Whether all that was accepted has ended, or never will for a full event log. The rings take
    /// nothing any more.
    fn is_quiet(&mut self) -> bool {
        let since = *self.stopping.get_or_insert_with(Instant::now);
        let late = self.shared.is_for_others() && since.elapsed() > LATE;
        let empty = |s: &Source| {
            s.reader.ring().end();
            let behind = s.reader.is_behind() && !late;
            let waiting = self.function.device().occupancy(s.portal.wq).unwrap_or(0);
            !behind && (waiting == 0 || self.function.is_blocked())
        };
        self.sources.iter().all(empty) && self.engines.iter().all(Engine::is_idle)
    }
}

/// The descriptor that the device sees.
#[inline]
fn received(shared: &Shared, words: [u64; 8]) -> Descriptor {
    let mut descriptor: Descriptor = transmute!(words);
    if let Some(deviant) = &shared.deviant {
        deviant.submitted(&mut descriptor);
    }
    descriptor
}

/// What becomes of a descriptor that has no place in the device.
#[cold]
fn refusal(wq: u16, descriptor: &Descriptor) -> Effect {
    let addressed = descriptor.flags().contains(Flags::COMPLETION_ADDRESS_VALID);
    Effect::Abandoned {
        wq,
        completion: addressed.then_some(descriptor.completion_addr),
        member: false,
    }
}
