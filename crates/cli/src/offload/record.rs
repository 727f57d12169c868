//! `dray offload --record FILE -- PROGRAM`: each call of the program, for a replay.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use dray_offload::launch::{Launch, launch};
use dray_offload::settings;
use dray_output::Output;
use dray_recording::{Closed, Kind, Options, Session};
use dray_run::Ending;

use super::saving::SIZES;
use super::{Args, program};
use crate::complain::Usage;
use crate::recording;

/// The smallest call that is recorded.
fn min_bytes(args: &Args) -> anyhow::Result<u64> {
    let Some(text) = &args.min_bytes else {
        return Ok(SIZES[0]);
    };
    dray_experiment::parse_bytes(text)
        .map_err(|error| Usage::error(format!("--min-bytes {text}: {error}"), "--min-bytes 4k"))
}

fn out_of_memory(error: &anyhow::Error) -> bool {
    let system = error.downcast_ref::<std::io::Error>();
    system.is_some_and(|error| error.kind() == std::io::ErrorKind::OutOfMemory)
}

pub(super) fn run(args: &Args, path: &Path, library: &[u8]) -> anyhow::Result<ExitCode> {
    let options = Options {
        kind: Kind::Calls,
        command: recording::command(&args.program),
        min_bytes: min_bytes(args)?,
        limit_bytes: recording::limit(&args.record_limit)?,
    };
    let output = Output::prepare(path)?;
    let mut variables: Vec<(&'static str, OsString)> = vec![(settings::MOVER, "cpu".into())];
    variables.extend(super::run::calls(args));
    // A recording that is there stays if the program does not start, which says why.
    let mut session = None;
    if program::starts(&args.program[0]) {
        session = Some(begin(output, path, &options)?);
        let full = std::fs::canonicalize(path).with_context(|| path.display().to_string())?;
        variables.push((settings::RECORD, full.into_os_string()));
    }
    let directory = tempfile::Builder::new().prefix("dray-offload-").tempdir()?;
    let ended = launch(&Launch {
        directory: directory.path(),
        library,
        variables: &variables,
        program: &args.program,
    })?;
    drop(directory);
    if let Some(session) = session {
        say(args, path, &session.close()?);
    }
    match ended.signal {
        Some(signal) => Ending::Signalled(signal).pass_on(),
        None => Ending::Exited(ended.code).pass_on(),
    }
}

/// Begins a recording in a file, whose content is gone then.
fn begin(output: Output, path: &Path, options: &Options) -> anyhow::Result<Session> {
    let mut session = Session::begin(output.into_mapped()?, options)
        .with_context(|| format!("{} cannot be recorded in", path.display()))
        .map_err(|error| match out_of_memory(&error) {
            true => Usage::error(
                format!("{error:#}"),
                "--record-limit 64m needs less address space",
            ),
            false => error,
        })?;
    session.grow()?;
    Ok(session)
}

/// What was recorded.
fn say(args: &Args, path: &Path, closed: &Closed) {
    if closed.processes == 0 {
        eprintln!(
            "warning: no program was recorded: it did not start, is static or setuid, or removed LD_PRELOAD"
        );
    }
    if !args.quiet || closed.lost > 0 {
        eprintln!("dray offload: {}", recording::report(path, closed));
    }
}
