//! `dray doctor --capture`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use dray_doctor::{Captured, Machine, Recorder, diagnose};

use crate::complain::Usage;
use crate::print;

/// Writes what the checks read to an archive, and lists it.
pub(super) fn run(machine: &dyn Machine, path: &Path) -> anyhow::Result<ExitCode> {
    let recorder = Recorder::new(machine);
    // The checks say what is to be read.
    let _ = diagnose(&recorder);
    let captured = recorder.finish(concat!("dray ", env!("CARGO_PKG_VERSION")));
    let archive = captured.pack().context("cannot pack the capture")?;
    write(path, &archive)?;
    print::all(&mut io::stdout().lock(), &contents(&captured))?;
    eprintln!(
        "wrote {} ({} bytes): look at it with `dray doctor --from {}` or `tar -tzf`, then mail it",
        path.display(),
        archive.len(),
        path.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Never over a file that is there.
fn write(path: &Path, archive: &[u8]) -> anyhow::Result<()> {
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let what = format!("{} exists", path.display());
            return Err(Usage::error(what, "give another name, or remove it first"));
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot write {}", path.display()));
        }
    };
    file.write_all(archive)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn contents(captured: &Captured) -> String {
    let lines = captured.contents().map(|(path, bytes)| match bytes {
        Some(bytes) => format!("{bytes:8}  {path}\n"),
        None => format!("       -  {path}\n"),
    });
    lines.collect()
}
