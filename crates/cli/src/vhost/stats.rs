//! The counters' file.

use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use dray_output::{Output, OutputError};
use dray_vhost::forward::Report;

use crate::complain::Usage;
use crate::print;

/// Writes counters to a file on a thread of its own: the one that moves packets waits for no disk.
#[derive(Debug)]
pub(super) struct StatsFile {
    to: SyncSender<String>,
    writer: JoinHandle<Result<(), OutputError>>,
}

impl StatsFile {
    /// Finds out whether the file can be written, and starts the thread.
    pub(super) fn open(path: &Path) -> anyhow::Result<StatsFile> {
        let output = Output::prepare(path).map_err(unwritable)?;
        let (to, texts) = sync_channel::<String>(1);
        let writer = thread::Builder::new().name("stats".to_owned());
        let writer =
            writer.spawn(move || texts.iter().try_for_each(|t| output.write(t.as_bytes())));
        Ok(StatsFile {
            to,
            writer: writer.context("cannot start the thread that writes counters")?,
        })
    }

    /// Writes a report, unless the disk is still at one before it. False if none can be written any
    /// more: [`StatsFile::end`] says why.
    pub(super) fn put(&self, report: &Report) -> anyhow::Result<bool> {
        let sent = self.to.try_send(text(report)?);
        Ok(!matches!(sent, Err(TrySendError::Disconnected(_))))
    }

    /// Writes the last report, and waits until it is in the file.
    pub(super) fn end(self, report: &Report) -> anyhow::Result<()> {
        // If the thread has ended, its error is what is reported.
        let _ = self.to.send(text(report)?);
        drop(self.to);
        match self.writer.join() {
            Ok(written) => written.map_err(unwritable),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn text(report: &Report) -> anyhow::Result<String> {
    Ok(print::document(report)?)
}

fn unwritable(error: OutputError) -> anyhow::Error {
    Usage::error(
        format!("{error}: {}", error.source),
        "give --stats-file a path in a directory that can be written to",
    )
}
