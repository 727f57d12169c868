//! One descriptor, the device and memory that it is put to, and the expected result.

use std::fmt;

use dray_spec::{CompletionRecord, Descriptor, Flags, Status};
use thiserror::Error;

use super::layout::{LIST, RECORD, memory};
use super::profile::profile_of;
use super::{PAGE, Pages};
use dray_device::DeviceConfig;

/// Where the descriptor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// It comes through the portal.
    Queue,
    /// It is the first of two members of a batch.
    Batch,
}

/// What is reported to the submitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    /// Exactly this record.
    Record(CompletionRecord),
    /// A record with this status; the rest is not looked at.
    Status(Status),
    /// A software error, with its address.
    Error(Status, u64),
    /// Nothing.
    Nothing,
}

impl Reported {
    /// The status, if there is one.
    pub fn status(self) -> Option<Status> {
        match self {
            Reported::Record(record) => Some(record.status()),
            Reported::Status(status) | Reported::Error(status, _) => Some(status),
            Reported::Nothing => None,
        }
    }
}

/// What a device did with a case, as its runner saw it.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Records that became visible, with their addresses, in order.
    pub records: Vec<(u64, CompletionRecord)>,
    /// Software errors, with their addresses.
    pub errors: Vec<(Status, u64)>,
    /// The memory afterwards.
    pub memory: Pages,
}

/// What a device did wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Mismatch {
    /// Something else was reported to the submitter.
    #[error("reported {reported:?} instead of {expected:?}")]
    Reported {
        /// What was reported.
        reported: Reported,
        /// What must be reported.
        expected: Reported,
    },
    /// More than one thing was reported to the submitter.
    #[error("reported {records} records and {errors} errors")]
    Often {
        /// Records of the descriptor.
        records: usize,
        /// Software errors.
        errors: usize,
    },
    /// The memory is not what it must be.
    #[error("memory differs at {address:#x}{}", if *.other { " of the other address space" } else { "" })]
    Memory {
        /// The first byte that differs.
        address: u64,
        /// It is in the memory of the other PASID.
        other: bool,
    },
}

/// One descriptor, the device and memory that it is put to, and the expected result.
#[derive(Clone)]
pub struct Case {
    change: fn(&mut DeviceConfig),
    container: Container,
    descriptor: Descriptor,
    list: Vec<Descriptor>,
    bytes: Vec<(u64, Vec<u8>)>,
    writes: Option<Vec<(u64, Vec<u8>)>>,
    writes_other: Vec<(u64, Vec<u8>)>,
    /// What must be reported to the submitter.
    pub reported: Reported,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in {:?}", self.descriptor, self.container)
    }
}

impl Case {
    /// A descriptor on the queue of a device that has its operation. One that is refused must write
    /// nothing.
    pub fn new(descriptor: Descriptor, reported: Reported) -> Case {
        let refused = reported
            .status()
            .is_some_and(|status| status.code() >= 0x10);
        Case {
            change: |_| {},
            container: Container::Queue,
            descriptor,
            list: vec![Descriptor::noop(); 64],
            bytes: Vec::new(),
            writes: refused.then(Vec::new),
            writes_other: Vec::new(),
            reported,
        }
    }

    /// On a device that differs.
    #[must_use]
    pub fn on(self, change: fn(&mut DeviceConfig)) -> Case {
        Case { change, ..self }
    }

    /// As a member of a batch.
    #[must_use]
    pub fn in_batch(self) -> Case {
        Case {
            container: Container::Batch,
            ..self
        }
    }

    /// What is found where a batch descriptor says that its list is.
    #[must_use]
    pub fn with_list(self, list: &[Descriptor]) -> Case {
        Case {
            list: list.to_vec(),
            ..self
        }
    }

    /// Bytes that are in memory beforehand.
    #[must_use]
    pub fn with_bytes(mut self, address: u64, bytes: &[u8]) -> Case {
        self.bytes.push((address, bytes.to_vec()));
        self
    }

    /// Bytes that must be there afterwards. Everything else, but for the record, must be as before.
    #[must_use]
    pub fn writing(mut self, address: u64, bytes: &[u8]) -> Case {
        let writes = self.writes.get_or_insert_default();
        writes.push((address, bytes.to_vec()));
        self
    }

    /// The memory afterwards is not looked at: the operation is carried out, but not reported.
    #[must_use]
    pub fn anywhere(self) -> Case {
        Case {
            writes: None,
            ..self
        }
    }

    /// The same in the memory of the other PASID.
    #[must_use]
    pub fn writing_other(mut self, address: u64, bytes: &[u8]) -> Case {
        self.writes.get_or_insert_default();
        self.writes_other.push((address, bytes.to_vec()));
        self
    }

    /// The device. Its one work queue is 0: dedicated or shared, as it says.
    pub fn device(&self) -> DeviceConfig {
        let mut device = profile_of(&self.descriptor);
        (self.change)(&mut device);
        device
    }

    /// What is written to the portal, unlimited or limited: 64 bytes.
    pub fn submission(&self) -> Descriptor {
        match self.container {
            Container::Queue => self.descriptor,
            Container::Batch => {
                let batch = Descriptor::batch(LIST, 2);
                // A privileged member has a privileged batch.
                match self.descriptor.privileged() {
                    true => batch.with_pasid(self.descriptor.pasid()).with_privileged(),
                    false => batch.with_pasid(self.descriptor.pasid()),
                }
            }
        }
    }

    /// The memory beforehand.
    pub fn memory(&self) -> Pages {
        let mut memory = memory();
        match self.container {
            Container::Queue => {
                let at = match self.descriptor.address1 {
                    list if (LIST..LIST + PAGE).contains(&list) => list,
                    _ => LIST,
                };
                let room = ((LIST + PAGE - at) / 64) as usize;
                memory.poke_list(at, &self.list[..self.list.len().min(room)]);
            }
            Container::Batch => memory.poke_list(LIST, &[self.descriptor, Descriptor::noop()]),
        }
        for (address, bytes) in &self.bytes {
            memory.poke(*address, bytes);
        }
        memory
    }

    /// Whether the observed result is the expected one.
    ///
    /// # Errors
    /// The first thing that is not.
    pub fn judge(&self, seen: &Observed) -> Result<(), Mismatch> {
        let mine: Vec<_> = seen.records.iter().filter(|r| r.0 == RECORD).collect();
        let reported = match (&mine[..], &seen.errors[..]) {
            ([], []) => Reported::Nothing,
            ([(_, record)], []) => match self.reported {
                Reported::Status(_) => Reported::Status(record.status()),
                _ => Reported::Record(*record),
            },
            ([], [(status, address)]) => Reported::Error(*status, *address),
            (records, errors) => {
                return Err(Mismatch::Often {
                    records: records.len(),
                    errors: errors.len(),
                });
            }
        };
        if reported != self.reported {
            return Err(Mismatch::Reported {
                reported,
                expected: self.reported,
            });
        }
        let Some(writes) = &self.writes else {
            return Ok(());
        };
        let mut expected = self.memory();
        for (address, bytes) in writes {
            expected.poke(*address, bytes);
        }
        for (address, _) in &seen.records {
            let record = seen.memory.peek(*address, 32);
            expected.poke(*address, record);
        }
        if let Some(address) = expected.first_difference(&seen.memory) {
            let other = false;
            return Err(Mismatch::Memory { address, other });
        }
        let other = super::layout::OTHER_PASID;
        if let (Some(seen), Some(expected)) = (seen.memory.other(other), expected.other_mut(other))
        {
            for (address, bytes) in &self.writes_other {
                expected.poke(*address, bytes);
            }
            if let Some(address) = expected.first_difference(seen) {
                let other = true;
                return Err(Mismatch::Memory { address, other });
            }
        }
        Ok(())
    }
}

/// A record with nothing but a status.
pub(super) fn reported(status: Status) -> Reported {
    Reported::Record(CompletionRecord::with_status(status))
}

/// A record that refuses these flags.
pub(super) fn reported_flags(flags: Flags) -> Reported {
    let mut record = CompletionRecord::with_status(Status::INVALID_FLAGS);
    record.set_invalid_flags(flags);
    Reported::Record(record)
}
