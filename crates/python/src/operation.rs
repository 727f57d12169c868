//! One operation under way.

use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use dray::task::OperationFuture;
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;

use crate::buffer::{Exported, release_dropped};
use crate::completion::{self, Completion, NotCompleted};
use crate::signal::{Signal, tell};

/// Signals of the process are looked at so often while a thread waits.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// An operation that was started. Its buffers stay exported until it has ended.
///
/// One that nobody holds any more is cancelled if the mover has not begun with it.
#[pyclass(frozen, module = "dray")]
pub(crate) struct Operation {
    stage: Mutex<Stage>,
    end: Arc<End>,
}

enum Stage {
    Under(OperationFuture<Exported>),
    Ended(Result<Completion, NotCompleted>),
    Cancelled,
}

/// What the mover's thread calls when the operation has ended. It needs no interpreter.
#[derive(Debug, Default)]
struct End {
    told: Mutex<Told>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Told {
    has_ended: bool,
    descriptors: Vec<Arc<OwnedFd>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wake for End {
    fn wake(self: Arc<Self>) {
        let mut told = lock(&self.told);
        told.has_ended = true;
        self.changed.notify_all();
        told.descriptors.drain(..).for_each(|fd| tell(&fd));
    }
}

impl Operation {
    /// Starts it.
    pub(crate) fn start(py: Python<'_>, future: OperationFuture<Exported>) -> Operation {
        let operation = Operation {
            stage: Mutex::new(Stage::Under(future)),
            end: Arc::default(),
        };
        operation.look(py);
        operation
    }

    /// How it ended, if it has; its buffers are released then.
    fn look(&self, py: Python<'_>) -> Option<Result<Completion, NotCompleted>> {
        let mut stage = lock(&self.stage);
        let (found, buffers) = match &mut *stage {
            Stage::Ended(result) => return Some(result.clone()),
            Stage::Cancelled => return None,
            Stage::Under(future) => {
                let waker = Waker::from(self.end.clone());
                match Pin::new(future).poll(&mut Context::from_waker(&waker)) {
                    Poll::Pending => return None,
                    Poll::Ready(result) => completion::ended(result),
                }
            }
        };
        *stage = Stage::Ended(found.clone());
        drop(stage);
        // Without the lock: what exported the bytes may run code of its own.
        buffers.into_iter().for_each(|buffer| buffer.release(py));
        self.end.clone().wake();
        Some(found)
    }

    fn is_cancelled(&self) -> bool {
        matches!(*lock(&self.stage), Stage::Cancelled)
    }
}

#[pymethods]
impl Operation {
    /// Whether it has ended.
    fn done(&self, py: Python<'_>) -> bool {
        self.look(py).is_some() || self.is_cancelled()
    }

    /// Waits for the end, at most so many seconds. Other threads of the interpreter run meanwhile.
    ///
    /// Raises OperationError if it failed, ValueError if it was never possible, TimeoutError.
    #[pyo3(signature = (timeout=None))]
    fn result(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Completion> {
        let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            if let Some(result) = self.look(py) {
                return result.map_err(NotCompleted::error);
            }
            if self.is_cancelled() {
                return Err(completion::OperationError::new_err(
                    "the operation was cancelled",
                ));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(PyTimeoutError::new_err(
                    "the operation has not ended in time",
                ));
            }
            let most = left.map_or(SIGNALS_EVERY, |left| left.min(SIGNALS_EVERY));
            py.detach(|| {
                let told = lock(&self.end.told);
                let waited = self
                    .end
                    .changed
                    .wait_timeout_while(told, most, |told| !told.has_ended);
                drop(waited);
            });
            py.check_signals()?;
        }
    }

    /// Gives it up: it is not executed if the mover has not begun with it. Its buffers stay exported until a device has
    /// done with them.
    fn cancel(&self, py: Python<'_>) {
        let mut stage = lock(&self.stage);
        if matches!(*stage, Stage::Under(_)) {
            let left = std::mem::replace(&mut *stage, Stage::Cancelled);
            drop(stage);
            drop(left);
            release_dropped(py);
            self.end.clone().wake();
        }
    }

    /// Makes a descriptor readable when it ends, or now if it has.
    fn tells(&self, signal: &Signal) {
        let mut told = lock(&self.end.told);
        match told.has_ended {
            true => tell(&signal.fd()),
            false => told.descriptors.push(signal.fd()),
        }
    }
}
