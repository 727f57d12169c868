//! The share of the core and the threshold, as the load asks for.
//!
//! Core and device should end at about the same time. A sample counts how often a thread looked at
//! its completion record before it was written: seldom means that the device could do more, often
//! that it has too much. Steps and bounds are those of the code of DTO (dto.c, `dsa_wait_and_adjust` and
//! `dsa_init`), with what follows from them: a step may end beyond its bound, and waits of polling are
//! right only where the variable names the way.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[cfg(feature = "preload")]
use dray_placement::Threshold;

use crate::settings::{Settings, Wait};

/// Descriptors whose waits make one sample.
const SAMPLE: u64 = 16;
/// Of so many descriptors, one sample's are counted.
const PERIOD: u64 = 256;
/// Percent of a call that the core takes at most.
const MOST_PERCENT: usize = 90;
/// Average looks per descriptor that are right: for yields, and where nothing has named a way to wait; for
/// polls.
const YIELDS: [u64; 2] = [1, 2];
const POLLS: [u64; 2] = [5, 20];
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
                Wait::Busypoll if settings.wait_is_stated => POLLS,
                Wait::Umwait if dray::WaitPolicy::Umwait.is_supported() => POLLS,
                _ => YIELDS,
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

    #[cfg(feature = "preload")]
    pub(crate) fn threshold(&self) -> Threshold {
        Threshold::bytes(self.min_bytes() as u64)
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
            match bytes < MOST_BYTES {
                true => bytes + STEP_BYTES,
                false => bytes,
            }
        } else if looks < least {
            if percent > 0 {
                self.core_percent.store(percent - 1, Ordering::Relaxed);
                return None;
            }
            match bytes > LEAST_BYTES {
                true => bytes - STEP_BYTES,
                false => bytes,
            }
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
            wait_is_stated: true,
            ..Settings::default()
        })
    }

    #[test]
    fn a_busy_device_gets_less_work_and_an_idle_one_more() {
        let adaptation = new(88, 64000);
        for expected in [89, 90] {
            assert_eq!(period(&adaptation, 100), []);
            assert_eq!(adaptation.core_percent(), expected);
        }
        assert_eq!(period(&adaptation, 100), [65024]);
        // One step beyond the bound, as DTO's.
        assert_eq!(period(&adaptation, 100), [66048]);
        assert_eq!(period(&adaptation, 100), []);
        assert_eq!(adaptation.core_percent(), 90);
        let adaptation = new(1, 7000);
        assert_eq!(period(&adaptation, 0), []);
        assert_eq!(adaptation.core_percent(), 0);
        assert_eq!(period(&adaptation, 0), [5976]);
        assert_eq!(period(&adaptation, 0), []);
    }

    #[test]
    fn polls_within_the_bounds_change_no_setting() {
        for looks in [5, 12, 20] {
            let adaptation = new(10, 65536);
            assert_eq!(period(&adaptation, looks), []);
            assert_eq!(adaptation.core_percent(), 10);
        }
    }

    #[test]
    fn without_a_given_wait_the_bounds_of_yield_apply() {
        for (wait_is_stated, looks, percent) in
            [(true, 3, 9), (false, 3, 11), (true, 12, 10), (false, 1, 10)]
        {
            let adaptation = Adaptation::new(&Settings {
                core_percent: 10,
                wait_is_stated,
                ..Settings::default()
            });
            assert_eq!(period(&adaptation, looks), []);
            assert_eq!(
                adaptation.core_percent(),
                percent,
                "{wait_is_stated} {looks}"
            );
        }
    }

    #[test]
    fn thresholds_outside_the_bounds_are_not_changed() {
        let adaptation = new(90, 1 << 20);
        assert_eq!(period(&adaptation, 100), []);
        let adaptation = new(0, 512);
        assert_eq!(period(&adaptation, 0), []);
        assert_eq!(adaptation.min_bytes(), 512);
    }

    #[test]
    fn without_adaptation_no_setting_changes() {
        let adaptation = Adaptation::new(&Settings {
            adapt: false,
            ..Settings::default()
        });
        assert_eq!(period(&adaptation, 1000), []);
        assert_eq!(adaptation.core_percent(), 0);
    }
}
