//! Giving way to the device where it waits for a processor.
//!
//! Most programs poll for their completion records without ever giving way, and with as many threads
//! as there are processors the device would run only when the scheduler takes one away from them, many
//! milliseconds later. A thread that has submitted will wait anyway, so it sleeps here until the device wakes it.
//! It does not yield: that puts it behind all other threads that poll, each for a whole time slice.

use std::arch::x86_64::_rdtsc;
use std::time::Duration;

use dray_ring::RemotePortal;

use crate::guarded::read;
use crate::quiet::is_quiet;
use crate::submit::Words;

/// Ticks of the time stamp counter: some 250 ms, for with 64 threads on two processors a turn takes 70
/// ms to come round. A descriptor that takes longer, or waits for this very thread, is waited for no more.
const LONGEST: u64 = 600_000_000;
/// One sleep at most. The device rings when it has written a record, unless it has been killed.
const SLEEP: Duration = Duration::from_millis(10);
/// Ticks that who submits leaves the device to look at its memory, where that is wanted: some 20 ms, for it may have to get a
/// processor first. A device that looks no more rings no bell.
const LOOK: u64 = 50_000_000;
/// A full queue is tried again after so long at most.
const FULL: Duration = Duration::from_millis(1);
/// With fewer descriptors in the queue a thread that submits alone goes on: if it waits for each, the device, which
/// sleeps until then, takes the processor from it; if it has several in flight, it wants to submit them.
const MANY: u64 = 8;
/// Flags of a descriptor in its first word: a completion address is valid, a record is requested
/// (spec 5.1, 5.4).
const ADDRESSED: u64 = 1 << 34;
const REQUESTED: u64 = 1 << 35;

/// Sleeps until the descriptor has a completion record, or for a while. Without a record to wait for it does not, nor
/// with few descriptors in the queue where this thread submits `alone`.
#[cold]
pub(crate) fn until_ended(portal: &RemotePortal, words: &Words, alone: bool) {
    if !is_quiet() && portal.is_watched() {
        until_looked(portal);
    }
    if is_quiet()
        || !portal.lacks_processor()
        || alone && portal.occupancy() < MANY
        || words[0] & ADDRESSED == 0
        || words[0] & REQUESTED == 0
    {
        return;
    }
    // SAFETY: it reads a counter.
    let since = unsafe { _rdtsc() };
    while !has_ended(words[1]) {
        portal.await_completion(|| has_ended(words[1]), SLEEP);
        // SAFETY: it reads a counter.
        if unsafe { _rdtsc() }.wrapping_sub(since) > LONGEST {
            return;
        }
    }
}

/// Sleeps until the device has looked at what was accepted.
fn until_looked(portal: &RemotePortal) {
    let accepted = portal.accepted();
    // SAFETY: it reads a counter.
    let since = unsafe { _rdtsc() };
    while !portal.has_looked(accepted) {
        portal.await_completion(|| portal.has_looked(accepted), SLEEP);
        // SAFETY: as above.
        if unsafe { _rdtsc() }.wrapping_sub(since) > LOOK {
            return;
        }
    }
}

/// About where the stack of this thread is: another number for nearly every thread. Its thread pointer may be none.
pub(crate) fn stack() -> usize {
    const STACK: u32 = 16;
    let here = 0u8;
    std::hint::black_box(&raw const here).addr() >> STACK
}

/// Sleeps until some descriptor has ended, or for a moment.
#[cold]
pub(crate) fn until_room(portal: &RemotePortal) {
    if !is_quiet() {
        portal.await_completion(|| false, FULL);
    }
}

/// Whether a record has a status, or cannot be read.
fn has_ended(record: u64) -> bool {
    status(record) != Some(0)
}

/// The status in the record of a descriptor; `None` if it has none, or it cannot be read.
pub(crate) fn record_status(words: &Words) -> Option<u8> {
    (words[0] & ADDRESSED != 0)
        .then(|| status(words[1]))
        .flatten()
}

fn status(record: u64) -> Option<u8> {
    // The byte alone: what stands beside the record is not for us to read.
    let mut status = [0];
    // SAFETY: the handlers are installed where there are portals.
    let read = unsafe { read(record, &mut status) };
    read.is_ok().then_some(status[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use dray_ring::{Attachment, Gate, RegionLayout, SharedRegion};
    use dray_spec::{Descriptor, Portal};

    /// Of a device that does nothing, with so many descriptors in its queue.
    fn portal(occupancy: u64) -> RemotePortal {
        let layout = RegionLayout {
            queues: 1,
            entries: 16,
        };
        let (region, file) = SharedRegion::shared(layout).expect("shared memory");
        let ring = region.ring(0).expect("the queue");
        ring.open(Gate {
            dedicated: true,
            size: 16,
            threshold: 0,
        });
        let attachment = Attachment::new(file.fd(), layout, 1).expect("the region");
        let portal = Portal {
            wq: 0,
            limited: false,
        };
        let portal = attachment.portal(portal).expect("the queue");
        // Its dispatcher waits for a processor.
        region.doorbell().set_delayed(1, true);
        for _ in 0..occupancy {
            portal.write_posted(&Descriptor::noop());
        }
        assert_eq!(portal.occupancy(), occupancy);
        portal
    }

    #[repr(C, align(64))]
    struct Records([u64; 8]);

    #[test]
    fn a_descriptor_has_ended_when_its_status_is_not_0() {
        // The status is the lowest byte; the other record of the line is another's.
        for (first, second, ended) in [(0, 0, false), (1, 0x100, false), (0, 0x101, true)] {
            let records = Records([first, 0, 0, 0, second, 0, 0, 0]);
            let at = std::hint::black_box(&raw const records).addr() as u64 + 32;
            assert_eq!(has_ended(at), ended, "{first:x} {second:x}");
            let status = records.0[4] as u8;
            assert_eq!(
                record_status(&[ADDRESSED, at, 0, 0, 0, 0, 0, 0]),
                Some(status)
            );
            assert_eq!(record_status(&[0, at, 0, 0, 0, 0, 0, 0]), None);
        }
    }

    #[test]
    fn descriptors_without_a_record_are_not_waited_for() {
        let records = Records([0; 8]);
        let address = (&raw const records).addr() as u64;
        let portal = portal(MANY);
        until_ended(&portal, &[REQUESTED, address, 0, 0, 0, 0, 0, 0], false);
        until_ended(&portal, &[ADDRESSED, address, 0, 0, 0, 0, 0, 0], false);
    }

    #[test]
    fn the_wait_for_a_descriptor_gives_up() {
        let records = Records([0; 8]);
        let address = (&raw const records).addr() as u64;
        let words = [ADDRESSED | REQUESTED, address, 0, 0, 0, 0, 0, 0];
        for (occupancy, alone) in [(MANY, true), (0, false)] {
            // SAFETY: it reads a counter.
            let since = unsafe { _rdtsc() };
            until_ended(&portal(occupancy), &words, alone);
            // SAFETY: as above.
            assert!(unsafe { _rdtsc() } - since > LONGEST, "it has waited");
        }
        assert_eq!(records.0, [0; 8]);
    }
}
