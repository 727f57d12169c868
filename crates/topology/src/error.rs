//! What can go wrong with files, routes and transfers.

use std::path::PathBuf;

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PcieError {
    /// A file that is not TOML, or has unknown or missing keys.
    #[error("{file}: {message}")]
    Syntax {
        /// Name of the file.
        file: String,
        /// What the parser said, with line and column.
        message: String,
    },
    /// What a machine is imported from cannot be: unknown, cut, or more than a topology holds.
    #[error("{from}: {message}")]
    Import {
        /// The directory or file.
        from: String,
        /// What holds and does not hold here.
        message: String,
    },
    /// An entry of a file that breaks a rule.
    #[error("{file}: {entry}: {rule}")]
    Rule {
        /// Name of the file.
        file: String,
        /// Which entry.
        entry: String,
        /// What holds and does not hold here.
        rule: String,
    },
    /// A name that no node has.
    #[error("{topology} has no node `{name}`; {hint}")]
    NoNode {
        /// Name of the topology.
        topology: String,
        /// The name asked for.
        name: String,
        /// The name that was meant, or all names if they are few.
        hint: String,
    },
    /// Two nodes without a path between them.
    #[error("{topology}: no path from `{from}` to `{to}`: {why}")]
    NoPath {
        /// Name of the topology.
        topology: String,
        /// Where the flow starts.
        from: String,
        /// Where it should end.
        to: String,
        /// What keeps it.
        why: String,
    },
    /// A transfer that the device cannot do.
    #[error("{transfer}: {rule}")]
    Transfer {
        /// Which transfer.
        transfer: String,
        /// What holds and does not hold here.
        rule: String,
    },
    /// No file and no built-in of this name.
    #[error("`{name}` is neither a file nor a built-in {what}; {hint}")]
    NotFound {
        /// What was asked for.
        name: String,
        /// What kind of thing it is.
        what: &'static str,
        /// The built-in name that was meant, or all of them.
        hint: String,
    },
    /// A file or directory that cannot be read.
    #[error("{}: {message}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
    /// A simulation that stopped before its transfers were complete.
    #[error("the simulation of {topology} stopped at {at_ns} ns with {open} transfers open: {why}")]
    Stuck {
        /// Name of the topology.
        topology: String,
        /// Virtual time.
        at_ns: u64,
        /// Transfers that are not complete.
        open: u64,
        /// What is known of the reason.
        why: String,
    },
    /// A report that cannot be drawn.
    #[error("report: {0}")]
    Report(String),
}

impl PcieError {
    /// What to type or write next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoNode { topology, .. } | Self::NoPath { topology, .. } => Some(format!(
                "`dray fabric show {topology}` lists nodes and links"
            )),
            Self::NotFound { .. } => Some("dray fabric show testbed".to_owned()),
            Self::Import { .. } => Some(
                "`dray fabric import --help` says what is read, and how to write it".to_owned(),
            ),
            Self::Rule { .. } | Self::Syntax { .. } => {
                Some("compare with a shipped file: `dray fabric show testbed --toml`".to_owned())
            }
            _ => None,
        }
    }

    /// Whether what was typed or written is wrong, not the machine.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Stuck { .. } | Self::Report(_))
    }
}

/// An error about the form of a file.
pub(crate) fn syntax(file: &str, message: String) -> PcieError {
    PcieError::Syntax {
        file: file.to_owned(),
        message,
    }
}
