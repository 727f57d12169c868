//! The default back end: this process's own memory, whose frames the engine exchanges.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::BackEnd;
use crate::TierError;
use crate::knobs::Knob;
use crate::mechanism::{BASE_SLOTS, BLOCK, Block, Engine, HUGE_SLOTS, Outcome, Piece};
use crate::policy::{Room, units};
use crate::session::{Note, Process, Reason, Session, Value};
use crate::sys::cgroup::Cgroup;
use crate::sys::pagemap::{FILE, HUGE_PAGE, PRESENT, PageMap, Wanted, ZERO};
use crate::sys::{HUGE, PAGE};
use crate::tracking::unit;

/// Base pages of a call, in knees: what a call costs besides its pages is a small part then.
const KNEES: u64 = 4;

/// Bytes of a control group's limit that are left to the program while pages move.
const LEFT_IN_GROUP: u64 = 2 << 20;

/// Managed memory of this process.
#[derive(Debug)]
pub struct UffdBackEnd {
    engine: Arc<Engine>,
    session: Session,
    process: Option<&'static Process>,
    pagemap: PageMap,
    /// Base pages from which on a call is cheap.
    knee: u64,
    cgroup: Cgroup,
    /// Batches in a row of which little could move, and the interval until which none is tried.
    refused: (u32, u32),
    /// Pages that the program uses, wherever they are.
    pages: u64,
    /// The books of this interval.
    blocks: Vec<(u64, Block)>,
}

impl UffdBackEnd {
    /// Over an engine, whose calls are cheap from `knee` base pages on. What it does is recorded in the session,
    /// and counted for the process.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(
        engine: Arc<Engine>,
        session: Session,
        process: Option<&'static Process>,
        knee: u64,
    ) -> Result<UffdBackEnd, TierError> {
        let pagemap = engine.pagemap()?;
        Ok(UffdBackEnd {
            engine,
            session,
            process,
            pagemap,
            knee,
            cgroup: Cgroup::own(),
            refused: (0, 0),
            pages: 0,
            blocks: Vec::new(),
        })
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Says how many bytes the program uses, wherever they are.
    pub fn set_used(&mut self, bytes: u64) {
        self.pages = bytes / PAGE;
    }
}

impl BackEnd for UffdBackEnd {
    fn name(&self) -> &'static str {
        "uffd"
    }

    fn used(&self) -> [u64; 2] {
        let slow = self.engine.slow_pages();
        [self.pages.saturating_sub(slow), slow]
    }

    fn units(&mut self) -> Cow<'_, [(u64, Block)]> {
        self.blocks = self.engine.blocks();
        Cow::Owned(units(&self.blocks))
    }

    fn migrate(&mut self, reason: Reason, numbers: &[u64], room: &Room) -> Result<(), TierError> {
        if numbers.is_empty() {
            return Ok(());
        }
        let to = usize::from(reason == Reason::Demotion);
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        let blocks = std::mem::take(&mut self.blocks);
        let mut pieces = self.pieces(&blocks, &numbers, to);
        self.blocks = blocks;
        if reason == Reason::NumaMisplaced {
            // A few single pages cost several times as much each; a block of them is cheap. What is
            // alone waits until its neighbours are hot too, unless nothing else is.
            let long = |piece: &Piece| piece.huge || piece.len >= self.knee * PAGE;
            if pieces.iter().any(long) && pieces.iter().filter(|p| !long(p)).count() > 64 {
                pieces.retain(long);
            }
        }
        let most = self.within_group(&mut pieces);
        let most = [most[0].min(self.call_pages() * PAGE), most[1]];
        let calls = batches(&pieces, most);
        let (mut asked, mut done) = (0, 0);
        for (index, batch) in calls.iter().enumerate() {
            if room.interval < self.refused.1 {
                break;
            }
            let mut report = self.engine.migrate(batch, to);
            if report.outcomes.get(Outcome::NoHugeFrame) > 0 {
                // There is no huge page to be had: as the kernel does, it moves as base pages.
                let huge = batch.iter().filter(|piece| piece.huge);
                let parts: Vec<Piece> = huge
                    .map(|piece| Piece {
                        huge: false,
                        ..*piece
                    })
                    .collect();
                report.add(&self.engine.migrate(&parts, to));
            }
            self.session.record(reason, &report);
            let moved = report.outcomes.get(Outcome::Moved);
            (asked, done) = (asked + report.pages, done + moved);
            let last = index + 1 == calls.len();
            if asked >= BASE_SLOTS || last && asked >= 64 {
                self.enter_refused(done < asked / 4, room.interval);
                (asked, done) = (0, 0);
            }
            if let Some(process) = self.process {
                process.moved(reason, &report.outcomes);
            }
        }
        let back = self
            .engine
            .moved(&numbers, to == 1, room.interval, room.ping_pong);
        if let Some(process) = self.process {
            process.add(Value::PingPongs, back);
        }
        Ok(())
    }
}

impl UffdBackEnd {
    /// Base pages of a call at most. Who touches a page of a call waits until its end, so a call has no
    /// more pages than make a page cheap.
    fn call_pages(&self) -> u64 {
        match self.session.knob(Knob::BatchPages) {
            0 => (KNEES * self.knee).min(BASE_SLOTS),
            pages => pages,
        }
    }

    /// Little of what was asked for last could move, or it could.
    fn enter_refused(&mut self, refused: bool, interval: u32) {
        self.refused = match refused {
            true => {
                // Pages that are shared with a child stay so for its life.
                let times = (self.refused.0 + 1).min(8);
                (times, interval + (1 << times))
            }
            false => (0, 0),
        };
    }

    /// Bytes that a call may move at most, base and huge: new frames beyond the limit of the control group
    /// would end the program. What cannot be moved so is left, and said.
    fn within_group(&self, pieces: &mut Vec<Piece>) -> [u64; 2] {
        let Some(room) = self.cgroup.room() else {
            return MOST;
        };
        let most = most_within(room);
        let bytes = |pieces: &[Piece]| pieces.iter().map(|piece| piece.len).sum::<u64>();
        let all = bytes(pieces);
        pieces.retain(|piece| most[usize::from(piece.huge)] > 0);
        let left = (all - bytes(pieces)) / PAGE;
        if let (Some(process), 1..) = (self.process, left) {
            process.outcomes[Outcome::NoFrame as usize].fetch_add(left, Ordering::Relaxed);
            let text = format!(
                "the control group's memory limit leaves {} KiB: pages stay where they are",
                room >> 10
            );
            process.note(Note::Group, &text);
        }
        most
    }

    /// The pages of blocks that are there and of the other tier, as runs.
    fn pieces(&mut self, blocks: &[(u64, Block)], numbers: &[u64], to: usize) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut until = 0;
        for number in numbers {
            let find = |number: &u64| blocks.binary_search_by_key(number, |(n, _)| *n).ok();
            let Some(block) = find(number).map(|index| blocks[index].1) else {
                continue;
            };
            let (start, len) = unit(*number, block.huge);
            if start < until {
                continue;
            }
            until = start + len;
            let wanted = Wanted {
                all: PRESENT,
                none: FILE | ZERO,
                report: HUGE_PAGE,
                protect: false,
            };
            let pieces = &mut pieces;
            let _ = self.pagemap.scan(start, until, wanted, |run| {
                let huge = run.categories & HUGE_PAGE != 0;
                if huge {
                    let whole = run.start.is_multiple_of(HUGE) && run.end - run.start >= HUGE;
                    if whole {
                        push(pieces, run.start, run.end - run.start, true);
                    }
                    return;
                }
                for page in (run.start..run.end).step_by(PAGE as usize) {
                    let index = find(&(page / BLOCK));
                    let slow = index.map_or(0, |index| blocks[index].1.slow);
                    let is_slow = slow >> (page % BLOCK / PAGE) & 1 == 1;
                    if is_slow == (to == 0) {
                        push(pieces, page, PAGE, false);
                    }
                }
            });
        }
        pieces
    }
}

/// Bytes of a call at most: as many pages as fill the engine's windows, base and huge.
const MOST: [u64; 2] = [BASE_SLOTS * PAGE, HUGE_SLOTS * HUGE];

fn push(pieces: &mut Vec<Piece>, start: u64, len: u64, huge: bool) {
    match pieces.last_mut() {
        Some(last) if last.huge == huge && last.start + last.len == start => last.len += len,
        _ => pieces.push(Piece { start, len, huge }),
    }
}

/// As [`MOST`], where a control group has room for so many bytes more: half of what it can spare for
/// each kind.
fn most_within(room: u64) -> [u64; 2] {
    let spare = room.saturating_sub(LEFT_IN_GROUP) / 2;
    [
        MOST[0].min(spare / PAGE * PAGE),
        MOST[1].min(spare / HUGE * HUGE),
    ]
}

/// Pieces for one call each, of which none moves more than `most` bytes of a kind. The histograms count
/// calls.
fn batches(pieces: &[Piece], most: [u64; 2]) -> Vec<Vec<Piece>> {
    let mut batches: Vec<Vec<Piece>> = Vec::new();
    let mut room = [0; 2];
    for piece in pieces {
        let mut rest = *piece;
        let kind = usize::from(rest.huge);
        while rest.len > 0 {
            if room[kind] == 0 {
                batches.push(Vec::new());
                room = most;
            }
            let len = rest.len.min(room[kind]);
            if let Some(batch) = batches.last_mut() {
                batch.push(Piece { len, ..rest });
            }
            room[kind] -= len;
            rest.start += len;
            rest.len -= len;
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_moves_as_many_pages_as_fill_the_windows() {
        let piece = |start, pages, huge| Piece {
            start,
            len: pages * if huge { HUGE } else { PAGE },
            huge,
        };
        let all = [
            piece(0, 600, false),
            piece(1 << 30, 20, true),
            piece(1 << 22, 1500, false),
            piece(1 << 31, 30, true),
        ];
        let batches = batches(&all, MOST);
        let pages = |batch: &Vec<Piece>, huge| -> u64 {
            let bytes = batch.iter().filter(|piece| piece.huge == huge);
            bytes.map(|piece| piece.len).sum::<u64>() / if huge { HUGE } else { PAGE }
        };
        let counts: Vec<_> = batches
            .iter()
            .map(|batch| (pages(batch, false), pages(batch, true)))
            .collect();
        assert_eq!(counts, [(1024, 20), (1024, 0), (52, 24), (0, 6)]);
        assert_eq!(batches[1][0].start, (1 << 22) + 424 * PAGE);
        assert!(super::batches(&[], MOST).is_empty());
    }

    #[test]
    fn the_room_of_a_control_group_limits_a_call() {
        assert_eq!(most_within(1 << 40), MOST);
        assert_eq!(most_within(LEFT_IN_GROUP), [0, 0]);
        assert_eq!(most_within(LEFT_IN_GROUP + 3 * PAGE), [PAGE, 0]);
        assert_eq!(most_within(LEFT_IN_GROUP + 2 * HUGE), [HUGE, HUGE]);
        let piece = Piece {
            start: 0,
            len: 10 * PAGE,
            huge: false,
        };
        let lens: Vec<u64> = batches(&[piece], [4 * PAGE, 0])
            .iter()
            .map(|batch| batch.iter().map(|piece| piece.len / PAGE).sum())
            .collect();
        assert_eq!(lens, [4, 4, 2]);
    }
}
