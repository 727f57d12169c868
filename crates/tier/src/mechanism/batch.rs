//! One batch from its frames to its end.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::blocks::mask;
use super::copy_phase;
use super::due::is_aside;
use super::engine::{Engine, Order, Piece};
use super::events::TRIES;
use super::flight::{Flight, Stage, run, split};
use super::outcome::Outcome;
use super::report::Report;
use super::state::State;
use super::steps::{Step, end, in_one_mapping, span};
use super::windows::{BASE_SLOTS, HUGE_SLOTS};
use crate::sys::{HUGE, PAGE};

pub(crate) const PAUSE: Duration = Duration::from_micros(200);
/// Between two looks whether the threads that hold all moves are done.
const BREATH: Duration = Duration::from_micros(20);

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
        // A fork waits until the batch has ended, and does not wait for another.
        while self.waiting.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(BREATH);
        }
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
        let round = self.begin_round();
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
        drop(round);
        lap(&mut report.back);
        self.release(&mut migrator, &used, to, clean);
        lap(&mut report.release);
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
                } else if pinned.overlaps(flight.address, flight.address + flight.len()) {
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
        let given_up = self.each_run(Stage::In, |engine, state, index, count| {
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
        // What is not protected must not be copied: writes to it would be lost.
        if let Some(from) = given_up {
            let mut state = self.lock();
            let rest = state.flights.iter_mut().skip(from);
            for flight in rest.filter(|flight| flight.stage == Stage::In) {
                flight.stage = Stage::Ended(Outcome::Changing);
            }
        }
    }

    fn move_out(&self) {
        let _ = self.each_run(Stage::In, |engine, state, index, count| {
            let flight = state.flights[index];
            let (moved, count) = in_one_mapping(count, |count| {
                let (start, len) = span(state, index, count);
                // SAFETY: the page's content goes to the window; a thread that touches the page waits.
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
                Err((counted, error)) => {
                    let len = flight.len() * count as u64;
                    let done = engine.landed(flight.landing, counted, len, error);
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
                        _ if done > counted => Step::Next(whole),
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

    /// Bytes of a run that are out after a call that failed: those that the kernel has counted, and those
    /// behind them that it has not (see [`crate::sys::uffd::Uffd::move_pages`]). All slots were empty, so
    /// what is in one is the page. This must be recorded before the lock is released: a thread that touches a
    /// page that is not recorded as out gets zeros.
    fn landed(&self, landing: u64, counted: u64, len: u64, error: i32) -> u64 {
        let mut done = counted;
        if matches!(error, libc::EAGAIN | libc::EEXIST) {
            while done < len && self.is_there(landing + done) {
                done += PAGE;
            }
        }
        done
    }

    /// Gives each page that is out a frame again: the new one, or its own if there was no copy.
    fn move_in(&self, copied: bool) {
        let target = match copied {
            true => Outcome::Moved,
            false => Outcome::CopyFailed,
        };
        // Nothing that is out is ever given up, whatever changes meanwhile.
        while self.lock().any(Stage::Out) {
            let _ = self.each_run(Stage::Out, |engine, state, index, count| {
                let flight = state.flights[index];
                if is_aside(flight.address) {
                    return Step::Later(count);
                }
                let src = source(&flight, copied);
                let (moved, count) = in_one_mapping(count, |count| {
                    let (start, len) = span(state, index, count);
                    // SAFETY: the window's frame is this batch's alone; a thread that touches the page waits.
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
                            libc::EEXIST if flight.huge => {
                                // Some of its base pages are in: each is moved by itself.
                                split(&mut state.flights, index + whole, 0);
                                Step::Next(whole)
                            }
                            _ if !flight.huge && !engine.is_there(src + done) => {
                                // The frame has gone in, uncounted.
                                end(state, index + whole, 1, target);
                                Step::Next(whole + 1)
                            }
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
