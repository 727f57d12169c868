//! Inputs without a fuzzer: random bytes from a seed, the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Endless random inputs.
#[derive(Debug)]
pub struct Inputs {
    rng: ChaCha8Rng,
    max_bytes: usize,
}

impl Inputs {
    /// The inputs of a seed, each of at most `max_bytes` bytes.
    pub fn new(seed: u64, max_bytes: usize) -> Inputs {
        Inputs {
            rng: ChaCha8Rng::seed_from_u64(seed),
            max_bytes,
        }
    }
}

impl Iterator for Inputs {
    type Item = Vec<u8>;

    /// Short ones more often: half of all are at most an eighth as long as they may be.
    fn next(&mut self) -> Option<Vec<u8>> {
        let limit = match self.rng.next_u32() % 2 {
            0 => self.max_bytes / 8,
            _ => self.max_bytes,
        };
        let length = self.rng.next_u32() as usize % (limit + 1);
        let mut bytes = vec![0; length];
        self.rng.fill_bytes(&mut bytes);
        Some(bytes)
    }
}
