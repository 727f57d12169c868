//! Programs in C, linked by what links Rust's programs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

fn build(source: &str, name: &str, options: &[&str]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Another run of the tests may be executing the one that is there.
    let fresh = path.with_extension(std::process::id().to_string());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let built = Command::new("cc")
        .args(["-O1", "-pthread", "-Wall", "-Werror"])
        .args(options)
        .arg("-o")
        .arg(&fresh)
        .arg(source)
        .status()
        .expect("the system lets a test do this");
    assert!(built.success());
    std::fs::rename(&fresh, &path).expect("the system lets a test do this");
    path
}

/// Submits descriptors, without a dynamic linker.
pub(crate) fn static_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("tests/it/run/static.c", "static", &["-static"]))
}

/// The same with a dynamic linker.
pub(crate) fn dynamic_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("tests/it/run/static.c", "dynamic", &[]))
}

/// The same, which opens and maps by system calls of its own, as runtimes do that have no C library.
pub(crate) fn raw_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("tests/it/run/static.c", "raw", &["-DRAW"]))
}

/// Executes others, in each of the ways that there are.
pub(crate) fn starter() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("tests/it/run/start.c", "start", &[]))
}
