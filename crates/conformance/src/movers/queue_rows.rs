//! Rows of the table that are about a mover and its queue, not about one operation.

use dray::{Application, BatchError, Completion, Mover, Next, NotAnOperation, Operation};
use dray_spec::{Descriptor, Flags, Status};

use super::batches::{self, Batches};
use super::disruptions::{Disrupter, Disruption};
use super::door::{Door, PAGE, Part};
use super::suite;
use super::table::{Row, Verdict};
use super::trial::noise;

/// The largest operation of the suite.
const LARGEST: u64 = 8 << 20;

fn row(operation: &str, case: &str, verdict: Verdict) -> Row {
    Row {
        operation: operation.to_owned(),
        case: case.to_owned(),
        verdict,
    }
}

fn verdict(outcome: Result<Verdict, String>) -> Verdict {
    outcome.unwrap_or_else(Verdict::Failed)
}

/// A part of the suite that counts what it has put to the door; 0: nothing.
fn counted<D: Door>(door: &mut D, part: Part, outcome: Result<usize, String>) -> Verdict {
    verdict(outcome.map(|count| match count {
        0 => Verdict::refused(door.refusal(part)),
        _ => Verdict::Passed,
    }))
}

/// All of them. The last ones may disable the queue for good.
pub(crate) fn rows<D: Door>(door: &mut D) -> Vec<Row> {
    let mut rows = bulk(door);
    rows.push(row(
        "descriptor",
        "an opcode that is not defined",
        undefined(),
    ));
    rows.push(row("descriptor", "a batch as an operation", raw_batch()));
    rows.push(row(
        "memmove",
        "more bytes than the largest transfer",
        verdict(too_large(door)),
    ));
    let alone = verdict(fence_alone(door));
    rows.push(row(
        "memmove",
        "a fence outside a batch: invalid_flags",
        alone,
    ));
    rows.extend(in_batches(door));
    rows.push(row(
        "queue",
        "withdrawn before it is submitted",
        verdict(withdrawn(door)),
    ));
    rows.push(held(door));
    let mut disrupter = door.disrupter();
    for disruption in Disruption::ALL {
        rows.push(disrupted(door, disrupter.as_mut(), disruption));
    }
    rows
}

pub(crate) fn held<D: Door>(door: &mut D) -> Row {
    let held = suite::held(door);
    let held = counted(door, Part::Held, held);
    row("queue", "no completion before a deadline", held)
}

pub(crate) fn disrupted<D: Door>(
    door: &mut D,
    disrupter: Option<&mut Disrupter>,
    disruption: Disruption,
) -> Row {
    let ended = suite::disrupted(door, disrupter, disruption);
    let ended = counted(door, Part::Disruptions, ended);
    row("queue", disruption.name(), ended)
}

/// All operations in many sizes, more than there are slots.
fn bulk<D: Door>(door: &mut D) -> Vec<Row> {
    let name = "sizes and alignments, against the oracle";
    let full_name = "more operations than slots";
    match suite::operations(door) {
        Ok((_, full)) => {
            let filled = match full {
                0 => Verdict::Refused(format!("{} slots are more than that", door.slots())),
                _ => Verdict::Passed,
            };
            vec![
                row("all operations", name, Verdict::Passed),
                row("queue", full_name, filled),
            ]
        }
        Err(wrong) => vec![
            row("all operations", name, Verdict::Failed(wrong.clone())),
            row("queue", full_name, Verdict::Failed(wrong)),
        ],
    }
}

fn undefined() -> Verdict {
    let mut descriptor = Descriptor::noop();
    descriptor.flags_opcode |= 0x7f << 24;
    match Operation::try_from(descriptor) {
        Err(NotAnOperation::Opcode { opcode: 0x7f }) => Verdict::Passed,
        other => Verdict::Failed(format!("{other:?}")),
    }
}

fn raw_batch() -> Verdict {
    match Operation::try_from(Descriptor::batch(0x1000, 2)) {
        Err(NotAnOperation::Batch) => Verdict::Passed,
        other => Verdict::Failed(format!("{other:?}")),
    }
}

/// A copy that is larger than a descriptor may be: in parts, or refused.
fn too_large<D: Door>(door: &mut D) -> Result<Verdict, String> {
    let capabilities = door.capabilities();
    let most = capabilities.max_transfer_bytes;
    if most > LARGEST {
        return Ok(Verdict::Refused(format!(
            "{most} bytes are more than the suite has"
        )));
    }
    let len = most as usize + 4097;
    let before = noise(2 * len);
    let base = door.prepare(&before);
    let copy = Operation::memmove(base, base + len as u64, len as u32);
    let mut script = super::Script::new(vec![copy]);
    door.run(&mut script);
    let status = script.status(0).ok_or("no completion")?;
    let mut after = before.clone();
    let verdict = match capabilities.divides {
        true if status == Status::SUCCESS => {
            after.copy_within(..len, len);
            Verdict::Passed
        }
        false if status == Status::TRANSFER_SIZE => Verdict::Passed,
        _ => return Err(format!("{status} for a copy of {len} bytes")),
    };
    match door.bytes() == after {
        true => Ok(verdict),
        false => Err("it wrote other bytes than it should".into()),
    }
}

/// A fence means something in a batch alone (spec 3.9).
fn fence_alone<D: Door>(door: &mut D) -> Result<Verdict, String> {
    if door.gathers() {
        return Ok(Verdict::refused(
            "the mover gathers single operations into batches",
        ));
    }
    let before = noise(2 * PAGE as usize);
    let base = door.prepare(&before);
    let copy = Operation::memmove(base, base + PAGE, PAGE as u32).with_fence();
    let mut script = super::Script::new(vec![copy]);
    door.run(&mut script);
    let record = script.records[0].ok_or("no completion")?;
    let named = record.invalid_flags().contains(Flags::FENCE);
    if record.status() != Status::INVALID_FLAGS || !named {
        return Err(format!("{record:?} does not name the fence"));
    }
    match door.bytes() == before {
        true => Ok(Verdict::Passed),
        false => Err("an operation that was refused has written".into()),
    }
}

/// Batches, each by its name; and the sizes that there are not.
fn in_batches<D: Door>(door: &mut D) -> Vec<Row> {
    let capabilities = door.capabilities();
    let possible = suite::takes_batches(door);
    let ended = match possible {
        true => suite::in_batches(door),
        false => Ok(0),
    };
    let ended = counted(door, Part::Batches, ended);
    let mut rows: Vec<Row> = batches::NAMES
        .iter()
        .map(|name| row("batch", name, ended.clone()))
        .collect();
    let mut sizes = Sizes {
        most: capabilities.max_batch,
        wrong: None,
    };
    let _ = door.prepare(&vec![0; PAGE as usize]);
    door.run(&mut sizes);
    let sized = sizes.wrong.map_or(Verdict::Passed, Verdict::Failed);
    rows.push(row(
        "batch",
        "no members, or more than the largest batch",
        sized,
    ));
    let faulting = match possible {
        true => verdict(faulting(door)),
        false => Verdict::refused(door.refusal(Part::Batches)),
    };
    rows.push(row("batch", "a member with a page fault", faulting));
    rows
}

/// Batches of sizes that there are not.
struct Sizes {
    most: u32,
    wrong: Option<String>,
}

impl Application for Sizes {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        let too_many = (self.most as usize).saturating_add(1);
        // More would be a list that no machine has.
        let too_many = too_many.min(1 << 20);
        for count in [0, too_many] {
            let operations = vec![Operation::noop(); count];
            // SAFETY: a NOOP has no operands.
            let taken = unsafe { mover.enqueue_batch(&operations) };
            let refused =
                matches!(taken, Err(BatchError::Size { operations, .. }) if operations == count);
            if !refused {
                self.wrong = Some(format!("{taken:?} for a batch of {count}"));
            }
        }
        Next::Done
    }
}

/// A member that faults, and one that does not, before a fence.
fn faulting<D: Door>(door: &mut D) -> Result<Verdict, String> {
    let page = PAGE as usize;
    let before = noise(8 * page);
    let base = door.prepare(&before);
    if !door.forbid(2) {
        return Ok(Verdict::refused(door.refusal(Part::Faults)));
    }
    let at = |n: u64| base + n * PAGE;
    let members = vec![
        Operation::memmove(at(0), at(1), PAGE as u32),
        Operation::memmove(at(2), at(3), PAGE as u32),
        Operation::memmove(at(4), at(5), PAGE as u32),
        Operation::memmove(at(6), at(7), PAGE as u32).with_fence(),
    ];
    let mut run = Batches::new(vec![members]);
    door.run(&mut run);
    door.allow();
    let found: Vec<Option<Status>> = run.records[0]
        .iter()
        .map(|record| record.map(|record| record.status()))
        .collect();
    let expected = [
        Status::SUCCESS,
        Status::PAGE_FAULT,
        Status::SUCCESS,
        Status::NONE,
    ];
    if !found.iter().eq(expected.map(Some).iter()) {
        return Err(format!("{found:?} instead of {expected:?}"));
    }
    let mut after = before;
    after.copy_within(..page, page);
    after.copy_within(4 * page..5 * page, 5 * page);
    match door.bytes() == after {
        true => Ok(Verdict::Passed),
        false => Err("it wrote other bytes than it should".into()),
    }
}

/// Enqueued, and taken back.
fn withdrawn<D: Door>(door: &mut D) -> Result<Verdict, String> {
    let before = noise(2 * PAGE as usize);
    let base = door.prepare(&before);
    let mut run = Withdrawn {
        copy: Operation::memmove(base, base + PAGE, PAGE as u32),
        taken_back: None,
        ended: None,
    };
    door.run(&mut run);
    let mut after = before.clone();
    let verdict = match (run.taken_back, run.ended) {
        (Some(1), Some(Status::NONE)) => Verdict::Passed,
        (Some(0), Some(Status::SUCCESS)) => {
            after.copy_within(..PAGE as usize, PAGE as usize);
            Verdict::refused("it takes nothing back: it hands everything over at once")
        }
        (taken_back, ended) => return Err(format!("{taken_back:?} taken back, ended {ended:?}")),
    };
    match door.bytes() == after {
        true => Ok(verdict),
        false => Err("it wrote other bytes than it should".into()),
    }
}

struct Withdrawn {
    copy: Operation,
    taken_back: Option<usize>,
    ended: Option<Status>,
}

impl Application for Withdrawn {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        if self.taken_back.is_none() {
            // SAFETY: the memory outlives the run, and nothing else uses it.
            if unsafe { mover.enqueue(&self.copy) }.is_err() {
                return Next::Done;
            }
            self.taken_back = Some(mover.withdraw());
        }
        mover.submit();
        let mut ended = [Completion::default()];
        if mover.poll(&mut ended) == 0 {
            return Next::Wait;
        }
        self.ended = Some(ended[0].status());
        Next::Done
    }
}
