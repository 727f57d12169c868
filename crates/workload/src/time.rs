//! The calling core's time.

use dray::Mover;
use dray_clock::Time;

/// The time of a mover's core, real or modelled.
#[inline]
pub(crate) fn now<M: Mover + ?Sized>(mover: &M) -> Time {
    Time(mover.now().picoseconds())
}
