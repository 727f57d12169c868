//! Movers that were opened and closed are no leak, nor are their handles, which stay known.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::toolchain::{C, CPP, Program, ROOT, compile, prefix};

/// The virtual device of the process, and the core.
const BACKENDS: [&str; 2] = ["1", "2"];

/// Calls by which libdray asks the kernel whether memory is there: valgrind takes the answer no for a mistake.
const PROBES: [&str; 3] = ["futex(futex2)", "rt_sigprocmask(set)", "readv(vector[...])"];

/// Examples, with their compilers.
fn examples() -> Vec<(PathBuf, &'static [&'static str])> {
    let entries = std::fs::read_dir(Path::new(ROOT).join("examples")).expect("examples");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut examples: Vec<_> = paths
        .filter_map(|path| match path.extension()?.to_str()? {
            "c" => Some((path, C)),
            "cpp" => Some((path, CPP)),
            _ => None,
        })
        .collect();
    examples.sort();
    assert!(examples.len() >= 25, "{}", examples.len());
    examples
}

fn succeeds(checker: &str, source: &Path, backend: &str, output: &Output) {
    let name = source.file_name().unwrap_or_default().display();
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    let code = output.status;
    assert!(
        code.success(),
        "{name} {backend}: {code}, {checker}: {said}{errors}"
    );
}

fn run(command: &mut Command, program: &Program, backend: &str) -> Output {
    // Operations of a thread, where an example has many: a checker is slow.
    let command = command.args([program.path().as_os_str(), backend.as_ref(), "320".as_ref()]);
    let command = command.env("LD_LIBRARY_PATH", prefix().join("lib"));
    command.output().expect("it runs")
}

#[test]
fn leak_sanitizer_finds_nothing_in_any_example() {
    for (source, compiler) in examples() {
        let compiler = [&["cc"], &compiler[1..], &["-fsanitize=address", "-g"]].concat();
        let compiler = match source.extension().is_some_and(|kind| kind == "cpp") {
            true => [&["c++"], &compiler[1..]].concat(),
            false => compiler,
        };
        let program = compile(&compiler, &source, true);
        for backend in BACKENDS {
            let mut command = Command::new("env");
            // One example asks for a signal.
            command.args(["ASAN_OPTIONS=detect_leaks=1:handle_segv=0:exitcode=23"]);
            let output = run(&mut command, &program, backend);
            succeeds("LeakSanitizer", &source, backend, &output);
        }
    }
}

#[test]
fn valgrind_finds_no_lost_memory_in_any_example() {
    if dray_skip::lacks(&["valgrind"]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let suppressions = directory.path().join("probes.supp");
    let rules = PROBES
        .map(|call| format!("{{\nprobe\nMemcheck:Param\n{call}\n...\nobj:*libdray.so*\n}}\n"));
    std::fs::write(&suppressions, rules.concat()).expect("a file");
    for (source, compiler) in examples() {
        // valgrind makes a fork of vfork, and its child has lost what only the parent's threads named.
        if source.ends_with("forked.c") {
            continue;
        }
        let program = compile(compiler, &source, true);
        for backend in BACKENDS {
            let mut command = Command::new("timeout");
            command.args(["300", "valgrind"]);
            // A thread that polls would keep valgrind's one lock from those of the device for ever.
            command.args(["-q", "--fair-sched=try"]);
            command.args(["--leak-check=full", "--error-exitcode=23"]);
            command.args(
                ["show", "errors-for"].map(|what| format!("--{what}-leak-kinds=definite,indirect")),
            );
            command.arg(format!("--suppressions={}", suppressions.display()));
            let output = run(&mut command, &program, backend);
            succeeds("valgrind", &source, backend, &output);
        }
    }
}
