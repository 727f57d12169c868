//! Steps of a batch over runs of its pages, under the lock.

use super::batch::PAUSE;
use super::engine::Engine;
use super::flight::{Stage, run};
use super::outcome::Outcome;
use super::state::State;
use crate::sys::uffd::Partial;

/// How often a layout that changes is waited for before pages are left where they are.
const MAX_WAITS: u32 = 200;

/// What a step over a run of pages did.
pub(super) enum Step {
    /// So many flights are done.
    Next(usize),
    /// The last of so many comes again.
    Later(usize),
    /// The layout changes: events are to be read first.
    Wait,
}

impl Engine {
    /// Calls `step` for each run of flights in a stage, under the lock; without it while it waits. Where
    /// it has given up, if the layout never came to rest.
    pub(super) fn each_run(
        &self,
        stage: Stage,
        mut step: impl FnMut(&Engine, &mut State, usize, usize) -> Step,
    ) -> Option<usize> {
        let mut waits = 0;
        let mut state = self.lock();
        let (mut index, mut later) = (0, false);
        loop {
            let Some(flight) = state.flights.get(index) else {
                if !later {
                    return None;
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
                    if waits > MAX_WAITS && stage == Stage::In {
                        return Some(index);
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

/// Calls for so many pages, and for fewer as long as they are not all in one mapping: a call is for
/// one. What it answered, and for how many.
pub(super) fn in_one_mapping(
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

/// First byte and length of a run of pages.
pub(super) fn span(state: &State, index: usize, count: usize) -> (u64, u64) {
    let flight = &state.flights[index];
    (flight.address, flight.len() * count as u64)
}

/// The pages of a run have ended so.
pub(super) fn end(state: &mut State, index: usize, count: usize, outcome: Outcome) {
    for flight in &mut state.flights[index..index + count] {
        flight.stage = Stage::Ended(outcome);
    }
}
