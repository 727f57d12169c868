//! One operation under way.

use std::mem;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use dray::task::OperationFuture;
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use rustix::thread::futex;

use crate::buffer::{Exported, release_dropped};
use crate::completion::{self, Completion, NotCompleted};
use crate::ending;
use crate::signal::{Signal, tell};
use crate::stack::Stack;

/// Signals of the process are looked at so often while a thread waits.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// An operation that was started. Its buffers stay exported until it has ended. One that nobody holds any more is executed all
/// the same.
#[pyclass(frozen, module = "dray")]
pub(crate) struct Operation {
    stage: Mutex<Stage>,
    end: Arc<End>,
}

enum Stage {
    Under(OperationFuture<Exported>),
    Ended(Result<Completion, NotCompleted>),
    /// It is dropped.
    Taken,
}

/// What the mover's thread calls when the operation has ended. It needs no interpreter and takes no lock, which a fork on
/// another thread would leave taken in the child.
#[derive(Debug)]
struct End {
    /// A futex(2): 1 when it has ended.
    has_ended: AtomicU32,
    descriptors: Stack<Arc<OwnedFd>>,
}

impl End {
    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst) != 0
    }

    /// Tells the descriptors.
    fn tell(&self) {
        self.descriptors.take().iter().for_each(|fd| tell(fd));
    }

    /// Waits until it has ended, at most so long.
    fn wait(&self, most: Duration) {
        let Ok(most) = futex::Timespec::try_from(most) else {
            unreachable!("a part of a second");
        };
        // It also returns on a signal, when the time is over, or if it has ended before: the caller looks.
        let _ = futex::wait(&self.has_ended, futex::Flags::PRIVATE, 0, Some(&most));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wake for End {
    fn wake(self: Arc<Self>) {
        self.has_ended.store(1, Ordering::SeqCst);
        // It cannot fail on a word of this process.
        let _ = futex::wake(&self.has_ended, futex::Flags::PRIVATE, i32::MAX as u32);
        self.tell();
    }
}

impl Operation {
    /// Starts it.
    pub(crate) fn start(py: Python<'_>, future: OperationFuture<Exported>) -> Operation {
        let operation = Operation {
            stage: Mutex::new(Stage::Under(future)),
            end: Arc::new(End {
                has_ended: AtomicU32::new(0),
                descriptors: Stack::new(),
            }),
        };
        operation.look(py);
        operation
    }

    /// How it ended, if it has; its buffers are released then, and those of others that nobody waits for.
    fn look(&self, py: Python<'_>) -> Option<Result<Completion, NotCompleted>> {
        release_dropped(py);
        let mut stage = lock(&self.stage);
        let (found, buffers) = match &mut *stage {
            Stage::Ended(result) => return Some(result.clone()),
            Stage::Taken => unreachable!("it is dropped"),
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
}

impl Drop for Operation {
    fn drop(&mut self) {
        let stage = self.stage.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Stage::Under(future) = mem::replace(stage, Stage::Taken) {
            future.detach();
        }
    }
}

#[pymethods]
impl Operation {
    /// Whether it has ended: nothing accesses its buffers any more.
    fn done(&self, py: Python<'_>) -> bool {
        self.look(py).is_some()
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
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(PyTimeoutError::new_err(
                    "the operation has not ended in time",
                ));
            }
            let most = left.map_or(SIGNALS_EVERY, |left| left.min(SIGNALS_EVERY));
            ending::detached(py, || self.end.wait(most));
            py.check_signals()?;
        }
    }

    /// Takes it back if the mover has not begun with it. It ends in any case, and `result` says how: until then a device may
    /// access its buffers.
    fn cancel(&self, py: Python<'_>) {
        if let Stage::Under(future) = &*lock(&self.stage) {
            future.cancel();
        }
        release_dropped(py);
    }

    /// Makes a descriptor readable when it ends, or now if it has.
    fn tells(&self, signal: &Signal) {
        self.end.descriptors.push(signal.fd());
        // It may have ended before it was pushed.
        if self.end.has_ended() {
            self.end.tell();
        }
    }
}
