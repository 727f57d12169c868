//! Channels of a queue.

use std::ptr::NonNull;
use std::sync::Arc;

use dray_placement::Reason;

use super::slots::CopyInFlight;
use super::{Attached, DropCause, Queue};
use crate::copy::{Channel, Keep};
use crate::memory::{DirtyLog, MemoryMap};
use crate::net::Packet;
use crate::ring::Direction;

impl Queue {
    /// Registers a channel: copies go to it from now on, in turn with the others. Packets may be in
    /// flight.
    pub fn attach(&mut self, channels: &mut [Channel], channel: usize) {
        if let Some(known) = self.attached.iter_mut().find(|a| a.channel == channel) {
            known.leaving = false;
        } else if let Some(at) = channels.get_mut(channel) {
            self.attached.push(Attached {
                channel,
                member: at.register(),
                leaving: false,
            });
        }
    }

    /// Unregisters one channel, under traffic too: no new copy goes to it, and its place is given back
    /// by the poll that takes the last of its copies. Returns whether it has none in flight now. A
    /// queue without a channel copies by the core.
    pub fn unregister(&mut self, channels: &mut [Channel], channel: usize) -> bool {
        for attached in &mut self.attached {
            attached.leaving |= attached.channel == channel;
        }
        self.release(channels);
        !self.attached.iter().any(|a| a.channel == channel)
    }

    /// Gives places back at channels that are unregistered and have no copy of this queue in flight.
    fn release(&mut self, channels: &mut [Channel]) {
        self.attached.retain(|attached| {
            let Some(channel) = channels.get_mut(attached.channel) else {
                return false;
            };
            let stays = !attached.leaving || channel.has_copies_of(attached.member);
            if !stays {
                channel.unregister(attached.member, Arc::new(()));
            }
            stays
        });
        self.leaving = self.attached.iter().any(|a| a.leaving);
    }

    /// Unregisters all channels. What they have in flight is abandoned: call it when
    /// [`Queue::in_flight`] is 0, or after a drain that missed its deadline.
    pub fn detach(&mut self, channels: &mut [Channel]) {
        let keep = self.abandon();
        for attached in self.attached.drain(..) {
            if let Some(channel) = channels.get_mut(attached.channel) {
                channel.unregister(attached.member, keep.clone());
            }
        }
    }

    /// Channels that are registered.
    pub fn channels(&self) -> impl Iterator<Item = usize> + '_ {
        let staying = self.attached.iter().filter(|a| !a.leaving);
        staying.map(|a| a.channel)
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

    /// The channel whose turn it is, and the queue's place there.
    #[inline]
    pub(super) fn choose(&mut self) -> Option<Attached> {
        let attached = self.attached.get(self.turn).or(self.attached.first());
        let attached = *attached?;
        self.turn = (self.turn + 1) % self.attached.len();
        match attached.leaving {
            false => Some(attached),
            true => self.attached.iter().find(|a| !a.leaving).copied(),
        }
    }

    /// Takes ends of copies, gives buffers back that are done, and delivers their packets.
    #[inline]
    pub(super) fn reap(&mut self, channels: &mut [Channel], out: &mut Vec<Packet>) -> usize {
        self.poll_channels(channels);
        self.leave(out)
    }

    /// Takes ends of copies.
    #[inline]
    pub(super) fn poll_channels(&mut self, channels: &mut [Channel]) {
        if self.slots.is_empty() {
            return;
        }
        for i in 0..self.attached.len() {
            let Attached {
                channel, member, ..
            } = self.attached[i];
            // Copies that began before logging did are logged too.
            let to_guest = self.direction == Direction::ToGuest;
            let logging = self.log.as_ref().filter(|_| to_guest);
            let logging = logging.zip(self.running.as_ref());
            let (slots, stats) = (&mut self.slots, &mut self.stats);
            if let Some(channel) = channels.get_mut(channel) {
                channel.poll(member, |sequence, ok| {
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
        }
        if self.leaving {
            self.release(channels);
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
