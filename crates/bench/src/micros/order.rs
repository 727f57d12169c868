//! The operations of an iteration, and the order in which they take their buffers.

use dray_workload::{Buffers, Operations};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::options::Micros;

/// Of the order that buffers are taken in when it is not theirs.
const SEED: u64 = 0x0d2a_7001;

/// The operations of one CPU on its buffers.
pub(crate) fn operations(micros: &Micros, buffers: Buffers) -> Operations {
    Operations {
        cache_control: micros.cache_control,
        flags: micros.flags,
        order: match micros.shuffled {
            true => shuffled(micros.descriptors() * micros.batch),
            false => Vec::new(),
        },
        ..Operations::new(micros.shape(), buffers)
    }
}

/// Numbers below `count` in an order that is the same everywhere (Fisher and Yates).
fn shuffled(count: u32) -> Vec<u32> {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..order.len()).rev() {
        // A bias of one in 2^32 over the count: nothing.
        let other = (u64::from(random.next_u32()) * (last as u64 + 1)) >> 32;
        order.swap(last, other as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use dray_workload::Ring;

    use super::*;

    #[test]
    fn a_shuffled_order_uses_every_buffer_once() {
        let ring = Ring {
            base: 0,
            stride: 4096,
            count: 512,
        };
        let buffers = Buffers {
            src: ring,
            dst: ring,
            dst2: ring,
        };
        let micros = |shuffled| Micros {
            shuffled,
            buffers: 512,
            batch: 4,
            ..Micros::default()
        };
        let addresses = |shuffled| -> Vec<u64> {
            let operations = operations(&micros(shuffled), buffers);
            let address = |n| operations.at(n).descriptor().address1;
            (0..512).map(address).collect()
        };
        let (plain, mut other) = (addresses(false), addresses(true));
        assert!(plain.is_sorted());
        assert_ne!(plain, other);
        other.sort_unstable();
        assert_eq!(plain, other);
    }
}
