//! One batch from its frames to its end.

use std::time::{Duration, Instant};

use super::blocks::mask;
use super::copy_phase;
use super::engine::{Engine, Migrator, Order, Piece, Release, Report};
use super::events::TRIES;
use super::flight::{Flight, Stage, run, split};
use super::outcome::Outcome;
use super::state::State;
use super::windows::{BASE_SLOTS, HUGE_SLOTS};
use crate::sys::pagemap::{HUGE_PAGE, Wanted};
use crate::sys::uffd::Partial;
use crate::sys::{HUGE, PAGE, memory};

/// How often a layout that changes is waited for before pages are left where they are.
const PATIENCE: u32 = 200;
pub(crate) const PAUSE: Duration = Duration::from_micros(200);

/// Slots of landing and making windows that a batch uses: base pages, huge pages.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    landing: [(u64, u64); 2],
    /// The last is whether frames kept from earlier batches are used.
    making: [(u64, u64, bool); 2],
}

impl Engine {
    /// Moves pages to frames of tier `to` (0 is fast, 1 is slow), in batches of at most
    /// [`BASE_SLOTS`] base and [`HUGE_SLOTS`] huge pages. Pages that cannot be moved stay.
    pub fn migrate(&self, pieces: &[Piece], to: usize) -> Report {
        let mut report = Report::default();
        let mut batch: Vec<Piece> = Vec::new();
        let mut room = [BASE_SLOTS, HUGE_SLOTS];
        for piece in pieces {
            let (slot, kind) = match piece.huge {
                true => (HUGE, 1),
                false => (PAGE, 0),
            };
            let mut piece = *piece;
            while piece.len > 0 {
                let taken = (piece.len / slot).min(room[kind]) * slot;
                if taken == 0 {
                    self.one_batch(&std::mem::take(&mut batch), to, &mut report);
                    room = [BASE_SLOTS, HUGE_SLOTS];
                    if piece.len < slot {
                        break;
                    }
                    continue;
                }
                batch.push(Piece {
                    len: taken,
                    ..piece
                });
                room[kind] -= taken / slot;
                piece.start += taken;
                piece.len -= taken;
            }
        }
        self.one_batch(&batch, to, &mut report);
        report
    }

    fn one_batch(&self, pieces: &[Piece], to: usize, report: &mut Report) {
        if pieces.is_empty() {
            return;
        }
        let to = to & 1;
        // A fork waits until the batch has ended.
        let mut migrator = self.lock_migrator();
        let mut at = Instant::now();
        let mut lap = |total: &mut Duration| {
            let now = Instant::now();
            *total += now - at;
            at = now;
        };
        if let Err(error) = migrator.copier.prepare() {
            let pages = pieces.iter().map(|piece| piece.len / PAGE).sum();
            report.outcomes.add(Outcome::CopyFailed, pages);
            report.pages += pages;
            self.failed(error);
            return;
        }
        let (mut flights, used) = self.frames(&mut migrator, pieces, to);
        lap(&mut report.frames);
        self.take_off(&mut flights, pieces.len());
        let shared = self.config.order == Order::SharedRead;
        if shared && !self.config.unprotected {
            self.protect();
        }
        lap(&mut report.protect);
        let mut copied = true;
        if shared || self.config.unprotected {
            let copy = copy_phase::from_program(self);
            report.copied.core += copy;
            lap(&mut report.copy);
            self.move_out();
            lap(&mut report.out);
        } else {
            self.move_out();
            lap(&mut report.out);
            copied = copy_phase::from_landing(self, &mut *migrator.copier, &mut report.copied);
            lap(&mut report.copy);
        }
        self.move_in(copied);
        let clean = self.land(to, copied, report);
        lap(&mut report.back);
        self.release(&mut migrator, &used, to, clean);
        lap(&mut report.release);
    }

    /// Chooses slots, and makes frames in them.
    fn frames(&self, migrator: &mut Migrator, pieces: &[Piece], to: usize) -> (Vec<Flight>, Used) {
        let mut used = Used::default();
        let mut counts = [0, 0];
        for piece in pieces {
            match piece.huge {
                true => counts[1] += piece.len / HUGE,
                false => counts[0] += piece.len / PAGE,
            }
        }
        let reuse = self.config.release == Release::Reuse;
        for (kind, count) in counts.into_iter().enumerate() {
            let landing = &mut migrator.windows[1 - to].landing[kind];
            if landing.kept + count > landing.slots {
                let _ = landing.drop_landed(&self.uffd, 0, landing.kept);
                landing.kept = 0;
            }
            used.landing[kind] = (landing.at(landing.kept), count);
            let kept = &mut migrator.windows[to].landing[kind];
            if reuse && count > 0 && kept.kept >= count {
                kept.kept -= count;
                used.making[kind] = (kept.at(kept.kept), count, true);
            } else {
                let making = &migrator.windows[to].making[kind];
                used.making[kind] = (making.base, count, false);
            }
        }
        let mut flights = Vec::with_capacity(counts.iter().sum::<u64>() as usize);
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
                    landing: used.landing[kind].0 + next[kind],
                    made: used.making[kind].0 + next[kind],
                    stage: Stage::In,
                    tries: 0,
                });
                next[kind] += slot;
            }
        }
        self.make(migrator, &mut flights, &used);
        (flights, used)
    }

    /// Has the kernel give frames to the making windows.
    fn make(&self, migrator: &mut Migrator, flights: &mut [Flight], used: &Used) {
        let fail = |flights: &mut [Flight], huge: bool, from: u64, outcome| {
            for flight in flights {
                if flight.huge == huge && flight.made >= from {
                    flight.stage = Stage::Ended(outcome);
                }
            }
        };
        let (base, count, kept) = used.making[0];
        if count > 0 && !kept {
            let made = memory::advise(base, count * PAGE, libc::MADV_POPULATE_WRITE);
            if made.is_err() {
                fail(flights, false, 0, Outcome::NoFrame);
            }
        }
        let (base, count, kept) = used.making[1];
        if count == 0 || kept {
            return;
        }
        let len = count * HUGE;
        if memory::advise(base, len, libc::MADV_POPULATE_WRITE).is_err() {
            fail(flights, true, 0, Outcome::NoFrame);
            return;
        }
        let mut huge_until = base;
        let wanted = Wanted {
            all: HUGE_PAGE,
            tell: HUGE_PAGE,
            ..Wanted::default()
        };
        let _ = migrator.pagemap.scan(base, base + len, wanted, |run| {
            if run.start == huge_until {
                huge_until = run.end;
            }
        });
        if huge_until < base + len {
            fail(flights, true, huge_until, Outcome::NoHugeFrame);
        }
    }

    /// From now on the batch is known to the thread that reads events.
    fn take_off(&self, flights: &mut Vec<Flight>, pieces: usize) {
        let pinned = self.pinned();
        let mut state = self.lock();
        let mut index = 0;
        for _ in 0..pieces.max(flights.len()) {
            let Some(first) = flights.get(index) else {
                break;
            };
            let count = run(flights, index).max(1);
            let (start, end) = (first.address, first.address + count as u64 * first.len());
            let managed = state.covers(start, end);
            for flight in &mut flights[index..index + count] {
                if matches!(flight.stage, Stage::Ended(_)) {
                    continue;
                }
                if !managed && !state.covers(flight.address, flight.address + flight.len()) {
                    flight.stage = Stage::Ended(Outcome::Gone);
                } else if pinned.iter().any(|(first, last)| {
                    *first < flight.address + flight.len() && flight.address < *last
                }) {
                    flight.stage = Stage::Ended(Outcome::NotMovable);
                } else if being_dropped(&state, flight) {
                    flight.stage = Stage::Ended(Outcome::BeingDropped);
                }
            }
            index += count;
        }
        std::mem::swap(&mut state.flights, flights);
    }

    /// Writers wait from now on.
    fn protect(&self) {
        self.each_run(Stage::In, |engine, state, index, count| {
            let (protected, count) = in_one_mapping(count, |count| {
                let (start, len) = span(state, index, count);
                let protected = engine.uffd.write_protect(start, len, true);
                protected.map_err(|errno| (0, errno))
            });
            match protected {
                Ok(()) => Step::Next(count),
                Err((_, libc::EAGAIN)) => Step::Wait,
                Err(_) => {
                    end(state, index, count, Outcome::Gone);
                    Step::Next(count)
                }
            }
        });
    }

    fn move_out(&self) {
        self.each_run(Stage::In, |engine, state, index, count| {
            let flight = state.flights[index];
            let (moved, count) = in_one_mapping(count, |count| {
                let (start, len) = span(state, index, count);
                // SAFETY: the page's content goes to the window; who touches the page waits.
                unsafe { engine.uffd.move_pages(flight.landing, start, len, false) }
            });
            let out = |state: &mut State, count: usize| {
                for flight in &mut state.flights[index..index + count] {
                    flight.stage = Stage::Out;
                }
            };
            match moved {
                Ok(()) => {
                    out(state, count);
                    Step::Next(count)
                }
                Err((done, error)) => {
                    let whole = (done / flight.len()) as usize;
                    let rest = done % flight.len();
                    out(state, whole);
                    if rest > 0 {
                        // It was no huge page any more, and the first base pages are out.
                        split(&mut state.flights, index + whole, rest / PAGE);
                        return Step::Next(whole + (rest / PAGE) as usize);
                    }
                    match error {
                        libc::EAGAIN if whole > 0 => Step::Next(whole),
                        libc::EAGAIN => Step::Wait,
                        error => {
                            end(state, index + whole, 1, Outcome::of_errno(error));
                            Step::Next(whole + 1)
                        }
                    }
                }
            }
        });
        // Those for which the layout never came to rest stay.
        let mut state = self.lock();
        for flight in &mut state.flights {
            if flight.stage == Stage::In {
                flight.stage = Stage::Ended(Outcome::Changing);
            }
        }
    }

    /// Gives each page that is out a frame again: the new one, or its own if there was no copy.
    fn move_in(&self, copied: bool) {
        let target = match copied {
            true => Outcome::Moved,
            false => Outcome::CopyFailed,
        };
        // Nothing that is out is ever given up, whatever changes meanwhile.
        while self.lock().any(Stage::Out) {
            self.each_run(Stage::Out, |engine, state, index, count| {
                let flight = state.flights[index];
                let src = source(&flight, copied);
                let (moved, count) = in_one_mapping(count, |count| {
                    let (start, len) = span(state, index, count);
                    // SAFETY: the window's frame is nobody else's; who touches the page waits.
                    unsafe { engine.uffd.move_pages(start, src, len, false) }
                });
                match moved {
                    Ok(()) => {
                        end(state, index, count, target);
                        Step::Next(count)
                    }
                    Err((done, error)) => {
                        let whole = (done / flight.len()) as usize;
                        end(state, index, whole, target);
                        let rest = done % flight.len();
                        if rest > 0 {
                            split(&mut state.flights, index + whole, 0);
                            let back = (rest / PAGE) as usize;
                            end(state, index + whole, back, target);
                            return Step::Next(whole + back);
                        }
                        match error {
                            libc::EAGAIN if whole > 0 => Step::Next(whole),
                            libc::EAGAIN => Step::Wait,
                            _ => engine.stubborn(state, index + whole, copied, whole),
                        }
                    }
                }
            });
        }
    }

    /// A page that could not be put back: later, in parts, or as a copy.
    fn stubborn(&self, state: &mut State, index: usize, copied: bool, before: usize) -> Step {
        let flight = &mut state.flights[index];
        flight.tries += 1;
        if flight.tries < TRIES {
            return Step::Later(before + 1);
        }
        if flight.huge {
            split(&mut state.flights, index, 0);
            return Step::Next(before);
        }
        let src = source(flight, copied);
        let outcome = match self.uffd.copy(flight.address, src, PAGE) {
            Ok(()) => Outcome::PutBackByCopy,
            Err((_, libc::EAGAIN)) => return Step::Later(before + 1),
            Err(_) => Outcome::Vanished,
        };
        end(state, index, 1, outcome);
        Step::Next(before + 1)
    }

    /// The batch is over: books, protection, threads that wait. Whether all frames landed in a row.
    fn land(&self, to: usize, copied: bool, report: &mut Report) -> bool {
        let mut state = self.lock();
        let flights = std::mem::take(&mut state.flights);
        let mut clean = copied;
        for flight in &flights {
            let Stage::Ended(outcome) = flight.stage else {
                continue;
            };
            report.outcomes.add(outcome, flight.pages());
            report.pages += flight.pages();
            clean &= outcome == Outcome::Moved;
        }
        let mut index = 0;
        while index < flights.len() {
            let count = run(&flights, index);
            let first = flights[index];
            let (start, end) = (first.address, first.address + count as u64 * first.len());
            if first.stage == Stage::Ended(Outcome::Moved) {
                state.blocks.change_range(start, end, |block, pages| {
                    block.fresh |= pages;
                    match to {
                        0 => block.slow &= !pages,
                        _ => block.slow |= pages,
                    }
                });
            } else if first.stage == Stage::Ended(Outcome::PutBackByCopy) {
                state
                    .blocks
                    .change_range(start, end, |block, pages| block.slow &= !pages);
            }
            index += count;
        }
        drop(state);
        let protected = self.config.order == Order::SharedRead;
        let mut index = 0;
        while index < flights.len() {
            let count = run(&flights, index);
            let first = flights[index];
            let len = count as u64 * first.len();
            let moved = first.stage == Stage::Ended(Outcome::Moved);
            if protected && !moved {
                // If the layout changes, the first write is a message and takes it away.
                let _ = self.uffd.write_protect(first.address, len, false);
            }
            self.uffd.wake(first.address, len);
            if first.origin != first.address {
                self.uffd.wake(first.origin, len);
            }
            index += count;
        }
        clean
    }

    /// What becomes of the frames that are left in the windows.
    fn release(&self, migrator: &mut Migrator, used: &Used, to: usize, clean: bool) {
        let keep = clean && self.config.release == Release::Reuse;
        if !clean && used.landing[1].1 > 0 {
            // Some of it may be base pages now.
            let _ = migrator.windows[1 - to].landing[1].renew(Some(&self.uffd));
            match used.making[1].2 {
                true => {
                    let _ = migrator.windows[to].landing[1].renew(Some(&self.uffd));
                }
                false => {
                    let _ = migrator.windows[to].making[1].renew(None);
                }
            }
        }
        let kinds = match clean {
            true => 0..2,
            false => 0..1,
        };
        for kind in kinds {
            let (_, count) = used.landing[kind];
            let landing = &mut migrator.windows[1 - to].landing[kind];
            if keep {
                landing.kept += count;
            } else if count > 0 {
                let _ = landing.drop_landed(&self.uffd, landing.kept, count);
            }
            let (base, count, kept) = used.making[kind];
            if clean || count == 0 {
                continue;
            }
            // Frames that were made and not used.
            if kept {
                let window = &migrator.windows[to].landing[kind];
                let first = (base - window.base) / window.slot;
                let _ = window.drop_landed(&self.uffd, first, count);
            } else {
                migrator.windows[to].making[kind].drop_frames(0, count);
            }
        }
        let hints = std::mem::take(&mut self.lock().hints.waste);
        if !hints.is_empty() {
            self.empty_hint_slots(hints);
        }
    }

    /// Calls `step` for each run of flights in a stage, under the lock; without it while it waits.
    fn each_run(
        &self,
        stage: Stage,
        mut step: impl FnMut(&Engine, &mut State, usize, usize) -> Step,
    ) {
        let mut waits = 0;
        let mut state = self.lock();
        let (mut index, mut later) = (0, false);
        loop {
            let Some(flight) = state.flights.get(index) else {
                if !later {
                    return;
                }
                (index, later) = (0, false);
                drop(state);
                std::thread::sleep(PAUSE);
                state = self.lock();
                continue;
            };
            if flight.stage != stage {
                index += 1;
                continue;
            }
            let count = run(&state.flights, index);
            match step(self, &mut state, index, count) {
                Step::Next(done) => index += done,
                Step::Later(done) => {
                    later = true;
                    index += done;
                }
                Step::Wait => {
                    waits += 1;
                    if waits > PATIENCE && stage == Stage::In {
                        return;
                    }
                    drop(state);
                    if waits % 8 == 0 {
                        std::thread::sleep(PAUSE);
                    }
                    std::thread::yield_now();
                    state = self.lock();
                }
            }
        }
    }
}

enum Step {
    /// So many flights are done.
    Next(usize),
    /// The last of so many comes again.
    Later(usize),
    /// The layout changes: events are to be read first.
    Wait,
}

/// Calls for so many pages, and for fewer as long as they are not all in one mapping: a call is for
/// one. What it answered, and for how many.
fn in_one_mapping(
    count: usize,
    mut call: impl FnMut(usize) -> Result<(), Partial>,
) -> (Result<(), Partial>, usize) {
    let mut count = count;
    loop {
        match call(count) {
            Err((0, libc::ENOENT | libc::EINVAL)) if count > 1 => count /= 2,
            answer => return (answer, count),
        }
    }
}

fn span(state: &State, index: usize, count: usize) -> (u64, u64) {
    let flight = &state.flights[index];
    (flight.address, flight.len() * count as u64)
}

fn end(state: &mut State, index: usize, count: usize, outcome: Outcome) {
    for flight in &mut state.flights[index..index + count] {
        flight.stage = Stage::Ended(outcome);
    }
}

fn source(flight: &Flight, copied: bool) -> u64 {
    match copied {
        true => flight.made,
        false => flight.landing,
    }
}

fn being_dropped(state: &State, flight: &Flight) -> bool {
    let (start, end) = (flight.address, flight.address + flight.len());
    let first = super::blocks::block_of(start);
    let last = super::blocks::block_of(end - 1);
    state
        .blocks
        .map
        .range(first..=last)
        .any(|(number, block)| block.dropping & mask(*number, start, end) != 0)
}
