//! What stands where completion records will be, when their descriptors are submitted.

use dray_remote::Spaces;

/// Bytes that are read at once for members of a batch: their records mostly lie side by side. It divides a page.
const BLOCK: u64 = 1024;

/// Part of the memory of a batch in flight, as it was when the first member began whose record is in it, with what the
/// device has written since.
#[derive(Debug)]
pub(super) struct Records<K> {
    batch: Option<K>,
    /// The address space.
    pasid: u32,
    start: u64,
    bytes: Vec<u8>,
}

impl<K> Default for Records<K> {
    fn default() -> Records<K> {
        Records {
            batch: None,
            pasid: 0,
            start: 0,
            bytes: Vec::new(),
        }
    }
}

impl<K: Copy + Eq> Records<K> {
    /// The status at the address of a member's record; `None` if it cannot be read.
    pub(super) fn of_member(
        &mut self,
        batch: K,
        address: u64,
        pasid: u32,
        spaces: &Spaces,
    ) -> Option<u8> {
        if self.batch != Some(batch) || self.at(address).is_none() {
            self.start = address / BLOCK * BLOCK;
            self.bytes = spaces.read_up_to(pasid, self.start, BLOCK as usize);
            self.batch = Some(batch);
            self.pasid = pasid;
        }
        self.at(address).copied()
    }

    /// The device is about to write a record.
    pub(super) fn written(&mut self, pasid: u32, address: u64, status: u8) {
        if pasid != self.pasid {
            return;
        }
        let Some(index) = address.checked_sub(self.start) else {
            return;
        };
        if let Some(byte) = self.bytes.get_mut(index as usize) {
            *byte = status;
        }
    }

    fn at(&self, address: u64) -> Option<&u8> {
        self.bytes.get(address.checked_sub(self.start)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_meet_what_was_there_and_what_the_device_has_written() {
        let spaces = Spaces::new();
        spaces.add(1, std::process::id()).expect("this process");
        let mut bytes = vec![0_u8; 4 * BLOCK as usize];
        let at = bytes.as_ptr().expose_provenance() as u64;
        let base = at.next_multiple_of(BLOCK);
        bytes[(base - at) as usize + 32] = 7;
        let mut records = Records::default();
        let of = |records: &mut Records<u32>, batch, offset| {
            records.of_member(batch, base + offset, 1, &spaces)
        };
        assert_eq!(of(&mut records, 1, 0), Some(0));
        assert_eq!(of(&mut records, 1, 32), Some(7));
        records.written(2, base + 96, 1);
        records.written(1, base + 64, 1);
        assert_eq!(of(&mut records, 1, 64), Some(1));
        // Another batch, or block: memory as it is.
        assert_eq!(of(&mut records, 2, 64), Some(0));
        records.written(1, base, 1);
        assert_eq!(of(&mut records, 2, BLOCK), Some(0));
        records.written(1, base, 1);
        assert_eq!(of(&mut records, 2, 0), Some(0));
        assert_eq!(records.of_member(2, 8, 1, &spaces), None);
    }
}
