//! The requests of a session, recorded for a replay.
//!
//! Who submitted, when, and with how much CPU time, programs say beside each descriptor; ends are known when devices report
//! them. A thread can have seen an end before a submission if it was reported before that.

mod books;

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dray_output::{Output, OutputError};
use dray_realtime::Event;
use dray_recording::{Closed, Kind, Options, Session};

use crate::RunError;
use crate::error::system;
use crate::processes::Pid;
use books::Books;

/// How long descriptors wait for others that their programs submit without waiting for them: no DSA completes one sooner.
const TOGETHER: Duration = Duration::from_micros(2);

/// Where requests are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFile {
    /// The file.
    pub path: PathBuf,
    /// Most bytes that it gets.
    pub limit_bytes: u64,
    /// What it says of the command.
    pub command: String,
}

/// A recording that is being made.
#[derive(Debug)]
pub(crate) struct Requests {
    session: Session,
    books: Arc<Mutex<Books>>,
}

/// A device's end of it.
#[derive(Debug, Clone)]
pub(crate) struct RequestFeed(Arc<Mutex<Books>>);

impl Requests {
    /// Makes or empties the file.
    ///
    /// # Errors
    /// It cannot be written, or is no regular file.
    pub(crate) fn create(file: &RequestFile) -> Result<Requests, RunError> {
        let output = Output::prepare(&file.path).map_err(RunError::Requests)?;
        let opened: File = output.into_mapped().map_err(RunError::Requests)?;
        let options = Options {
            kind: Kind::Descriptors,
            command: file.command.clone(),
            min_bytes: 0,
            limit_bytes: file.limit_bytes,
        };
        let session = Session::begin(opened, &options).map_err(|source| {
            RunError::Requests(OutputError {
                path: file.path.clone(),
                source,
            })
        })?;
        let books = Books::new(session.log());
        Ok(Requests {
            session,
            books: Arc::new(Mutex::new(books)),
        })
    }

    pub(crate) fn feed(&self) -> RequestFeed {
        RequestFeed(self.books.clone())
    }

    /// Starts the thread that gives the file room. After the last fork of this process.
    ///
    /// # Errors
    /// No more threads.
    pub(crate) fn begin(&mut self) -> Result<(), RunError> {
        self.session.grow().map_err(system("starting a thread"))
    }

    /// # Errors
    /// The file cannot be cut.
    pub(crate) fn close(self) -> Result<Closed, RunError> {
        self.session.close().map_err(system("ftruncate"))
    }
}

impl RequestFeed {
    /// Enters an event of a device.
    pub(crate) fn take_in(
        &self,
        device: u32,
        event: &Event,
        owner: impl FnOnce(u32) -> Option<Pid>,
    ) {
        if *event == Event::Held {
            let since = Instant::now();
            while since.elapsed() < TOGETHER {
                std::hint::spin_loop();
            }
            return;
        }
        let mut books = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        books.take_in(device, event, owner);
    }
}
