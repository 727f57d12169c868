//! A mover for Python.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use dray::Home;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::ending;
use crate::open::{Open, open};
use crate::operation::Operation;
use crate::request::{Operands, request};

/// Executes memory operations, for all threads of the process.
#[pyclass(frozen, subclass, weakref, module = "dray._dray")]
pub(crate) struct Mover {
    open: Mutex<Option<Open>>,
    note: String,
    home: Home,
}

impl Mover {
    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// RuntimeError in a child of fork: the thread that drives the mover is not in it.
    fn of_this_process(&self) -> PyResult<()> {
        match self.home.is_inherited() {
            true => Err(PyRuntimeError::new_err(
                "the mover is of the process that has forked this one: open another",
            )),
            false => Ok(()),
        }
    }
}

#[pymethods]
impl Mover {
    #[new]
    #[pyo3(signature = (backend="any", *, threshold=0, checked=true))]
    fn new(backend: &str, threshold: u32, checked: bool) -> PyResult<Mover> {
        ending::refuse()?;
        let opened = open(backend, threshold, checked)?;
        Ok(Mover {
            note: opened.note.clone(),
            open: Mutex::new(Some(opened)),
            home: Home::here(),
        })
    }

    /// What happened when it was opened.
    #[getter]
    fn note(&self) -> &str {
        &self.note
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.home.is_inherited() || self.lock().is_none()
    }

    /// Starts an operation by its name. The buffers stay exported until it has ended.
    #[pyo3(signature = (name, source=None, destination=None, second=None, number=0))]
    fn start_operation(
        &self,
        py: Python<'_>,
        name: &str,
        source: Option<&Bound<'_, PyAny>>,
        destination: Option<&Bound<'_, PyAny>>,
        second: Option<&Bound<'_, PyAny>>,
        number: u64,
    ) -> PyResult<Operation> {
        ending::refuse()?;
        self.of_this_process()?;
        let operands = Operands {
            source,
            destination,
            second,
            number,
        };
        let request = request(name, &operands)?;
        let future = match &*self.lock() {
            Some(open) => open.client.request(request),
            None => return Err(PyValueError::new_err("the mover is closed")),
        };
        Ok(Operation::start(py, future))
    }

    /// Waits for all that was started, and ends the mover's thread. A mover that is closed, or of the process that has
    /// forked this one, is left as it is.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.home.is_inherited() {
            return Ok(());
        }
        let Some(open) = self.lock().take() else {
            return Ok(());
        };
        drop(open.client);
        ending::detached(py, || open.thread.join())
            .map_err(|_| PyRuntimeError::new_err("the mover's thread has panicked"))
    }
}

/// Threads of movers that nobody holds, and that may have operations in flight.
static LEFT: Mutex<Vec<(Home, JoinHandle<()>)>> = Mutex::new(Vec::new());

impl Drop for Mover {
    fn drop(&mut self) {
        let open = self.lock().take();
        if self.home.is_inherited() {
            // In a child of fork there is no thread.
            std::mem::forget(open);
        } else if let Some(open) = open {
            drop(open.client);
            let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
            left.retain(|(home, thread)| !home.is_inherited() && !thread.is_finished());
            left.push((self.home, open.thread));
        }
    }
}

/// Waits for the threads of movers that nobody holds: none may call the interpreter when it has ended.
#[pyfunction]
pub(crate) fn join_left(py: Python<'_>) {
    let left = std::mem::take(&mut *LEFT.lock().unwrap_or_else(PoisonError::into_inner));
    ending::detached(py, || {
        for (_, thread) in left.into_iter().filter(|(home, _)| !home.is_inherited()) {
            // What a panic leaves in flight is lost all the same.
            let _ = thread.join();
        }
    });
}
