//! Cases of order: what may be seen when something else has been seen.
//!
//! A case submits descriptors, waits for one record, and looks at once at bytes and at other records. What it has
//! seen is its outcome, a word for each thing that it looked at. The specification allows a set of outcomes.

mod cases;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use dray_device::WorkQueueMode;
use dray_spec::{CompletionRecord, Descriptor, Opcode};
use serde::{Deserialize, Serialize};

use crate::AttestError;
use crate::ground::Area;
use crate::target::Target;
use crate::wait::{self, Board};

pub(crate) use cases::cases;

/// Bytes of one operand at most.
const OPERAND: u64 = 256 << 10;
/// Operands that a case can name.
const OPERANDS: u64 = 10;
/// Bytes with records and lists.
const HEAD: u64 = 4096;

/// What is looked at when the record that is waited for has been seen.
#[derive(Debug, Clone)]
pub(crate) enum Look {
    /// All bytes are `new`, none is (`old`), or some are (`part`).
    Bytes { at: u64, expected: Vec<u8> },
    /// The status of a record in hexadecimal; `none` while it is 0.
    Status(u64),
    /// The record is `whole`, or `torn`: it has its status and not the rest.
    Record {
        at: u64,
        expected: Box<CompletionRecord>,
    },
}

/// What a case does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    /// Bytes beforehand.
    pub(crate) before: Vec<(u64, Vec<u8>)>,
    /// The list of the batch, if there is one.
    pub(crate) list: Vec<Descriptor>,
    /// Descriptors in the order in which they are submitted.
    pub(crate) submitted: Vec<Descriptor>,
    /// The address of the record that is waited for; `None`: until the queue has been emptied.
    pub(crate) watched: Option<u64>,
    /// What is looked at then, in this order.
    pub(crate) looks: Vec<Look>,
}

/// A case of order.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) section: &'static str,
    /// The rule that it is about, in our words.
    pub(crate) rule: &'static str,
    /// Outcomes that are allowed; empty: all.
    pub(crate) allowed: Vec<&'static str>,
    /// What the queue has not that it needs.
    pub(crate) needs: fn(&Target) -> Option<&'static str>,
    pub(crate) program: Box<dyn Fn(&Scene) -> Program>,
}

/// A case of order, and what was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Litmus {
    /// Name.
    pub case: String,
    /// Section of the specification.
    pub section: String,
    /// The rule that it is about.
    pub rule: String,
    /// Outcomes that are allowed; empty: all.
    pub allowed: Vec<String>,
    /// How often each outcome was seen.
    pub seen: BTreeMap<String, usize>,
    /// Why it was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
}

impl Litmus {
    /// Outcomes that were seen and are not allowed.
    pub fn forbidden(&self) -> impl Iterator<Item = (&str, usize)> {
        let forbidden = |outcome: &str| {
            !self.allowed.is_empty() && !self.allowed.iter().any(|allowed| allowed == outcome)
        };
        let seen = self
            .seen
            .iter()
            .map(|(outcome, count)| (outcome.as_str(), *count));
        seen.filter(move |(outcome, _)| forbidden(outcome))
    }
}

/// The memory of the cases.
#[derive(Debug)]
pub(crate) struct Scene {
    area: Area,
}

impl Scene {
    pub(crate) fn new() -> Result<Scene, AttestError> {
        Ok(Scene {
            area: Area::new(HEAD + OPERANDS * OPERAND)?,
        })
    }

    pub(crate) fn area(&self) -> &Area {
        &self.area
    }

    /// Record `n`, 0 to 31.
    pub(crate) fn record(&self, n: u64) -> u64 {
        assert!(n < 32);
        self.area.base() + 32 * n
    }

    /// The list of a batch, up to 48 descriptors.
    pub(crate) fn list(&self) -> u64 {
        self.area.base() + 1024
    }

    /// Operand `n`, aligned to a page.
    pub(crate) fn operand(&self, n: u64) -> u64 {
        assert!(n < OPERANDS);
        self.area.base() + HEAD + n * OPERAND
    }

    fn prepare(&self, program: &Program) {
        self.area.fill(self.area.base(), HEAD, 0);
        for (at, bytes) in &program.before {
            self.area.put(*at, bytes);
        }
        for (n, member) in (0..).zip(&program.list) {
            let bytes = zerocopy::IntoBytes::as_bytes(member);
            self.area.put(self.list() + 64 * n, bytes);
        }
    }

    fn look(&self, look: &Look) -> String {
        match look {
            Look::Bytes { at, expected } => {
                // From the end: what a device writes last is looked at first.
                let (at, count) = (*at, expected.len() as u64);
                let mut same = 0;
                for offset in (0..count).rev() {
                    let byte = self.area.byte(at + offset).load(Ordering::Relaxed);
                    same += u64::from(byte == expected[offset as usize]);
                }
                match same {
                    0 => "old",
                    same if same == count => "new",
                    _ => "part",
                }
                .to_owned()
            }
            Look::Status(at) => match self.area.byte(*at).load(Ordering::Acquire) {
                0 => "none".to_owned(),
                status => format!("{status:02x}"),
            },
            Look::Record { at, expected } => {
                let found = self.area.record(*at);
                let status = format!("{:02x}", found.status);
                match (found.status, found == **expected) {
                    (0, _) => "none".to_owned(),
                    (_, true) => "whole".to_owned(),
                    (status, false) if status == expected.status => "torn".to_owned(),
                    (_, false) => status,
                }
            }
        }
    }
}

/// Runs one case so many times.
pub(crate) fn run(
    case: &Case,
    times: usize,
    target: &mut Target,
    scene: &Scene,
    board: &Board,
) -> Result<Litmus, AttestError> {
    let mut litmus = Litmus {
        case: case.name.clone(),
        section: case.section.to_owned(),
        rule: case.rule.to_owned(),
        allowed: case
            .allowed
            .iter()
            .map(|&outcome| outcome.to_owned())
            .collect(),
        seen: BTreeMap::new(),
        needs: (case.needs)(target).map(str::to_owned),
    };
    if litmus.needs.is_some() {
        return Ok(litmus);
    }
    let program = (case.program)(scene);
    litmus.needs = lacks(&program, target);
    if litmus.needs.is_some() {
        return Ok(litmus);
    }
    let room = match target.queue().mode {
        WorkQueueMode::Dedicated => target.queue().size,
        WorkQueueMode::Shared => target.queue().threshold.min(target.queue().size),
    };
    // The drain that empties the queue needs an entry as well.
    if program.submitted.len() >= usize::from(room) {
        litmus.needs = Some(format!(
            "{} entries of the queue",
            program.submitted.len() + 1
        ));
        return Ok(litmus);
    }
    for _ in 0..times {
        let outcome = once(&program, target, scene, board)?;
        *litmus.seen.entry(outcome).or_default() += 1;
    }
    Ok(litmus)
}

/// The first thing that a descriptor of the program needs, and the queue has not.
fn lacks(program: &Program, target: &Target) -> Option<String> {
    let queue = target.queue();
    let lacks = |d: &Descriptor| {
        let opcode = d.opcode().ok()?;
        let most = match opcode {
            Opcode::Batch => u64::from(queue.max_batch_size),
            _ => queue.max_transfer_size,
        };
        match (target.takes(opcode), u64::from(d.size) > most, opcode) {
            (false, ..) => Some(format!("the operation {opcode}")),
            (_, false, _) => None,
            (_, _, Opcode::Batch) => Some(format!("batches of {} descriptors", d.size)),
            _ => Some(format!("transfers of {} bytes", d.size)),
        }
    };
    if program.watched.is_none() && !target.takes(Opcode::Drain) {
        return Some("drains".to_owned());
    }
    let mut all = program.submitted.iter().chain(&program.list);
    all.find_map(lacks)
}

fn once(
    program: &Program,
    target: &mut Target,
    scene: &Scene,
    board: &Board,
) -> Result<String, AttestError> {
    scene.prepare(program);
    for descriptor in &program.submitted {
        // SAFETY: all that it and its list name is in the scene, which is looked at by atomic bytes until the queue
        // has been emptied.
        unsafe { target.submit(descriptor) }?;
    }
    let mut came = true;
    match program.watched {
        Some(record) => came = wait::record(scene.area(), record),
        None => board.settle(target)?,
    }
    let seen: Vec<String> = program.looks.iter().map(|look| scene.look(look)).collect();
    board.settle(target)?;
    Ok(match came {
        true => seen.join(" "),
        false => "no record".to_owned(),
    })
}
