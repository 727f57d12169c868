//! The shared library, linked of the static one.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::install::{Library, create};

/// What a program needs beside the library, as rustc's static libraries do.
pub(crate) const SYSTEM_LIBRARIES: &[&str] = &[
    "-lgcc_s",
    "-lutil",
    "-lrt",
    "-lpthread",
    "-lm",
    "-ldl",
    "-lc",
];

/// The words of a command such as `ccache gcc -m64`; `cc` if there are none. A file of that name is one
/// word.
///
/// ```
/// assert_eq!(xtask::compiler("ccache gcc -m64".as_ref()), ["ccache", "gcc", "-m64"]);
/// assert_eq!(xtask::compiler("".as_ref()), ["cc"]);
/// ```
pub fn compiler(command: &OsStr) -> Vec<OsString> {
    let words: Vec<OsString> = match command.to_str() {
        Some(text) if !Path::new(text).is_file() => {
            text.split_whitespace().map(OsString::from).collect()
        }
        _ => vec![command.to_owned()],
    };
    match words.is_empty() {
        true => vec!["cc".into()],
        false => words,
    }
}

/// Makes the shared library of the static one. `scratch` is a directory for other files.
pub(crate) fn link(
    library: &Library,
    shared: &Path,
    soname: &str,
    scratch: &Path,
) -> anyhow::Result<()> {
    let script = scratch.join("symbols.map");
    create(&script, library.kind.symbols.as_bytes())?;
    let mut version = OsString::from("-Wl,--version-script=");
    version.push(&script);
    let (program, arguments) = library.compiler.split_first().context("CC is empty")?;
    let linked = Command::new(program)
        .args(arguments)
        .args(["-shared", "-o"])
        .arg(shared)
        .arg(format!("-Wl,-soname,{soname}"))
        .arg(version)
        .args(["-Wl,--whole-archive"])
        .arg(&library.archive)
        .args(["-Wl,--no-whole-archive", "-Wl,--gc-sections", "-Wl,-z,defs"])
        .args(SYSTEM_LIBRARIES)
        .output();
    fs::remove_file(&script).with_context(|| format!("{} stays behind", script.display()))?;
    let linked = linked.with_context(|| {
        let program = program.display();
        format!("the C compiler {program} cannot be run: CC names another")
    })?;
    if !linked.status.success() {
        bail!(
            "the linker: {}: {}",
            linked.status,
            String::from_utf8_lossy(&linked.stderr).trim()
        );
    }
    if !shared.is_file() {
        bail!("the linker has made no {soname}: is CC a C compiler?");
    }
    Ok(())
}
