//! Channels of a queue.

use std::sync::Arc;

use super::slots::CopyInFlight;
use super::{Attached, DropCause, Queue};
use crate::copy::{Channel, Keep};
use crate::net::Packet;
use crate::ring::Direction;

impl Queue {
    /// Registers a channel: copies go to it from now on, in turn with the others.
    pub fn attach(&mut self, channels: &mut [Channel], channel: usize) {
        let known = self.attached.iter().any(|a| a.channel == channel);
        if let Some(at) = channels.get_mut(channel).filter(|_| !known) {
            self.attached.push(Attached {
                channel,
                member: at.register(),
            });
        }
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
        self.attached.iter().map(|a| a.channel)
    }

    /// Empties the slots; what their copies point into lives as long as the result.
    pub(super) fn abandon(&mut self) -> Keep {
        let memory = self.running.as_ref().map(|r| r.memory.clone());
        let packets = self.slots.abandon();
        Arc::new((memory, packets))
    }

    /// The channel whose turn it is, and the queue's place there.
    #[inline]
    pub(super) fn choose(&mut self) -> Option<Attached> {
        let attached = self.attached.get(self.turn).or(self.attached.first());
        let attached = *attached?;
        self.turn = (self.turn + 1) % self.attached.len();
        Some(attached)
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
            let Attached { channel, member } = self.attached[i];
            let (slots, stats) = (&mut self.slots, &mut self.stats);
            if let Some(channel) = channels.get_mut(channel) {
                channel.poll(member, |sequence, ok| {
                    let copy = slots.complete(sequence);
                    debug_assert!(copy.is_some(), "a copy that is not in flight");
                    if let (false, Some(copy)) = (ok, copy) {
                        stats.copies_repeated += 1;
                        repeat(&copy);
                    }
                });
            }
        }
    }

    /// Gives the longest done prefix back.
    #[inline]
    pub(super) fn leave(&mut self, out: &mut Vec<Packet>) -> usize {
        let sound = self.memory_is_sound();
        self.used.clear();
        let (before, mut completed) = (out.len(), 0);
        while let Some(left) = self.slots.leave(&mut self.used) {
            completed += u64::from(left.offloaded);
            let Some(packet) = left.packet else {
                continue;
            };
            if sound {
                self.stats.count_packet(packet.len());
                out.push(packet);
            } else {
                self.stats.count_drops(DropCause::Descriptor, 1);
            }
        }
        if self.used.is_empty() {
            return 0;
        }
        self.stats.completed += completed;
        if let Some(running) = &mut self.running {
            match self.direction {
                Direction::ToGuest => running.ring.publish(&self.used),
                Direction::FromGuest => running.ring.publish_read(&self.used),
            }
            self.notify();
        }
        out.len() - before
    }
}

/// The core makes a copy that a mover has failed to make.
#[cold]
fn repeat(copy: &CopyInFlight) {
    let (from, to) = (copy.source.as_ptr(), copy.destination.as_ptr());
    // SAFETY: source and destination are a packet's buffer and a mapped segment of the guest; the
    // slot, which is still open, holds both.
    unsafe { std::ptr::copy_nonoverlapping(from, to, copy.len as usize) };
}
