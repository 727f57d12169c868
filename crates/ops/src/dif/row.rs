//! Blocks in a row, and where their data go.

use std::ops::Range;

use super::guard::TOGETHER;

/// Blocks whose beginnings lie `step` bytes apart.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) step: usize,
}

impl<'a> Row<'a> {
    /// The first bytes of a block.
    #[inline]
    pub(super) fn block(self, number: usize, bytes: usize) -> &'a [u8] {
        &self.bytes[number * self.step..][..bytes]
    }

    /// All blocks.
    #[inline]
    pub(super) fn blocks(self) -> impl Iterator<Item = &'a [u8]> {
        let mut bytes = self.bytes;
        std::iter::from_fn(move || {
            let (block, rest) = bytes.split_at_checked(self.step)?;
            bytes = rest;
            Some(block)
        })
    }

    /// Some of the blocks.
    #[inline]
    pub(super) fn part(self, blocks: &Range<usize>) -> Self {
        let bytes = &self.bytes[blocks.start * self.step..blocks.end * self.step];
        Self { bytes, ..self }
    }

    /// Whether there are as many blocks as are worked on together.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.bytes.len() == TOGETHER * self.step
    }
}

/// Numbers of all blocks, those that are worked on together at a time.
///
/// Counted, because what cuts a slice into chunks divides, and does so again in each group: on some
/// processors that takes as long as a guard.
pub(super) fn groups(blocks: usize) -> impl Iterator<Item = Range<usize>> {
    (0..blocks.div_ceil(TOGETHER)).map(move |group| {
        let first = group * TOGETHER;
        first..blocks.min(first + TOGETHER)
    })
}

/// Blocks whose data are to be copied.
pub(super) struct Copies<'a> {
    pub(super) from: Row<'a>,
    /// Has a place for each block, `to_step` bytes apart.
    pub(super) to: &'a mut [u8],
    pub(super) to_step: usize,
    /// The places of the blocks after these.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "no hints there")
    )]
    pub(super) ahead: &'a [u8],
}

impl<'a> Copies<'a> {
    /// Copies of some blocks of a row to their places in `dst`.
    #[inline]
    pub(super) fn new(
        from: Row<'a>,
        blocks: &Range<usize>,
        dst: &'a mut [u8],
        to_step: usize,
    ) -> Self {
        let (start, end) = (blocks.start * to_step, blocks.end * to_step);
        let (to, ahead) = dst.split_at_mut(end);
        Self {
            from: from.part(blocks),
            to: &mut to[start..],
            to_step,
            ahead,
        }
    }

    /// Copies the first bytes of each block.
    pub(super) fn run(self, bytes: usize) {
        let mut places = self.to;
        for block in self.from.blocks() {
            let (place, rest) = places.split_at_mut(self.to_step);
            place[..bytes].copy_from_slice(&block[..bytes]);
            places = rest;
        }
    }
}
