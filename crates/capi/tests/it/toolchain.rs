//! The library, installed once, and the compilers that build programs on it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use xtask::{DRAY, InstallPaths, Library, compiler, install};

/// Directory of the crate `dray-capi`; tests of `dray run` use this file, too.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../capi");

/// A C compiler, and how it is to read a file.
pub(crate) const C: &[&str] = &["cc", "-std=c99", "-D_GNU_SOURCE"];
/// The same for C++.
pub(crate) const CPP: &[&str] = &["c++", "-std=c++17", "-x", "c++"];

/// Where cargo has put this crate's static library.
pub(crate) fn archive() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let deps = test.parent().expect("a directory");
    let found = [deps.join("libdray_c.a"), deps.join("../libdray_c.a")];
    let newest = found.into_iter().filter(|file| file.exists());
    let newest = newest.max_by_key(|file| file.metadata().and_then(|m| m.modified()).ok());
    newest.expect("cargo builds the library before the tests")
}

/// The library, installed below a directory that stays until the tests end.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<tempfile::TempDir> = OnceLock::new();
    let directory = PREFIX.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let files = install(&Library {
            kind: &DRAY,
            archive: archive(),
            headers: Path::new(ROOT).join("include"),
            paths: InstallPaths::new(directory.path(), None, Path::new("lib")).expect("paths"),
            version: env!("CARGO_PKG_VERSION").into(),
            compiler: compiler("".as_ref()),
        });
        files.expect("it can be installed");
        directory
    });
    directory.path()
}

/// What pkg-config says.
pub(crate) fn pkg_config(arguments: &[&str]) -> Vec<String> {
    let output = Command::new("pkg-config")
        .args(arguments)
        .arg("dray")
        .env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"))
        .output()
        .expect("pkg-config");
    assert!(output.status.success());
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    words.split_whitespace().map(str::to_owned).collect()
}

/// A program that was compiled, in a directory of its own.
pub(crate) struct Program {
    directory: tempfile::TempDir,
    shared: bool,
}

/// Compiles a file, with the shared or the static library. Warnings are errors.
pub(crate) fn compile(compiler: &[&str], source: &Path, shared: bool) -> Program {
    let program = Program {
        directory: tempfile::tempdir().expect("a directory"),
        shared,
    };
    let mut command = Command::new(compiler[0]);
    command
        .args(&compiler[1..])
        .args(["-Wall", "-Wextra", "-Werror", "-pthread"])
        .args(pkg_config(&["--cflags"]))
        .arg(source)
        .args(["-x", "none"]);
    match shared {
        true => command.args(pkg_config(&["--libs"])),
        false => {
            let system = pkg_config(&["--libs", "--static"]).into_iter();
            command
                .arg(prefix().join("lib/libdray.a"))
                .args(system.filter(|word| word != "-ldray"))
        }
    };
    let compiled = command.arg("-o").arg(program.path()).output();
    let compiled = compiled.expect("a compiler");
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(
        compiled.status.success(),
        "{compiler:?} {}: {errors}",
        source.display()
    );
    program
}

impl Program {
    /// Its file.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("program")
    }

    /// Runs it to its end.
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.path());
        if self.shared {
            command.env("LD_LIBRARY_PATH", prefix().join("lib"));
        }
        command.args(arguments).output().expect("it runs")
    }

    /// What it prints; it must succeed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arguments:?}: {said}{errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
