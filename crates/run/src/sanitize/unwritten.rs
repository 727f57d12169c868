//! What a move that ended at a page fault has left of its destination, and whether anybody has written it since.
//!
//! A program may finish on a core, submit the rest or all of it again, or give up. One that then has a device carry on what is
//! done together with what is not has done neither.

use dray_remote::{PageState, Spaces};

use super::resume::Partial;
use dray_spec::Accesses;

const PAGE: u64 = 4096;
/// Pages of a rest that are looked at for one to remember.
const PAGES: usize = 64;
/// Bytes at most of a page with nothing else that a program writes to have it brought in.
const TOUCH: usize = 8;

/// A part of a page of a destination as it was when the move had ended.
#[derive(Debug, Clone)]
pub(super) struct Unwritten {
    pub(super) start: u64,
    len: u64,
    state: PageState,
    /// Bytes of the destination that are done.
    done: (u64, u64),
    /// Of these, the part in the first page: where that changes, the buffer is used for something else.
    begin: PageState,
    /// What belongs there, as far as it is in memory.
    source: Option<Vec<u8>>,
}

impl Unwritten {
    /// One that a rest would change; `None` if something is done of all, or that cannot be known.
    pub(super) fn of(partial: &Partial, pasid: u32, spaces: &Spaces) -> Option<Unwritten> {
        let [done, rest] = partial.written_and_left();
        if done.1 == 0 {
            return None;
        }
        let begin = first(done, pasid, spaces)?;
        let source = partial.descriptor.address1;
        let end = rest.0.checked_add(rest.1)?;
        let starts = std::iter::successors(Some(rest.0), |at| Some((at / PAGE + 1) * PAGE));
        let starts = starts.take_while(|at| *at < end).take(PAGES);
        let mut parts = starts.map(|at| (at, ((at / PAGE + 1) * PAGE).min(end) - at));
        parts.find_map(|(start, len)| {
            let state = *spaces.look(pasid, start, len).first()?;
            let bytes = |at| spaces.read(pasid, at, len as usize);
            let from = source.checked_add(start.wrapping_sub(partial.descriptor.address2));
            let source = from.and_then(bytes);
            let is_known = match state {
                PageState::Absent => true,
                PageState::Present { .. } => source.is_some() && bytes(start) != source,
                PageState::Inaccessible | PageState::Elsewhere => false,
            };
            is_known.then_some(Unwritten {
                start,
                len,
                state,
                done,
                begin,
                source,
            })
        })
    }

    /// Whether nobody has written it, as far as that is known: it is as it was, or it is there now with nothing in it but what
    /// brought it in.
    pub(super) fn is_left(&self, pasid: u32, spaces: &Spaces) -> bool {
        let now = spaces.look(pasid, self.start, self.len);
        if now == [self.state] {
            return true;
        }
        let touched = || {
            let bytes = spaces.read(pasid, self.start, self.len as usize)?;
            let set = bytes.iter().filter(|byte| **byte != 0).count();
            Some(set <= TOUCH && bytes != *self.source.as_ref()?)
        };
        self.state == PageState::Absent && touched().unwrap_or(false)
    }

    /// Whether a descriptor carries on what is done and this, and nobody has written either.
    pub(super) fn is_carried_on(&self, by: &Accesses, pasid: u32, spaces: &Spaces) -> bool {
        let part = (self.start, self.len);
        let mut reads = by.read();
        by.written().next().is_some()
            && reads.any(|read| holds(read, part) && meets(read, self.done))
            && spaces.look(pasid, self.start, self.len) == [self.state]
            && first(self.done, pasid, spaces) == Some(self.begin)
    }
}

/// What the first page of a range holds of it.
fn first((at, bytes): (u64, u64), pasid: u32, spaces: &Spaces) -> Option<PageState> {
    let len = bytes.min(PAGE - at % PAGE);
    spaces.look(pasid, at, len).first().copied()
}

fn holds(all: (u64, u64), part: (u64, u64)) -> bool {
    all.0 <= part.0 && part.0 - all.0 + part.1 <= all.1
}

pub(super) fn meets(one: (u64, u64), other: (u64, u64)) -> bool {
    one.0 < other.0.saturating_add(other.1) && other.0 < one.0.saturating_add(one.1)
}
