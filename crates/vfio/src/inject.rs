//! Faults that are injected into a door, to see how a driver handles them.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dray_spec::registers::{
    CMD, CMDSTATUS, Command, CommandError, CommandRegister, CommandStatus, INTCAUSE, IntCause,
    ResetType,
};
use thiserror::Error;

/// A fault to have: once, or page faults again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Injection {
    /// The device halts when so many descriptors have been written to portals.
    Halt {
        /// The reset that brings it back.
        reset: ResetType,
        /// Descriptors before it.
        after: u64,
    },
    /// The next command of this kind ends with an error, and is not carried out.
    Command {
        /// Which command.
        command: Command,
        /// How it ends.
        error: CommandError,
    },
    /// Each so many-th place that an operation is to write to faults: its record has a page fault.
    PageFault {
        /// One of so many.
        every: NonZeroU64,
    },
}

/// A text that is no injection.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is none of halt[-flr]@DESCRIPTORS, command CODE=ERROR as in 6=0x21, and fault/N")]
pub struct BadInjection(String);

impl FromStr for Injection {
    type Err = BadInjection;

    /// `halt@100`, `halt-flr@100`, `6=0x21`: command 6, Enable WQ, ends with error 0x21; `fault/100`:
    /// each hundredth write faults.
    fn from_str(text: &str) -> Result<Injection, BadInjection> {
        let bad = || BadInjection(text.to_owned());
        if let Some(every) = text.strip_prefix("fault/") {
            let every = every.parse().map_err(|_| bad())?;
            return Ok(Injection::PageFault { every });
        }
        if let Some((what, after)) = text.split_once('@') {
            let reset = match what {
                "halt" => ResetType::Command,
                "halt-flr" => ResetType::FunctionLevel,
                _ => return Err(bad()),
            };
            let after = after.parse().map_err(|_| bad())?;
            return Ok(Injection::Halt { reset, after });
        }
        let (command, error) = text.split_once('=').ok_or_else(bad)?;
        let code = command.parse().map_err(|_| bad())?;
        let command = Command::from_code(code).ok_or_else(bad)?;
        let error = match error.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16),
            None => error.parse(),
        };
        let error = error.ok().filter(|error| *error != 0).ok_or_else(bad)?;
        Ok(Injection::Command {
            command,
            error: CommandError(error),
        })
    }
}

impl fmt::Display for Injection {
    /// As [`FromStr`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Injection::Halt {
                reset: ResetType::Command,
                after,
            } => write!(f, "halt@{after}"),
            Injection::Halt { after, .. } => write!(f, "halt-flr@{after}"),
            Injection::PageFault { every } => write!(f, "fault/{every}"),
            Injection::Command { command, error } => {
                write!(f, "{}={:#x}", *command as u8, error.0)
            }
        }
    }
}

/// Injections that have not happened, and registers as the one that has left them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Injector {
    waiting: Vec<Injection>,
    submitted: u64,
    /// CMDSTATUS, until the next command.
    status: Option<u32>,
    /// INTCAUSE says that a command has ended, until that is cleared.
    cause: bool,
}

/// How a write to BAR0 is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The device gets it.
    Through,
    /// A command ends with an injected error and does not reach the device.
    Failed {
        /// It asked for an interrupt at its end.
        interrupt: bool,
    },
}

impl Injector {
    pub(crate) fn new(waiting: Vec<Injection>) -> Injector {
        Injector {
            waiting,
            ..Injector::default()
        }
    }

    /// A write to BAR0.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Passage {
        let Ok(value) = <[u8; 4]>::try_from(bytes).map(u32::from_le_bytes) else {
            return Passage::Through;
        };
        match offset {
            CMD => {
                self.status = None;
                let register = CommandRegister::from(value);
                let injected = self.waiting.iter().position(|injection| match injection {
                    Injection::Command { command, .. } => {
                        Command::from_code(register.code()) == Some(*command)
                    }
                    Injection::Halt { .. } | Injection::PageFault { .. } => false,
                });
                let Some(Injection::Command { error, .. }) =
                    injected.map(|at| self.waiting.remove(at))
                else {
                    return Passage::Through;
                };
                let status = CommandStatus::new().with_error(error.0);
                self.status = Some(status.into_bits());
                self.cause = register.request_interrupt();
                Passage::Failed {
                    interrupt: self.cause,
                }
            }
            INTCAUSE => {
                self.cause &= !IntCause::from(value).command();
                Passage::Through
            }
            _ => Passage::Through,
        }
    }

    /// What a read of BAR0 gives, where an injection changes it.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) {
        match (offset, self.status) {
            (CMDSTATUS, Some(status)) if bytes.len() == 4 => {
                bytes.copy_from_slice(&status.to_le_bytes());
            }
            (INTCAUSE, _) if self.cause && bytes.len() >= 4 => {
                bytes[0] |= IntCause::new().with_command(true).into_bits() as u8;
            }
            _ => {}
        }
    }

    /// A descriptor has been written to a portal: the reset that the device needs if it is to halt.
    pub(crate) fn submitted(&mut self) -> Option<ResetType> {
        self.submitted += 1;
        let count = self.submitted;
        let due = self.waiting.iter().position(
            |injection| matches!(injection, Injection::Halt { after, .. } if *after <= count),
        )?;
        match self.waiting.remove(due) {
            Injection::Halt { reset, .. } => Some(reset),
            Injection::Command { .. } | Injection::PageFault { .. } => None,
        }
    }
}

/// Decides which writes of operations fault; the door and its engines share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    every: Option<NonZeroU64>,
    written: Arc<AtomicU64>,
}

impl Faults {
    pub(crate) fn of(injections: &[Injection]) -> Faults {
        let every = injections.iter().find_map(|injection| match injection {
            Injection::PageFault { every } => Some(*every),
            _ => None,
        });
        Faults {
            every,
            ..Faults::default()
        }
    }

    /// Whether the next write of an operation faults.
    #[inline]
    pub(crate) fn next(&self) -> bool {
        self.every.is_some_and(|every| {
            let number = self.written.fetch_add(1, Ordering::Relaxed) + 1;
            number.is_multiple_of(every.get())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn injections_are_parsed_as_documented() {
        assert_eq!(
            "halt-flr@7".parse(),
            Ok(Injection::Halt {
                reset: ResetType::FunctionLevel,
                after: 7
            })
        );
        assert_eq!(
            "6=0x21".parse(),
            Ok(Injection::Command {
                command: Command::EnableWq,
                error: CommandError(0x21)
            })
        );
        for text in ["halt@3", "halt-flr@7", "6=0x21", "fault/61"] {
            let injection: Injection = text.parse().expect("an injection");
            assert_eq!(injection.to_string(), text);
        }
        for bad in [
            "", "halt", "stop@3", "6=0", "6=0x100", "99=1", "halt@x", "fault/0", "fault/",
            "fault@3",
        ] {
            assert!(bad.parse::<Injection>().is_err(), "{bad}");
        }
    }

    #[test]
    fn fault_3_makes_each_third_write_fault() {
        let faults = Faults::of(&["fault/3".parse().expect("an injection")]);
        let engine = faults.clone();
        let said: Vec<bool> = (0..4)
            .flat_map(|_| [faults.next(), engine.next()])
            .collect();
        assert_eq!(said, [false, false, true, false, false, true, false, false]);
        assert!(!Faults::of(&[]).next());
    }

    #[test]
    fn an_injected_command_error_occurs_once() {
        let mut injector = Injector::new(vec!["6=0x21".parse().expect("an injection")]);
        let enable = CommandRegister::of(Command::EnableWq, 0).with_request_interrupt(true);
        let bytes = enable.into_bits().to_le_bytes();
        let failed = Passage::Failed { interrupt: true };
        assert_eq!(injector.write(CMD, &bytes), failed);
        let mut status = [0; 4];
        injector.read(CMDSTATUS, &mut status);
        assert_eq!(status, [0x21, 0, 0, 0]);
        let mut cause = [0; 4];
        injector.read(INTCAUSE, &mut cause);
        assert_eq!(cause, [2, 0, 0, 0]);
        injector.write(INTCAUSE, &cause);
        cause = [0; 4];
        injector.read(INTCAUSE, &mut cause);
        assert_eq!(cause, [0; 4]);
        assert_eq!(injector.write(CMD, &bytes), Passage::Through);
        status = [0; 4];
        injector.read(CMDSTATUS, &mut status);
        assert_eq!(status, [0; 4]);
    }
}
