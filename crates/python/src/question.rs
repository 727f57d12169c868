//! The command's answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::ending;

/// Signals of the process are looked at so often.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// What the command `dray` prints for these words: standard output, standard error, exit code. Other threads of the
/// interpreter run meanwhile. Ctrl-C ends it between two points, and what is done is kept where the command keeps it; a second
/// one does not wait for that.
#[pyfunction]
pub(crate) fn answer(py: Python<'_>, words: Vec<String>) -> PyResult<(String, String, u8)> {
    ending::refuse()?;
    let (give, mut given) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let its_stop = stop.clone();
    let asks = move || {
        // Who has asked may have gone.
        let _ = give.send(dray_cli::answer(words, &its_stop));
    };
    let asking = thread::Builder::new()
        .name("dray answer".to_owned())
        .spawn(asks);
    asking.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let mut interrupted = None;
    loop {
        let (back, answer) = ending::detached(py, move || {
            let answer = given.recv_timeout(SIGNALS_EVERY);
            (given, answer)
        });
        given = back;
        match answer {
            Ok(answer) => {
                return match interrupted {
                    Some(error) => Err(error),
                    None => Ok((answer.output, answer.error, answer.code)),
                };
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "the model has panicked: its message is on standard error",
                ));
            }
        }
        if let Err(error) = py.check_signals() {
            if interrupted.is_some() {
                return Err(error);
            }
            // The caller may remove the directory that the command writes to: the end is waited for.
            stop.store(true, Ordering::Relaxed);
            interrupted = Some(error);
        }
    }
}
