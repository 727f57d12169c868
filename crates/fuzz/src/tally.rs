//! What the inputs of a target have reached.

use dray_spec::{Descriptor, Opcode, Status};

/// Counts of ends, for tests that a target gets somewhere.
#[derive(Debug, Clone)]
pub struct Tally {
    successes: [u64; Opcode::ALL.len()],
    statuses: [u64; Status::ALL.len()],
}

impl Default for Tally {
    /// Nothing has ended.
    fn default() -> Tally {
        Tally {
            successes: [0; Opcode::ALL.len()],
            statuses: [0; Status::ALL.len()],
        }
    }
}

impl Tally {
    /// How often an operation was carried out with success.
    pub fn successes(&self, opcode: Opcode) -> u64 {
        let at = Opcode::ALL.iter().position(|other| *other == opcode);
        at.map_or(0, |at| self.successes[at])
    }

    /// How often something ended with a status, whether on a read or on a write.
    pub fn ends(&self, status: Status) -> u64 {
        let at = Status::ALL.iter().position(|other| *other == status);
        at.map_or(0, |at| self.statuses[at])
    }

    /// A descriptor has ended.
    pub(crate) fn count(&mut self, d: &Descriptor, status: Status) {
        self.count_status(status);
        let opcode = d.opcode().ok().filter(|_| status == Status::SUCCESS);
        if let Some(at) = opcode.and_then(|opcode| Opcode::ALL.iter().position(|o| *o == opcode)) {
            self.successes[at] += 1;
        }
    }

    /// Something has this status that no descriptor has caused.
    pub(crate) fn count_status(&mut self, status: Status) {
        let same = |other: &Status| status.name() == other.name();
        if let Some(at) = Status::ALL.iter().position(same) {
            self.statuses[at] += 1;
        }
    }
}
