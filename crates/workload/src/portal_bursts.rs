//! The submission instructions alone: bursts of NOOPs to one portal.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use dray::hw::Portal;
use dray_spec::Descriptor;

/// Bursts before the first that counts.
const WARM_UP: u64 = 4;
/// Without the completion that ends a burst for so long, the queue is given up.
const STALLED: Duration = Duration::from_secs(10);

/// What is submitted. A burst of half a queue loses nothing in a dedicated queue and is never refused by a
/// shared one; between bursts, unmeasured, a NOOP with a record shows that the queue is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortalBursts {
    /// Whether ENQCMD submits, for a shared queue; otherwise MOVDIR64B, for a dedicated one.
    pub enqcmd: bool,
    /// Descriptors of a burst.
    pub burst: u64,
    /// Bursts that count, at most.
    pub most: u64,
    /// No burst begins after so much measured time.
    pub limit: Duration,
}

/// What bursts took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeasuredBursts {
    /// Nanoseconds of each burst that counts.
    pub samples: Vec<u64>,
    /// ENQCMDs that were answered with retry.
    pub retries: u64,
    /// Nothing had completed for ten seconds: the bursts ended early.
    pub stalled: bool,
}

/// A record that the device writes to, in a line of its own.
#[repr(align(64))]
struct Record([AtomicU8; 64]);

impl PortalBursts {
    /// Submits the bursts.
    pub fn run(&self, portal: &mut Portal) -> MeasuredBursts {
        let record = Box::new(Record([const { AtomicU8::new(0) }; 64]));
        let address = record.0.as_ptr().expose_provenance() as u64;
        let (noop, last) = (
            Descriptor::noop(),
            Descriptor::noop().with_completion(address),
        );
        let mut found = MeasuredBursts::default();
        let mut elapsed = Duration::ZERO;
        for number in 0..self.most.saturating_add(WARM_UP) {
            let mut retries = 0;
            let start = Instant::now();
            for _ in 0..self.burst {
                // SAFETY: a NOOP without a record names no memory.
                retries += unsafe { self.submit(portal, &noop) };
            }
            let took = start.elapsed();
            record.0[0].store(0, Ordering::Relaxed);
            // SAFETY: the record is kept until the device has written it.
            unsafe { self.submit(portal, &last) };
            let waiting = Instant::now();
            while record.0[0].load(Ordering::Acquire) == 0 {
                if waiting.elapsed() >= STALLED {
                    // The device may still write to it.
                    std::mem::forget(record);
                    found.stalled = true;
                    return found;
                }
                std::hint::spin_loop();
            }
            if number >= WARM_UP {
                found.samples.push(took.as_nanos() as u64);
                found.retries += retries;
                elapsed += took;
                if elapsed >= self.limit {
                    break;
                }
            }
        }
        found
    }

    /// Submits until the queue accepts: how often it did not.
    ///
    /// # Safety
    /// What the descriptor names must stay valid until the device has done with it.
    unsafe fn submit(&self, portal: &mut Portal, descriptor: &Descriptor) -> u64 {
        if !self.enqcmd {
            // SAFETY: the caller's promise is the same.
            unsafe { portal.movdir64b(descriptor) };
            return 0;
        }
        let mut retries = 0;
        // SAFETY: as above.
        while !unsafe { portal.enqcmd(descriptor) } {
            retries += 1;
        }
        retries
    }
}
