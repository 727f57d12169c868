//! A device that does one thing otherwise than the specification says: for tests of what finds that.

mod memory;

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dray_device::{DescriptorResult, Payload, Task, View};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};
use thiserror::Error;

use crate::SharedMemory;
use memory::{AlteredMemory, HeldWrite};

/// Text that names no [`Deviation`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is no deviation; there are {names}", names = names())]
pub struct DeviationError(String);

macro_rules! deviations {
    ($($variant:ident $name:literal $text:literal,)*) => {
        /// One thing that a device does otherwise than the specification says. As text: its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Deviation {
            $(#[doc = $text] $variant,)*
        }

        impl Deviation {
            /// All of them.
            pub const ALL: &[Deviation] = &[$(Deviation::$variant,)*];

            /// One word.
            pub fn name(self) -> &'static str {
                match self {
                    $(Deviation::$variant => $name,)*
                }
            }
        }
    };
}

deviations! {
    OverlapStatus "overlap-status" "Overlapping buffers are refused with the status of a size.",
    OpcodeStatus "opcode-status" "An unknown opcode is refused with the status of invalid flags.",
    ReservedBytes "reserved-bytes" "Reserved bytes of a copy are ignored.",
    CompareResult "compare-result" "A comparison gives the opposite result.",
    CompareStatus "compare-status" "A comparison whose result is not the expected one succeeds.",
    FaultBytes "fault-bytes" "A copy that faults has completed 64 bytes more than it has written.",
    FaultAddress "fault-address" "A page fault is reported one page behind.",
    FaultAccess "fault-access" "A page fault of a write is reported as that of a read.",
    NoFence "no-fence" "Fences are ignored.",
    RecordFirst "record-first" "The completion record is written before the data.",
    StatusFirst "status-first" "The status is written before the rest of the completion record.",
    CrcSeed "crc-seed" "CRC generation ignores its seed.",
    CrcInverted "crc-inverted" "CRCs are inverted.",
    BatchCount "batch-count" "A batch counts one descriptor too few.",
    BatchStatus "batch-status" "A batch succeeds though one of its descriptors has failed.",
    DeltaSize "delta-size" "A delta record of more than 512 KiB is reported as a success.",
    DeltaOverflow "delta-overflow" "A delta record that is too small is reported as a whole one.",
    NoDrain "no-drain" "A drain waits for nothing.",
    DualcastAlignment "dualcast-alignment" "Destinations of a dualcast may differ in bits 11:0.",
    LastByte "last-byte" "The last byte that is written is wrong.",
}

fn names() -> String {
    let names: Vec<&str> = Deviation::ALL.iter().map(|d| d.name()).collect();
    names.join(", ")
}

impl FromStr for Deviation {
    type Err = DeviationError;

    fn from_str(text: &str) -> Result<Deviation, DeviationError> {
        let mut all = Deviation::ALL.iter().copied();
        all.find(|deviation| deviation.name() == text)
            .ok_or_else(|| DeviationError(text.into()))
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Descriptors that are remembered.
const RECENT: usize = 512;
/// Writes that wait for a record at most.
const HELD: usize = 1 << 16;
/// How long an order that is wrong can be seen.
const WRONG_ORDER: Duration = Duration::from_micros(200);

/// A device with a deviation.
#[derive(Debug)]
pub(crate) struct Deviant {
    deviation: Deviation,
    /// As they were submitted, the newest last.
    recent: Mutex<VecDeque<Descriptor>>,
    /// Data that wait for a record.
    held: Mutex<Vec<HeldWrite>>,
}

impl Deviant {
    pub(crate) fn new(deviation: Deviation) -> Deviant {
        Deviant {
            deviation,
            recent: Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// What the device sees of a descriptor that is submitted.
    #[cold]
    pub(crate) fn submitted(&self, descriptor: &mut Descriptor) {
        self.remember(*descriptor);
        match (self.deviation, descriptor.opcode()) {
            (Deviation::ReservedBytes, Ok(Opcode::Memmove)) => {
                descriptor.operation = [0; 24];
                descriptor.reserved = 0;
            }
            (Deviation::CrcSeed, Ok(Opcode::CrcGenerate)) => descriptor.operation[..4].fill(0),
            (Deviation::NoDrain, Ok(Opcode::Drain)) => {
                let plain = Descriptor::drain().with_completion(descriptor.completion_addr);
                let pasid_priv = descriptor.pasid_priv;
                if (Descriptor {
                    pasid_priv,
                    ..plain
                }) == *descriptor
                {
                    let noop = Descriptor::noop().with_completion(descriptor.completion_addr);
                    *descriptor = Descriptor { pasid_priv, ..noop };
                }
            }
            _ => {}
        }
    }

    /// What the device sees of the list of a batch.
    #[cold]
    pub(crate) fn listed(&self, list: &mut [Descriptor]) {
        for member in list {
            self.remember(*member);
            if self.deviation == Deviation::NoFence {
                member.flags_opcode &= !Flags::FENCE.bits();
            }
        }
    }

    /// The newest descriptor whose record is there.
    fn recorded_at(&self, address: u64) -> Option<Descriptor> {
        let recent = locked(&self.recent);
        let mut recent = recent.iter().rev();
        recent.find(|d| d.completion_addr == address).copied()
    }

    fn remember(&self, descriptor: Descriptor) {
        let mut recent = locked(&self.recent);
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(descriptor);
    }

    /// Executes a task.
    #[cold]
    pub(crate) fn execute<M: SharedMemory>(
        &self,
        task: &Task,
        memory: &mut M,
    ) -> (DescriptorResult, Vec<HeldWrite>) {
        let holds = task
            .record
            .filter(|_| self.deviation == Deviation::RecordFirst);
        let is_wrong = self.deviation == Deviation::LastByte;
        let mut altered = AlteredMemory::new(memory, holds, is_wrong);
        let outcome = task.execute_in(&mut altered, Payload::Moved, AlteredMemory::enter);
        (outcome, altered.into_held())
    }

    /// The data of a descriptor that is over, for after its record; of some before it that never come, the oldest are left out.
    pub(crate) fn hold(&self, mut writes: Vec<HeldWrite>) {
        let mut held = locked(&self.held);
        held.append(&mut writes);
        let surplus = held.len().saturating_sub(HELD);
        held.drain(..surplus);
    }

    /// Writes a completion record; false if it could not be written. The memory's view is entered.
    #[cold]
    pub(crate) fn publish<M: SharedMemory>(
        &self,
        memory: &mut M,
        view: View,
        address: u64,
        record: &CompletionRecord,
    ) -> bool {
        let mut record = *record;
        if let Some(of) = self.recorded_at(address) {
            self.alter(&of, &mut record);
        }
        if self.deviation == Deviation::StatusFirst {
            memory.write(address, &[record.status]);
            memory.settle();
            std::thread::sleep(WRONG_ORDER);
        }
        let published = memory.publish(address, &record);
        let (now, later) = std::mem::take(&mut *locked(&self.held))
            .into_iter()
            .partition(|held: &HeldWrite| held.record == address);
        *locked(&self.held) = later;
        if !now.is_empty() {
            std::thread::sleep(WRONG_ORDER);
        }
        for held in now {
            memory.enter(held.view);
            memory.write(held.address, &held.bytes);
            memory.settle();
        }
        memory.enter(view);
        published
    }

    /// Changes the record of a descriptor.
    fn alter(&self, of: &Descriptor, record: &mut CompletionRecord) {
        let opcode = of.opcode().ok();
        if let Some((from, to)) = self.other_status(opcode)
            && record.status == from.0
        {
            record.status = to.0;
        }
        match (self.deviation, opcode) {
            (Deviation::CompareResult, Some(Opcode::Compare)) if record.status == 1 => {
                record.result ^= 1;
            }
            (Deviation::FaultBytes, Some(Opcode::Memmove)) if is_fault(record) => {
                record.bytes_completed = record.bytes_completed.wrapping_add(64);
            }
            (Deviation::FaultAddress, _) if is_fault(record) => {
                record.fault_address = record.fault_address.wrapping_add(4096);
            }
            (Deviation::CrcInverted, Some(Opcode::CrcGenerate | Opcode::CopyCrc))
                if record.status == 1 =>
            {
                record.set_crc32(!record.crc32());
            }
            (Deviation::BatchCount, Some(Opcode::Batch)) => {
                record.bytes_completed = record.bytes_completed.saturating_sub(1);
            }
            (Deviation::DeltaOverflow, Some(Opcode::CreateDelta)) if record.result == 2 => {
                record.result = 1;
            }
            _ => {}
        }
    }

    /// The status that is reported for another one.
    fn other_status(&self, opcode: Option<Opcode>) -> Option<(Status, Status)> {
        let (of, from, to) = match self.deviation {
            Deviation::OverlapStatus => (opcode, Status::OVERLAP, Status::TRANSFER_SIZE),
            Deviation::OpcodeStatus => (opcode, Status::BAD_OPCODE, Status::INVALID_FLAGS),
            Deviation::FaultAccess => {
                let fault = Status::PAGE_FAULT;
                (opcode, fault.with_write_fault(), fault)
            }
            Deviation::CompareStatus => {
                let of = Some(Opcode::Compare);
                (of, Status::SUCCESS_PREDICATE, Status::SUCCESS)
            }
            Deviation::BatchStatus => (Some(Opcode::Batch), Status::BATCH_FAIL, Status::SUCCESS),
            Deviation::DeltaSize => {
                let of = Some(Opcode::CreateDelta);
                (of, Status::TRANSFER_SIZE, Status::SUCCESS)
            }
            Deviation::DualcastAlignment => {
                let of = Some(Opcode::Dualcast);
                (of, Status::DUALCAST_ALIGNMENT, Status::SUCCESS)
            }
            _ => return None,
        };
        (of == opcode).then_some((from, to))
    }
}

fn is_fault(record: &CompletionRecord) -> bool {
    record.status & 0x3f == Status::PAGE_FAULT.0
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name_and_no_other_word_is() {
        for deviation in Deviation::ALL {
            assert_eq!(deviation.to_string().parse(), Ok(*deviation));
        }
        let wrong = DeviationError("fence".into());
        assert!(wrong.to_string().contains("no-fence"), "{wrong}");
        assert_eq!("fence".parse::<Deviation>(), Err(wrong));
    }
}
