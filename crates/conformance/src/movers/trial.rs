//! One operation on prepared memory, and what it must leave behind.

use dray::{Capabilities, Operation};
use dray_spec::{CompletionRecord, Descriptor, Opcode, Status};

use super::door::{Door, PAGE, Part};
use super::rest::{rest, whole};
use super::script::Script;
use super::table::Verdict;

/// Operands that an operation can have: each has an area of its own.
pub(crate) const AREAS: usize = 4;
/// Pages of an area.
pub(crate) const AREA_PAGES: usize = 4;
/// Bytes of the memory of a trial.
pub(crate) const BYTES: usize = AREAS * AREA_PAGES * PAGE as usize;

/// Where an operand begins: a line behind the start of its area, so that dualcast's destinations agree in
/// bits 11:0 and nothing is aligned to a page.
pub(crate) const fn at(area: usize) -> usize {
    area * AREA_PAGES * PAGE as usize + 64
}

/// Addresses of the operands in memory at `base`.
pub(crate) fn addresses(base: u64) -> [u64; AREAS] {
    std::array::from_fn(|area| base + at(area) as u64)
}

/// A row of the table: one operation in one situation.
pub(crate) struct Trial {
    /// Name of the operation.
    pub(crate) operation: &'static str,
    /// The situation, and how the operation ends there.
    pub(crate) case: String,
    /// The trial in memory at an address.
    pub(crate) plan: Box<dyn Fn(u64) -> Plan>,
    /// A page of the memory that cannot be accessed at first, and what is done about it.
    pub(crate) hidden: Option<Hidden>,
}

/// A page that cannot be accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// Its number in the memory.
    pub(crate) page: usize,
    /// The access that faults is a write.
    pub(crate) write: bool,
    /// Bytes that may have been done before the fault.
    pub(crate) most: u32,
    /// The page is made accessible and the rest of the operation is submitted.
    pub(crate) resumes: bool,
}

/// An operation, its memory before and after, and its record.
pub(crate) struct Plan {
    pub(crate) before: Vec<u8>,
    pub(crate) operation: Operation,
    pub(crate) expected: Expected,
    pub(crate) after: Vec<u8>,
}

/// How an operation ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// With exactly this record.
    Record(CompletionRecord),
    /// Refused with this status; nothing is written.
    Refused(Status),
}

impl Plan {
    /// A descriptor that is refused on memory that it leaves as it is.
    pub(crate) fn refused(status: Status, descriptor: Descriptor) -> Plan {
        let bytes = noise(BYTES);
        Plan {
            before: bytes.clone(),
            operation: operation(descriptor),
            expected: Expected::Refused(status),
            after: bytes,
        }
    }
}

/// The operation of a descriptor of the suite.
pub(crate) fn operation(descriptor: Descriptor) -> Operation {
    Operation::try_from(descriptor).expect("a descriptor of the suite is an operation")
}

/// Bytes without a pattern, the same each time.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let byte = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    (0..len as u64).map(byte).collect()
}

/// Puts a trial to a door.
pub(crate) fn run<D: Door>(trial: &Trial, door: &mut D, capabilities: &Capabilities) -> Verdict {
    let before = (trial.plan)(0).before;
    let base = door.prepare(&before);
    let plan = (trial.plan)(base);
    let outcome = if !can(capabilities, &plan) {
        refused(door, &plan)
    } else {
        match trial.hidden {
            None => plain(door, &plan),
            Some(hidden) if !door.forbid(hidden.page) => {
                Ok(Verdict::refused(door.refusal(Part::Faults)))
            }
            Some(hidden) => faults(door, &plan, hidden, base),
        }
    };
    outcome.unwrap_or_else(|wrong| {
        let descriptor = plan.operation.descriptor();
        Verdict::Failed(format!("{wrong} for {descriptor:x?}"))
    })
}

/// Whether the mover says that it executes the plan's operation.
fn can(capabilities: &Capabilities, plan: &Plan) -> bool {
    let overlaps = || {
        let d = plan.operation.descriptor();
        d.opcode() == Ok(Opcode::Memmove) && d.address1.abs_diff(d.address2) < d.size.into()
    };
    match plan.expected {
        // No mover supports operations that are too large.
        Expected::Refused(_) => capabilities.has(plan.operation.opcode()),
        Expected::Record(_) => {
            capabilities.supports(&plan.operation)
                && (capabilities.general.overlapping_copy() || !overlaps())
        }
    }
}

/// What the mover says that it cannot do ends with a status that says so, and writes nothing.
fn refused<D: Door>(door: &mut D, plan: &Plan) -> Result<Verdict, String> {
    let (record, _) = submit(door, plan.operation)?;
    let status = record.status();
    let names_it = [
        Status::BAD_OPCODE,
        Status::INVALID_FLAGS,
        Status::TRANSFER_SIZE,
        Status::OVERLAP,
    ];
    if !names_it.contains(&status) {
        return Err(format!("{record:?}, not a refusal,"));
    }
    match door.bytes() == plan.before {
        true => Ok(Verdict::refused(status.name())),
        false => Err("an operation that was refused has written".into()),
    }
}

/// Ends as planned.
fn plain<D: Door>(door: &mut D, plan: &Plan) -> Result<Verdict, String> {
    let (record, by_another) = submit(door, plan.operation)?;
    ends_as_planned(door, plan, &record)?;
    match (by_another, plan.expected) {
        (Some(other), Expected::Record(_)) => Err(format!("executed by {other:?}")),
        _ => Ok(Verdict::Passed),
    }
}

fn ends_as_planned<D: Door>(
    door: &D,
    plan: &Plan,
    record: &CompletionRecord,
) -> Result<(), String> {
    let as_planned = match plan.expected {
        Expected::Record(expected) => *record == expected,
        Expected::Refused(status) => record.status() == status,
    };
    if !as_planned {
        return Err(format!("{record:?} instead of {:?}", plan.expected));
    }
    match door.bytes() == plan.after {
        true => Ok(()),
        false => Err("other bytes than the oracle's".into()),
    }
}

/// An operation that ends with a page fault and, if requested, is resumed when the page is present.
fn faults<D: Door>(
    door: &mut D,
    plan: &Plan,
    hidden: Hidden,
    base: u64,
) -> Result<Verdict, String> {
    let page = base + hidden.page as u64 * PAGE;
    let faulted = submit(door, plan.operation);
    door.allow();
    let (record, _) = faulted?;
    let status = record.status();
    if status.code() != Status::PAGE_FAULT.code() {
        return Err(format!("{record:?} instead of a page fault"));
    }
    if record.fault_address & !(PAGE - 1) != page || status.is_write_fault() != hidden.write {
        return Err(format!("{record:x?} names another page than {page:#x}"));
    }
    if record.bytes_completed > hidden.most {
        let most = hidden.most;
        return Err(format!("{record:?}: more than {most} bytes before"));
    }
    // Not executed, or executed in part: each byte is the old one or the new one.
    let bytes = door.bytes();
    let mut all = bytes.iter().zip(plan.before.iter().zip(&plan.after));
    let untouched = || {
        let page = hidden.page * PAGE as usize;
        let range = page..page + PAGE as usize;
        bytes[range.clone()] == plan.before[range]
    };
    if !untouched() || !all.all(|(byte, (old, new))| byte == old || byte == new) {
        return Err("an operation that faulted has written elsewhere".into());
    }
    if !hidden.resumes {
        return Ok(Verdict::Passed);
    }
    let descriptor = plan.operation.descriptor();
    let (last, _) = submit(door, operation(rest(descriptor, &record)))?;
    let resumed = whole(descriptor, &record, last);
    if let Expected::Record(expected) = plan.expected
        && resumed != expected
    {
        return Err(format!("resumed: {resumed:?} instead of {expected:?}"));
    }
    match door.bytes() == plan.after {
        true => Ok(Verdict::Passed),
        false => Err("resumed: other bytes than the oracle's".into()),
    }
}

/// Runs one operation to its end: its record, and its executor if that is not the door's.
fn submit<D: Door>(
    door: &mut D,
    operation: Operation,
) -> Result<(CompletionRecord, Option<dray::Executor>), String> {
    let mut script = Script::new(vec![operation]);
    door.run(&mut script);
    let record = script.records[0].ok_or("no completion")?;
    let mut executors = script.executors.into_iter();
    let by_another = executors.find(|found| *found != door.executor());
    Ok((record, by_another))
}
