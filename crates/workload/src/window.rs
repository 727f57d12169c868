//! Which part of the time of several loops counts.

use std::cell::Cell;
use std::rc::Rc;

use dray_clock::{Duration, Time};

use crate::ClosedLoop;

/// Loops that load the machine together: what counts lies between the time when the last of them
/// is warm and the time when the last has counted enough.
#[derive(Debug, Default)]
pub struct Together {
    pub(crate) warming: Cell<usize>,
    pub(crate) counting: Cell<usize>,
}

impl Together {
    /// So many loops.
    pub fn new(loops: usize) -> Rc<Together> {
        Rc::new(Together {
            warming: Cell::new(loops),
            counting: Cell::new(loops),
        })
    }
}

/// Rounds of several loops in a span of time in which all of them were at work: from when they
/// had, together, ended the rounds of the warm-up until the first loop was done. Loops need not be
/// treated alike by a queue: the time that each took would say too much of their sum.
pub fn common_window(loops: &[ClosedLoop]) -> (u64, Duration) {
    let mut all: Vec<Time> = loops.iter().flat_map(|l| &l.ends).copied().collect();
    all.sort_unstable();
    let warm: u64 = loops.iter().map(|l| l.plan.warm_up / l.plan.round).sum();
    let end = loops.iter().map(ClosedLoop::end_at).min();
    let start = match (warm as usize).checked_sub(1) {
        Some(index) => all.get(index).copied(),
        None => Some(Time::ZERO),
    };
    match (start, end) {
        (Some(start), Some(end)) => {
            let after = all.partition_point(|at| *at <= start);
            let until = all.partition_point(|at| *at <= end);
            (until.saturating_sub(after) as u64, end.since(start))
        }
        _ => (0, Duration::ZERO),
    }
}
