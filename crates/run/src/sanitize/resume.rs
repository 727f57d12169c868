//! What follows a move that was completed in part.

use dray_spec::{CompletionRecord, Descriptor, Opcode, Status};

/// Moves that have ended at a page fault and of which a rest is left, by process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Partial {
    pub(super) descriptor: Descriptor,
    /// Bytes that are left.
    left: u64,
    /// They are at the start: it went backward.
    backward: bool,
}

/// How a descriptor stands to a partial completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follow {
    /// Nothing to do with it.
    Other,
    /// It is the rest, a part of it, or all of it again where that is right.
    Right,
    /// It is neither, and that is wrong.
    Wrong(&'static str),
}

impl Partial {
    /// The rest of an operation that has ended so; `None` if nothing is to be resumed.
    pub(super) fn of(d: &Descriptor, record: &CompletionRecord) -> Option<Partial> {
        let is_move = d.opcode() == Ok(Opcode::Memmove);
        let is_partial = record.status().code() == Status::PAGE_FAULT.code();
        let left = u64::from(d.size.checked_sub(record.bytes_completed)?);
        (is_move && is_partial && left > 0).then_some(Partial {
            descriptor: *d,
            left,
            backward: record.result & 1 == 1,
        })
    }

    /// Of its destination: what is done, and what is left.
    pub(super) fn written_and_left(&self) -> [(u64, u64); 2] {
        let (to, size) = (self.descriptor.address2, u64::from(self.descriptor.size));
        let done = size - self.left;
        match self.backward {
            true => [(to + self.left, done), (to, self.left)],
            false => [(to, done), (to + done, self.left)],
        }
    }

    /// How the next move between the same buffers stands to it.
    pub(super) fn follow(&self, next: &Descriptor) -> Follow {
        let (from, size) = (self.descriptor.address1, u64::from(self.descriptor.size));
        let distance = |d: &Descriptor| d.address2.wrapping_sub(d.address1);
        let is_between = next.opcode() == Ok(Opcode::Memmove)
            && distance(next) == distance(&self.descriptor)
            && next.address1.wrapping_sub(from) < size;
        if !is_between {
            return Follow::Other;
        }
        let (offset, len) = (next.address1.wrapping_sub(from), u64::from(next.size));
        let done = size - self.left;
        let overlaps = self.descriptor.address1.abs_diff(self.descriptor.address2) < size;
        if offset == 0 && len == size && done > 0 {
            return match overlaps {
                // The source is as it was.
                false => Follow::Right,
                true => Follow::Wrong(
                    "all of a move onto itself is submitted again: a part of its source is overwritten",
                ),
            };
        }
        // From the start again, and not all of it: another move between the same buffers.
        if offset == 0 && !self.backward {
            return Follow::Other;
        }
        let rest = match self.backward {
            true => 0..self.left,
            false => done..size,
        };
        if rest.start <= offset && offset + len <= rest.end {
            return Follow::Right;
        }
        // The first one may be a part of a longer move, which goes on in other parts.
        if !self.backward && offset >= rest.start {
            return Follow::Right;
        }
        match self.backward {
            true => Follow::Wrong(
                "the first one went from its end to its start (result 1), and this one goes on behind it",
            ),
            false => Follow::Wrong("it does not begin behind the bytes that are done"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partial(from: u64, to: u64, done: u32, result: u8) -> Partial {
        let mut record = CompletionRecord::with_status(Status::PAGE_FAULT);
        (record.bytes_completed, record.result) = (done, result);
        Partial::of(&Descriptor::memmove(from, to, 0x3000), &record).unwrap()
    }

    #[test]
    fn the_rest_is_behind_what_is_done_or_before_it() {
        let apart = partial(0x10000, 0x20000, 0x1000, 0);
        let follow = |partial: &Partial, offset: u64, len: u32| {
            let d = partial.descriptor;
            partial.follow(&Descriptor::memmove(
                d.address1 + offset,
                d.address2 + offset,
                len,
            ))
        };
        assert_eq!(follow(&apart, 0x1000, 0x2000), Follow::Right);
        assert_eq!(
            follow(&apart, 0x1000, 0x1000),
            Follow::Right,
            "a part of the rest"
        );
        assert_eq!(
            follow(&apart, 0, 0x3000),
            Follow::Right,
            "all of it, without overlap"
        );
        assert!(matches!(follow(&apart, 0x800, 0x2000), Follow::Wrong(_)));
        assert_eq!(
            follow(&apart, 0x1000, 0x3000),
            Follow::Right,
            "of a longer move"
        );
        // The core may have done the rest.
        assert_eq!(follow(&apart, 0, 0x800), Follow::Other);
        assert_eq!(
            apart.follow(&Descriptor::memmove(0x11000, 0x30000, 64)),
            Follow::Other
        );
        let backward = partial(0x10000, 0x11000, 0x1000, 1);
        assert_eq!(follow(&backward, 0, 0x2000), Follow::Right);
        assert!(matches!(
            follow(&backward, 0x1000, 0x2000),
            Follow::Wrong(_)
        ));
        assert!(matches!(follow(&backward, 0, 0x3000), Follow::Wrong(_)));
    }

    #[test]
    fn nothing_is_left_of_what_is_complete_or_no_move() {
        let mut record = CompletionRecord::with_status(Status::PAGE_FAULT);
        record.bytes_completed = 64;
        assert_eq!(
            Partial::of(&Descriptor::memmove(0, 0x1000, 64), &record),
            None
        );
        assert_eq!(
            Partial::of(&Descriptor::fill(0, 0x1000, 4096), &record),
            None
        );
        let success = CompletionRecord::with_status(Status::SUCCESS);
        assert_eq!(
            Partial::of(&Descriptor::memmove(0, 0x1000, 64), &success),
            None
        );
    }
}
