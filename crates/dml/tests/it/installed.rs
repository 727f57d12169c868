//! A library for programs of others as it is installed, and programs that are compiled with the flags from pkg-config.
//! Tests of `dray-dto` and of `dray run` use this file, too.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use xtask::{InstallPaths, Kind, Library, compiler, install};

/// Directory of all crates.
const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Where cargo has put a crate's static library.
fn archive(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let deps = test.parent().expect("a directory");
    let file = format!("lib{name}.a");
    let found = [deps.join(&file), deps.join("..").join(&file)];
    let newest = found.into_iter().filter(|file| file.exists());
    let newest = newest.max_by_key(|file| file.metadata().and_then(|m| m.modified()).ok());
    newest.expect("cargo builds the library before the tests")
}

/// The library below a directory that is removed when this is dropped, with programs on it.
pub(crate) struct Installed {
    directory: tempfile::TempDir,
    kind: &'static Kind,
    root: PathBuf,
}

impl Installed {
    /// Of the crate in this directory, with its headers in that one.
    pub(crate) fn new(kind: &'static Kind, root: &str, headers: &str) -> Installed {
        let root = Path::new(CRATES).join(root);
        let directory = tempfile::tempdir().expect("a directory");
        let files = install(&Library {
            kind,
            archive: archive(kind.name),
            headers: root.join(headers),
            paths: InstallPaths::new(directory.path(), None, Path::new("lib")).expect("paths"),
            version: env!("CARGO_PKG_VERSION").into(),
            compiler: compiler("".as_ref()),
        });
        files.expect("it can be installed");
        Installed {
            directory,
            kind,
            root,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What pkg-config says.
    fn flags(&self) -> Vec<String> {
        let output = Command::new("pkg-config")
            .args(["--cflags", "--libs", self.kind.package])
            .env("PKG_CONFIG_PATH", self.path("lib/pkgconfig"))
            .output()
            .expect("pkg-config");
        assert!(output.status.success(), "{output:?}");
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        words.split_whitespace().map(str::to_owned).collect()
    }

    /// Compiles an example of the crate. Warnings are errors.
    pub(crate) fn compile(&self, compiler: &[&str], example: &str) -> PathBuf {
        let program = self.path(&format!("program-{}", compiler[0]));
        let compiled = Command::new(compiler[0])
            .args(&compiler[1..])
            .args(["-Wall", "-Wextra", "-Werror"])
            .arg(self.root.join("examples").join(example))
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
