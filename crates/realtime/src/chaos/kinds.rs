//! What an adversary may do.

use std::fmt;
use std::str::FromStr;

use super::ChaosError;

/// One kind of disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Descriptors and lists of batches are read, and sources with them, late and in any order that nothing forbids.
    Delay,
    /// Records are written long after the data.
    Record,
    /// The lines of a destination are written in any order, and some of them late.
    Lines,
    /// A page fault stops a descriptor that does not block on faults, at any page of an operand.
    Fault,
    /// A shared queue answers retry for a while.
    Retry,
    /// A descriptor ends with an error that is no fault of its program: a hardware error, a page request that is refused.
    Error,
    /// Interrupts are lost, late or sent twice.
    Interrupt,
    /// The pages of the records of many descriptors in a row are not there: the event log takes the records, and is full.
    Log,
    /// A queue is disabled, and enabled again some time later.
    Disable,
    /// The descriptors of a queue are aborted.
    Abort,
    /// The device halts, and is reset some time later.
    Halt,
    /// The device halts for good.
    Dead,
    /// The record is there when the instruction that submits returns.
    Prompt,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 13] = [
        Kind::Delay,
        Kind::Record,
        Kind::Lines,
        Kind::Fault,
        Kind::Retry,
        Kind::Error,
        Kind::Interrupt,
        Kind::Log,
        Kind::Disable,
        Kind::Abort,
        Kind::Halt,
        Kind::Dead,
        Kind::Prompt,
    ];

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Delay => "delay",
            Kind::Record => "record",
            Kind::Lines => "lines",
            Kind::Fault => "fault",
            Kind::Retry => "retry",
            Kind::Error => "error",
            Kind::Interrupt => "interrupt",
            Kind::Log => "log",
            Kind::Disable => "disable",
            Kind::Abort => "abort",
            Kind::Halt => "halt",
            Kind::Dead => "dead",
            Kind::Prompt => "prompt",
        }
    }
}

/// Several kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// None: descriptors are scheduled as without an adversary.
    pub const NONE: Kinds = Kinds(0);
    /// What every program must expect.
    pub const LEGAL: Kinds = Kinds::NONE
        .with(Kind::Delay)
        .with(Kind::Record)
        .with(Kind::Lines)
        .with(Kind::Fault)
        .with(Kind::Retry)
        .with(Kind::Log);
    /// Errors too, that hardware that works reports hardly ever.
    pub const ERRORS: Kinds = Kinds::LEGAL.with(Kind::Error);
    /// Descriptors get lost, for whoever administers the device disables, aborts and resets; the device comes back.
    pub const OUTAGES: Kinds = Kinds::LEGAL
        .with(Kind::Disable)
        .with(Kind::Abort)
        .with(Kind::Halt);
    /// Also what only hardware does that is broken.
    pub const BROKEN: Kinds = Kinds::ERRORS.with(Kind::Interrupt);

    /// These and another one.
    #[must_use]
    pub const fn with(self, kind: Kind) -> Kinds {
        Kinds(self.0 | 1 << kind as u8)
    }

    /// These but for one.
    #[must_use]
    pub const fn without(self, kind: Kind) -> Kinds {
        Kinds(self.0 & !(1 << kind as u8))
    }

    /// Whether one is among them.
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    /// Those that are in it.
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        let all = Kind::ALL.into_iter();
        all.filter(move |kind| self.contains(*kind))
    }
}

/// Sets with a name.
const PROFILES: [(&str, Kinds); 5] = [
    ("none", Kinds::NONE),
    ("legal", Kinds::LEGAL),
    ("errors", Kinds::ERRORS),
    ("outages", Kinds::OUTAGES),
    ("broken-hardware", Kinds::BROKEN),
];

/// The words for sets.
pub(super) fn profiles() -> String {
    PROFILES.map(|(name, _)| name).join(", ")
}

/// The words for kinds.
pub(super) fn names() -> String {
    Kind::ALL.map(Kind::name).join(", ")
}

impl FromStr for Kinds {
    type Err = ChaosError;

    fn from_str(text: &str) -> Result<Kinds, ChaosError> {
        if let Some((_, kinds)) = PROFILES.iter().find(|(name, _)| *name == text) {
            return Ok(*kinds);
        }
        text.split('+').try_fold(Kinds::NONE, |kinds, word| {
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == word);
            let kind = kind.ok_or_else(|| ChaosError::Kind(word.into()))?;
            Ok(kinds.with(kind))
        })
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = PROFILES.iter().find(|(_, kinds)| kinds == self) {
            return f.write_str(name);
        }
        let names: Vec<&str> = self.iter().map(Kind::name).collect();
        f.write_str(&names.join("+"))
    }
}
