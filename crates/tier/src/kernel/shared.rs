//! Pages that several processes map: each is counted and moved once, for the process that is looked at first.

use std::collections::HashMap;

/// Frames that have been seen, by the number of 64 of them.
#[derive(Debug, Default)]
pub(super) struct SharedPages {
    owners: HashMap<u64, Owners>,
}

#[derive(Debug, Default)]
struct Owners {
    /// A process and the bits of its frames; mostly there is one.
    slots: Vec<(u32, u64)>,
}

impl SharedPages {
    /// Whether a frame is counted for this process: it is, unless it is another's.
    pub(super) fn claim(&mut self, frame: u64, slot: u32) -> bool {
        let bit = 1 << (frame % 64);
        let slots = &mut self.owners.entry(frame / 64).or_default().slots;
        if let Some((owner, _)) = slots.iter().find(|(_, bits)| bits & bit != 0) {
            return *owner == slot;
        }
        match slots.iter_mut().find(|(owner, _)| *owner == slot) {
            Some((_, bits)) => *bits |= bit,
            None => slots.push((slot, bit)),
        }
        true
    }

    /// Forgets all that is counted for a process.
    pub(super) fn release(&mut self, slot: u32) {
        self.owners.retain(|_, owners| {
            owners.slots.retain(|(owner, _)| *owner != slot);
            !owners.slots.is_empty()
        });
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.owners.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_counted_for_one_process_until_that_is_released() {
        let mut shared = SharedPages::default();
        assert!(shared.claim(640, 1));
        assert!(shared.claim(640, 1));
        assert!(!shared.claim(640, 2));
        assert!(shared.claim(641, 2));
        shared.release(1);
        assert!(shared.claim(640, 2));
        assert!(!shared.claim(640, 1));
        shared.clear();
        assert!(shared.claim(641, 1));
    }
}
