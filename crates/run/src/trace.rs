//! Each descriptor of a session, in a file.
//!
//! Devices do not wait for the file: what they have to say goes through a ring for each of them to a
//! thread that writes. What finds a ring full is not in the file, and is counted.

mod chrome;
mod csv;
mod sink;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, Thread};
use std::time::Duration;

use dray_output::Output;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::RunError;
use crate::descriptor_table::Ended;
use crate::error::system;
use sink::Sink;

/// Descriptors between a device and the file: some milliseconds of the fastest that a device can be.
const ROOM: usize = 1 << 16;
/// How long the writer rests when there is nothing to write.
const REST: Duration = Duration::from_millis(5);
/// How long the end of a session waits for a file that takes nothing any more.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// How a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// Trace events, as Perfetto and Chrome load them.
    Json,
    /// A line each.
    Csv,
}

/// The format that a file's name asks for, by `.json` or `.csv`.
///
/// # Errors
/// Another extension, or none.
pub fn trace_format(path: &Path) -> Result<TraceFormat, RunError> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Ok(TraceFormat::Json),
        Some("csv") => Ok(TraceFormat::Csv),
        _ => Err(RunError::TraceFormat {
            path: path.to_owned(),
        }),
    }
}

/// What became of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    /// The file.
    pub path: PathBuf,
    /// Descriptors in it.
    pub written: u64,
    /// Descriptors for which the file was too slow.
    pub dropped: u64,
    /// Why it ends before the session did; that has been said.
    pub failure: Option<String>,
}

/// A trace, before and while it is written.
#[derive(Debug)]
pub(crate) struct Trace {
    path: PathBuf,
    format: TraceFormat,
    /// Until the writer has it.
    output: Option<Output>,
    feeds: Vec<(u32, Consumer<Ended>)>,
    state: Arc<State>,
    writer: Option<(Thread, Receiver<io::Result<()>>)>,
}

#[derive(Debug, Default)]
struct State {
    written: AtomicU64,
    dropped: AtomicU64,
    ending: AtomicBool,
}

/// A device's end of the ring.
pub(crate) struct Feed {
    ring: Producer<Ended>,
    state: Arc<State>,
}

impl Feed {
    pub(crate) fn push(&mut self, ended: Ended) {
        if self.ring.push(ended).is_err() {
            self.state.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A file's form.
trait Form: Send {
    fn begin(&mut self, out: &mut dyn Write, devices: &[u32]) -> io::Result<()>;
    fn write(&mut self, out: &mut dyn Write, device: u32, ended: &Ended) -> io::Result<()>;
    /// What stands after the last event.
    fn end(&self) -> &'static [u8];
}

impl Trace {
    /// Finds out whether the file can be written.
    ///
    /// # Errors
    /// No such format, or no such file.
    pub(crate) fn create(path: &Path) -> Result<Trace, RunError> {
        let format = trace_format(path)?;
        let output = Output::prepare(path).map_err(RunError::Trace)?;
        Ok(Trace {
            path: path.to_owned(),
            format,
            output: Some(output),
            feeds: Vec::new(),
            state: Arc::default(),
            writer: None,
        })
    }

    /// A way in for a device.
    pub(crate) fn feed(&mut self, device: u32) -> Feed {
        let (ring, consumer) = RingBuffer::new(ROOM);
        self.feeds.push((device, consumer));
        Feed {
            ring,
            state: self.state.clone(),
        }
    }

    /// Empties the file and starts the writer.
    ///
    /// # Errors
    /// No more threads, or the file cannot be written any more.
    pub(crate) fn begin(&mut self) -> Result<(), RunError> {
        let Some(output) = self.output.take() else {
            return Ok(());
        };
        let is_stream = output.is_stream();
        let file = output.into_file().map_err(RunError::Trace)?;
        let writer = Writer {
            feeds: std::mem::take(&mut self.feeds),
            form: match self.format {
                TraceFormat::Json => Box::new(chrome::Chrome::default()),
                TraceFormat::Csv => Box::new(csv::Csv),
            },
            state: self.state.clone(),
        };
        let (done, ended) = channel();
        let path = self.path.clone();
        let run = move || {
            let end = writer.form.end();
            let result = writer.run(Sink::new(file, is_stream, end));
            if let Err(error) = &result {
                eprintln!(
                    "error: the trace {} ends here: {error}; the command goes on",
                    path.display()
                );
            }
            // No thread waits for a writer that was too slow.
            let _ = done.send(result);
        };
        let thread = thread::Builder::new()
            .name("dray-trace".into())
            .spawn(run)
            .map_err(system("starting a thread"))?;
        self.writer = Some((thread.thread().clone(), ended));
        Ok(())
    }

    /// Nothing more comes: has the file finished.
    pub(crate) fn end(self) -> Traced {
        self.state.ending.store(true, Ordering::Release);
        let failure = match &self.writer {
            Some((thread, ended)) => {
                thread.unpark();
                self.wait(ended)
            }
            None => Some("it was never begun".to_owned()),
        };
        Traced {
            path: self.path.clone(),
            written: self.state.written.load(Ordering::Relaxed),
            dropped: self.state.dropped.load(Ordering::Relaxed),
            failure,
        }
    }

    /// Until the writer is through, or has written nothing for a long time.
    fn wait(&self, ended: &Receiver<io::Result<()>>) -> Option<String> {
        let mut before = self.state.written.load(Ordering::Relaxed);
        loop {
            match ended.recv_timeout(WRITE_TIMEOUT) {
                Ok(result) => return result.err().map(|error| error.to_string()),
                Err(RecvTimeoutError::Disconnected) => return Some("its thread died".to_owned()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = self.state.written.load(Ordering::Relaxed);
            if now == before {
                eprintln!(
                    "error: the trace {} is not finished: its reader does not take what is written",
                    self.path.display()
                );
                return Some("its reader does not take what is written".to_owned());
            }
            before = now;
        }
    }
}

struct Writer {
    feeds: Vec<(u32, Consumer<Ended>)>,
    form: Box<dyn Form>,
    state: Arc<State>,
}

impl Writer {
    fn run(mut self, mut sink: Sink) -> io::Result<()> {
        let devices: Vec<u32> = self.feeds.iter().map(|(device, _)| *device).collect();
        self.form.begin(sink.chunk(), &devices)?;
        loop {
            // Before the look: what was said before the end is seen after it.
            let ending = self.state.ending.load(Ordering::Acquire);
            let mut found = false;
            for (device, feed) in &mut self.feeds {
                while let Ok(ended) = feed.pop() {
                    found = true;
                    self.form.write(sink.chunk(), *device, &ended)?;
                    sink.pass()?;
                    self.state.written.fetch_add(1, Ordering::Relaxed);
                }
            }
            if !found && ending {
                break;
            }
            if !found {
                // A reader of the file meanwhile finds what has happened.
                sink.flush()?;
                thread::park_timeout(REST);
            }
        }
        sink.finish()
    }
}

#[cfg(test)]
mod tests;
