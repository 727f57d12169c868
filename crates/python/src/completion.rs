//! How an operation ended.

use dray::task::{Done, NotDone, TaskError};
use dray::{ChannelError, Executor, Outcome, Output};
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::buffer::Exported;

create_exception!(
    dray,
    OperationError,
    PyRuntimeError,
    "An operation that was begun and has failed, or was lost with its device."
);

/// How an operation that succeeded ended: what it gives, who executed it and why.
#[pyclass(frozen, get_all, eq, hash, module = "dray", name = "Completion")]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Completion {
    /// The checksum; the offset in bytes of the first difference, or None; the bytes of a delta record; else None.
    value: Option<u64>,
    /// Bytes that were compared before a delta record was full; None: all.
    overflow_at: Option<u32>,
    /// Who executed it: `cpu` if the core has executed any of it, else `virtual` or `hardware`.
    executor: String,
    /// Why the core has executed any of it; None: a device has done all.
    reason: Option<String>,
    /// Bytes that devices have done.
    device_bytes: u64,
    /// Bytes that the core has done.
    core_bytes: u64,
    /// Descriptors into which it was divided.
    stripes: u32,
    /// Page faults after which the device went on.
    resumed_faults: u32,
    /// Submissions that a queue without room did not accept.
    retries: u32,
}

/// The fields of a completion, in their order.
type Fields = (
    Option<u64>,
    Option<u32>,
    String,
    Option<String>,
    u64,
    u64,
    u32,
    u32,
    u32,
);

#[pymethods]
impl Completion {
    /// Of its fields, for pickle.
    #[new]
    #[pyo3(signature = (*fields))]
    fn of(fields: Fields) -> Completion {
        let (
            value,
            overflow_at,
            executor,
            reason,
            device_bytes,
            core_bytes,
            stripes,
            resumed_faults,
            retries,
        ) = fields;
        Completion {
            value,
            overflow_at,
            executor,
            reason,
            device_bytes,
            core_bytes,
            stripes,
            resumed_faults,
            retries,
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, Fields) {
        let fields = (
            self.value,
            self.overflow_at,
            self.executor.clone(),
            self.reason.clone(),
            self.device_bytes,
            self.core_bytes,
            self.stripes,
            self.resumed_faults,
            self.retries,
        );
        (py.get_type::<Completion>(), fields)
    }

    fn __repr__(&self) -> String {
        let value = match self.value {
            Some(value) => format!("value={value}, "),
            None => String::new(),
        };
        let reason = match &self.reason {
            Some(reason) => format!(", reason='{reason}'"),
            None => String::new(),
        };
        format!("Completion({value}executor='{}'{reason})", self.executor)
    }
}

impl Completion {
    fn new(output: Output, outcome: &Outcome) -> Completion {
        let (value, overflow_at) = match output {
            Output::Crc32(crc) => (Some(crc.into()), None),
            Output::Crc64(crc) => (Some(crc), None),
            Output::Compared { difference } => (difference.map(u64::from), None),
            Output::Delta {
                record_bytes,
                overflow_at,
            } => (Some(record_bytes.into()), overflow_at),
            _ => (None, None),
        };
        Completion {
            value,
            overflow_at,
            executor: word(outcome.executor()).to_owned(),
            reason: outcome.core_reason.map(|reason| reason.name().to_owned()),
            device_bytes: outcome.device_bytes,
            core_bytes: outcome.core_bytes,
            stripes: outcome.stripes,
            resumed_faults: outcome.resumed_faults,
            retries: outcome.retries,
        }
    }
}

fn word(executor: Executor) -> &'static str {
    match executor {
        Executor::Cpu => "cpu",
        Executor::Virtual => "virtual",
        Executor::Hardware => "hardware",
        Executor::Model => "model",
        Executor::ModelCpu => "model-cpu",
    }
}

/// Why there is no completion, apart from the interpreter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotCompleted(TaskError);

impl NotCompleted {
    /// ValueError for what was never possible, OperationError else.
    pub(crate) fn error(self) -> PyErr {
        let text = self.0.to_string();
        match self.0 {
            TaskError::Refused(
                ChannelError::Length { .. }
                | ChannelError::Lengths { .. }
                | ChannelError::Blocks { .. }
                | ChannelError::Unsupported { .. },
            ) => PyValueError::new_err(text),
            TaskError::Refused(ChannelError::Closed) => OperationError::new_err(
                "not executed: the mover is closed, or the operation was cancelled",
            ),
            _ => OperationError::new_err(text),
        }
    }
}

/// What an operation gave or why not, and the buffers that it had.
pub(crate) type Ended = (Result<Completion, NotCompleted>, Vec<Exported>);

pub(crate) fn ended(result: Result<Done<Exported>, Box<NotDone<Exported>>>) -> Ended {
    let (result, buffers) = match result {
        Ok(done) => (
            Ok(Completion::new(done.output, &done.outcome)),
            done.buffers,
        ),
        Err(not) => (Err(NotCompleted(not.error)), not.buffers),
    };
    let buffers = [buffers.source, buffers.destination, buffers.second];
    (result, buffers.into_iter().flatten().collect())
}
