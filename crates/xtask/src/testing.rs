//! All tests of the workspace, two programs at a time: half of what the command's tests take is waiting.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

use anyhow::{Context, bail};
use serde_json::Value;

/// Test programs at a time.
const AT_ONCE: usize = 2;

/// A test program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Program {
    executable: PathBuf,
    /// Its package's, where cargo starts it.
    directory: PathBuf,
}

/// Builds and runs all tests. A program that fails keeps no other from running. What it prints comes when it has ended.
///
/// # Errors
/// Something cannot be built, or a test has failed.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let failed = run_all(build(root)?, &mut io::stdout())?;
    let documented = cargo(root, &["--doc", "--no-fail-fast"]).status();
    let documented = documented.context("cargo test --doc")?.success();
    match (failed.is_empty(), documented) {
        (true, true) => Ok(()),
        (true, false) => bail!("tests in documentation have failed"),
        (false, _) => bail!("tests have failed in {}", failed.join(", ")),
    }
}

fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["test", "--workspace", "--locked"])
        .args(arguments);
    command.current_dir(root);
    command
}

/// The test programs, the largest first: these take the longest.
fn build(root: &Path) -> anyhow::Result<VecDeque<Program>> {
    let mut command = cargo(
        root,
        &["--no-run", "--message-format=json-render-diagnostics"],
    );
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("cargo test --no-run")?;
    if !output.status.success() {
        bail!("the tests cannot be built");
    }
    let mut programs = programs(&output.stdout)?;
    let size = |program: &Program| program.executable.metadata().map_or(0, |there| there.len());
    programs.sort_by_key(|program| std::cmp::Reverse(size(program)));
    Ok(programs.into())
}

/// The test programs among cargo's messages.
fn programs(messages: &[u8]) -> anyhow::Result<Vec<Program>> {
    let mut found = Vec::new();
    for line in messages
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let message: Value = serde_json::from_slice(line).context("a message of cargo")?;
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            continue;
        }
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        if let Some(executable) = path(&message["executable"]) {
            let manifest = path(&message["manifest_path"]);
            let directory = manifest.as_deref().and_then(Path::parent);
            let directory = directory
                .context("an artifact without a package")?
                .to_owned();
            found.push(Program {
                executable,
                directory,
            });
        }
    }
    Ok(found)
}

/// The names of those that fail.
fn run_all(
    programs: VecDeque<Program>,
    out: &mut (impl Write + Send),
) -> anyhow::Result<Vec<String>> {
    let waiting = Mutex::new(programs);
    let (out, failed) = (Mutex::new(out), Mutex::new(Vec::new()));
    let work = || -> anyhow::Result<()> {
        loop {
            let next = lock(&waiting).pop_front();
            let Some(program) = next else {
                return Ok(());
            };
            let name = program.executable.display().to_string();
            let ended = run_one(&program);
            let mut out = lock(&out);
            writeln!(out, "     Running {name}")?;
            let succeeded = match ended {
                Ok((succeeded, mut said)) => io::copy(&mut said, &mut **out).map(|_| succeeded)?,
                Err(error) => writeln!(out, "{error:#}").map(|()| false)?,
            };
            out.flush()?;
            if !succeeded {
                lock(&failed).push(name);
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let mut ends = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ends.try_for_each(|end| end.expect("it does not panic"))
    })?;
    Ok(failed.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether it succeeded, and what it printed.
fn run_one(program: &Program) -> anyhow::Result<(bool, impl Read)> {
    let mut said: File = tempfile::tempfile().context("a file for its output")?;
    let status = Command::new(&program.executable)
        .current_dir(&program.directory)
        .env("CARGO_MANIFEST_DIR", &program.directory)
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said.try_clone()?)
        .status()?;
    if !status.success() {
        writeln!(said, "{status}")?;
    }
    said.rewind()?;
    Ok((status.success(), said))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn test_programs_are_those_that_cargo_built_for_tests() {
        let messages = br#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","profile":{"test":true},"executable":"/t/a-1"}
{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","profile":{"test":false},"executable":"/t/a"}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","profile":{"test":true},"executable":null}
{"reason":"build-finished","success":true}
"#;
        let expected = Program {
            executable: "/t/a-1".into(),
            directory: "/w/a".into(),
        };
        assert_eq!(programs(messages).unwrap(), [expected]);
        assert!(programs(b"no JSON").is_err());
    }

    #[test]
    fn all_programs_run_where_their_package_is_and_those_that_fail_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let program = |name: &str, line: &str| {
            let executable = directory.path().join(name);
            std::fs::write(&executable, format!("#!/bin/sh\n{line}\n")).unwrap();
            std::fs::set_permissions(&executable, std::fs::Permissions::from_mode(0o755)).unwrap();
            Program {
                executable,
                directory: directory.path().to_owned(),
            }
        };
        let programs = [
            program("bad", "echo one; echo two >&2; exit 3"),
            program("good", "pwd; echo $CARGO_MANIFEST_DIR"),
            program("killed", "kill -9 $$"),
            Program {
                executable: directory.path().join("missing"),
                directory: directory.path().to_owned(),
            },
        ];
        let mut said = Vec::new();
        let mut failed = run_all(programs.into(), &mut said).unwrap();
        failed.sort_unstable();
        let path = |name: &str| directory.path().join(name).display().to_string();
        assert_eq!(failed, [path("bad"), path("killed"), path("missing")]);
        let said = String::from_utf8(said).unwrap();
        let here = std::fs::canonicalize(directory.path()).unwrap();
        for expected in [
            format!("Running {}\none\ntwo\nexit status: 3\n", path("bad")),
            format!("{}\n{}\n", here.display(), directory.path().display()),
            "signal: 9".to_owned(),
        ] {
            assert!(said.contains(&expected), "{said}");
        }
    }
}
