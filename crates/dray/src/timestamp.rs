//! A mover's clock.

use std::time::Duration;

/// A time of a mover's clock, real or modelled, in picoseconds since the mover was opened.
///
/// ```
/// use dray::{CpuMover, Mover, Timestamp};
///
/// let start: Timestamp = CpuMover::new(1).now();
/// assert!(start >= Timestamp::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// `picoseconds` after the start of the clock.
    #[inline]
    pub const fn from_picoseconds(picoseconds: u64) -> Timestamp {
        Timestamp(picoseconds)
    }

    /// `since_start` after the start of the clock; the largest time if that is beyond 213 days.
    #[inline]
    pub fn from_duration(since_start: Duration) -> Timestamp {
        let picoseconds = since_start.as_nanos().saturating_mul(1000);
        Timestamp(u64::try_from(picoseconds).unwrap_or(u64::MAX))
    }

    /// Picoseconds since the start of the clock.
    #[inline]
    pub const fn picoseconds(self) -> u64 {
        self.0
    }

    /// Time since `earlier`, in whole nanoseconds; zero if `earlier` is later.
    ///
    /// ```
    /// use dray::Timestamp;
    /// let (start, end) = (Timestamp::from_picoseconds(500), Timestamp::from_picoseconds(2_600));
    /// assert_eq!(end.since(start).as_nanos(), 2);
    /// ```
    #[inline]
    pub const fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0) / 1000)
    }
}
