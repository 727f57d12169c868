//! How a request is cut: into pieces that a descriptor may have, or into equal ones.

/// Bytes of a base page.
pub const PAGE: u64 = 4096;

/// Granules up to this divide a page.
const SMALL_GRANULE: u32 = 16;

/// The rule by which a request is cut.
///
/// ```
/// use dray_placement::{Cut, Rest};
///
/// // A descriptor of at most 10000 bytes: whole pages, and a rest that fits.
/// let cut = Cut::up_to(10_000, 1).expect("a byte is no more than that");
/// let pieces: Vec<(u64, u64)> = Rest::new(25_000).pieces(cut).map(|p| (p.offset, p.bytes)).collect();
/// assert_eq!(pieces, [(0, 8192), (8192, 8192), (16_384, 8616)]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of a piece that is not the last.
    piece: u64,
    /// Bytes of the last piece at most; never less than `piece`.
    last: u64,
}

impl Cut {
    /// One piece.
    pub const WHOLE: Cut = Cut {
        piece: u64::MAX,
        last: u64::MAX,
    };

    /// Pieces of at most `most` bytes (at least 1), of whole pages where they may be as large.
    #[inline]
    pub const fn bytes(most: u64) -> Cut {
        let last = least(if most == 0 { 1 } else { most }, u32::MAX as u64);
        let piece = if last < PAGE {
            last
        } else {
            last / PAGE * PAGE
        };
        Cut { piece, last }
    }

    /// Pieces of at most `most` bytes, as a descriptor can have (below 2^32). All but the last are multiples of
    /// `granule` bytes: 1, 8 or 16, or those of a block. Where whole pages are no more than `most`, a small granule
    /// gives pieces of whole pages, which keep the alignment of what follows. `None`: a granule is more than `most`.
    #[inline]
    pub const fn up_to(most: u64, granule: u32) -> Option<Cut> {
        let last = least(most, u32::MAX as u64);
        let step = match step(granule) {
            PAGE if last < PAGE => at_least_1(granule),
            step => step,
        };
        match last / step * step {
            0 => None,
            piece => Some(Cut { piece, last }),
        }
    }

    /// `count` equal pieces (at least 1) of `len` bytes, rounded up to whole pages or, where `granule` is larger than
    /// 16, to whole blocks. Rounding can make them fewer.
    #[inline]
    pub const fn equal(len: u64, count: u64, granule: u32) -> Cut {
        let count = if count == 0 { 1 } else { count };
        let exact = len.div_ceil(count);
        let piece = match exact.checked_next_multiple_of(step(granule)) {
            Some(0) | None => len,
            Some(rounded) => rounded,
        };
        Cut { piece, last: piece }
    }

    /// Pieces that both rules allow. The granules must be the same.
    #[inline]
    #[must_use]
    pub const fn within(self, limit: Cut) -> Cut {
        Cut {
            piece: least(self.piece, limit.piece),
            last: least(self.last, limit.last),
        }
    }

    /// Bytes of the next piece where `left` bytes are left.
    #[inline]
    pub const fn next(self, left: u64) -> u64 {
        match left <= self.last {
            true => left,
            false => self.piece,
        }
    }
}

const fn at_least_1(granule: u32) -> u64 {
    match granule {
        0 => 1,
        granule => granule as u64,
    }
}

/// Bytes of which pieces are multiples, if they may be as large.
const fn step(granule: u32) -> u64 {
    match granule <= SMALL_GRANULE {
        true => PAGE,
        false => granule as u64,
    }
}

const fn least(one: u64, other: u64) -> u64 {
    match one < other {
        true => one,
        false => other,
    }
}

/// A piece of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins in the request.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
}

/// The rest of a request, of which bytes at one end are done.
///
/// ```
/// use dray_placement::{Cut, Piece, Rest};
///
/// let cut = Cut::up_to(4096, 1).expect("a byte is no more than that");
/// // An overlapping move upwards begins at its end.
/// let mut rest = Rest::backward(5000);
/// assert_eq!(rest.next(cut), Piece { offset: 904, bytes: 4096 });
/// // A page fault after 96 bytes.
/// rest.advance(96);
/// assert_eq!((rest.done(), rest.next(cut)), (96, Piece { offset: 808, bytes: 4096 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rest {
    len: u64,
    done: u64,
    backward: bool,
}

impl Rest {
    /// A request of `len` bytes, from its first piece to its last.
    #[inline]
    pub const fn new(len: u64) -> Rest {
        Rest {
            len,
            done: 0,
            backward: false,
        }
    }

    /// The same from its last piece to its first.
    #[inline]
    pub const fn backward(len: u64) -> Rest {
        Rest {
            backward: true,
            ..Rest::new(len)
        }
    }

    /// Bytes that are done.
    #[inline]
    pub const fn done(&self) -> u64 {
        self.done
    }

    /// Bytes that are not.
    #[inline]
    pub const fn left(&self) -> u64 {
        self.len - self.done
    }

    /// Whether it goes from the last piece to the first.
    #[inline]
    pub const fn is_backward(&self) -> bool {
        self.backward
    }

    /// The next piece. It is still left: see [`Rest::advance`].
    #[inline]
    pub const fn next(&self, cut: Cut) -> Piece {
        let bytes = cut.next(self.left());
        Piece {
            offset: match self.backward {
                true => self.left() - bytes,
                false => self.done,
            },
            bytes,
        }
    }

    /// So many bytes more are done, at most those that are left.
    #[inline]
    pub const fn advance(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.left());
        self.done += least(bytes, self.left());
    }

    /// All pieces that are left, in their order.
    #[inline]
    pub const fn pieces(self, cut: Cut) -> Pieces {
        Pieces { rest: self, cut }
    }
}

/// The pieces of a [`Rest`].
#[derive(Debug, Clone)]
pub struct Pieces {
    rest: Rest,
    cut: Cut,
}

impl Iterator for Pieces {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        if self.rest.left() == 0 {
            return None;
        }
        let piece = self.rest.next(self.cut);
        self.rest.advance(piece.bytes);
        Some(piece)
    }
}
