//! The suite.

use std::fmt;

use dray::Operation;
use dray_spec::{CompletionRecord, Status};

use super::batches::{self, Batches};
use super::case::{AREA, Case, cases};
use super::disruptions::{Disrupted, Disrupter, Disruption};
use super::door::{Door, PAGE, Part};
use super::faults;
use super::held::Waiting;
use super::integrity;
use super::queue_rows;
use super::refused;
use super::script::Script;
use super::table::{Column, Row};
use super::trial::{self, noise};
use super::trials::trials;

/// Operations of the largest batch in the suite.
pub(crate) const LARGEST_BATCH: u32 = 4;

/// What a door has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Name of the door.
    pub door: String,
    /// Operations with the right record and bytes.
    pub operations: usize,
    /// Operations that were refused with the right status.
    pub refused: usize,
    /// Operations on integrity fields and delta records, sound and flawed ones; 0 where the mover has none.
    pub integrity: usize,
    /// Operations in batches; 0 where the mover has no batches.
    pub in_batches: usize,
    /// Times that the mover was full, and went on.
    pub full: usize,
    /// Operations on an inaccessible page; 0 where the mover does not look at addresses.
    pub faults: usize,
    /// Operations that ended after a deadline; 0 where nothing holds completions.
    pub held: usize,
    /// Operations whose queue was disabled or reset meanwhile; 0 where it cannot be.
    pub disrupted: usize,
    /// Parts that were not put to the door, each with the reason.
    pub refusals: Vec<(Part, &'static str)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<24} {:>4} operations {:>3} refused {:>3} DIF and delta {:>3} in batches {:>4} times full {:>3} faults {:>3} held {:>3} disrupted",
            self.door,
            self.operations,
            self.refused,
            self.integrity,
            self.in_batches,
            self.full,
            self.faults,
            self.held,
            self.disrupted
        )?;
        for (part, reason) in &self.refusals {
            write!(f, "\n{:<24} {part:?}: {reason}", "")?;
        }
        Ok(())
    }
}

/// Puts the suite to the door of one queue, or of a core, row by row: each operation with each status that it
/// can meet. The door may be used up by that: its disruptions come last.
pub fn tabulate<D: Door>(door: &mut D) -> Column {
    let mut rows = of_operations(door);
    rows.extend(queue_rows::rows(door));
    Column {
        mover: door.name(),
        rows,
    }
}

/// One row of the table: completions that do not come before a deadline.
pub fn held_row<D: Door>(door: &mut D) -> Column {
    let rows = vec![queue_rows::held(door)];
    let mover = door.name();
    Column { mover, rows }
}

/// One row of the table: what becomes of work in flight. The door is used up by that.
pub fn disruption_row<D: Door>(door: &mut D, disruption: Disruption) -> Column {
    let mut disrupter = door.disrupter();
    let rows = vec![queue_rows::disrupted(door, disrupter.as_mut(), disruption)];
    let mover = door.name();
    Column { mover, rows }
}

/// The rows that one operation decides.
fn of_operations<D: Door>(door: &mut D) -> Vec<Row> {
    let capabilities = door.capabilities();
    let row = |trial: trial::Trial| Row {
        operation: trial.operation.to_owned(),
        verdict: trial::run(&trial, door, &capabilities),
        case: trial.case,
    };
    trials().into_iter().map(row).collect()
}

/// Puts the suite to a door.
///
/// # Errors
/// The first thing that is not as it should be.
pub fn check<D: Door>(door: &mut D) -> Result<Report, String> {
    let (operations, full) = operations(door)?;
    let mut report = Report {
        door: door.name(),
        operations,
        full,
        refused: refusals(door)?,
        integrity: integrity(door)?,
        in_batches: in_batches(door)?,
        faults: page_faults(door)?,
        held: held(door)?,
        // The last, for a queue that was disabled may stay so.
        disrupted: disruptions(door)?,
        refusals: Vec::new(),
    };
    let parts = [
        (Part::Batches, report.in_batches),
        (Part::Faults, report.faults),
        (Part::Held, report.held),
        (Part::Disruptions, report.disrupted),
    ];
    let refused = parts.into_iter().filter(|(_, count)| *count == 0);
    report.refusals = refused
        .map(|(part, _)| (part, door.refusal(part)))
        .collect();
    Ok(report)
}

/// Every operation against the oracle, and one completion a look.
pub(crate) fn operations<D: Door>(door: &mut D) -> Result<(usize, usize), String> {
    let mut ended = 0;
    let mut full = 0;
    for look in [64, 1] {
        let cases: Vec<Case> = cases();
        let mut bytes = noise(cases.len() * AREA as usize);
        for (n, case) in cases.iter().enumerate() {
            case.prepare(n, &mut bytes);
        }
        let base = door.prepare(&bytes);
        let operations = cases.iter().enumerate();
        let operations = operations.map(|(n, case)| case.operation(n, base));
        let mut script = Script::new(operations.collect()).looking_at(look);
        door.run(&mut script);
        for (n, case) in cases.iter().enumerate() {
            let expected = case.execute(n, &mut bytes);
            let found = script.records[n];
            if found != Some(expected) {
                return Err(format!("{case:?}: {found:?} instead of {expected:?}"));
            }
        }
        if door.bytes() != bytes {
            return Err("the operations wrote other bytes than the oracle's".into());
        }
        executed_by(door, &script.executors)?;
        ended += cases.len();
        full += script.full;
    }
    if full == 0 && door.slots() < ended / 2 {
        return Err("more operations than slots, and the mover was never full".into());
    }
    Ok((ended, full))
}

/// Integrity fields and delta records.
fn integrity<D: Door>(door: &mut D) -> Result<usize, String> {
    let capabilities = door.capabilities();
    let planned = |base| {
        let mut bytes = noise(integrity::BYTES);
        let (all, after) = integrity::operations(base, &capabilities, &mut bytes);
        (bytes, all, after)
    };
    // Addresses are known when the memory is there; its bytes do not depend on them.
    let base = door.prepare(&planned(0).0);
    let (_, all, after) = planned(base);
    let mut script = Script::new(all.iter().map(|expected| expected.operation).collect());
    door.run(&mut script);
    for (expected, found) in all.iter().zip(&script.records) {
        if *found != Some(expected.record) {
            let descriptor = expected.operation.descriptor();
            let record = expected.record;
            return Err(format!(
                "{found:?} instead of {record:?} for {descriptor:?}"
            ));
        }
    }
    if door.bytes() != after {
        return Err("DIF or delta operations wrote other bytes than they should".into());
    }
    executed_by(door, &script.executors)?;
    Ok(all.len())
}

/// Invalid operations, which must write nothing.
fn refusals<D: Door>(door: &mut D) -> Result<usize, String> {
    let base = door.prepare(&vec![0; 16 * PAGE as usize]);
    let mut all = refused::operations(base, &door.capabilities());
    // In a batch a fence is in its place.
    all.retain(|refused| refused.1 != Status::INVALID_FLAGS || !door.gathers());
    let mut script = Script::new(all.iter().map(|refused| refused.0).collect());
    door.run(&mut script);
    for (n, (operation, status)) in all.iter().enumerate() {
        let found = script.records[n].unwrap_or_default();
        if found.status() != *status || !refused::names_the_fence(&found) {
            let descriptor = operation.descriptor();
            return Err(format!("{found:?} instead of {status} for {descriptor:?}"));
        }
    }
    match door.bytes().iter().all(|byte| *byte == 0) {
        true => Ok(all.len()),
        false => Err("an operation that was refused has written".into()),
    }
}

/// Whether the mover takes batches of the size that the suite has.
pub(crate) fn takes_batches<D: Door>(door: &mut D) -> bool {
    door.capabilities().max_batch >= LARGEST_BATCH && door.slots() >= LARGEST_BATCH as usize
}

/// Batches and their fences.
pub(crate) fn in_batches<D: Door>(door: &mut D) -> Result<usize, String> {
    if !takes_batches(door) {
        return Ok(0);
    }
    let mut bytes = vec![0; 8 * PAGE as usize];
    bytes[..PAGE as usize].copy_from_slice(&noise(PAGE as usize));
    let base = door.prepare(&bytes);
    let all = batches::batches(base);
    let operations = all.iter().map(|batch| batch.iter().map(|m| m.0).collect());
    let mut run = Batches::new(operations.collect());
    door.run(&mut run);
    if run.stray {
        return Err("a completion that belongs to nothing, or came twice".into());
    }
    for (n, (batch, records)) in all.iter().zip(&run.records).enumerate() {
        let expected: Vec<Status> = batch.iter().map(|member| member.1).collect();
        let found = records.iter().map(|record| status(record.as_ref()));
        let found: Vec<Option<Status>> = found.collect();
        if !found.iter().eq(expected
            .iter()
            .copied()
            .map(Some)
            .collect::<Vec<_>>()
            .iter())
        {
            return Err(format!("batch {n}: {found:?} instead of {expected:?}"));
        }
    }
    if door.bytes() != batches::expected(&bytes) {
        return Err("the batches wrote other bytes than they should".into());
    }
    executed_by(door, &run.executors)?;
    Ok(all.iter().map(Vec::len).sum())
}

/// Operations on an inaccessible page.
fn page_faults<D: Door>(door: &mut D) -> Result<usize, String> {
    let mut bytes = noise((faults::PAGES * PAGE) as usize);
    let base = door.prepare(&bytes);
    let Some(forbidden) = door.forbidden() else {
        return Ok(0);
    };
    let all = faults::operations(base, forbidden, &door.capabilities());
    let mut script = Script::new(all.iter().map(|faulting| faulting.0).collect());
    door.run(&mut script);
    for ((operation, most), found) in all.iter().zip(&script.records) {
        let found = found.unwrap_or_default();
        let descriptor = operation.descriptor();
        if let Some(wrong) = faults::wrong(&found, forbidden, *most) {
            return Err(format!("{wrong}: {found:?} for {descriptor:?}"));
        }
        if operation.opcode() == dray_spec::Opcode::Memmove && found.bytes_completed > 0 {
            let at = |address: u64| (address - base) as usize;
            let (from, to) = (at(descriptor.address1), at(descriptor.address2));
            let done = found.bytes_completed as usize;
            bytes.copy_within(from..from + done, to);
        }
    }
    match door.bytes() == bytes {
        true => Ok(all.len()),
        false => Err("an operation that faulted has written elsewhere".into()),
    }
}

/// Copies to a page that the device waits for.
pub(crate) fn held<D: Door>(door: &mut D) -> Result<usize, String> {
    let capabilities = door.capabilities();
    let base = door.prepare(&noise(PAGE as usize));
    let Some(held) = door.held() else {
        return Ok(0);
    };
    let copy = |n: u64| {
        let copy = Operation::memmove(base + 64 * n, held.page + 64 * n, 64);
        match capabilities.block_on_fault {
            true => copy.with_block_on_fault(),
            false => copy,
        }
    };
    let operations: Vec<Operation> = (0..3).map(copy).collect();
    let count = operations.len();
    let mut run = Waiting::new(operations, held.release);
    door.run(&mut run);
    match run.wrong {
        None => executed_by(door, &run.executors).map(|()| count),
        Some(wrong) => Err(format!("held: {wrong}")),
    }
}

/// Copies while the queue is disabled, or reset.
fn disruptions<D: Door>(door: &mut D) -> Result<usize, String> {
    let mut disrupter = door.disrupter();
    let mut count = 0;
    for disruption in Disruption::ALL {
        count += disrupted(door, disrupter.as_mut(), disruption)?;
    }
    Ok(count)
}

/// Copies while the queue is disrupted in one way: how many, 0 where that cannot be.
pub(crate) fn disrupted<D: Door>(
    door: &mut D,
    disrupter: Option<&mut Disrupter>,
    disruption: Disruption,
) -> Result<usize, String> {
    const EACH: usize = 16;
    let Some(disrupter) = disrupter else {
        return Ok(0);
    };
    let page = PAGE as usize;
    let before = noise((2 * EACH + 2) * page);
    let base = door.prepare(&before);
    let copy = |n: usize| {
        // An operand of its own for each: pages 1 to 16, copied to those from 17 on.
        let (from, to) = (
            base + (n as u64 + 1) * PAGE,
            base + (n + EACH + 1) as u64 * PAGE,
        );
        Operation::memmove(from, to, PAGE as u32)
    };
    let mut run = Disrupted::new((0..EACH).map(copy).collect(), disruption, disrupter);
    door.run(&mut run);
    let (wrong, impossible) = (run.wrong.take(), run.impossible);
    let (ended, executors) = (run.ended, run.executors);
    if let Some(wrong) = wrong {
        return Err(format!("{disruption:?}: {wrong}"));
    }
    if impossible {
        return Ok(0);
    }
    let after = door.bytes();
    for (n, status) in ended.iter().enumerate() {
        let at = |index: usize| index * page..(index + 1) * page;
        let (from, to) = (&before[at(n + 1)], &after[at(n + EACH + 1)]);
        let old = &before[at(n + EACH + 1)];
        let valid = match status {
            Some(Status::SUCCESS) => to == from,
            // Not executed, or aborted in the middle: each byte is the old one or the new one.
            Some(Status::NONE) => to
                .iter()
                .zip(from.iter().zip(old))
                .all(|(byte, (new, old))| byte == new || byte == old),
            _ => false,
        };
        if !valid {
            return Err(format!("{disruption:?}: copy {n} ended with {status:?}"));
        }
    }
    let untouched = before[..(EACH + 1) * page] == after[..(EACH + 1) * page]
        && before[(2 * EACH + 1) * page..] == after[(2 * EACH + 1) * page..];
    if !untouched {
        return Err(format!("{disruption:?}: written outside the destinations"));
    }
    executed_by(door, &executors)?;
    Ok(EACH)
}

fn status(record: Option<&CompletionRecord>) -> Option<Status> {
    record.map(CompletionRecord::status)
}

fn executed_by<D: Door>(door: &D, executors: &[dray::Executor]) -> Result<(), String> {
    match executors.iter().find(|found| **found != door.executor()) {
        None => Ok(()),
        Some(other) => Err(format!(
            "executed by {other:?} instead of {:?}",
            door.executor()
        )),
    }
}
