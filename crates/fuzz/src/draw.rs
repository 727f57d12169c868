//! Bytes, taken apart as they are asked for. When they have run out, everything is 0.

use arbitrary::{Arbitrary, Unstructured};

pub(crate) struct Draw<'a>(Unstructured<'a>);

impl<'a> Draw<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Draw<'a> {
        Draw(Unstructured::new(bytes))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next `bytes` bytes, for a part of the case alone: whatever is drawn of them, what comes
    /// behind them stays where it is.
    pub(crate) fn block(&mut self, bytes: usize) -> Draw<'a> {
        let there = bytes.min(self.0.len());
        Draw::new(self.0.bytes(there).unwrap_or_default())
    }

    /// Any value of an integer type.
    pub(crate) fn any<T: Arbitrary<'a> + Default>(&mut self) -> T {
        self.0.arbitrary().unwrap_or_default()
    }

    /// A number from 0 to `end`, which is not 0, exclusive.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.int_in_range(0..=end - 1).unwrap_or_default()
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == n - 1
    }

    /// One of some, which are not none.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// So many bytes, with 0 where there are no more.
    pub(crate) fn fill(&mut self, into: &mut [u8]) {
        // Fails never: it fills up with 0.
        if self.0.fill_buffer(into).is_err() {
            into.fill(0);
        }
    }

    /// What is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0.take_rest()
    }
}
