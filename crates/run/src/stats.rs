//! What a session did with its devices, in sums.

mod table;

use std::collections::BTreeMap;

use dray_device::{FidelityCounts, WorkQueueMode};
use dray_realtime::WrongKind;
use dray_spec::{Opcode, Status};

use crate::advice;
use crate::descriptor_table::Ended;
use crate::launch::Ending;
use crate::openers::Unreached;
pub(crate) use table::{operation_name, ratio};

/// Powers of two that a size may lie between: 32 bits, and one for nothing at all.
const BUCKETS: usize = 33;

/// Descriptors of one operation through one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Written to the queue.
    pub submitted: u64,
    /// Members of batches.
    pub members: u64,
    /// Bytes that they were about, or members for batches.
    pub size: u64,
    /// Of those that were written to the queue: element 0 counts sizes of 0, element n those of
    /// 2^(n-1) and less than twice that.
    pub sizes: [u64; BUCKETS],
    /// Ended by a page fault.
    pub faults: u64,
    /// Ended by another error, by status code.
    pub errors: BTreeMap<u8, u64>,
    /// Given up by an abort.
    pub given_up: u64,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            submitted: 0,
            members: 0,
            size: 0,
            sizes: [0; BUCKETS],
            faults: 0,
            errors: BTreeMap::new(),
            given_up: 0,
        }
    }
}

impl Tally {
    /// All.
    pub fn count(&self) -> u64 {
        self.submitted + self.members
    }

    /// Ended with success, or as a predicate says.
    pub fn succeeded(&self) -> u64 {
        let not = self.faults + self.failed() + self.given_up;
        self.count().saturating_sub(not)
    }

    /// Ended by an error other than a page fault.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    pub(crate) fn add(&mut self, ended: &Ended) {
        self.size += u64::from(ended.size);
        match ended.member {
            true => self.members += 1,
            false => {
                self.submitted += 1;
                self.sizes[(u32::BITS - ended.size.leading_zeros()) as usize] += 1;
            }
        }
        let Some(record) = ended.record else {
            self.given_up += 1;
            return;
        };
        let status = record.status();
        // A batch that failed has members that did, which are counted as such.
        let fine = [
            Status::SUCCESS,
            Status::SUCCESS_PREDICATE,
            Status::BATCH_FAIL,
        ];
        if is_fault(status) {
            self.faults += 1;
        } else if !fine.contains(&status) {
            *self.errors.entry(status.code()).or_default() += 1;
        }
    }
}

/// Page faults of operands, lists, records and readbacks (spec Table 5-1).
fn is_fault(status: Status) -> bool {
    let faults = [
        Status::PAGE_FAULT,
        Status::PAGE_FAULT_INVALID_RESPONSE,
        Status::BATCH_PAGE_FAULT,
        Status::READBACK_PAGE_FAULT,
        Status::COMPLETION_ADDRESS_FAULT,
    ];
    faults.iter().any(|fault| fault.code() == status.code())
}

/// What went through one work queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Number of the device.
    pub device: u32,
    /// Number of the queue.
    pub wq: u16,
    /// Mode, if it was enabled at the end.
    pub mode: Option<WorkQueueMode>,
    /// Entries, if it was enabled at the end.
    pub size: Option<u16>,
    /// By operation code.
    pub tallies: BTreeMap<u8, Tally>,
    /// Deferrable writes that found no room.
    pub retries: u64,
    /// Posted writes that found no room.
    pub lost: u64,
    /// Writes of the kind that it does not take.
    pub wrong_kind: WrongKind,
    /// Descriptors that had not ended at the end.
    pub under_way: u64,
    /// From the ring to an engine: median and 99 %, nanoseconds.
    pub wait_ns: Option<(u64, u64)>,
}

impl Queue {
    /// Whether a program has written to it.
    pub fn has_been_used(&self) -> bool {
        let WrongKind { posted, deferrable } = self.wrong_kind;
        let turned_away = self.retries + self.lost + posted + deferrable;
        !self.tallies.is_empty() || turned_away + self.under_way > 0
    }

    /// Descriptors that it has taken.
    pub fn submitted(&self) -> u64 {
        let ended = self.tallies.values().map(|tally| tally.submitted);
        ended.sum::<u64>() + self.under_way
    }

    /// Ended by a page fault, members of batches included.
    pub fn faults(&self) -> u64 {
        self.tallies.values().map(|tally| tally.faults).sum()
    }

    /// Its batches.
    pub fn batches(&self) -> Option<&Tally> {
        self.tallies.get(&u8::from(Opcode::Batch))
    }

    /// Its name under `/dev/dsa`.
    pub fn name(&self) -> String {
        format!("wq{}.{}", self.device, self.wq)
    }
}

/// What a session did with its devices. Shown as a table, and with advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Queues that were used, and those that were enabled at the end.
    pub queues: Vec<Queue>,
    /// Programs that opened a node, and submitted nothing by it.
    pub unreached: Vec<Unreached>,
    /// How the command ended, if it did.
    pub ending: Option<Ending>,
}

impl Stats {
    pub(crate) fn of(queues: Vec<Queue>) -> Stats {
        Stats {
            queues,
            unreached: Vec::new(),
            ending: None,
        }
    }

    pub(crate) fn with(self, unreached: Vec<Unreached>, ending: Option<Ending>) -> Stats {
        Stats {
            unreached,
            ending,
            ..self
        }
    }

    /// Descriptors that the work queues have taken.
    pub fn submitted(&self) -> u64 {
        self.queues.iter().map(Queue::submitted).sum()
    }

    /// Those that ended with success, members of batches included.
    pub fn succeeded(&self) -> u64 {
        let tallies = self.queues.iter().flat_map(|queue| queue.tallies.values());
        tallies.map(Tally::succeeded).sum()
    }

    /// How true the execution of what has ended was to the specification, members of batches included.
    pub fn fidelity(&self) -> FidelityCounts {
        let mut counts = FidelityCounts::default();
        let tallies = self.queues.iter().flat_map(|queue| &queue.tallies);
        tallies.for_each(|(operation, tally)| counts.add(*operation, tally.count()));
        counts
    }

    /// What the sums suggest, a sentence each.
    pub fn advice(&self) -> Vec<String> {
        advice::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dray_spec::CompletionRecord;

    fn ended(operation: Opcode, size: u32, status: Status) -> Ended {
        Ended {
            wq: 0,
            engine: Some(0),
            pasid: 1,
            pid: Some(7),
            operation: operation.into(),
            size,
            member: false,
            accepted_ns: 0,
            started_ns: 10,
            ended_ns: 30,
            record: Some(CompletionRecord::with_status(status)),
        }
    }

    #[test]
    fn sizes_are_counted_by_the_power_of_two_below_them() {
        let mut tally = Tally::default();
        for size in [0, 1, 4095, 4096, 4096, 4096, 8191, u32::MAX] {
            tally.add(&ended(Opcode::Memmove, size, Status::SUCCESS));
        }
        assert_eq!(tally.submitted, 8);
        assert_eq!(
            [
                tally.sizes[0],
                tally.sizes[1],
                tally.sizes[12],
                tally.sizes[13],
                tally.sizes[32]
            ],
            [1, 1, 1, 4, 1]
        );
    }

    #[test]
    fn page_faults_and_errors_are_counted_apart() {
        let mut tally = Tally::default();
        for status in [
            Status::SUCCESS,
            Status::SUCCESS_PREDICATE,
            Status::BATCH_FAIL,
            Status::PAGE_FAULT.with_write_fault(),
            Status::BATCH_PAGE_FAULT,
            Status::BAD_OPCODE,
        ] {
            tally.add(&ended(Opcode::Memmove, 8, status));
        }
        tally.add(&Ended {
            record: None,
            member: true,
            ..ended(Opcode::Memmove, 8, Status::SUCCESS)
        });
        assert_eq!((tally.faults, tally.failed(), tally.given_up), (2, 1, 1));
        assert_eq!((tally.submitted, tally.members, tally.size), (6, 1, 56));
    }
}
