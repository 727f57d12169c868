//! From the core to the work queue: MOVDIR64B and ENQCMD.

use dray_clock::Duration;
use dray_device::Submission;

use crate::channel::ChannelId;
use crate::world::{Event, World};

impl World {
    /// MOVDIR64B for every unit that is ready.
    #[inline]
    pub(crate) fn post_writes(&mut self, id: ChannelId) {
        let channel = &mut self.channels[id.index()];
        while let Some(unit) = channel.ready.pop_front() {
            let rotates = channel.options.portal_rotates;
            let write = channel.core.movdir64b(&self.parameters, rotates);
            channel.in_flight += 1;
            channel.counters.submitted += 1;
            let at = write.leaves_at + channel.way;
            let event = Event::Arrive { channel: id, unit };
            self.events.schedule_in(channel.stream, at, event);
        }
    }

    /// ENQCMD for the next unit that is ready, unless one is on its way.
    pub(crate) fn start_enqcmd(&mut self, id: ChannelId) {
        let admission = self.parameters.enqcmd_admission();
        let channel = &mut self.channels[id.index()];
        if channel.awaiting.is_none()
            && let Some(unit) = channel.ready.pop_front()
        {
            channel.awaiting = Some(unit);
            let at = (channel.core.clock + channel.way + admission).max(self.now);
            self.events.schedule(at, Event::Enqcmd { channel: id });
        }
    }

    /// A posted write reaches its portal.
    #[inline]
    pub(crate) fn arrive(&mut self, id: ChannelId, unit: u32) {
        let channel = &mut self.channels[id.index()];
        let index = usize::from(channel.options.queue.map_or(0, |q| q.0));
        let portal = channel.portal;
        let run = &mut self.devices[index];
        match channel.with_descriptor(unit, |d| run.device.write_posted(portal, d)) {
            Submission::Accepted => {
                run.in_progress += 1;
                self.feed(index, portal.wq);
            }
            // The loss is not reported to the core: the unit stays taken, as on hardware.
            _ => channel.counters.lost += 1,
        }
    }

    /// An ENQCMD reaches its portal, and its answer is on its way back.
    pub(crate) fn answer_enqcmd(&mut self, id: ChannelId) {
        let p = &self.parameters;
        let channel = &mut self.channels[id.index()];
        let index = usize::from(channel.options.queue.map_or(0, |q| q.0));
        let run = &mut self.devices[index];
        if run.accept_free > self.now {
            if !channel.deferred {
                channel.deferred = true;
                run.enqcmd_waiting += 1;
            }
            self.events
                .schedule(run.accept_free, Event::Enqcmd { channel: id });
            return;
        }
        let Some(unit) = channel.awaiting.take() else {
            return;
        };
        if std::mem::take(&mut channel.deferred) {
            run.enqcmd_waiting -= 1;
        }
        let remote = channel.way - p.submit_to_wq();
        let accept = match remote > Duration::ZERO {
            true => p.enqcmd_accept_remote(),
            false => p.enqcmd_accept(),
        };
        let contention = match run.enqcmd_waiting {
            0 => Duration::ZERO,
            waiting => p.enqcmd_contention() * waiting,
        };
        run.accept_free = self.now + accept + contention;
        // The answer and the data of reads come by the same way: it waits for its turn, as long
        // as that way was busy since the last answer.
        let elapsed = self.now.since(channel.last_enqcmd).0.max(1);
        let inbound = (run.inbound - channel.inbound_then).0.min(elapsed);
        let queued = match run.in_progress > 0 {
            true => Duration(part(p.enqcmd_behind_reads().0, inbound, elapsed)),
            false => Duration::ZERO,
        };
        channel.last_enqcmd = self.now;
        channel.inbound_then = run.inbound;
        let back = match remote > Duration::ZERO {
            true => p.enqcmd_period() - p.submit_to_wq() + remote + p.enqcmd_remote() + queued,
            false => p.enqcmd_period() - p.submit_to_wq() + queued,
        };
        let answered = self.now + back;
        channel.core.work(answered.since(channel.core.clock));
        let released = match channel.options.core_of.is_some() || self.shared_cores.is_shared(id) {
            true => self.shared_cores.released(id),
            false => Vec::new(),
        };
        // Those that waited come first: else the channel that blocks would do so again for ever.
        for other in released {
            self.wake(other, answered);
        }
        let channel = &mut self.channels[id.index()];
        let run = &mut self.devices[index];
        let portal = channel.portal;
        match channel.with_descriptor(unit, |d| run.device.enqueue(portal, d)) {
            Submission::Accepted => {
                channel.in_flight += 1;
                channel.counters.submitted += 1;
                run.in_progress += 1;
                self.wake(id, answered);
                self.feed(index, portal.wq);
            }
            _ => {
                channel.counters.retries += 1;
                channel.ready.push_front(unit);
                self.wake(id, answered);
            }
        }
    }
}

/// `whole * part / of`, without overflow.
fn part(whole: u64, part: u64, of: u64) -> u64 {
    match whole.checked_mul(part) {
        Some(product) => product / of,
        None => (u128::from(whole) * u128::from(part) / u128::from(of)) as u64,
    }
}
