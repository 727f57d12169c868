//! The share of the core and the threshold, as the load asks for.
//!
//! Core and device should end at about the same time. A sample counts how often a thread looked at
//! its completion record before it was written: seldom means that the device could do more, often
//! that it has too much. Steps and bounds are those that users of DTO know.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::settings::{Settings, Wait};

/// Descriptors whose waits make one sample.
const SAMPLE: u64 = 16;
/// Of so many descriptors, one sample's are counted.
const PERIOD: u64 = 256;
/// Percent of a call that the core takes at most.
const MOST_PERCENT: usize = 90;
/// Bounds and step of the threshold, in bytes.
const LEAST_BYTES: usize = 6144;
const MOST_BYTES: usize = 65536;
const STEP_BYTES: usize = 1024;

/// What is adapted.
#[derive(Debug)]
pub(crate) struct Adaptation {
    enabled: bool,
    /// Average looks per descriptor that are right.
    right: [u64; 2],
    core_percent: AtomicUsize,
    min_bytes: AtomicUsize,
    descriptors: AtomicU64,
    sampled: AtomicU64,
    looks: AtomicU64,
}

impl Adaptation {
    pub(crate) fn new(settings: &Settings) -> Adaptation {
        Adaptation {
            enabled: settings.adapt,
            right: match settings.wait {
                Wait::Yield => [1, 2],
                _ => [5, 20],
            },
            core_percent: AtomicUsize::new(settings.core_percent),
            min_bytes: AtomicUsize::new(usize::try_from(settings.min_bytes).unwrap_or(usize::MAX)),
            descriptors: AtomicU64::new(0),
            sampled: AtomicU64::new(0),
            looks: AtomicU64::new(0),
        }
    }

    pub(crate) fn core_percent(&self) -> usize {
        self.core_percent.load(Ordering::Relaxed)
    }

    pub(crate) fn min_bytes(&self) -> usize {
        self.min_bytes.load(Ordering::Relaxed)
    }

    /// A descriptor was successful after so many looks. The new threshold, if it has changed.
    pub(crate) fn completed(&self, looks: u64) -> Option<usize> {
        if !self.enabled {
            return None;
        }
        if self.descriptors.fetch_add(1, Ordering::Relaxed) % PERIOD < PERIOD - SAMPLE {
            return None;
        }
        let total = self.looks.fetch_add(looks, Ordering::Relaxed) + looks;
        let sampled = self.sampled.fetch_add(1, Ordering::Relaxed) + 1;
        if sampled < SAMPLE {
            return None;
        }
        // One thread takes the sample; what others add meanwhile belongs to the next.
        let taken = self
            .sampled
            .compare_exchange(sampled, 0, Ordering::Relaxed, Ordering::Relaxed);
        if taken.is_err() {
            return None;
        }
        self.looks.fetch_sub(total, Ordering::Relaxed);
        self.adjust(total, sampled)
    }

    fn adjust(&self, looks: u64, descriptors: u64) -> Option<usize> {
        let percent = self.core_percent();
        let bytes = self.min_bytes();
        let [least, most] = self.right.map(|right| right * descriptors);
        let new = if looks > most {
            if percent < MOST_PERCENT {
                self.core_percent.store(percent + 1, Ordering::Relaxed);
                return None;
            }
            (bytes + STEP_BYTES).min(MOST_BYTES.max(bytes))
        } else if looks < least {
            if percent > 0 {
                self.core_percent.store(percent - 1, Ordering::Relaxed);
                return None;
            }
            bytes.saturating_sub(STEP_BYTES).max(LEAST_BYTES.min(bytes))
        } else {
            bytes
        };
        if new == bytes {
            return None;
        }
        self.min_bytes.store(new, Ordering::Relaxed);
        Some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(adaptation: &Adaptation, looks: u64) -> Vec<usize> {
        (0..PERIOD)
            .filter_map(|_| adaptation.completed(looks))
            .collect()
    }

    fn new(core_percent: usize, min_bytes: u64) -> Adaptation {
        Adaptation::new(&Settings {
            core_percent,
            min_bytes,
            ..Settings::default()
        })
    }

    #[test]
    fn a_busy_device_gets_less_and_an_idle_one_more() {
        let adaptation = new(88, 64000);
        for expected in [89, 90] {
            assert_eq!(period(&adaptation, 100), []);
            assert_eq!(adaptation.core_percent(), expected);
        }
        assert_eq!(period(&adaptation, 100), [65024]);
        assert_eq!(period(&adaptation, 100), [65536]);
        assert_eq!(period(&adaptation, 100), []);
        assert_eq!(adaptation.core_percent(), 90);
        let adaptation = new(1, 7000);
        assert_eq!(period(&adaptation, 0), []);
        assert_eq!(adaptation.core_percent(), 0);
        assert_eq!(period(&adaptation, 0), [6144]);
        assert_eq!(period(&adaptation, 0), []);
    }

    #[test]
    fn between_the_bounds_nothing_changes() {
        for looks in [5, 12, 20] {
            let adaptation = new(10, 65536);
            assert_eq!(period(&adaptation, looks), []);
            assert_eq!(adaptation.core_percent(), 10);
        }
    }

    #[test]
    fn thresholds_out_of_the_bounds_are_left_there() {
        let adaptation = new(90, 1 << 20);
        assert_eq!(period(&adaptation, 100), []);
        let adaptation = new(0, 512);
        assert_eq!(period(&adaptation, 0), []);
        assert_eq!(adaptation.min_bytes(), 512);
    }

    #[test]
    fn switched_off_it_counts_nothing() {
        let adaptation = Adaptation::new(&Settings {
            adapt: false,
            ..Settings::default()
        });
        assert_eq!(period(&adaptation, 1000), []);
        assert_eq!(adaptation.core_percent(), 0);
    }
}
