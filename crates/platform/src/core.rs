//! A processor core: its clock, its store queue, and how it waits.

use std::collections::VecDeque;

use dray_clock::{Duration, Time};

use crate::RecordedParameters;

/// How a core waits for a completion record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WaitMode {
    /// Looks again at once.
    #[default]
    Poll,
    /// Looks, then executes PAUSE.
    Pause,
    /// UMONITOR and UMWAIT: gives the core's time back.
    Umwait,
}

/// A MOVDIR64B on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostedWrite {
    /// When it leaves the store queue for the portal.
    pub leaves_at: Time,
}

/// A core with its own clock.
///
/// The store queue drains in order (x86 total store order). A MOVDIR64B to the portal line that
/// another one is on its way to waits for that one, so a burst is cheap until the queue is full,
/// and then each costs the time of one accepted write: the knee at about 115 descriptors.
#[derive(Debug, Clone, Default)]
pub struct Core {
    /// The core's own time.
    pub clock: Time,
    /// Time that the core was not asleep in UMWAIT.
    pub busy: Duration,
    /// Time of looks that found nothing, and of sleep: what dsa_perf_micros takes off for its CPU utilization.
    pub waited: Duration,
    stores: VecDeque<Time>,
    last_drained: Time,
}

impl Core {
    /// A core that starts at time zero.
    pub fn new() -> Core {
        Core::default()
    }

    /// Executes for `span`.
    #[inline]
    pub fn work(&mut self, span: Duration) {
        self.clock += span;
        self.busy += span;
    }

    /// An ordinary store: it waits in the store queue behind the MOVDIR64B before it.
    #[inline]
    pub fn store(&mut self, parameters: &RecordedParameters) {
        self.take_slot(parameters);
        if self.last_drained > self.clock {
            self.stores.push_back(self.last_drained);
        }
    }

    /// A MOVDIR64B. `portal_rotates`: each one goes to another line of the portal page.
    #[inline]
    pub fn movdir64b(
        &mut self,
        parameters: &RecordedParameters,
        portal_rotates: bool,
    ) -> PostedWrite {
        self.take_slot(parameters);
        self.work(parameters.movdir64b_issue());
        let leaves_at = self.clock.max(self.last_drained);
        let lines = match portal_rotates {
            true => parameters.portal_lines_in_flight().max(1),
            false => 1,
        };
        self.last_drained = leaves_at + Duration(parameters.movdir64b_drain().0 / lines);
        self.stores.push_back(self.last_drained);
        PostedWrite { leaves_at }
    }

    /// MFENCE: waits until the store queue is empty.
    pub fn fence(&mut self) {
        self.work(self.last_drained.since(self.clock));
        self.stores.clear();
    }

    /// Waits, from now on, for something that becomes visible at `visible`; the clock then stands
    /// where the core has seen it.
    #[inline]
    pub fn wait(&mut self, visible: Time, mode: WaitMode, parameters: &RecordedParameters) {
        let span = visible.since(self.clock);
        let begun = self.clock;
        // The last look finds the record.
        let found = match mode {
            WaitMode::Poll => {
                self.work(looks(span, parameters.poll()));
                parameters.poll()
            }
            WaitMode::Pause => {
                self.work(looks(span, parameters.pause()));
                parameters.pause()
            }
            WaitMode::Umwait if span > Duration::ZERO => {
                self.clock = visible + parameters.umwait_wake();
                self.busy += parameters.umwait_wake();
                self.work(parameters.poll());
                parameters.poll()
            }
            WaitMode::Umwait => {
                self.work(parameters.poll());
                parameters.poll()
            }
        };
        self.waited += self.clock.since(begun) - found;
    }

    /// Stores that have not left the queue, the one on its way included.
    #[inline]
    pub fn stores_pending(&mut self) -> usize {
        while self
            .stores
            .front()
            .is_some_and(|drained| *drained <= self.clock)
        {
            self.stores.pop_front();
        }
        self.stores.len()
    }

    /// Stalls until a slot of the store queue is free. A store holds its slot until it is accepted.
    #[inline]
    fn take_slot(&mut self, parameters: &RecordedParameters) {
        if self.stores_pending() as u64 >= parameters.core_store_queue()
            && let Some(drained) = self.stores.pop_front()
        {
            self.work(drained.since(self.clock));
        }
    }
}

/// Time until the first look at or after `span`, with a look every `period`.
#[inline]
fn looks(span: Duration, period: Duration) -> Duration {
    Duration(span.0.div_ceil(period.0.max(1)).max(1) * period.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    fn parameters() -> RecordedParameters {
        builtin("spr-2s").unwrap().recorded_parameters()
    }

    fn burst(count: u64) -> Duration {
        let p = parameters();
        let mut core = Core::new();
        for _ in 0..count {
            core.movdir64b(&p, false);
        }
        core.busy
    }

    #[test]
    fn a_burst_is_cheap_up_to_the_store_queue_and_costs_the_drain_time_beyond() {
        let p = parameters();
        let queue = p.core_store_queue();
        assert_eq!(burst(queue), p.movdir64b_issue() * queue);
        let slope = burst(queue + 200) - burst(queue + 100);
        assert_eq!(slope, p.movdir64b_drain() * 100);
    }

    #[test]
    fn submissions_spaced_by_the_drain_time_do_not_stall() {
        let p = parameters();
        let mut core = Core::new();
        for _ in 0..1000 {
            core.movdir64b(&p, false);
            core.work(p.movdir64b_drain());
        }
        assert_eq!(
            core.busy,
            (p.movdir64b_issue() + p.movdir64b_drain()) * 1000
        );
    }

    #[test]
    fn ordinary_stores_wait_behind_descriptors() {
        let p = parameters();
        let mut core = Core::new();
        for _ in 0..=p.core_store_queue() / 2 {
            core.movdir64b(&p, false);
            core.store(&p);
        }
        let before = core.busy;
        core.store(&p);
        core.store(&p);
        assert!(core.busy > before, "the queue is full of both kinds");
    }

    #[test]
    fn a_core_is_idle_in_umwait_and_busy_in_polling() {
        let p = parameters();
        for (mode, idle) in [(WaitMode::Poll, false), (WaitMode::Umwait, true)] {
            let mut core = Core::new();
            core.wait(Time(1_000_000), mode, &p);
            assert!(core.clock >= Time(1_000_000));
            assert_eq!(core.busy.0 < 900_000, idle, "{mode:?}");
        }
    }

    #[test]
    fn the_look_that_finds_a_record_is_no_wait() {
        let p = parameters();
        let waited = |mode, span: Duration| {
            let mut core = Core::new();
            core.wait(Time::ZERO + span, mode, &p);
            core.waited
        };
        for mode in [WaitMode::Poll, WaitMode::Pause, WaitMode::Umwait] {
            assert_eq!(waited(mode, Duration::ZERO), Duration::ZERO, "{mode:?}");
        }
        assert_eq!(waited(WaitMode::Poll, p.poll() * 7), p.poll() * 6);
        assert_eq!(waited(WaitMode::Pause, p.pause() * 7), p.pause() * 6);
        let asleep = Duration(1_000_000);
        assert_eq!(waited(WaitMode::Umwait, asleep), asleep + p.umwait_wake());
    }

    #[test]
    fn polling_sees_the_record_at_the_first_poll_after_it() {
        let p = parameters();
        for visible in [1, p.poll().0, p.poll().0 + 1, 7 * p.poll().0] {
            let mut core = Core::new();
            core.wait(Time(visible), WaitMode::Poll, &p);
            assert!(core.clock.0 >= visible && core.clock.0 < visible + p.poll().0.max(2));
        }
    }
}
