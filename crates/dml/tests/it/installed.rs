//! The library as it is installed, and a program in C that is compiled with the flags from pkg-config.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use xtask::{DML, InstallPaths, Library, compiler, install};

/// Directory of the crate `dray-dml`; tests of `dray run` use this file, too.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dml");

/// Where cargo has put this crate's static library.
fn archive() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let deps = test.parent().expect("a directory");
    let found = [deps.join("libdray_dml.a"), deps.join("../libdray_dml.a")];
    let newest = found.into_iter().filter(|file| file.exists());
    let newest = newest.max_by_key(|file| file.metadata().and_then(|m| m.modified()).ok());
    newest.expect("cargo builds the library before the tests")
}

/// The library below a directory that is removed when this is dropped, with programs on it.
pub(crate) struct Installed(tempfile::TempDir);

impl Installed {
    pub(crate) fn new() -> Installed {
        let directory = tempfile::tempdir().expect("a directory");
        let files = install(&Library {
            kind: &DML,
            archive: archive(),
            headers: Path::new(ROOT).join("include/dml"),
            paths: InstallPaths::new(directory.path(), None, Path::new("lib")).expect("paths"),
            version: env!("CARGO_PKG_VERSION").into(),
            compiler: compiler("".as_ref()),
        });
        files.expect("it can be installed");
        Installed(directory)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What pkg-config says.
    fn flags(&self) -> Vec<String> {
        let output = Command::new("pkg-config")
            .args(["--cflags", "--libs", "dray-dml"])
            .env("PKG_CONFIG_PATH", self.path("lib/pkgconfig"))
            .output()
            .expect("pkg-config");
        assert!(output.status.success(), "{output:?}");
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        words.split_whitespace().map(str::to_owned).collect()
    }

    /// Compiles the example of all operations. Warnings are errors.
    pub(crate) fn jobs(&self, compiler: &[&str]) -> PathBuf {
        let program = self.path(&format!("jobs-{}", compiler[0]));
        let compiled = Command::new(compiler[0])
            .args(&compiler[1..])
            .args(["-Wall", "-Wextra", "-Werror"])
            .arg(Path::new(ROOT).join("examples/jobs.c"))
            .args(["-x", "none"])
            .args(self.flags())
            .arg(format!("-Wl,-rpath,{}", self.path("lib").display()))
            .arg("-o")
            .arg(&program)
            .output()
            .expect("a compiler");
        let errors = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{compiler:?}: {errors}");
        program
    }
}

/// What a program printed, and its exit code.
pub(crate) fn said(output: &Output) -> (String, Option<i32>) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.code())
}
