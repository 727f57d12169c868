//! What is found, as it is said.

use std::fmt;
use std::ops::Range;

use dray_spec::{Descriptor, Opcode, Status};

use crate::sites::Site;

/// A rule that programs break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Two descriptors in flight touch the same bytes, one writes, and nothing orders them.
    Overlap,
    /// A completion record is shared by two in flight, not zero at submission, or written by the program in flight.
    Record,
    /// What follows a partial completion is not the rest.
    Resume,
    /// A descriptor that the device refuses.
    Field,
    /// Work was in flight when its process or queue ended.
    Close,
    /// A dedicated queue was overrun.
    Lost,
    /// A program has written to a source in flight.
    Source,
    /// A program has written to a destination in flight.
    Destination,
    /// A program has unmapped or given back memory in flight.
    Lifetime,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 9] = [
        Class::Overlap,
        Class::Record,
        Class::Resume,
        Class::Field,
        Class::Close,
        Class::Lost,
        Class::Source,
        Class::Destination,
        Class::Lifetime,
    ];

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Class::Overlap => "overlap",
            Class::Record => "record",
            Class::Resume => "resume",
            Class::Field => "field",
            Class::Close => "close",
            Class::Lost => "lost",
            Class::Source => "source",
            Class::Destination => "destination",
            Class::Lifetime => "lifetime",
        }
    }

    /// The rule, with its place in the specification.
    pub fn rule(self) -> &'static str {
        match self {
            Class::Overlap => {
                "descriptors in flight run in any order, and at once; a fence in a batch, or a completion that was seen, orders them (spec 3.9)"
            }
            Class::Record => {
                "a record belongs to one descriptor until it is written, and its status is 0 before that: software polls it (spec 3.5, 8.2)"
            }
            Class::Resume => {
                "bytes_completed says how far the operation got; with result 1 a move went from its end to its start (spec 8.2.4, 8.3.4)"
            }
            Class::Field => "a descriptor with such a field is not executed (spec 5.4 to 5.6)",
            Class::Close => {
                "the device may write to memory that a descriptor names until its record is written, or until a drain has ended (spec 3.15)"
            }
            Class::Lost => {
                "MOVDIR64B to a dedicated queue that is full loses the descriptor: software counts what is in flight (spec 3.4.1)"
            }
            Class::Source => {
                "the device may read a source at any time until the record is written (spec 3.9)"
            }
            Class::Destination => {
                "the device may write a destination at any time until the record is written, in any order (spec 3.9)"
            }
            Class::Lifetime => {
                "the device may access what a descriptor names until its record is written (spec 3.9, 3.15)"
            }
        }
    }

    /// How a program keeps it.
    pub fn fix(self) -> &'static str {
        match self {
            Class::Overlap => {
                "wait for the first one's record, or put both into one batch with a fence"
            }
            Class::Record => {
                "give each descriptor in flight a record of its own, clear its status before each submission, and leave it alone until the device has written it"
            }
            Class::Resume => {
                "with result 0 go on behind the bytes that are done; with result 1 submit the first size - bytes_completed bytes"
            }
            Class::Field => {
                "set the field that the status names to what the operation and the queue allow"
            }
            Class::Source | Class::Destination => {
                "leave the memory alone until the record is there, or until a fence, a drain or the record of the batch says so"
            }
            Class::Lifetime => "wait for the record before munmap, mremap, madvise or free",
            Class::Close => {
                "wait for all records, or drain the queue, before the memory, the file or the process goes"
            }
            Class::Lost => {
                "keep no more descriptors in flight than the queue has entries (wq size)"
            }
        }
    }
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which rule.
    pub class: Class,
    /// Whose descriptor it is, where that is known.
    pub pid: Option<u32>,
    /// Work queue or device.
    pub place: String,
    /// The descriptor, where there is one.
    pub descriptor: Option<Descriptor>,
    /// Where it was submitted, where that is known.
    pub site: Option<Site>,
    /// The other one of a race.
    pub other: Option<Descriptor>,
    /// Where that was submitted; without another descriptor, where the program took memory in flight away.
    pub other_site: Option<Site>,
    /// What is wrong.
    pub detail: String,
    /// How the program keeps the rule.
    pub mend: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.pid {
            Some(pid) => format!("process {pid}"),
            None => "a process".to_owned(),
        };
        writeln!(
            f,
            "dray sanitize: {}: {who}, {}: {}",
            self.class.name(),
            self.place,
            self.detail
        )?;
        if let Some(descriptor) = &self.descriptor {
            writeln!(f, "  {}", described(descriptor))?;
            called(f, "submitted", self.site.as_ref())?;
        }
        match &self.other {
            Some(other) => {
                writeln!(f, "  and {}", described(other))?;
                called(f, "submitted", self.other_site.as_ref())?;
            }
            None => called(f, "taken away", self.other_site.as_ref())?,
        }
        writeln!(f, "  rule: {}", self.class.rule())?;
        write!(f, "  mend: {}", self.mend)
    }
}

/// A line for each function on the way to a submission, or another call.
fn called(f: &mut fmt::Formatter<'_>, did: &str, site: Option<&Site>) -> fmt::Result {
    let Some(site) = site else {
        return Ok(());
    };
    writeln!(f, "  {did} by thread {}", site.thread)?;
    for (number, frame) in site.frames.iter().enumerate() {
        let frame = frame.to_string();
        writeln!(f, "    #{number} {}", dray_output::shown(&frame))?;
    }
    Ok(())
}

/// A descriptor in a line.
fn described(d: &Descriptor) -> String {
    let name = match d.opcode() {
        Ok(opcode) => opcode.name().to_owned(),
        Err(_) => format!("operation {:#04x}", d.opcode_byte()),
    };
    let operands = match d.opcode() {
        Ok(Opcode::Noop | Opcode::Drain) => String::new(),
        Ok(Opcode::Batch) => format!(" of {} at {:#x}", d.size, d.address1),
        _ => format!(
            ", {} bytes, {:#x} and {:#x}",
            d.size, d.address1, d.address2
        ),
    };
    format!(
        "{name}{operands}, flags {:#x}, record at {:#x}",
        d.flags().bits(),
        d.completion_addr
    )
}

/// A range in words.
pub(super) fn range(range: &Range<u64>) -> String {
    format!("{} bytes at {:#x}", range.end - range.start, range.start)
}

/// What to do about an error status: those from 0x20 to 0x22 say nothing about a field.
pub(super) fn mend(status: Status) -> &'static str {
    match status {
        Status::HARDWARE_ERROR_READ | Status::HARDWARE_ERROR_WRITE | Status::TRANSLATION_FAIL => {
            "keep the memory that the descriptor names, and the process, until its record is written; on hardware the memory or its translation may be broken, too (kernel log)"
        }
        _ => Class::Field.fix(),
    }
}

/// A status in words.
pub(super) fn status(status: Status) -> String {
    format!(
        "{} ({:#04x}): {}",
        status.name(),
        status.0,
        status.describe()
    )
}
