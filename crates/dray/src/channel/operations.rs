//! Frequent operations, each pushed by one call.

use super::{Buffer, Channel, Rejected, Request};
use crate::{Mover, Ticket};

impl<M: Mover, B: Buffer> Channel<M, B> {
    /// Copies `source` to `destination`, which is as long.
    ///
    /// # Errors
    /// As [`push`](Channel::push), as for all that follow.
    pub fn copy(&mut self, source: B, destination: B) -> Result<Ticket, Box<Rejected<B>>> {
        self.push(Request::copy(source, destination))
    }

    /// Compares two buffers of the same length.
    ///
    /// # Errors
    /// As [`push`](Channel::push).
    pub fn compare(&mut self, first: B, second: B) -> Result<Ticket, Box<Rejected<B>>> {
        self.push(Request::compare(first, second))
    }

    /// Copies `source` to `destination`, which is as long, and takes its CRC32C.
    ///
    /// # Errors
    /// As [`push`](Channel::push).
    pub fn copy_crc32c(
        &mut self,
        source: B,
        destination: B,
        seed: u32,
    ) -> Result<Ticket, Box<Rejected<B>>> {
        self.push(Request::copy_crc32c(source, destination, seed))
    }

    /// Fills a buffer with an 8-byte pattern.
    ///
    /// # Errors
    /// As [`push`](Channel::push).
    pub fn fill(&mut self, pattern: u64, destination: B) -> Result<Ticket, Box<Rejected<B>>> {
        self.push(Request::fill(pattern, destination))
    }

    /// CRC32C of a buffer.
    ///
    /// # Errors
    /// As [`push`](Channel::push).
    pub fn crc32c(&mut self, source: B, seed: u32) -> Result<Ticket, Box<Rejected<B>>> {
        self.push(Request::crc32c(source, seed))
    }

    /// Compares a buffer with an 8-byte pattern.
    ///
    /// # Errors
    /// As [`push`](Channel::push).
    pub fn compare_pattern(&mut self, source: B, pattern: u64) -> Result<Ticket, Box<Rejected<B>>> {
        self.push(Request::compare_pattern(source, pattern))
    }
}
