//! `dray doctor --capture`.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use dray_doctor::{Captured, Machine, Recorder, diagnose};
use dray_output::Output;

use crate::complain::Usage;
use crate::print;

/// Writes what the checks read to an archive, and lists it.
pub(super) fn run(machine: &dyn Machine, path: &Path) -> anyhow::Result<ExitCode> {
    let output = Output::prepare(path)?;
    // Never over a file that is there.
    if output.replaces() {
        let what = format!("{} exists", path.display());
        return Err(Usage::error(what, "give another name, or remove it first"));
    }
    let recorder = Recorder::new(machine);
    // The checks say what is to be read.
    let _ = diagnose(&recorder);
    let captured = recorder.finish(concat!("dray ", env!("CARGO_PKG_VERSION")));
    let archive = captured.pack().context("cannot pack the capture")?;
    output.write(&archive)?;
    // Not into the archive, where that goes to stdout.
    match output.is_stream() {
        true => eprint!("{}", contents(&captured)),
        false => print::all(&mut io::stdout().lock(), &contents(&captured))?,
    }
    eprintln!(
        "wrote {} ({} bytes): look at it with `dray doctor --from {}` or `tar -tzf`, then mail it",
        path.display(),
        archive.len(),
        path.display()
    );
    Ok(ExitCode::SUCCESS)
}

fn contents(captured: &Captured) -> String {
    let lines = captured.contents().map(|(path, bytes)| match bytes {
        Some(bytes) => format!("{bytes:8}  {path}\n"),
        None => format!("       -  {path}\n"),
    });
    lines.collect()
}
