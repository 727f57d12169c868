//! What can be wrong with flows and jobs.

use std::path::PathBuf;

use dray_flow::FlowError;
use dray_pcie::PcieError;

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FabricError {
    /// A file that cannot be read.
    #[error("cannot read {}: {message}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
    /// A file that is not TOML or CSV, or has unknown or missing keys.
    #[error("{file}: {message}")]
    Syntax {
        /// Name of the file.
        file: String,
        /// What the parser said, with the line.
        message: String,
        /// What an entry is: `flow` or `job`.
        what: &'static str,
    },
    /// A file without entries.
    #[error("{file}: no {what}; a file of {what}s has at least one")]
    Empty {
        /// Name of the file.
        file: String,
        /// What an entry is.
        what: &'static str,
    },
    /// An entry that breaks a rule.
    #[error("{file}: {entry}: {rule}")]
    Rule {
        /// Name of the file.
        file: String,
        /// Which entry: what it is, its number from 1, and its name if it has one.
        entry: String,
        /// What holds and does not hold here.
        rule: String,
        /// What to write instead.
        hint: String,
    },
    /// A pattern that a topology cannot have.
    #[error("{rule}")]
    Pattern {
        /// What holds and does not hold here.
        rule: String,
        /// What to type instead.
        hint: String,
    },
    /// A job of which nothing arrives in the simulator.
    #[error("job {job} ends before it starts")]
    NothingSent {
        /// Its number from 0.
        job: usize,
    },
    /// A topology that is no network.
    #[error(transparent)]
    Network(#[from] FlowError),
    /// A node or a path that the topology has not.
    #[error(transparent)]
    Topology(#[from] PcieError),
}

impl FabricError {
    /// What to type or write next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } => Some("check the path".to_owned()),
            Self::Syntax { what, .. } | Self::Empty { what, .. } => Some(form(what).to_owned()),
            Self::Rule { hint, .. } | Self::Pattern { hint, .. } => Some(hint.clone()),
            Self::Network(_) | Self::NothingSent { .. } => None,
            Self::Topology(error) => error.hint(),
        }
    }
}

/// What an entry looks like.
pub(crate) fn form(what: &str) -> &'static str {
    match what {
        "job" => "a job is [[job]] with from, to, bytes and arrival_us; or CSV with these columns",
        _ => {
            "a flow is [[flow]] with from, to and, if it is known, demand_gib_s; or CSV with these columns"
        }
    }
}
