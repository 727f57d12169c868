//! Writes to portals, put together.
//!
//! A client that can write 64 bytes at once does so. A processor without MOVDIR64B cannot, and its
//! emulation stores eight qwords in ascending order, which arrive one by one. Such an emulation says that
//! it means ENQCMD by a read of two bytes before, and reads the answer as four bytes after; hardware
//! gives such reads no meaning (spec 9.3).

use dray_spec::Descriptor;
use zerocopy::transmute;

/// Read of a portal that says that what follows is deferrable (ENQCMD).
pub(crate) const ARM_BYTES: usize = 2;
/// Read of a portal that gives the answer to a deferrable write: 0 accepted, 1 retry.
pub(crate) const ANSWER_BYTES: usize = 4;

/// What has been written to one place of BAR2, a part at a time.
#[derive(Debug, Clone, Copy, Default)]
struct Partial {
    words: [u64; 8],
    /// Qwords that have come.
    count: usize,
}

/// A descriptor that has been written to a portal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    /// Offset in BAR2.
    pub(crate) offset: u64,
    /// By ENQCMD.
    pub(crate) deferrable: bool,
    pub(crate) descriptor: Descriptor,
}

/// Portals of a client. One write is put together at a time, as the emulation has them one by one; a write
/// somewhere else begins anew.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    /// Where: a multiple of 64.
    place: u64,
    partial: Partial,
    /// A deferrable write is to come to this place.
    armed: Option<u64>,
    /// Answer of the last deferrable write, and where it was.
    answer: Option<(u64, bool)>,
    /// Parts that were never put together.
    pub(crate) torn: u64,
}

impl Assembly {
    /// A write to BAR2. What it completes; writes of other sizes are ignored (spec 9.3).
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Option<Written> {
        let place = offset & !63;
        if let Ok(whole) = <[u8; 64]>::try_from(bytes) {
            self.forget();
            return (offset == place).then(|| self.written(place, transmute!(whole)));
        }
        let Ok(bytes) = <[u8; 8]>::try_from(bytes) else {
            self.torn += 1;
            return None;
        };
        let index = ((offset - place) / 8) as usize;
        if !offset.is_multiple_of(8) {
            self.torn += 1;
            return None;
        }
        if index == 0 {
            self.forget();
            self.place = place;
        } else if place != self.place || index != self.partial.count {
            self.forget();
            self.torn += 1;
            return None;
        }
        self.partial.words[index] = u64::from_le_bytes(bytes);
        self.partial.count = index + 1;
        if self.partial.count < 8 {
            return None;
        }
        let words = std::mem::take(&mut self.partial).words;
        Some(self.written(place, transmute!(words)))
    }

    fn written(&mut self, place: u64, descriptor: Descriptor) -> Written {
        Written {
            offset: place,
            deferrable: self.armed.take() == Some(place),
            descriptor,
        }
    }

    fn forget(&mut self) {
        self.torn += u64::from(self.partial.count > 0);
        self.partial = Partial::default();
    }

    /// A read of BAR2: all bytes are 0 but for the answer.
    pub(crate) fn read(&mut self, offset: u64, bytes: &mut [u8]) {
        bytes.fill(0);
        match bytes.len() {
            ARM_BYTES if offset.is_multiple_of(64) => self.armed = Some(offset),
            ANSWER_BYTES => {
                if let Some((place, retry)) = self.answer.take()
                    && place == offset
                {
                    bytes[0] = u8::from(retry);
                }
            }
            _ => {}
        }
    }

    /// What became of a deferrable write.
    pub(crate) fn answer(&mut self, place: u64, retry: bool) {
        self.answer = Some((place, retry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_all(assembly: &mut Assembly, place: u64) -> Option<Written> {
        let mut written = None;
        for n in 0..8_u64 {
            written = assembly.write(place + 8 * n, &(n + 1).to_le_bytes());
            assert_eq!(written.is_some(), n == 7);
        }
        written
    }

    #[test]
    fn eight_consecutive_qwords_are_a_descriptor() {
        let mut assembly = Assembly::default();
        let written = write_all(&mut assembly, 0x1040).expect("whole");
        let words: [u64; 8] = transmute!(written.descriptor);
        assert_eq!((written.offset, written.deferrable), (0x1040, false));
        assert_eq!(words, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(assembly.write(0x1000, &[7; 64]).is_some());
        assert_eq!(assembly.torn, 0);
    }

    #[test]
    fn a_read_of_two_bytes_makes_the_next_write_deferrable() {
        let mut assembly = Assembly::default();
        assembly.read(0x1000, &mut [0; ARM_BYTES]);
        assert!(write_all(&mut assembly, 0x1000).is_some_and(|w| w.deferrable));
        assembly.answer(0x1000, true);
        let mut answer = [9; ANSWER_BYTES];
        assembly.read(0x1000, &mut answer);
        assert_eq!(answer, [1, 0, 0, 0]);
        assembly.read(0x1000, &mut answer);
        assert_eq!(answer, [0; 4], "reported once");
        assert!(write_all(&mut assembly, 0x1000).is_some_and(|w| !w.deferrable));
    }

    #[test]
    fn parts_out_of_order_are_no_descriptor() {
        let mut assembly = Assembly::default();
        for (offset, size) in [
            (0x1000, 8),
            (0x1010, 8),
            (0x1008, 8),
            (0x1000, 4),
            (0x1001, 8),
        ] {
            assert!(assembly.write(offset, &vec![0; size]).is_none());
        }
        assert_eq!(assembly.torn, 5);
        assert!(write_all(&mut assembly, 0x2000).is_some());
        assert!(assembly.write(0x2020, &[0; 64]).is_none(), "not aligned");
    }
}
