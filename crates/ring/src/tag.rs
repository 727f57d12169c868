//! What stands beside an entry of a ring: which descriptor is in it, or who has claimed it.

/// Positions are counted modulo this: a month at five million a second, after which they begin
/// again. What is compared is never that far apart.
pub(crate) const COUNT: u64 = (1 << 44) - 1;
/// The name of a client, above a position. This process is 0.
pub(crate) const NAME: u64 = CLIENTS << NAME_SHIFT;
/// The largest number of a client.
pub const CLIENTS: u64 = (1 << 12) - 1;

const NAME_SHIFT: u32 = 44;
/// The position has been claimed, by the client of that name.
const CLAIMED: u64 = 1 << 62;
/// The descriptor is there.
const WRITTEN: u64 = 1 << 63;

/// How far position `a` is ahead of `b`; 0 if it is behind.
#[inline]
pub(crate) fn apart(a: u64, b: u64) -> u64 {
    let distance = a.wrapping_sub(b) & COUNT;
    match distance > COUNT / 2 {
        false => distance,
        true => 0,
    }
}

/// Position, and what is there. Zero: nothing yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(pub(crate) u64);

impl Tag {
    /// The bits of a client's name.
    #[inline]
    pub(crate) fn name(client: u16) -> u64 {
        (u64::from(client) & CLIENTS) << NAME_SHIFT
    }

    /// `name` has claimed `position`.
    #[inline]
    pub(crate) fn claimed(position: u64, name: u64) -> Tag {
        Tag(CLAIMED | name | position & COUNT)
    }

    /// The descriptor of `position` is there.
    #[inline]
    pub(crate) fn written(position: u64) -> Tag {
        Tag(WRITTEN | position & COUNT)
    }

    #[inline]
    pub(crate) fn position(self) -> u64 {
        self.0 & COUNT
    }

    #[inline]
    pub(crate) fn client(self) -> u16 {
        (self.0 >> NAME_SHIFT & CLIENTS) as u16
    }

    /// Whether it is of an earlier round than `claim`, of the same entry.
    #[inline]
    pub(crate) fn is_before(self, claim: Tag) -> bool {
        self.0 & (CLAIMED | WRITTEN) == 0 || apart(claim.position(), self.position()) > 0
    }

    /// Who has claimed `position` and not written, if it says so.
    #[inline]
    pub(crate) fn claimant(self, position: u64) -> Option<u16> {
        let claimed = self.0 & CLAIMED != 0 && self.position() == position & COUNT;
        claimed.then_some(self.client())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_compared_across_the_end_of_their_count() {
        assert_eq!(apart(5, 3), 2);
        assert_eq!(apart(3, 5), 0);
        assert_eq!(apart(1, COUNT - 1), 3);
        assert_eq!(apart(COUNT - 1, 1), 0);
        assert!(Tag::written(COUNT - 3).is_before(Tag::claimed(COUNT + 1, 0)));
        assert!(!Tag::written(1).is_before(Tag::claimed(COUNT - 3, 0)));
    }

    #[test]
    fn a_tag_says_who_and_where() {
        let tag = Tag::claimed(7, Tag::name(4095));
        assert_eq!((tag.position(), tag.client()), (7, 4095));
        assert_eq!(tag.claimant(7), Some(4095));
        assert_eq!(tag.claimant(8), None);
        assert_eq!(Tag::written(7).claimant(7), None);
        assert_eq!(Tag(0).claimant(0), None);
        assert!(Tag(0).is_before(Tag::claimed(0, 0)));
        assert!(!tag.is_before(tag));
        assert!(!Tag::written(7).is_before(tag));
    }
}
