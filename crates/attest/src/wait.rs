//! Waiting for records.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dray_spec::{Descriptor, Flags, Opcode};

use crate::AttestError;
use crate::ground::Area;
use crate::target::{PATIENCE, Target};

/// How long a NOOP's record is followed by a wait, where the queue takes no drain: what it was given before has been
/// started by then, and may still run.
const GRACE: Duration = Duration::from_millis(2);

/// Until the status at `address` is not 0. False if it still is after [`PATIENCE`].
pub(crate) fn record(area: &Area, address: u64) -> bool {
    let status = area.byte(address);
    let until = Instant::now() + PATIENCE;
    let mut looks = 0_u32;
    while status.load(Ordering::Acquire) == 0 {
        looks += 1;
        if looks.is_multiple_of(256) {
            if Instant::now() >= until {
                return false;
            }
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
    true
}

/// Empties a queue.
#[derive(Debug)]
pub(crate) struct Board {
    area: Area,
}

impl Board {
    pub(crate) fn new() -> Result<Board, AttestError> {
        Ok(Board {
            area: Area::new(4096)?,
        })
    }

    pub(crate) fn area(&self) -> &Area {
        &self.area
    }

    /// Whether the queue completes a NOOP.
    pub(crate) fn try_noop(&self, target: &mut Target) -> Result<(), AttestError> {
        self.submit(target, Descriptor::noop(), "NOOP")
    }

    /// Until all that was submitted has ended; without drains, until it has been started and [`GRACE`] is over.
    pub(crate) fn settle(&self, target: &mut Target) -> Result<(), AttestError> {
        if !target.takes(Opcode::Drain) {
            self.try_noop(target)?;
            std::thread::sleep(GRACE);
            return Ok(());
        }
        self.submit(target, Descriptor::drain(), "drain")
    }

    fn submit(
        &self,
        target: &mut Target,
        descriptor: Descriptor,
        operation: &'static str,
    ) -> Result<(), AttestError> {
        let record_at = self.area.base();
        self.area.fill(record_at, 32, 0);
        let descriptor = descriptor
            .with_completion(record_at)
            .with_flags(Flags::REQUEST_COMPLETION_RECORD);
        // SAFETY: it names its record alone, in this area.
        unsafe { target.submit(&descriptor) }?;
        match record(&self.area, record_at) {
            true => Ok(()),
            false => Err(AttestError::Dead {
                queue: target.name().to_owned(),
                operation,
                seconds: PATIENCE.as_secs(),
            }),
        }
    }
}
