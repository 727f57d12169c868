//! Frames of a batch: chosen and made before it, released after it.

use super::engine::{Engine, Migrator, Piece, Release};
use super::flight::{Flight, Stage};
use super::outcome::Outcome;
use crate::TierError;
use crate::sys::pagemap::{HUGE_PAGE, Wanted};
use crate::sys::{HUGE, PAGE, memory};

/// Slots of landing and making windows that a batch uses: base pages, huge pages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Used {
    /// First slot, and how many.
    landing: [(u64, u64); 2],
    /// The last is whether frames kept from earlier batches are used, in slots of the landing window.
    making: [(u64, u64, bool); 2],
}

impl Engine {
    /// Chooses slots, and makes frames in them.
    pub(super) fn frames(
        &self,
        migrator: &mut Migrator,
        pieces: &[Piece],
        to: usize,
    ) -> (Vec<Flight>, Used) {
        let mut used = Used::default();
        let mut counts = [0, 0];
        for piece in pieces {
            match piece.huge {
                true => counts[1] += piece.len / HUGE,
                false => counts[0] += piece.len / PAGE,
            }
        }
        let reuse = self.config.release != Release::Kernel;
        let mut usable = [true; 2];
        for (kind, count) in counts.into_iter().enumerate() {
            if let Err(error) = self.empty_windows(migrator, kind, count, to) {
                // Pages would land on others that were left there.
                self.failed(error);
                usable[kind] = false;
            }
            let landing = &mut migrator.windows[1 - to].landing[kind];
            used.landing[kind] = (landing.kept, count);
            let kept = &mut migrator.windows[to].landing[kind];
            if reuse && count > 0 && kept.kept >= count {
                kept.kept -= count;
                used.making[kind] = (kept.kept, count, true);
            } else {
                used.making[kind] = (0, count, false);
            }
        }
        let mut flights = Vec::with_capacity(counts.iter().sum::<u64>() as usize);
        let landing = &migrator.windows[1 - to].landing;
        let making = [0, 1].map(|kind: usize| match used.making[kind].2 {
            true => &migrator.windows[to].landing[kind],
            false => &migrator.windows[to].making[kind],
        });
        let mut next = [0, 0];
        for piece in pieces {
            let (slot, kind) = match piece.huge {
                true => (HUGE, 1),
                false => (PAGE, 0),
            };
            for offset in (0..piece.len).step_by(slot as usize) {
                flights.push(Flight {
                    origin: piece.start + offset,
                    address: piece.start + offset,
                    huge: piece.huge,
                    landing: landing[kind].at(used.landing[kind].0 + next[kind]),
                    made: making[kind].at(used.making[kind].0 + next[kind]),
                    stage: Stage::In,
                    tries: 0,
                });
                next[kind] += 1;
            }
        }
        for flight in &mut flights {
            if !usable[usize::from(flight.huge)] {
                flight.stage = Stage::Ended(Outcome::NoFrame);
            }
        }
        self.make(migrator, &mut flights, &used, to);
        (flights, used)
    }

    /// Has room in the windows of a batch.
    fn empty_windows(
        &self,
        migrator: &mut Migrator,
        kind: usize,
        count: u64,
        to: usize,
    ) -> Result<(), TierError> {
        let landing = &mut migrator.windows[1 - to].landing[kind];
        landing.ready(Some(&self.uffd))?;
        if landing.kept + count > landing.slots {
            let kept = std::mem::take(&mut landing.kept);
            landing.drop_landed(&self.uffd, 0, kept)?;
        }
        migrator.windows[to].landing[kind].ready(Some(&self.uffd))?;
        migrator.windows[to].making[kind].ready(None)
    }

    /// Has the kernel give frames to the making windows.
    fn make(&self, migrator: &mut Migrator, flights: &mut [Flight], used: &Used, to: usize) {
        let fail = |flights: &mut [Flight], huge: bool, from: u64, outcome| {
            for flight in flights {
                if flight.huge == huge && flight.made >= from {
                    flight.stage = Stage::Ended(outcome);
                }
            }
        };
        let [base, huge] = [0, 1].map(|kind: usize| migrator.windows[to].making[kind].base);
        let (_, count, kept) = used.making[0];
        if count > 0 && !kept {
            let made = memory::advise(base, count * PAGE, libc::MADV_POPULATE_WRITE);
            if made.is_err() {
                fail(flights, false, 0, Outcome::NoFrame);
            }
        }
        let (_, count, kept) = used.making[1];
        if count == 0 || kept {
            return;
        }
        let len = count * HUGE;
        if memory::advise(huge, len, libc::MADV_POPULATE_WRITE).is_err() {
            fail(flights, true, 0, Outcome::NoFrame);
            return;
        }
        let mut huge_until = huge;
        let wanted = Wanted {
            all: HUGE_PAGE,
            report: HUGE_PAGE,
            ..Wanted::default()
        };
        let _ = migrator.pagemap.scan(huge, huge + len, wanted, |run| {
            if run.start == huge_until {
                huge_until = run.end;
            }
        });
        if huge_until < huge + len {
            fail(flights, true, huge_until, Outcome::NoHugeFrame);
        }
    }

    /// What becomes of the frames that are left in the windows.
    pub(super) fn release(&self, migrator: &mut Migrator, used: &Used, to: usize, clean: bool) {
        // A window that could not be emptied is mapped anew before it is used again.
        let check = |emptied: Result<(), TierError>| {
            if let Err(error) = emptied {
                self.failed(error);
            }
        };
        let uffd = &self.uffd;
        if !clean && used.landing[1].1 > 0 {
            // Some of it may be base pages now.
            check(migrator.windows[1 - to].landing[1].renew(Some(uffd)));
            check(match used.making[1].2 {
                true => migrator.windows[to].landing[1].renew(Some(uffd)),
                false => migrator.windows[to].making[1].renew(None),
            });
        }
        let kinds = match clean {
            true => 0..2,
            false => 0..1,
        };
        for kind in kinds {
            let (_, count) = used.landing[kind];
            let landing = &mut migrator.windows[1 - to].landing[kind];
            let keep = clean
                && match self.config.release {
                    Release::Kernel => false,
                    Release::Checked => count > 0 && landing.are_free(&mut migrator.pagemap, count),
                    Release::Reuse => true,
                };
            if keep {
                landing.kept += count;
            } else if count > 0 {
                check(landing.drop_landed(uffd, landing.kept, count));
            }
            let (first, count, kept) = used.making[kind];
            if clean || count == 0 {
                continue;
            }
            // Frames that were made and not used.
            if kept {
                let window = &mut migrator.windows[to].landing[kind];
                check(window.drop_landed(uffd, first, count));
            } else {
                check(migrator.windows[to].making[kind].drop_frames(0, count));
            }
        }
        self.empty_hint_slots();
    }
}
