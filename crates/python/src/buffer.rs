//! Memory of Python objects, by the buffer protocol (PEP 3118).

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use dray::Buffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::ending;
use crate::stack::Stack;

/// Bytes of an object that are exported as long as this value is there: the object cannot free, move or resize them.
pub(crate) struct Exported(Option<View>);

/// A view that was filled in, at an address of its own: exporters keep pointers into it.
struct View(Box<ffi::Py_buffer>);

// SAFETY: it is released with the interpreter attached, and its bytes are accessed by one operation.
unsafe impl Send for View {}

/// What an operation does with the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

impl Exported {
    /// Exports all bytes of an object, in one piece.
    ///
    /// # Errors
    /// TypeError: it has none, or they are references to objects. BufferError or ValueError, as the object says it: they
    /// are not contiguous, or are to be written and are read-only.
    pub(crate) fn of(object: &Bound<'_, PyAny>, access: Access) -> PyResult<Exported> {
        let py = object.py();
        release_dropped(py);
        let mut view = Box::new(ffi::Py_buffer::new());
        let flags = ffi::PyBUF_C_CONTIGUOUS | ffi::PyBUF_FORMAT;
        let flags = match access {
            Access::Read => flags,
            Access::Write => flags | ffi::PyBUF_WRITABLE,
        };
        // SAFETY: an object, and a place for a view; the interpreter is attached.
        let code = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, flags) };
        if code != 0 {
            return Err(PyErr::fetch(py));
        }
        let exported = Exported(Some(View(view)));
        match exported.check(access) {
            Ok(()) => Ok(exported),
            Err(error) => {
                exported.release(py);
                Err(error)
            }
        }
    }

    fn check(&self, access: Access) -> PyResult<()> {
        let view = self.view();
        if !view.format.is_null() {
            // SAFETY: a string of C as long as the view is not released.
            let format = unsafe { CStr::from_ptr(view.format) }.to_bytes();
            if has_objects(format) {
                return Err(PyTypeError::new_err(
                    "the buffer has references to Python objects, which bytes must not replace",
                ));
            }
        }
        match access == Access::Write && view.readonly != 0 {
            true => Err(PyBufferError::new_err("the buffer is read-only")),
            false => Ok(()),
        }
    }

    fn view(&self) -> &ffi::Py_buffer {
        let view = self.0.as_ref();
        &view.expect("it has a view until it is released").0
    }

    /// First address and number of bytes.
    pub(crate) fn range(&self) -> (usize, usize) {
        let view = self.view();
        (view.buf.addr(), self.len())
    }

    /// Gives the bytes back to their object, which may run its code.
    pub(crate) fn release(mut self, py: Python<'_>) {
        if let Some(view) = self.0.take() {
            view.release(py);
        }
    }
}

impl View {
    fn release(mut self, _attached: Python<'_>) {
        // SAFETY: the view was filled in, and is released once; the interpreter is attached.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.0) };
    }
}

// SAFETY: exported bytes stay where they are. A Python program that writes to them while an operation has them finds bytes of
// before or after, as with each call that leaves the interpreter to other threads; bytes of read-only objects are sources alone.
unsafe impl Buffer for Exported {
    fn stable_ptr(&mut self) -> *mut u8 {
        self.view().buf.cast()
    }

    fn len(&self) -> usize {
        usize::try_from(self.view().len).expect("a length is not negative")
    }
}

/// Whether elements of a format are references to objects. Names of fields are between colons.
fn has_objects(format: &[u8]) -> bool {
    let mut outside = format.split(|byte| *byte == b':').step_by(2);
    outside.any(|part| part.contains(&b'O'))
}

/// Views whose operations have ended on a thread that is not the interpreter's. Such a thread may push while another forks.
static DROPPED: Stack<View> = Stack::new();

impl Drop for Exported {
    fn drop(&mut self) {
        let Some(view) = self.0.take() else { return };
        DROPPED.push(view);
        if ending::is_ending() {
            return;
        }
        // SAFETY: any thread may call it, attached or not. If it has no room, the next call releases the view.
        unsafe { ffi::Py_AddPendingCall(Some(release_pending), null_mut()) };
    }
}

extern "C" fn release_pending(_: *mut c_void) -> c_int {
    // SAFETY: pending calls are made with the interpreter attached.
    release_dropped(unsafe { Python::assume_attached() });
    0
}

/// Releases the views that were dropped.
pub(crate) fn release_dropped(py: Python<'_>) {
    DROPPED.take().into_iter().for_each(|view| view.release(py));
}
