//! The table of rules, row by row, on one work queue.

use dray_conformance::Runner;
use dray_conformance::rules::{
    Case, Observed, RECORD, Reported, RuleDoor, RuleReport, check_rule, rules,
};
use dray_device::WorkQueueMode;
use dray_spec::{Descriptor, Flags};
use serde::{Deserialize, Serialize};

use crate::AttestError;
use crate::ground::Ground;
use crate::target::Target;
use crate::wait::{self, Board};

/// How often a case that failed is tried: a page may go away for a moment, and the fault is no deviation.
const TRIES: usize = 3;
/// Failures of a row that are described.
const MOST_FAILURES: usize = 4;

const ERRORS: &str = "software errors of its own: the driver keeps one, for all queues";
const INTERRUPTS: &str = "interrupt handles: they are the driver's";
const PRIVILEGE: &str = "privilege: a program has none";
const DOMAINS: &str = "other address spaces";
const CONFIGURATION: &str = "a queue that is configured so";
const WRITE: &str = "a portal that can be mapped: the kernel looks at what is written";

/// One rule of the specification on one queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it says.
    pub rule: String,
    /// Section or table of the specification.
    pub section: String,
    /// Cases that came out as they must.
    pub held: usize,
    /// Cases that did not.
    pub failed: usize,
    /// Cases that failed first and held when they were tried again.
    pub unsteady: usize,
    /// Cases that were not tried, by what they need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The first failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// Cases that were not tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// What they need, and the queue has not.
    pub needs: String,
    /// How many.
    pub cases: usize,
}

/// One queue as a door of the table.
pub(crate) struct QueueDoor<'a> {
    target: &'a mut Target,
    ground: &'a Ground,
    board: &'a Board,
    failure: Option<AttestError>,
}

impl<'a> QueueDoor<'a> {
    pub(crate) fn new(target: &'a mut Target, ground: &'a Ground, board: &'a Board) -> Self {
        QueueDoor {
            target,
            ground,
            board,
            failure: None,
        }
    }
}

impl RuleDoor for QueueDoor<'_> {
    fn name(&self) -> String {
        self.target.name().to_owned()
    }

    fn tries(&self) -> usize {
        TRIES
    }

    fn lacks(&self, case: &Case) -> Option<&'static str> {
        let hardware = self.target.is_hardware();
        let named = named(case);
        let any = |flags: Flags| named.iter().any(|d| d.flags().intersects(flags));
        let error = matches!(case.reported, Reported::Error(..));
        match () {
            () if hardware && any(Flags::REQUEST_COMPLETION_INTERRUPT) => Some(INTERRUPTS),
            () if hardware && named.iter().any(|d| d.privileged()) => Some(PRIVILEGE),
            () if error && !self.target.tells_errors() => Some(ERRORS),
            () if self.target.submit_path() == "write" && !is_writable(&case.submission()) => {
                Some(WRITE)
            }
            () if !holds(case, self.target) => match named.iter().any(goes_between) {
                true => Some(DOMAINS),
                false => Some(CONFIGURATION),
            },
            () => None,
        }
    }

    fn run(&mut self, case: &Case) -> Observed {
        let ran = self.try_case(case);
        ran.unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            Observed {
                records: Vec::new(),
                errors: Vec::new(),
                memory: case.memory(),
            }
        })
    }
}

impl QueueDoor<'_> {
    fn try_case(&mut self, case: &Case) -> Result<Observed, AttestError> {
        let mut memory = case.memory();
        self.ground.load(&memory);
        self.target.take_errors();
        // SAFETY: the ground stays mapped, and is not touched until the queue has been emptied. What the case names
        // beside it is not mapped, or not at an address that this process uses.
        unsafe { self.target.submit(&case.submission()) }?;
        if matches!(case.reported, Reported::Record(_) | Reported::Status(_)) {
            wait::record(self.ground.area(), RECORD);
        }
        self.board.settle(self.target)?;
        self.ground.gather(&mut memory);
        let record = self.ground.area().record(RECORD);
        Ok(Observed {
            records: (record.status != 0)
                .then_some((RECORD, record))
                .into_iter()
                .collect(),
            errors: self.target.take_errors(),
            memory,
        })
    }
}

/// Inter-domain operations.
fn goes_between(descriptor: &Descriptor) -> bool {
    (0x21..=0x26).contains(&descriptor.opcode_byte())
}

/// The descriptor, and the members of its batch.
fn named(case: &Case) -> Vec<Descriptor> {
    let mut all = listed(case);
    all.push(case.submission());
    all
}

/// The members of the batch that it submits.
fn listed(case: &Case) -> Vec<Descriptor> {
    let batch = case.submission();
    if batch.opcode() != Ok(dray_spec::Opcode::Batch) {
        return Vec::new();
    }
    let memory = case.memory();
    let member = |n: u64| {
        let at = batch.address1.checked_add(64 * n)?;
        let inside = memory.allows(at, dray_device::Access::Read)
            && memory.allows(at.checked_add(63)?, dray_device::Access::Read);
        let bytes = inside.then(|| memory.peek(at, 64))?;
        zerocopy::FromBytes::read_from_bytes(bytes).ok()
    };
    (0..u64::from(batch.size.min(64)))
        .map_while(member)
        .collect()
}

/// Whether write(2) passes it on: the kernel refuses completion addresses that are not aligned, and batches where a
/// program may not submit them.
fn is_writable(descriptor: &Descriptor) -> bool {
    descriptor.completion_addr.is_multiple_of(32)
        && descriptor.opcode() != Ok(dray_spec::Opcode::Batch)
}

/// Whether what the table expects of the case's own device holds for one that is configured like this: the device by
/// hand does the same.
fn holds(case: &Case, target: &Target) -> bool {
    let mut config = target.config().clone();
    if let Some(queue) = config.work_queues.first_mut() {
        // The table's memory belongs to a PASID.
        queue.pasid = queue.pasid.map(|_| OWN);
        // A dedicated queue has no threshold.
        if queue.mode == WorkQueueMode::Shared && queue.threshold == 0 {
            return false;
        }
    }
    let Ok(device) = dray_device::Device::new(config.clone()) else {
        return false;
    };
    drop(device);
    let mut runner = Runner::new(config, case.memory());
    let mut submission = case.submission().with_pasid(OWN);
    if target.submit_path() == "enqcmd" && target.is_hardware() {
        // All that the instruction leaves of these four bytes.
        submission.pasid_priv = OWN;
    }
    runner.submit(0, &submission);
    runner.run();
    let seen = Observed {
        records: runner.records,
        errors: runner.errors,
        memory: runner.memory,
    };
    case.judge(&seen).is_ok()
}

/// The PASID of the queue in the table.
const OWN: u32 = 1;

/// Puts the table to a queue. `told` is called after each rule with the number of rules that are done, and of all;
/// it returns false to stop.
pub(crate) fn check(
    target: &mut Target,
    ground: &Ground,
    board: &Board,
    told: &dyn Fn(usize, usize) -> bool,
) -> Result<Vec<Row>, AttestError> {
    let all = rules();
    let count = all.len();
    let mut rows = Vec::with_capacity(count);
    for (n, rule) in (1..).zip(all) {
        let mut door = QueueDoor::new(target, ground, board);
        let report = check_rule(rule, &mut door);
        if let Some(failure) = door.failure {
            return Err(failure);
        }
        rows.push(row(&report));
        if !told(n, count) {
            return Err(AttestError::Interrupted);
        }
    }
    Ok(rows)
}

fn row(report: &RuleReport) -> Row {
    let left_out = report.left_out.iter().map(|(needs, cases)| LeftOut {
        needs: (*needs).to_owned(),
        cases: *cases,
    });
    let failures = report.failures.iter().take(MOST_FAILURES);
    Row {
        rule: report.name.clone(),
        section: report.section.to_owned(),
        held: report.held,
        failed: report.failures.len(),
        unsteady: report.unsteady,
        left_out: left_out.collect(),
        failures: failures
            .map(|failure| format!("{}: {}", failure.mismatch, failure.case))
            .collect(),
    }
}
