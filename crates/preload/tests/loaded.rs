//! Programs that have the shared object loaded and no portal: nothing of them changes.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// A child that another test starts holds the file open for writing until it executes its program, and an open file
/// that is written to cannot be executed: ETXTBSY.
static STARTS: Mutex<()> = Mutex::new(());

fn run(program: &str, argument: &str) -> (Option<i32>, String, String) {
    let _one = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().expect("a directory");
    let library = dray_preload::write_to(directory.path()).expect("this platform has it");
    let output = Command::new(program)
        .args(["-c", argument])
        .env("LD_PRELOAD", &library)
        .env("DRAY_SOCKET", "@nobody")
        .output()
        .expect("the program is there");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let code = output.status.code();
    (code, text(output.stdout), text(output.stderr))
}

#[test]
fn a_shell_keeps_its_exit_code_children_and_traps() {
    let script = "trap 'echo caught' SEGV; kill -SEGV $$; (exit 3); echo $?; exit 5";
    let (code, out, error) = run("/bin/sh", script);
    assert_eq!((code, &*out, &*error), (Some(5), "caught\n3\n", ""));
}

#[test]
fn an_existing_library_file_is_not_overwritten() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = dray_preload::write_to(directory.path()).expect("this platform has it");
    assert!(path.ends_with(dray_preload::NAME));
    let again = dray_preload::write_to(directory.path()).expect_err("it is there");
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
}

#[test]
fn the_library_can_be_executed_to_start_a_program() {
    let _one = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().expect("a directory");
    let library = dray_preload::write_to(directory.path()).expect("this platform has it");
    let run = |arguments: &[&str]| {
        let output = Command::new(&library)
            .args(arguments)
            .output()
            .expect("it can be executed");
        let text = String::from_utf8(output.stdout).expect("text");
        (output.status.code(), text)
    };
    // What is dynamic needs no supervisor.
    let echo = run(&["/bin/sh", "name", "-c", "echo $0 $1; exit 6", "a", "b c"]);
    assert_eq!(echo, (Some(6), "a b c\n".to_owned()));
    assert_eq!(run(&["/not/there", "name"]), (Some(127), String::new()));
    assert_eq!(run(&[]), (Some(127), String::new()));
}
