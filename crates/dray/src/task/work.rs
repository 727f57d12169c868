//! What is to be done by one handle: an operation, on two runs of bytes or on lists of them.

use dray_spec::{CompletionRecord, Opcode};
use thiserror::Error;

use crate::parts::{goes_on, is_parallel, part};
use crate::{Operation, Outcome};

/// A run of bytes of a list; as `struct iovec` of C.
///
/// ```
/// let bytes = [0_u8; 16];
/// let segment = dray::task::Segment { base: bytes.as_ptr() as u64 as usize, bytes: 16 };
/// assert_eq!(size_of_val(&segment), 2 * size_of::<usize>());
/// ```
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// Address of its first byte.
    pub base: usize,
    /// Its length; 0 is possible.
    pub bytes: usize,
}

/// One side of an operation: as its descriptor says (`count` 0), or segments.
#[derive(Debug, Clone, Copy)]
struct Side {
    segments: *const Segment,
    count: usize,
}

/// An operation, and the segments that it is on, if they are not as its descriptor says.
///
/// ```
/// use dray::Operation;
/// use dray::task::{Segment, Work};
///
/// let [mut a, mut b] = [[1_u8; 8], [0; 8]];
/// let of = |bytes: &mut [u8]| Segment { base: bytes.as_mut_ptr().expose_provenance(), bytes: bytes.len() };
/// let (from, to) = ([of(&mut a[..3]), of(&mut a[3..])], [of(&mut b[..5]), of(&mut b[5..])]);
/// assert!(Work::on(Operation::memmove(0, 0, 0), Some(&from), Some(&to)).is_ok());
/// assert!(Work::on(Operation::memmove(0, 0, 0), Some(&from), Some(&to[..1])).is_err());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Work {
    operation: Operation,
    sources: Side,
    destinations: Side,
    tag: u16,
}

/// Why an operation is not done on segments.
///
/// ```
/// use dray::Operation;
/// use dray::task::{VectorError, Work};
///
/// let refused = Work::on(Operation::noop(), None, None).err();
/// assert!(matches!(refused, Some(VectorError::Operation { .. })));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum VectorError {
    /// It has no parts that begin at any byte.
    #[error("{opcode:?} is not possible on a list of segments")]
    Operation {
        /// The operation.
        opcode: Opcode,
    },
    /// Both sides of an operation have as many bytes.
    #[error("the sources have {sources} bytes, the destinations {destinations}")]
    Lengths {
        /// Bytes of all sources.
        sources: u64,
        /// Bytes of all destinations.
        destinations: u64,
    },
    /// An operation has at least 1 byte, and less than 4 GiB.
    #[error("an operation on {bytes} bytes: 1 to 4294967295 are possible")]
    Length {
        /// Bytes asked for.
        bytes: u64,
    },
}

impl From<Operation> for Work {
    fn from(operation: Operation) -> Work {
        let none = Side {
            segments: std::ptr::null(),
            count: 0,
        };
        Work {
            operation,
            sources: none,
            destinations: none,
            tag: 0,
        }
    }
}

impl Work {
    /// A copy, fill, comparison, comparison with a pattern, or CRC with or without a copy, on segments; a side
    /// that is `None` is at the address of the operation. How long it is follows from the segments. Those of one
    /// side need not end where those of the other do.
    ///
    /// Parts may be done at the same time, in any order: sources and destinations must not overlap. When one
    /// fails, or finds a difference, nothing behind it is begun, and its record tells how many bytes are done
    /// before it from the first on.
    ///
    /// # Errors
    /// Another operation, sides that are not of the same length, or no bytes.
    pub fn on(
        operation: Operation,
        sources: Option<&[Segment]>,
        destinations: Option<&[Segment]>,
    ) -> Result<Work, VectorError> {
        let opcode = operation.opcode();
        let (reads, writes) = match opcode {
            Opcode::Memmove | Opcode::Compare | Opcode::CopyCrc => (true, true),
            Opcode::CrcGenerate | Opcode::ComparePattern => (true, false),
            Opcode::Fill => (false, true),
            _ => return Err(VectorError::Operation { opcode }),
        };
        let total = |side: Option<&[Segment]>| {
            side.map(|side| {
                let each = side.iter().map(|segment| segment.bytes as u64);
                each.fold(0_u64, u64::saturating_add)
            })
        };
        let bytes = match (reads, writes, total(sources), total(destinations)) {
            (true, true, Some(sources), Some(destinations)) if sources != destinations => {
                return Err(VectorError::Lengths {
                    sources,
                    destinations,
                });
            }
            (true, _, Some(bytes), _) | (_, true, _, Some(bytes)) => bytes,
            _ => return Err(VectorError::Operation { opcode }),
        };
        let mut descriptor = *operation.descriptor();
        descriptor.size = match u32::try_from(bytes) {
            Ok(size) if size > 0 => size,
            _ => return Err(VectorError::Length { bytes }),
        };
        let side = |side: Option<&[Segment]>, used: bool| {
            let side = side.filter(|_| used).unwrap_or_default();
            Side {
                segments: side.as_ptr(),
                count: side.len(),
            }
        };
        Ok(Work {
            operation: Operation::of_valid(descriptor, operation.user_data()),
            sources: side(sources, reads),
            destinations: side(destinations, writes),
            tag: 0,
        })
    }

    /// The same, with a number of the caller's: [`Handle::tag`](super::Handle::tag) gives it.
    #[must_use]
    pub fn with_tag(mut self, tag: u16) -> Work {
        self.tag = tag;
        self
    }

    pub(super) fn tag(&self) -> u16 {
        self.tag
    }

    /// The operation, as long as all segments together.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    fn is_whole(&self) -> bool {
        self.sources.count == 0 && self.destinations.count == 0
    }

    /// Whether several parts of it can be in flight.
    pub(super) fn is_parallel(&self) -> bool {
        // A CRC goes on from that of the bytes before.
        let crc = matches!(
            self.operation.opcode(),
            Opcode::CrcGenerate | Opcode::CopyCrc
        );
        !crc && is_parallel(&self.apart())
    }

    /// The same operation on addresses that do not overlap, as segments of one do not.
    fn apart(&self) -> Operation {
        let mut d = *self.operation.descriptor();
        if self.operation.opcode() == Opcode::Memmove {
            (d.address1, d.address2) = (0, 1 << 40);
        }
        Operation::of_valid(d, self.operation.user_data())
    }
}

/// Where a side has got to.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    index: usize,
    within: usize,
}

impl Cursor {
    /// The address that is next, and the bytes there are at it; `None`: the side has no segments.
    ///
    /// # Safety
    /// The side's segments are readable, and not all of their bytes were passed.
    unsafe fn next(&mut self, side: &Side) -> Option<(u64, usize)> {
        if side.count == 0 {
            return None;
        }
        loop {
            debug_assert!(self.index < side.count, "a side has as many bytes as said");
            let at = side.segments.wrapping_add(self.index);
            // SAFETY: by the caller's promise.
            let segment = unsafe { at.read_unaligned() };
            if self.within < segment.bytes {
                let address = segment.base.wrapping_add(self.within) as u64;
                return Some((address, segment.bytes - self.within));
            }
            (self.index, self.within) = (self.index + 1, 0);
        }
    }
}

/// How far a handle's work has got. The driver's alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// Bytes that were begun.
    begun: u64,
    sources: Cursor,
    destinations: Cursor,
    /// Parts in flight.
    pub(super) in_flight: u32,
    /// It waits for a slot.
    pub(super) waits: bool,
    any_begun: bool,
    /// A part has failed, or found a difference: nothing is begun any more.
    stopped: bool,
    /// Offset of the part that `outcome` has the record of: the first that stopped, or the last.
    at: u64,
    outcome: Outcome,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress {
            begun: 0,
            sources: Cursor::default(),
            destinations: Cursor::default(),
            in_flight: 0,
            waits: false,
            any_begun: false,
            stopped: false,
            at: 0,
            outcome: Outcome::default(),
        }
    }

    /// Whether something is still to be begun.
    pub(super) fn is_left(&self, work: &Work) -> bool {
        !self.stopped && (!self.any_begun || self.begun < work.operation.len().into())
    }

    /// What was not begun is not executed any more.
    pub(super) fn withdraw(&mut self) {
        self.stopped = true;
        self.at = self.begun;
        self.outcome.completion.record = CompletionRecord::default();
        self.outcome.withdrawn = true;
    }

    /// The next part, and its offset.
    ///
    /// # Safety
    /// Something is left, and the segments are readable.
    pub(super) unsafe fn next(&mut self, work: &Work) -> (Operation, u64) {
        let operation = &work.operation;
        let first = !std::mem::replace(&mut self.any_begun, true);
        if work.is_whole() {
            self.begun = operation.len().into();
            return (*operation, 0);
        }
        // SAFETY: by the caller's promise, for both sides.
        let source = unsafe { self.sources.next(&work.sources) };
        // SAFETY: as above.
        let destination = unsafe { self.destinations.next(&work.destinations) };
        let left = u64::from(operation.len()) - self.begun;
        let bytes = [source, destination].into_iter().flatten();
        let bytes = bytes.fold(left, |most, (_, bytes)| most.min(bytes as u64));
        let before = (!first).then_some(&self.outcome.completion.record);
        let offset = self.begun;
        // The length was checked to be below 4 GiB.
        let one = part(operation, offset as u32, bytes as u32, before);
        self.begun += bytes;
        self.sources.within += bytes as usize;
        self.destinations.within += bytes as usize;
        let source = source.map(|(at, _)| at);
        let destination = destination.map(|(at, _)| at);
        (placed(&one, source, destination), offset)
    }

    /// A part has ended.
    pub(super) fn ended(&mut self, work: &Work, offset: u64, ended: &Outcome) {
        self.in_flight -= 1;
        if work.is_whole() {
            self.outcome = *ended;
            return;
        }
        let goes_on = goes_on(&work.operation, &ended.completion.record);
        let decides = match (self.stopped, goes_on) {
            (false, _) => true,
            (true, true) => false,
            (true, false) => offset < self.at,
        };
        let before = self.outcome;
        if decides {
            self.outcome.completion = ended.completion;
            self.outcome.queue_lost = ended.queue_lost;
            self.outcome.withdrawn = ended.withdrawn;
            self.at = offset;
        }
        let sum = &mut self.outcome;
        // It is the core if that has executed any of it.
        if before.core_reason.is_some() {
            sum.completion.executor = before.completion.executor;
        }
        sum.device_bytes += ended.device_bytes;
        sum.core_bytes += ended.core_bytes;
        sum.stripes += ended.stripes;
        sum.gathered |= ended.gathered;
        sum.resumed_faults += ended.resumed_faults;
        sum.retries += ended.retries;
        sum.moved += ended.moved;
        sum.core_reason = sum.core_reason.or(ended.core_reason);
        sum.queue_was_full |= ended.queue_was_full;
        self.stopped |= !goes_on;
    }

    /// The outcome of all parts.
    pub(super) fn outcome(&self, work: &Work) -> Outcome {
        let operation = &work.operation;
        let mut outcome = self.outcome;
        if !work.is_whole() {
            let record: CompletionRecord = outcome.completion.record;
            let record = crate::parts::finish(&work.apart(), self.at as u32, record);
            outcome.completion.record = record;
        }
        outcome.completion.user_data = operation.user_data();
        outcome.with_bytes_of(operation)
    }
}

/// A part at the addresses of its segments.
fn placed(part: &Operation, source: Option<u64>, destination: Option<u64>) -> Operation {
    let mut d = *part.descriptor();
    if let Some(source) = source {
        d.address1 = source;
    }
    if let Some(destination) = destination {
        d.address2 = destination;
    }
    Operation::of_valid(d, part.user_data())
}
