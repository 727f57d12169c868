//! Pages on their way from frame to frame.

use crate::mechanism::outcome::Outcome;
use crate::sys::PAGE;

/// How far a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Under the program's address.
    In,
    /// In the window where pages land.
    Out,
    /// It ended so, wherever it is.
    Ended(Outcome),
}

/// One page, base or huge, of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    /// Where it was when the batch began.
    pub(crate) origin: u64,
    /// Where the program has it now.
    pub(crate) address: u64,
    pub(crate) huge: bool,
    /// Its slot in the window where it lands, and in the one where its new frame is.
    pub(crate) landing: u64,
    pub(crate) made: u64,
    pub(crate) stage: Stage,
    /// Attempts to put it back that failed.
    pub(crate) tries: u8,
}

impl Flight {
    pub(crate) fn len(&self) -> u64 {
        match self.huge {
            true => crate::sys::HUGE,
            false => crate::sys::PAGE,
        }
    }

    pub(crate) fn pages(&self) -> u64 {
        self.len() / crate::sys::PAGE
    }
}

/// Length of the run of flights at `from` that one call can handle: same stage, size, and addresses
/// and slots in a row.
pub(crate) fn run(flights: &[Flight], from: usize) -> usize {
    let first = &flights[from];
    let follows = |(nth, flight): &(usize, &Flight)| {
        let offset = *nth as u64 * first.len();
        flight.stage == first.stage
            && flight.huge == first.huge
            && flight.address == first.address + offset
            && flight.origin == first.origin + offset
            && flight.landing == first.landing + offset
            && flight.made == first.made + offset
    };
    flights[from..]
        .iter()
        .enumerate()
        .take_while(follows)
        .count()
}

/// Makes base pages of a huge page, the first `out` of which are out.
pub(crate) fn split(flights: &mut Vec<Flight>, index: usize, out: u64) {
    let huge = flights[index];
    let base = (0..huge.len() / PAGE).map(|page| {
        let offset = page * PAGE;
        Flight {
            origin: huge.origin + offset,
            address: huge.address + offset,
            landing: huge.landing + offset,
            made: huge.made + offset,
            huge: false,
            stage: match page < out {
                true => Stage::Out,
                false => huge.stage,
            },
            tries: 0,
        }
    });
    flights.splice(index..=index, base);
}

/// Huge pages that lie only partly in a range become base pages, if they are out.
fn split_partial(flights: &mut Vec<Flight>, start: u64, end: u64) {
    let mut index = 0;
    while index < flights.len() {
        let flight = flights[index];
        let (first, last) = (flight.address, flight.address + flight.len());
        let partly = first < end && start < last && !(start <= first && last <= end);
        if flight.huge && partly && flight.stage == Stage::Out {
            split(flights, index, 0);
        }
        index += 1;
    }
}

/// The program drops what is in `start..end`.
pub(crate) fn drop_range(flights: &mut Vec<Flight>, start: u64, end: u64) {
    split_partial(flights, start, end);
    for flight in flights {
        let inside = flight.address < end && start < flight.address + flight.len();
        if inside && !matches!(flight.stage, Stage::Ended(_)) {
            flight.stage = Stage::Ended(Outcome::Dropped);
        }
    }
}

/// The program has moved what was in `from..from + len`.
pub(crate) fn shift(flights: &mut Vec<Flight>, from: u64, to: u64, len: u64) {
    split_partial(flights, from, from + len);
    for flight in flights {
        let inside = flight.address < from + len && from < flight.address + flight.len();
        if inside {
            if flight.stage == Stage::In {
                flight.stage = Stage::Ended(Outcome::Remapped);
            }
            if flight.address >= from {
                flight.address = flight.address - from + to;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::HUGE;

    fn flights(stage: Stage) -> Vec<Flight> {
        let flight = |address, huge, landing| Flight {
            origin: address,
            address,
            huge,
            landing,
            made: landing + (1 << 40),
            stage,
            tries: 0,
        };
        vec![
            flight(HUGE, true, 0),
            flight(4 * HUGE, false, HUGE),
            flight(4 * HUGE + PAGE, false, HUGE + PAGE),
            flight(4 * HUGE + 3 * PAGE, false, HUGE + 2 * PAGE),
        ]
    }

    #[test]
    fn runs_end_at_gaps_between_addresses() {
        let flights = flights(Stage::In);
        assert_eq!(run(&flights, 0), 1);
        assert_eq!(run(&flights, 1), 2);
        assert_eq!(run(&flights, 3), 1);
    }

    #[test]
    fn a_huge_page_that_is_dropped_in_part_is_put_back_in_part() {
        let mut flights = flights(Stage::Out);
        drop_range(&mut flights, HUGE + 8 * PAGE, HUGE + 16 * PAGE);
        assert_eq!(flights.len(), 515);
        let dropped = |f: &&Flight| f.stage == Stage::Ended(Outcome::Dropped);
        assert_eq!(flights.iter().filter(dropped).count(), 8);
        assert_eq!(flights[7].stage, Stage::Out);
        assert_eq!(flights[16].landing, 16 * PAGE);
    }

    #[test]
    fn pages_in_flight_follow_their_mapping() {
        let mut moved = flights(Stage::Out);
        shift(&mut moved, 4 * HUGE + PAGE, 9 * HUGE, PAGE);
        assert_eq!(moved[2].address, 9 * HUGE);
        assert_eq!(moved[3].address, 4 * HUGE + 3 * PAGE);
        // One that is still in is left.
        let mut left = flights(Stage::In);
        shift(&mut left, 4 * HUGE, 9 * HUGE, PAGE);
        assert_eq!(left[1].stage, Stage::Ended(Outcome::Remapped));
    }
}
