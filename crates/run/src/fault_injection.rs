//! Panics on demand, for tests of what becomes of a session when its device ends.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A panic of a thread of the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InjectedPanic {
    /// Which thread, and when.
    pub thread: InjectedThread,
    /// How long programs are left alone afterwards, if not as long as ever.
    pub last_words: Option<Duration>,
}

/// A thread that is to panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedThread {
    /// That of the device, when it has accepted so many descriptors.
    Dispatcher(u32),
    /// The one that opens and closes work queues, when so many have been opened.
    Driver(u32),
    /// The one that serves the files, when so many lists of a directory have been read.
    Files(u32),
}

/// Where it is counted.
#[derive(Debug, Default)]
pub(crate) struct Countdowns {
    pub(crate) dispatcher: Arc<Countdown>,
    pub(crate) driver: Countdown,
    pub(crate) files: Countdown,
}

impl Countdowns {
    pub(crate) fn to(panic: Option<InjectedPanic>) -> Countdowns {
        let mut all = Countdowns::default();
        match panic.map(|panic| panic.thread) {
            Some(InjectedThread::Dispatcher(count)) => {
                all.dispatcher = Arc::new(Countdown::new(count));
            }
            Some(InjectedThread::Driver(count)) => all.driver = Countdown::new(count),
            Some(InjectedThread::Files(count)) => all.files = Countdown::new(count),
            None => {}
        }
        all
    }
}

impl FromStr for InjectedPanic {
    type Err = String;

    /// `driver:1`; with milliseconds, `dispatcher:3:60000`.
    fn from_str(text: &str) -> Result<InjectedPanic, String> {
        let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number"));
        let mut parts = text.split(':');
        let thread = parts.next().unwrap_or_default();
        let count = parts.next().map_or(Ok(1), number)?;
        let last_words = parts.next().map(number).transpose()?;
        let thread = match thread {
            "dispatcher" => InjectedThread::Dispatcher(count),
            "driver" => InjectedThread::Driver(count),
            "files" => InjectedThread::Files(count),
            _ => return Err("a thread is dispatcher, driver or files".into()),
        };
        Ok(InjectedPanic {
            thread,
            last_words: last_words.map(|ms: u32| Duration::from_millis(ms.into())),
        })
    }
}

/// Counts to a panic, if one is wanted.
#[derive(Debug, Default)]
pub(crate) struct Countdown(Option<AtomicU32>);

impl Countdown {
    fn new(count: u32) -> Countdown {
        Countdown(Some(AtomicU32::new(count)))
    }

    /// Whether a panic is wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// One more.
    ///
    /// # Panics
    /// It was the last.
    pub(crate) fn count(&self) {
        if let Some(left) = &self.0 {
            let last = left.fetch_sub(1, Ordering::Relaxed) == 1;
            assert!(!last, "injected by a test");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn injected_panics_are_parsed() {
        let panic = |thread, last_words| Ok(InjectedPanic { thread, last_words });
        let driver = panic(InjectedThread::Driver(1), None);
        assert_eq!("driver".parse(), driver);
        let waits = Some(Duration::from_secs(1));
        let dispatcher = panic(InjectedThread::Dispatcher(7), waits);
        assert_eq!("dispatcher:7:1000".parse(), dispatcher);
        for text in ["", "files:", "engine:1", "files:-1"] {
            assert!(text.parse::<InjectedPanic>().is_err(), "{text}");
        }
    }
}
