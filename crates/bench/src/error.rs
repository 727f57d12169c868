//! What can go wrong.

use dray_device::ConfigError;
use dray_idxd::ProfileError;
use dray_model::Stalled;
use dray_platform::PlatformError;
use thiserror::Error;

use crate::real::CppError;

/// What can go wrong when cases are chosen or run.
#[derive(Debug, Error)]
pub enum BenchError {
    /// A filter that is no regular expression.
    #[error("--benchmark_filter={pattern}: {source}")]
    Filter {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        source: regex_lite::Error,
    },
    /// A filter that no case matches.
    #[error("--benchmark_filter={pattern} matches none of {cases} cases")]
    NoMatch {
        /// What was given.
        pattern: String,
        /// How many there are.
        cases: usize,
        /// What would match something.
        hint: String,
    },
    /// A value that a flag does not take.
    #[error("{flag}: {reason}")]
    Value {
        /// Flag and value as given.
        flag: String,
        /// What is wrong.
        reason: String,
        /// What to give instead.
        hint: String,
    },
    /// More than the configuration allows.
    #[error("{what} {value} is above the work queue's {field} of {limit}")]
    Limit {
        /// What was asked for, as the user knows it.
        what: &'static str,
        /// How much.
        value: u64,
        /// How much there is.
        limit: u64,
        /// Attribute of the work queue.
        field: &'static str,
    },
    /// An operation that a work queue does not take.
    #[error("{op} is no operation of this device: op_cap or op_config lacks bit {opcode:#x}")]
    Unsupported {
        /// Name of the operation.
        op: &'static str,
        /// Its opcode.
        opcode: u8,
    },
    /// The profile cannot be read or used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The platform cannot be read.
    #[error(transparent)]
    Platform(#[from] PlatformError),
    /// The device does not take its configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No work queue that a case can use.
    #[error("the profile has no work queue{}", match .node { Some(n) => format!(" on memory node {n}"), None => String::new() })]
    NoWorkQueue {
        /// Only devices of this node were asked for.
        node: Option<u16>,
    },
    /// A device of this machine that cannot be used.
    #[error("no device of this machine can be measured")]
    Device {
        /// Why.
        source: Box<dray::hw::HwError>,
    },
    /// Cases of api:cpp that cannot be measured.
    #[error(transparent)]
    Cpp(#[from] CppError),
    /// A wait for a completion that does not come.
    #[error(transparent)]
    Stalled(#[from] Stalled),
    /// Operations that did not succeed.
    #[error("{operations} operations failed; the first ended with status {status:#04x}")]
    Failed {
        /// How many.
        operations: u64,
        /// Completion status of the first (spec 8.2.1).
        status: u8,
    },
    /// Software that did not do what it should.
    #[error("{operations} operations in software failed")]
    Software {
        /// How many.
        operations: u64,
    },
    /// The machine has not what a measurement needs.
    #[error("cannot measure on this machine: {0}")]
    Machine(#[from] std::io::Error),
    /// An operation said that it succeeded, and did not.
    #[error("buffer {buffer} does not hold what the operation should have written")]
    WrongBytes {
        /// Number of the buffer.
        buffer: u64,
    },
    /// More threads than the machine has cores.
    #[error("{threads} threads: a socket of platform {platform} has {cores} cores")]
    Cores {
        /// Asked for.
        threads: u32,
        /// Cores of a socket.
        cores: u16,
        /// Platform of the cores.
        platform: String,
    },
}

impl BenchError {
    /// Whether a value is at most what a work queue allows: its attribute `field`.
    pub(crate) fn check_limit(
        what: &'static str,
        value: u64,
        limit: u64,
        field: &'static str,
    ) -> Result<(), BenchError> {
        match value > limit {
            true => Err(BenchError::Limit {
                what,
                value,
                limit,
                field,
            }),
            false => Ok(()),
        }
    }

    /// What to type next, if the message does not say it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoMatch { hint, .. } | Self::Value { hint, .. } => {
                (!hint.is_empty()).then(|| hint.clone())
            }
            Self::Profile(error) => error.hint(),
            Self::Filter { .. } => Some(
                "a filter is a regular expression on case names; --benchmark_list_tests shows them"
                    .to_owned(),
            ),
            Self::Cpp(error) => error.hint().map(str::to_owned),
            Self::Unsupported { .. } => Some(
                "a profile that has it: --config 1e1w-s-v2 is a device of version 2".to_owned(),
            ),
            Self::Device { .. } => Some(
                "dray doctor says why; dray run --profile 1e1w-d -- dray ... has a virtual one"
                    .to_owned(),
            ),
            Self::NoWorkQueue { node: Some(_) } => {
                Some("--node=-1 takes the devices of every node".to_owned())
            }
            _ => None,
        }
    }

    /// Whether what was typed is at fault.
    pub fn is_bad_input(&self) -> bool {
        !matches!(
            self,
            Self::Stalled(_)
                | Self::Device { .. }
                | Self::Cpp(CppError::Open { .. } | CppError::Call { .. })
                | Self::Failed { .. }
                | Self::WrongBytes { .. }
                | Self::Software { .. }
                | Self::Machine(_)
        )
    }
}
