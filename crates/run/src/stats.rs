//! What a session did with its devices, in sums.

use std::collections::BTreeMap;
use std::fmt;

use dray_device::WorkQueueMode;
use dray_spec::{Opcode, Status};

use crate::advice;
use crate::ledger::Ended;

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
    /// Descriptors that had not ended at the end.
    pub under_way: u64,
    /// From the ring to an engine: median and 99 %, nanoseconds.
    pub wait_ns: Option<(u64, u64)>,
}

impl Queue {
    /// Whether a program has written to it.
    pub fn has_been_used(&self) -> bool {
        !self.tallies.is_empty() || self.retries + self.lost + self.under_way > 0
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
}

impl Stats {
    pub(crate) fn of(queues: Vec<Queue>) -> Stats {
        Stats { queues }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<8} {:<9} {:>4} {:>10} {:>8} {:>10} {:>9} {:>6} {:>7} {:>9} {:>9}",
            "queue",
            "mode",
            "size",
            "submitted",
            "batches",
            "mean batch",
            "retries",
            "lost",
            "faults",
            "wait 50 %",
            "wait 99 %"
        )?;
        for queue in &self.queues {
            let mode = match queue.mode {
                Some(WorkQueueMode::Dedicated) => "dedicated",
                Some(WorkQueueMode::Shared) => "shared",
                None => "disabled",
            };
            let size = queue.size.map_or_else(|| "-".to_owned(), |s| s.to_string());
            let batches = queue.batches();
            let mean = batches.map_or_else(|| "-".to_owned(), |b| ratio(b.size, b.count()));
            let wait = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), time);
            writeln!(
                f,
                "{:<8} {mode:<9} {size:>4} {:>10} {:>8} {mean:>10} {:>9} {:>6} {:>7} {:>9} {:>9}",
                queue.name(),
                queue.submitted(),
                batches.map_or(0, Tally::count),
                queue.retries,
                queue.lost,
                queue.faults(),
                wait(queue.wait_ns.map(|(median, _)| median)),
                wait(queue.wait_ns.map(|(_, most)| most)),
            )?;
        }
        if self.queues.iter().any(|queue| !queue.tallies.is_empty()) {
            writeln!(
                f,
                "\n{:<8} {:<17} {:>9} {:>10} {:>12} {:>7} {:>7} {:>8}  sizes submitted",
                "queue",
                "operation",
                "submitted",
                "in batches",
                "bytes",
                "faults",
                "errors",
                "aborted"
            )?;
        }
        for queue in &self.queues {
            for (operation, tally) in &queue.tallies {
                let batch = *operation == u8::from(Opcode::Batch);
                let bytes = if batch { 0 } else { tally.size };
                writeln!(
                    f,
                    "{:<8} {:<17} {:>9} {:>10} {bytes:>12} {:>7} {:>7} {:>8}{}",
                    queue.name(),
                    operation_name(*operation),
                    tally.submitted,
                    tally.members,
                    tally.faults,
                    tally.failed(),
                    tally.given_up,
                    sizes(tally),
                )?;
            }
        }
        for (number, advice) in advice::of(self).iter().enumerate() {
            let gap = if number == 0 { "\n" } else { "" };
            writeln!(f, "{gap}advice: {advice}")?;
        }
        Ok(())
    }
}

/// The name of an operation, or its code.
pub(crate) fn operation_name(code: u8) -> String {
    match Opcode::try_from(code) {
        Ok(opcode) => opcode.name().to_owned(),
        Err(_) => format!("{code:#04x}"),
    }
}

/// `4K 92 %, 64K 8 %`: powers of two, the most frequent first, behind a gap.
fn sizes(tally: &Tally) -> String {
    /// More would not fit a line.
    const SHOWN: usize = 4;
    let mut found: Vec<(usize, u64)> = tally.sizes.iter().copied().enumerate().collect();
    found.retain(|(index, count)| *index > 0 && *count > 0);
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown = found.iter().take(SHOWN).map(|(index, count)| {
        let percent = count * 100 / tally.submitted.max(1);
        format!("{} {percent} %", binary(1 << (index - 1)))
    });
    let text = shown.collect::<Vec<_>>().join(", ");
    match found.len() {
        0 => text,
        1..=SHOWN => format!("  {text}"),
        _ => format!("  {text}, ..."),
    }
}

fn binary(size: u64) -> String {
    match size {
        0..1024 => size.to_string(),
        1024..0x10_0000 => format!("{}K", size >> 10),
        0x10_0000..0x4000_0000 => format!("{}M", size >> 20),
        _ => format!("{}G", size >> 30),
    }
}

/// One decimal.
pub(crate) fn ratio(of: u64, to: u64) -> String {
    let tenths = of.saturating_mul(10) / to.max(1);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// A time with its unit.
fn time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{} us", ns / 1000),
        _ => format!("{} ms", ns / 1_000_000),
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
    fn sizes_go_to_the_power_of_two_below_them() {
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
        assert_eq!(sizes(&tally), "  4K 50 %, 1 12 %, 2K 12 %, 2G 12 %");
    }

    #[test]
    fn faults_and_errors_are_told_apart() {
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
