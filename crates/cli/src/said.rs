//! Where a command's words go: standard output and standard error, or to the program that has asked for its answer.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A command of this process without a process of its own.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// The command line, without the name of the program.
    pub(crate) words: Vec<String>,
    /// What would be on standard output.
    pub(crate) output: Vec<u8>,
    /// What would be on standard error.
    pub(crate) error: String,
    /// Set by the program that has asked, to end the command between two points.
    pub(crate) stop: Arc<AtomicBool>,
}

thread_local! {
    static ASKED: RefCell<Option<Said>> = const { RefCell::new(None) };
}

/// Runs a command whose words are kept: its result, and what it said. Threads that it starts are not heard.
pub(crate) fn kept<T>(
    words: Vec<String>,
    stop: &Arc<AtomicBool>,
    run: impl FnOnce() -> T,
) -> (T, Said) {
    /// Also after a panic the thread speaks for itself again.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            ASKED.with_borrow_mut(|asked| *asked = None);
        }
    }
    let said = Said {
        words,
        stop: stop.clone(),
        ..Said::default()
    };
    ASKED.with_borrow_mut(|asked| *asked = Some(said));
    let end = End;
    let result = run();
    let said = ASKED.with_borrow_mut(Option::take).unwrap_or_default();
    drop(end);
    (result, said)
}

/// Whether a program has asked, and nobody looks at a terminal.
pub(crate) fn is_kept() -> bool {
    ASKED.with_borrow(Option::is_some)
}

/// The flag of the program that has asked.
pub(crate) fn stop() -> Option<Arc<AtomicBool>> {
    ASKED.with_borrow(|asked| asked.as_ref().map(|said| said.stop.clone()))
}

/// The command line, without the name of the program.
pub(crate) fn words() -> Vec<OsString> {
    let asked = ASKED.with_borrow(|asked| asked.as_ref().map(|said| said.words.clone()));
    match asked {
        Some(words) => words.into_iter().map(OsString::from).collect(),
        None => std::env::args_os().skip(1).collect(),
    }
}

/// Says a text on standard error.
pub(crate) fn error_text(text: &str) {
    let text = dray_output::shown(text);
    let is_kept = ASKED.with_borrow_mut(|asked| match asked {
        Some(said) => {
            said.error.push_str(&text);
            true
        }
        None => false,
    });
    if !is_kept {
        // Who does not listen to notes misses nothing of the result.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// Standard output.
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        ASKED.with_borrow_mut(|asked| match asked {
            Some(said) => said.output.write(bytes),
            None => io::stdout().write(bytes),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        match is_kept() {
            true => Ok(()),
            false => io::stdout().flush(),
        }
    }
}
