//! Why a data mover does not work.
//!
//! A [`Machine`] is looked at, this one ([`Live`]) or a captured one ([`Captured`]), and every link
//! of the chain from the PCI function to the program is judged by one [`Check`]. A check that
//! depends on a broken link is not judged, so that what is found is what to fix first.
//!
//! ```
//! use dray_doctor::{Captured, diagnose};
//!
//! // A machine of which nothing is known has no device.
//! let diagnosis = diagnose(&Captured::default());
//! assert!(diagnosis.device_missing);
//! assert_eq!(diagnosis.findings().next().unwrap().check, "pci");
//! ```

mod catalogue;
mod check;
mod checks;
mod cmd_status;
mod command_line;
mod diagnosis;
mod finding;
mod machine;
mod report;
mod survey;
mod text;

pub use check::Check;
pub use checks::CHECKS;
pub use diagnosis::{CheckResult, Diagnosis, Judged, diagnose};
pub use finding::{Cause, Evidence, Finding, Fix, Likelihood, Severity};
pub use machine::{
    ArchiveError, CPUID_7, Captured, CapturedError, FileKind, KERNEL_CONFIG, KERNEL_LOG, Live,
    MAX_ARCHIVE_BYTES, MESSAGES, Machine, Reading, Recorder, SESSION, Stat, TREE, Unreadable,
    VIRTUAL, WithMessages,
};
pub use report::{explain, markdown, messages, messages_markdown, table};
pub use text::{Explained, Explanation, Seen, System, Text, TextError, Texts, Unknown};
