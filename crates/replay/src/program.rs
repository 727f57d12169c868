//! A recording as the steps of threads.

use std::collections::BTreeMap;

use dray_recording::{Flags, Kind, Operands, Queue, Recording, Region, Request, Thread, time};
use dray_spec::Opcode;

use crate::ReplayError;
use crate::operation::is_modelled;

/// What of a recording is replayed.
#[derive(Debug, Clone, Copy)]
pub struct ProgramOptions {
    /// The first so many requests, of all threads together in the order of their chunks' times.
    pub most_requests: u64,
}

/// A program that can be replayed.
#[derive(Debug, Clone)]
pub struct Program {
    /// What was recorded.
    pub kind: Kind,
    /// Time that requests took when they were recorded, of all together; 0 for those that had not ended.
    pub took_ns: u64,
    /// The threads.
    pub(crate) threads: Vec<Steps>,
    /// The work queues that steps name.
    pub(crate) queues: Vec<Queue>,
    /// What of the recording is not in it.
    pub left_out: LeftOut,
}

/// Requests of a recording that are not replayed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Operations that the model does not have, by name.
    pub operations: BTreeMap<&'static str, u64>,
    /// Behind the first requests.
    pub later: u64,
    /// Batches with no members, whose program was killed or whose list could not be read.
    pub empty_batches: u64,
    /// Requests that had failed when they were recorded; they are replayed.
    pub failed: u64,
}

/// One thread.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// When it began, from the beginning of the first thread.
    pub(crate) began_ns: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) parts: Vec<Part>,
}

/// A descriptor, a batch or a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// How many steps back the one is whose end the thread could have seen last; 0: none.
    pub(crate) seen: u32,
    /// How many steps back the one is that had its completion record before; 0: none.
    pub(crate) reuses: u32,
    pub(crate) think_ns: u64,
    pub(crate) idle_ns: u64,
    /// Time that a call took when it was recorded; 0 of descriptors, whose time is the device's.
    pub(crate) took_ns: u64,
    /// No recorded request before it has named the memory of one of its operands.
    pub(crate) is_first_use: bool,
    pub(crate) queue: u8,
    pub(crate) is_batch: bool,
    /// Its operations among the parts of the thread.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Bytes of all of them.
    pub(crate) bytes: u64,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    pub(crate) operation: Opcode,
    pub(crate) bytes: u64,
    pub(crate) operands: OperandKey,
    pub(crate) flags: u8,
}

/// [`Operands`], as a number that can be a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OperandKey {
    pub(crate) alignment: [u8; 2],
    pub(crate) known: [bool; 2],
}

impl OperandKey {
    fn of(operands: Operands) -> OperandKey {
        use dray_recording::{Alignment, Region};
        OperandKey {
            alignment: operands.alignment.map(|alignment| match alignment {
                Alignment::Page => 0,
                Alignment::Line => 64,
                Alignment::Other => 8,
            }),
            known: operands
                .region
                .map(|region| matches!(region, Region::Reused | Region::Shared)),
        }
    }
}

impl Program {
    /// Of a recording.
    ///
    /// # Errors
    /// No request of it can be replayed.
    pub fn of(recording: &Recording, options: ProgramOptions) -> Result<Program, ReplayError> {
        let mut left_out = LeftOut::default();
        let taken = shares(recording, options.most_requests);
        let mut threads = Vec::new();
        let mut took = 0;
        for (thread, most) in recording.threads.iter().zip(taken) {
            let requests = thread.requests[..most].iter();
            let requests = requests.filter(|request| !request.is_member());
            took += requests
                .map(|request| time::to_ns(request.took))
                .sum::<u64>();
            left_out.later += (thread.requests.len() - most) as u64;
            let kind = recording.header.kind;
            let steps = steps(thread, most, kind, &mut left_out);
            if !steps.steps.is_empty() {
                threads.push(steps);
            }
        }
        let Some(first) = threads.iter().map(|thread| thread.began_ns).min() else {
            return Err(ReplayError::Empty);
        };
        for thread in &mut threads {
            thread.began_ns -= first;
        }
        Ok(Program {
            kind: recording.header.kind,
            took_ns: took,
            threads,
            queues: recording.header.queues.clone(),
            left_out,
        })
    }

    /// Threads that are replayed.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Descriptors, batches counted once, or calls.
    pub fn requests(&self) -> u64 {
        self.threads
            .iter()
            .map(|thread| thread.steps.len() as u64)
            .sum()
    }

    /// Bytes of all operations.
    pub fn bytes(&self) -> u64 {
        let steps = self.threads.iter().flat_map(|thread| &thread.steps);
        steps.map(|step| step.bytes).sum()
    }

    /// CPU time that all threads used between requests.
    pub fn think_ns(&self) -> u64 {
        let steps = self.threads.iter().flat_map(|thread| &thread.steps);
        steps.map(|step| step.think_ns).sum()
    }

    /// The largest batch.
    pub fn largest_batch(&self) -> u32 {
        let steps = self.threads.iter().flat_map(|thread| &thread.steps);
        let batches = steps.filter(|step| step.is_batch);
        batches.map(|step| step.count).max().unwrap_or(1)
    }

    /// Requests, beyond the first of each thread, whose completion record no earlier one had: what they have waited for is not
    /// known.
    pub fn unordered(&self) -> u64 {
        let each = self.threads.iter().map(|thread| {
            let later = thread.steps.iter().skip(1);
            later.filter(|step| step.reuses == 0).count() as u64
        });
        each.sum()
    }

    /// Threads that use more than one work queue.
    pub fn of_several_queues(&self) -> usize {
        let several = |thread: &&Steps| {
            let first = thread.steps.first().map(|step| step.queue);
            thread.steps.iter().any(|step| Some(step.queue) != first)
        };
        self.threads.iter().filter(several).count()
    }
}

/// How many requests of each thread are among the first so many: threads that began together are cut at the same share.
fn shares(recording: &Recording, most: u64) -> Vec<usize> {
    let all = recording.requests();
    let share = |thread: &Thread| match all <= most {
        true => thread.requests.len(),
        false => {
            let part = u128::from(most) * thread.requests.len() as u128 / u128::from(all.max(1));
            (part as usize).max(1).min(thread.requests.len())
        }
    };
    recording.threads.iter().map(share).collect()
}

/// The steps of a thread, of its first so many requests.
fn steps(thread: &Thread, most: usize, kind: Kind, left_out: &mut LeftOut) -> Steps {
    let requests = &thread.requests[..most];
    // Members come anywhere behind their batch.
    let mut members: BTreeMap<usize, Vec<Part>> = BTreeMap::new();
    for (index, request) in requests.iter().enumerate() {
        if request.is_member()
            && let Some(part) = part(request, left_out)
        {
            let batch = index - request.seen as usize;
            members.entry(batch).or_default().push(part);
        }
    }
    let think = |request: &Request| time::to_ns(request.think);
    let first = requests.first().map_or(0, think);
    let mut found = Steps {
        pid: thread.pid,
        tid: thread.tid,
        began_ns: thread.began_ns.saturating_sub(first),
        steps: Vec::new(),
        parts: Vec::new(),
    };
    // Step by request: that, or the last one before it, if there is one.
    let mut step_of: Vec<Option<u32>> = Vec::with_capacity(requests.len());
    // The steps that requests which were left out have waited for: the next one does.
    let (mut seen, mut reused) = (None, None);
    let (mut think_ns, mut idle_ns) = (0, 0);
    for (index, request) in requests.iter().enumerate() {
        let before = found.steps.len() as u32;
        if request.is_member() {
            step_of.push(before.checked_sub(1));
            continue;
        }
        think_ns += think(request);
        idle_ns += time::to_ns(request.idle);
        let is_batch = request.operation == u8::from(Opcode::Batch);
        let parts = match is_batch {
            true => members.remove(&index).unwrap_or_default(),
            false => part(request, left_out).into_iter().collect(),
        };
        let named = |distance: u32| match distance {
            0 => None,
            distance => step_of[index - distance as usize],
        };
        seen = seen.max(named(request.seen));
        reused = reused.max(named(request.reuses));
        if parts.is_empty() {
            step_of.push(before.checked_sub(1));
            // The time that the thread has used is the next one's.
            left_out.empty_batches += u64::from(is_batch);
            continue;
        }
        step_of.push(Some(before));
        let back = |step: Option<u32>| step.map_or(0, |step| before - step);
        found.steps.push(Step {
            seen: back(seen.take()),
            reuses: back(reused.take()),
            think_ns: std::mem::take(&mut think_ns),
            idle_ns: std::mem::take(&mut idle_ns),
            took_ns: took(kind, request),
            is_first_use: request.operands.region.contains(&Region::Fresh),
            queue: request.queue,
            is_batch,
            first: found.parts.len() as u32,
            count: parts.len() as u32,
            bytes: parts.iter().map(|part| part.bytes).sum(),
        });
        found.parts.extend(parts);
    }
    found
}

/// Time that a call took; that of a descriptor is the device's.
fn took(kind: Kind, request: &Request) -> u64 {
    match kind {
        Kind::Calls => time::to_ns(request.took),
        Kind::Descriptors => 0,
    }
}

/// The largest operation that is replayed: a queue takes thousands of descriptors for it.
const MOST_OPERATION_BYTES: u64 = 64 << 30;

/// The operation of a request; `None`: the model does not have it.
fn part(request: &Request, left_out: &mut LeftOut) -> Option<Part> {
    left_out.failed += u64::from(request.flags.has(Flags::FAILED));
    let operation = Opcode::try_from(request.operation).ok()?;
    if !is_modelled(operation) {
        *left_out.operations.entry(operation.name()).or_default() += 1;
        return None;
    }
    if request.bytes() > MOST_OPERATION_BYTES {
        *left_out.operations.entry("larger than 64 GiB").or_default() += 1;
        return None;
    }
    Some(Part {
        operation,
        bytes: match operation {
            Opcode::Noop => 0,
            _ => request.bytes(),
        },
        operands: OperandKey::of(request.operands),
        flags: request.flags.0,
    })
}
