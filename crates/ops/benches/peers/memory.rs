//! Buffers: one set again and again, or so many that none is in a cache when its turn comes.

use dray_ops::{DestinationDifFlags, DifFlags, Tags};

/// Bytes of each kind of buffer when cold: several times what last-level caches hold.
pub(crate) const COLD_BYTES: usize = 192 << 20;

/// Space of one buffer: blocks of 512 grow by 8 bytes each.
const fn slot_bytes(bytes: usize) -> usize {
    (bytes + bytes / 512 * 8).next_multiple_of(4096)
}

/// What the sources hold.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    /// Bytes without a pattern, the same in both sources.
    Random,
    Zero,
    /// Blocks of 512 bytes with their fields.
    Protected,
}

/// The buffers of one operation.
pub(crate) struct Slot<'a> {
    pub(crate) src: &'a [u8],
    /// As `src`, elsewhere.
    pub(crate) twin: &'a [u8],
    pub(crate) dst: &'a mut [u8],
    pub(crate) second: &'a mut [u8],
}

pub(crate) struct Arena {
    src: Vec<u8>,
    twin: Vec<u8>,
    dst: Vec<u8>,
    second: Vec<u8>,
    src_bytes: usize,
    dst_bytes: usize,
    step: usize,
    pub(crate) bytes: usize,
    pub(crate) slots: usize,
}

impl Arena {
    /// `slots` sets for operations on `bytes` bytes of data.
    pub(crate) fn new(bytes: usize, slots: usize, content: Content) -> Arena {
        let step = slot_bytes(bytes);
        let mut one = vec![0; step];
        match content {
            Content::Random => random(&mut one),
            Content::Zero => {}
            Content::Protected => {
                let mut data = vec![0; bytes];
                random(&mut data);
                let room = &mut one[..bytes / 512 * 520];
                let (flags, tags) = (DestinationDifFlags::new(), Tags::default());
                dray_ops::dif_insert(&data, room, DifFlags::new(), flags, tags)
                    .expect("whole blocks");
            }
        }
        let protected = bytes / 512 * 520;
        let (src_bytes, dst_bytes) = match content {
            Content::Protected => (protected, bytes),
            Content::Random | Content::Zero => (bytes, protected),
        };
        Arena {
            src: one.repeat(slots),
            twin: one.repeat(slots),
            dst: vec![1; step * slots],
            second: vec![1; step * slots],
            src_bytes,
            dst_bytes,
            step,
            bytes,
            slots,
        }
    }

    pub(crate) fn slot(&mut self, n: usize) -> Slot<'_> {
        let at = n % self.slots * self.step;
        Slot {
            src: &self.src[at..at + self.src_bytes],
            twin: &self.twin[at..at + self.src_bytes],
            dst: &mut self.dst[at..at + self.dst_bytes],
            second: &mut self.second[at..at + self.dst_bytes],
        }
    }
}

fn random(bytes: &mut [u8]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for byte in bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = state as u8;
    }
}
