//! Channels: what is enqueued, and which mover gets it.

use std::collections::VecDeque;
use std::time::Instant;

use dray_device::SOFTWARE_OPERATIONS;
use dray_placement::{Cut, Rest, Threshold};
use dray_spec::{CompletionRecord, Flags, Opcode};

use super::cost::{ClassIndex, Learned, Verdict};
use super::parts_table::{NONE, Part, Parts};
use super::requirements::{check, parts, together};
use super::{
    ChannelsError, ChannelsOptions, Choice, Member, Outcome, PageFaultPolicy, QueueLost, Reason,
    Require,
};
use crate::parts::{granule, is_overlapping_move, is_parallel, part};
use crate::stalled_faults::StalledFaults;
use crate::{Capabilities, Completion, CpuMover, Executor, Mover, Operation, Ticket};

/// Outcomes that one call of a mover gives at most.
const POLLED_AT_ONCE: usize = 32;

/// A mover, and what it has been given.
#[derive(Debug)]
pub(super) struct QueueState<M> {
    /// It resumes what meets a page fault by itself.
    pub(super) resumes: bool,
    pub(super) mover: M,
    pub(super) executor: Option<Executor>,
    pub(super) capabilities: Capabilities,
    pub(super) is_local: bool,
    /// Operations enqueued or in flight.
    pub(super) in_flight: usize,
    /// Their bytes.
    pub(super) load: u64,
    /// Submissions in a row that left something, without a completion between them.
    pub(super) stuck: u32,
    /// Its place among the movers given.
    pub(super) channel: usize,
    /// Why it gets nothing more.
    pub(super) lost: Option<QueueLost>,
}

/// An operation that is under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) operation: Operation,
    pub(super) outcome: Outcome,
    pub(super) first: u32,
    /// Parts that have not ended.
    pub(super) left: u32,
    /// Where its time is learned, and when it was enqueued.
    pub(super) timed: Option<(ClassIndex, u64)>,
}

/// Several movers as one.
///
/// Large operations are striped over channels, those of the local node first; small ones that were
/// enqueued before the same [`submit`](Mover::submit) are gathered into batches; what each policy has done
/// is in the [`Outcome`]. Operations without order between them, as with any mover: a batch of the
/// caller's stays one batch on one channel. Nothing is allocated after [`Channels::new`].
///
/// ```
/// use dray::channels::{Channels, ChannelsOptions, Choice, Reason, Member, Outcome};
/// use dray::{CpuMover, Mover, Operation};
///
/// let members = [0, 1].map(|node| Member { mover: CpuMover::new(16), numa_node: Some(node) });
/// let options = ChannelsOptions {
///     choice: Choice::Threshold { device_from_bytes: 4096 },
///     ..ChannelsOptions::default()
/// };
/// let mut channels = Channels::new(members, options)?;
/// let (source, target) = (vec![7_u8; 1 << 20], vec![0_u8; 1 << 20]);
/// let from = source.as_ptr().expose_provenance() as u64;
/// let to = target.as_ptr().expose_provenance() as u64;
/// // SAFETY: both buffers outlive the operations, and are not accessed meanwhile.
/// unsafe { channels.enqueue(&Operation::memmove(from, to, 1 << 20)) }?;
/// // SAFETY: as above.
/// unsafe { channels.enqueue(&Operation::crc(from, 64, 0)) }?;
/// channels.submit();
/// let mut ended = [Outcome::default(); 2];
/// assert_eq!(channels.poll_outcomes(&mut ended), 2);
/// assert_eq!(ended[0].core_reason, Some(Reason::BelowThreshold));
/// assert_eq!((ended[1].device_bytes, ended[1].stripes), (1 << 20, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Channels<M: Mover> {
    pub(super) queues: Vec<QueueState<M>>,
    pub(super) options: ChannelsOptions,
    /// The core may execute operations: no other executor is required, and the memory is this process's.
    pub(super) core_allowed: bool,
    pub(super) capabilities: Capabilities,
    /// Channels whose queues are lost.
    pub(super) lost_queues: usize,
    /// Where completions are looked at.
    pub(super) seen: Vec<Outcome>,
    pub(super) slots: Vec<Slot>,
    pub(super) free: Vec<u32>,
    pub(super) parts: Parts,
    /// Slots whose operations the core executes.
    pub(super) on_core: VecDeque<u32>,
    /// Parts that travel alone.
    pub(super) large: VecDeque<u32>,
    /// Parts that may travel together.
    pub(super) small: VecDeque<u32>,
    /// Members of the caller's batches, and how many each has.
    pub(super) grouped: VecDeque<u32>,
    pub(super) groups: VecDeque<u32>,
    /// Executes the caller's batches on the core.
    pub(super) core: CpuMover,
    pub(super) batch: Vec<Operation>,
    pub(super) ended: VecDeque<Outcome>,
    /// While the caller withdraws operations: how many were taken back so far.
    pub(super) withdrawing: Option<usize>,
    pub(super) next_ticket: u32,
    pub(super) learned: Option<Learned>,
    pub(super) start: Instant,
    /// When a device last completed something, in nanoseconds.
    pub(super) last_end: u64,
}

impl<M: Mover> Channels<M> {
    /// Channels on these movers, which nothing else uses.
    ///
    /// # Errors
    /// Options that exclude each other, or that a mover cannot keep; see [`ChannelsError`].
    pub fn new(
        members: impl IntoIterator<Item = Member<M>>,
        options: ChannelsOptions,
    ) -> Result<Channels<M>, ChannelsError> {
        let most_faults = match options.page_fault {
            PageFaultPolicy::TouchAndResume { most } => most,
            _ => 0,
        };
        let queue = |(channel, mut member): (usize, Member<M>)| QueueState {
            resumes: member.mover.resume_page_faults(most_faults),
            executor: member.mover.executor(),
            capabilities: member.mover.capabilities(),
            is_local: match (member.numa_node, options.local_node) {
                (Some(node), Some(local)) => node == local,
                _ => true,
            },
            mover: member.mover,
            in_flight: 0,
            load: 0,
            stuck: 0,
            channel,
            lost: None,
        };
        let mut queues: Vec<QueueState<M>> = members.into_iter().enumerate().map(queue).collect();
        check(&queues, &options)?;
        queues.sort_by_key(|queue| !queue.is_local);
        let in_process =
            |queue: &QueueState<M>| queue.executor.is_some_and(Executor::is_of_this_process);
        let core_allowed = options.require == Require::Any && queues.iter().all(in_process);
        let slots = options.slots;
        let empty = Slot {
            operation: Operation::noop(),
            outcome: Outcome::default(),
            first: NONE,
            left: 0,
            timed: None,
        };
        let parts = parts(&options, queues.len());
        Ok(Channels {
            capabilities: together(&queues, core_allowed, slots),
            queues,
            options,
            core_allowed,
            lost_queues: 0,
            seen: vec![Outcome::default(); POLLED_AT_ONCE],
            slots: vec![empty; slots],
            free: (0..slots as u32).rev().collect(),
            parts: Parts::new(parts),
            on_core: VecDeque::with_capacity(slots),
            large: VecDeque::with_capacity(parts),
            small: VecDeque::with_capacity(parts),
            grouped: VecDeque::with_capacity(slots),
            groups: VecDeque::with_capacity(slots),
            core: match options.check_core {
                true => CpuMover::checked(slots),
                false => CpuMover::new(slots),
            },
            batch: Vec::with_capacity(slots),
            ended: VecDeque::with_capacity(slots),
            withdrawing: None,
            next_ticket: 0,
            learned: match options.choice {
                Choice::Learned(prior) => Some(Learned::new(prior)),
                _ => None,
            },
            start: Instant::now(),
            last_end: 0,
        })
    }

    /// Movers, those of the local node first.
    pub fn movers(&self) -> impl Iterator<Item = &M> {
        self.queues.iter().map(|queue| &queue.mover)
    }

    /// The movers, to be used one by one while no operation of these channels is under way; `None`: one is,
    /// or its outcome was not taken. All that is enqueued on them must have been polled before the channels
    /// are used again.
    pub fn idle_movers(&mut self) -> Option<Vec<&mut M>> {
        let idle = self.free.len() == self.slots.len() && self.ended.is_empty();
        idle.then(|| {
            self.queues
                .iter_mut()
                .map(|queue| &mut queue.mover)
                .collect()
        })
    }

    /// What operations have taken so far, if the choice is to be learned.
    pub fn learned(&self) -> Option<&Learned> {
        self.learned.as_ref()
    }

    pub(super) fn nanoseconds(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Operations that can be enqueued: outcomes that were not polled count as well.
    pub(super) fn room(&self) -> usize {
        self.free.len() - self.ended.len()
    }

    /// A slot for an operation; one must be free.
    pub(super) fn open(&mut self, operation: &Operation) -> (u32, Ticket) {
        let slot = self.free.pop().expect("the caller has asked for room");
        let ticket = Ticket(self.next_ticket);
        self.next_ticket = self.next_ticket.wrapping_add(1);
        self.slots[slot as usize] = Slot {
            operation: *operation,
            outcome: Outcome::of(Completion {
                ticket,
                user_data: operation.user_data(),
                executor: self.first_executor(),
                ..Completion::default()
            }),
            first: NONE,
            left: 0,
            timed: None,
        };
        (slot, ticket)
    }

    /// Whether a channel leads to a device that executes it.
    pub(super) fn has_device(&self, operation: &Operation) -> bool {
        let mut queues = self.queues.iter().filter(|queue| queue.lost.is_none());
        queues.any(|queue| takes(queue, operation))
    }

    /// Why the core executes an operation; `None`: a device does.
    pub(super) fn core_reason(&mut self, slot: u32) -> Option<Reason> {
        let operation = self.slots[slot as usize].operation;
        if self.queues.is_empty() {
            return Some(Reason::NoDevice);
        }
        let possible = self.core_allowed && SOFTWARE_OPERATIONS.supports(operation.opcode() as u8);
        if !possible {
            return None;
        }
        if !self.has_device(&operation) {
            return match self.cut_off(&operation) {
                Some(_) => self.core_replaces(&operation).then_some(Reason::QueueLost),
                None => Some(Reason::NoDevice),
            };
        }
        let bytes = operation.len();
        let depth = (self.slots.len() - self.free.len()) as u32;
        let batch = match bytes < self.options.gather_below_bytes {
            true => (self.small.len() as u32 + 1).min(self.options.max_gathered.max(1)),
            false => 1,
        };
        match self.options.choice {
            Choice::Device => None,
            Choice::Core => Some(Reason::Chosen),
            Choice::Threshold { device_from_bytes } => {
                Threshold::bytes(device_from_bytes.into()).reason(bytes.into())
            }
            Choice::Cost(model) => {
                let device = model.device_is_faster(bytes, depth, batch);
                (!device).then_some(Reason::Faster)
            }
            Choice::Learned(_) => {
                let now = self.nanoseconds();
                let learned = self.learned.as_mut()?;
                let class = Learned::class(operation.opcode(), bytes, depth);
                self.slots[slot as usize].timed = Some((class, now));
                match learned.decide(class, bytes, depth, batch) {
                    Verdict::Device => None,
                    Verdict::Core => Some(Reason::Faster),
                    Verdict::TryCore => Some(Reason::Tried),
                }
            }
        }
    }

    /// As devices get it: with what the page-fault policy asks of them.
    pub(super) fn for_device(&self, operation: &Operation) -> Operation {
        let opcode = operation.opcode();
        let blocks = self.options.page_fault == PageFaultPolicy::BlockOnFault
            && !matches!(opcode, Opcode::Noop | Opcode::Drain | Opcode::UpdateWindow);
        match blocks {
            true => operation.with_block_on_fault(),
            false => *operation,
        }
    }

    /// Who executes operations, as far as nothing else is known of one.
    fn first_executor(&self) -> Executor {
        let first = self.queues.first().and_then(|queue| queue.executor);
        first.unwrap_or(Executor::Cpu)
    }

    /// Divides an operation into stripes, and queues them.
    pub(super) fn stripe(&mut self, slot: u32) {
        let operation = self.for_device(&self.slots[slot as usize].operation);
        let opcode = operation.opcode();
        let len = operation.len();
        if len / 2 >= self.smallest_part() {
            // What breaks a rule as a whole must not be divided into parts that break none.
            let checked = dray_device::check_operands(opcode, operation.descriptor());
            if let Err(status) = checked {
                let record = CompletionRecord::with_status(status);
                return self.end_slot(slot, record, self.first_executor());
            }
        }
        let mut stripes = 1;
        if len / 2 >= self.options.stripe_bytes.max(1) && is_parallel(&operation) {
            let usable = self.queues.iter();
            let usable = usable.filter(|queue| queue.lost.is_none() && takes(queue, &operation));
            let most = usable.count().min(self.options.max_stripes);
            let most = most.min(self.parts.available());
            stripes = (len / self.options.stripe_bytes.max(1))
                .min(most as u32)
                .max(1);
        }
        let gathered = stripes == 1 && self.is_gathered(&operation);
        let cut = match stripes {
            1 => Cut::WHOLE,
            // Whole pages, or whole blocks.
            _ => Cut::equal(len.into(), stripes.into(), granule(&operation).unwrap_or(1)),
        };
        let mut rest = Rest::new(len.into());
        let mut last = NONE;
        loop {
            let piece = rest.next(cut);
            let (offset, bytes) = (piece.offset as u32, piece.bytes as u32);
            let stripe = match stripes {
                1 => operation,
                _ => part(&operation, offset, bytes, None),
            };
            let index = self.parts.add(Part {
                slot,
                next: NONE,
                operation: stripe,
                offset,
                done: 0,
                in_flight: 0,
                faults: StalledFaults::default(),
                record: CompletionRecord::default(),
                accepted: false,
                in_batch: false,
            });
            match last {
                NONE => self.slots[slot as usize].first = index,
                last => self.parts.get_mut(last).next = index,
            }
            last = index;
            self.slots[slot as usize].left += 1;
            match gathered {
                true => self.small.push_back(index),
                false => self.large.push_back(index),
            }
            rest.advance(piece.bytes);
            if rest.left() == 0 {
                return;
            }
        }
    }

    /// Operations of twice as many bytes, or more, may be divided.
    fn smallest_part(&self) -> u32 {
        let most = self.capabilities.max_transfer_bytes / 2;
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        most.min(self.options.stripe_bytes).max(1)
    }

    fn is_gathered(&self, operation: &Operation) -> bool {
        let opcode = operation.opcode();
        operation.len() < self.options.gather_below_bytes
            && self.options.max_gathered > 1
            // A fence of its own means nothing, and must not mean something in a batch.
            && !operation.descriptor().flags().contains(Flags::FENCE)
            && SOFTWARE_OPERATIONS.supports(opcode as u8)
    }
}

/// Whether a channel's device executes an operation, in parts if it must.
pub(super) fn takes<M>(queue: &QueueState<M>, operation: &Operation) -> bool {
    let dividing = Capabilities {
        divides: true,
        ..queue.capabilities
    };
    dividing.supports(operation)
        && (queue.capabilities.general.overlapping_copy() || !is_overlapping_move(operation))
}
