//! Channels of a queue.

use std::ptr::NonNull;
use std::sync::Arc;

use dray_placement::Reason;

use super::slots::CopyInFlight;
use super::{DropCause, Queue};
use crate::copy::{Channel, Keep};
use crate::memory::{DirtyLog, MemoryMap};
use crate::net::Packet;
use crate::ring::Direction;

/// A queue's place at a channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) channel: usize,
    pub(super) member: u32,
}

#[derive(Debug)]
struct Attached {
    place: Place,
    /// Unregistered; copies are in flight there.
    leaving: bool,
    /// What copies point into that were given up. The channel's thread hands it to the channel.
    given_up: Option<Keep>,
}

/// The channels of one thread that a queue uses.
#[derive(Debug, Default)]
pub(super) struct Lane {
    attached: Vec<Attached>,
    /// Whether one of these is leaving, or has copies that were given up.
    leaving: bool,
    turn: usize,
}

impl Lane {
    /// Copies in flight are not waited for any longer; what they point into is kept until they end.
    pub(super) fn give_up(&mut self, keep: &Keep) {
        for attached in &mut self.attached {
            let before = attached.given_up.take();
            attached.given_up = Some(match before {
                None => keep.clone(),
                Some(before) => Arc::new((before, keep.clone())),
            });
            self.leaving = true;
        }
    }

    /// A mover may still write where copies lead that were given up: that memory is never given back.
    pub(super) fn forget(&mut self) {
        for attached in &mut self.attached {
            std::mem::forget(attached.given_up.take());
        }
    }

    /// Gives places back at channels that are unregistered and have no copy of this queue in flight, and
    /// takes new ones where copies were given up.
    fn release(&mut self, channels: &mut [Channel]) {
        self.attached.retain_mut(|attached| {
            let Some(channel) = channels.get_mut(attached.place.channel) else {
                return false;
            };
            let member = &mut attached.place.member;
            if let Some(keep) = attached.given_up.take() {
                channel.unregister(*member, keep);
                *member = channel.register();
            }
            let stays = !attached.leaving || channel.has_copies_of(*member);
            if !stays {
                channel.unregister(*member, Arc::new(()));
            }
            stays
        });
        self.leaving = self.attached.iter().any(|a| a.leaving);
    }
}

/// The number of the thread whose channels these are.
#[inline]
fn lane_of(channels: &[Channel]) -> Option<usize> {
    let lane = channels.first()?.lane();
    debug_assert!(channels.iter().all(|channel| channel.lane() == lane));
    Some(lane)
}

impl Queue {
    /// Registers a channel: copies of its thread go to it from now on, in turn with the others. Packets may
    /// be in flight.
    pub fn attach(&mut self, channels: &mut [Channel], channel: usize) {
        let Some(lane) = lane_of(channels) else {
            return;
        };
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        let attached = &mut self.lanes[lane].attached;
        let known = attached.iter_mut().find(|a| a.place.channel == channel);
        if let Some(known) = known {
            known.leaving = false;
        } else if let Some(at) = channels.get_mut(channel) {
            let member = at.register();
            attached.push(Attached {
                place: Place { channel, member },
                leaving: false,
                given_up: None,
            });
        }
    }

    /// Unregisters one channel, under traffic too: no new copy goes to it, and its place is given back
    /// by the poll that takes the last of its copies. Returns whether it has none in flight now. A
    /// queue without a channel copies by the core.
    pub fn unregister(&mut self, channels: &mut [Channel], channel: usize) -> bool {
        let Some(lane) = lane_of(channels).and_then(|at| self.lanes.get_mut(at)) else {
            return true;
        };
        for attached in &mut lane.attached {
            attached.leaving |= attached.place.channel == channel;
        }
        lane.release(channels);
        !lane.attached.iter().any(|a| a.place.channel == channel)
    }

    /// Unregisters all channels of a thread. What they have in flight is abandoned: call it when
    /// [`Queue::in_flight`] is 0, or after a drain that missed its deadline.
    pub fn detach(&mut self, channels: &mut [Channel]) {
        let keep = self.abandon();
        let Some(lane) = lane_of(channels).and_then(|at| self.lanes.get_mut(at)) else {
            return;
        };
        for attached in lane.attached.drain(..) {
            let Place { channel, member } = attached.place;
            if let Some(channel) = channels.get_mut(channel) {
                let before = attached.given_up.unwrap_or_else(|| Arc::new(()));
                channel.unregister(member, Arc::new((before, keep.clone())));
            }
        }
        lane.leaving = false;
    }

    /// Whether calls hand copies to channels: the asynchronous ones are to be used then.
    #[inline]
    pub fn uses_channels(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// Channels of the first thread that are registered.
    pub fn channels(&self) -> impl Iterator<Item = usize> + '_ {
        let attached = self.lanes.first().into_iter().flat_map(|l| &l.attached);
        attached.filter(|a| !a.leaving).map(|a| a.place.channel)
    }

    /// Hands to a thread's channels what was given up: they let go of it when their copies have ended.
    pub fn settle(&mut self, channels: &mut [Channel]) {
        if let Some(lane) = lane_of(channels).and_then(|at| self.lanes.get_mut(at))
            && lane.leaving
        {
            lane.release(channels);
        }
    }

    /// Whether the places of a thread are to be looked at, though nothing is in flight.
    #[inline]
    pub(super) fn is_leaving(&self, channels: &[Channel]) -> bool {
        let lane = lane_of(channels).and_then(|at| self.lanes.get(at));
        lane.is_some_and(|lane| lane.leaving)
    }

    /// Empties the slots; what their copies point into lives as long as the result.
    pub(super) fn abandon(&mut self) -> Keep {
        let memory = self.running.as_ref().map(|r| r.memory.clone());
        let log = match self.direction {
            Direction::ToGuest => self.log.clone(),
            Direction::FromGuest => None,
        };
        let written = match log {
            Some(_) => self.slots.destinations(),
            None => Vec::new(),
        };
        let packets = self.slots.abandon();
        let abandoned = Abandoned {
            memory,
            log,
            written,
            _packets: packets,
        };
        // What they have written so far; the rest is logged when they have ended.
        self.stats.pages_not_logged += abandoned.log();
        Arc::new(abandoned)
    }

    /// The channel of a thread whose turn it is, and the queue's place there.
    #[inline]
    pub(super) fn choose(&mut self, channels: &mut [Channel]) -> Option<Place> {
        let lane = self.lanes.get_mut(lane_of(channels)?)?;
        if lane.leaving {
            lane.release(channels);
        }
        let count = lane.attached.len();
        let attached = lane.attached.get(lane.turn).or(lane.attached.first())?;
        lane.turn = (lane.turn + 1) % count;
        match attached.leaving {
            false => Some(attached.place),
            true => {
                let mut staying = lane.attached.iter().filter(|a| !a.leaving);
                staying.next().map(|attached| attached.place)
            }
        }
    }

    /// Takes ends of copies, gives buffers back that are done, and delivers their packets.
    #[inline]
    pub(super) fn reap(&mut self, channels: &mut [Channel], out: &mut Vec<Packet>) -> usize {
        self.poll_channels(channels);
        self.leave(out)
    }

    /// Takes ends of copies of a thread.
    #[inline]
    pub(super) fn poll_channels(&mut self, channels: &mut [Channel]) {
        let Queue {
            direction,
            running,
            lanes,
            slots,
            log,
            stats,
            ..
        } = self;
        let Some(lane) = lane_of(channels).and_then(|at| lanes.get_mut(at)) else {
            return;
        };
        if lane.leaving {
            lane.release(channels);
        }
        if slots.is_empty() {
            return;
        }
        // Copies that began before logging did are logged too.
        let logging = log.as_ref().filter(|_| *direction == Direction::ToGuest);
        let logging = logging.zip(running.as_ref());
        for Attached { place, .. } in &lane.attached {
            let Some(channel) = channels.get_mut(place.channel) else {
                continue;
            };
            channel.poll(place.member, |sequence, ok| {
                let in_flight = slots.complete(sequence);
                debug_assert!(in_flight, "a copy that is not in flight");
                if in_flight && (!ok || logging.is_some()) {
                    let Some(copy) = slots.copy(sequence) else {
                        return;
                    };
                    if !ok {
                        stats.count_by_core(Reason::DeviceError, 1);
                        repeat(&copy);
                    }
                    if let Some((log, running)) = logging {
                        let (to, len) = (copy.destination, copy.len.into());
                        stats.pages_not_logged += running.memory.log(log, to, len);
                    }
                }
            });
        }
        if lane.leaving {
            lane.release(channels);
        }
    }

    /// Gives the longest done prefix back.
    #[inline]
    pub(super) fn leave(&mut self, out: &mut Vec<Packet>) -> usize {
        let sound = self.memory_is_sound();
        self.used.clear();
        let before = out.len();
        let completed = self.slots.leave(&mut self.used, out);
        if self.used.is_empty() {
            return 0;
        }
        self.stats.completed += completed;
        if sound {
            for packet in &out[before..] {
                self.stats.count_packet(packet.len());
            }
        } else {
            let dropped = out.drain(before..).count() as u64;
            self.stats.count_drops(DropCause::Descriptor, dropped);
        }
        self.publish();
        out.len() - before
    }

    /// Gives the used buffers to the driver, and notifies it.
    #[inline]
    pub(super) fn publish(&mut self) {
        let Queue {
            running: Some(running),
            used,
            log,
            ..
        } = self
        else {
            return;
        };
        match self.direction {
            Direction::ToGuest => running.ring.publish(used),
            Direction::FromGuest => running.ring.publish_read(used),
        }
        if log.is_some() {
            self.log_published();
        }
        self.notify();
    }
}

/// What copies point into after their queue has given them up.
struct Abandoned {
    memory: Option<Arc<MemoryMap>>,
    log: Option<Arc<DirtyLog>>,
    /// What they write of the guest's memory, if that is logged.
    written: Vec<(NonNull<u8>, u32)>,
    _packets: Vec<Packet>,
}

// SAFETY: the addresses lie in `memory`, which is shared and may be used from any thread; they are
// not read from.
unsafe impl Send for Abandoned {}
// SAFETY: as above.
unsafe impl Sync for Abandoned {}

impl Abandoned {
    /// Logs what the copies write. Returns how many pages the log is too small for.
    fn log(&self) -> u64 {
        let (Some(memory), Some(log), false) = (&self.memory, &self.log, self.written.is_empty())
        else {
            return 0;
        };
        let pages = self
            .written
            .iter()
            .map(|(at, len)| memory.log(log, *at, u64::from(*len)));
        let missed = pages.sum();
        log.notify();
        missed
    }
}

impl Drop for Abandoned {
    /// Channels drop it when the last copy has ended.
    fn drop(&mut self) {
        self.log();
    }
}

/// The core makes a copy that a mover has failed to make.
#[cold]
fn repeat(copy: &CopyInFlight) {
    // SAFETY: source and destination are a packet's buffer and a mapped segment of the guest; the
    // slot, which is still open, holds both.
    unsafe { crate::memory::copy(copy.source, copy.destination, copy.len as usize) };
}
