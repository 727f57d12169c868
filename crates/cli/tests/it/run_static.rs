//! Static programs under `dray run`, and dynamic ones that make system calls themselves: the supervisor
//! gives them portals.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use crate::session::{Ended, Session, mounts};

const NOTE: &str = "is statically linked: it runs under the supervisor";
const RAW_NOTE: &str =
    "makes its system calls itself, past the C library: it runs under the supervisor";

fn program() -> &'static Path {
    crate::build::static_program()
}

#[track_caller]
fn run_one(program: &Path, options: &[&str], mode: &str) -> Ended {
    let mut arguments = options.to_vec();
    let program = program.to_str().expect("the system lets a test do this");
    arguments.extend(["--", program, mode, "/dev/dsa/wq0.0"]);
    Session::new().run(&arguments)
}

#[track_caller]
fn run(options: &[&str], mode: &str) -> Ended {
    run_one(program(), options, mode)
}

/// The static program, and the one that makes its system calls itself.
#[track_caller]
fn check(profile: &str, mode: &str, expected: &str) {
    for (program, note) in [(program(), NOTE), (crate::build::raw_program(), RAW_NOTE)] {
        let output = run_one(
            program,
            &["--profile", profile, "--require", "portal"],
            mode,
        );
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(output.out, expected, "{output:?}");
        assert!(output.err.contains(note), "{output:?}");
    }
}

#[test]
fn a_static_program_submits_copies() {
    check("1e1w-d", "copy", "copies 50\nclosed 1\n");
    check("4e1w-s", "copy-shared", "copies 50\nclosed 1\n");
}

#[test]
fn threads_of_a_static_program_share_a_portal() {
    check("1e1w-d", "threads", "copies 200\n");
    check("4e1w-s", "threads-shared", "copies 200\n");
}

#[test]
fn children_have_no_portal_until_they_map_one() {
    // Nothing is mapped there (SEGV_MAPERR); a child of vfork has its parent's memory.
    let expected = "inherited code 1 there 1\nown 2\nchild 0 parent 2\nvfork 1\n";
    check("4e1w-s", "fork-shared", expected);
}

#[test]
fn the_program_gets_its_own_faults_as_signals() {
    // SEGV_MAPERR; general protection, which has no address. A blocked signal does not prevent a submission.
    let expected = "before 1\nnowhere code 1 there 1\nbetween 1\n\
                    unaligned code 128 there 0\nblocked 1\n";
    check("1e1w-d", "handler", expected);
}

#[test]
fn memory_calls_on_a_portal_behave_as_on_a_device_page() {
    let expected = "after stores 1\nload 1\nprotect 0\nread-only code 2 there 1\nwritable 1\n\
                    too long 1\nunmapped code 1 there 1\nagain 1\n";
    check("1e1w-d", "memory", expected);
}

/// The kernel ends a mapping with its last page, independently of file descriptors.
#[test]
fn a_portal_survives_the_close_of_all_file_descriptors() {
    let expected = "before 1\nclose 1\nsyscall 1\nranges 1\ndup2 1\npast 1\nagain 1\n";
    check("1e1w-d", "close", expected);
}

#[test]
fn a_portal_follows_mremap() {
    let expected = "before 1\nmoved 1 there 1\nformer code 1 there 1\ngrown 0\nstill 1\nagain 1\n";
    check("1e1w-d", "move", expected);
}

#[test]
fn exec_ends_the_portals_of_the_program() {
    // The queue is dedicated: the first program's open of it must have ended.
    check("1e1w-d", "exec", "first 1\ncopies 50\nclosed 1\n");
}

#[test]
fn supervise_never_leaves_a_static_program_without_portal() {
    let options = ["--profile", "1e1w-d", "--supervise", "never"];
    let output = run(&options, "copy");
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.err.contains("mmap: No such device\n"), "{output:?}");
    assert!(output.err.contains("and got no portal"), "{output:?}");
    let raw = run_one(crate::build::raw_program(), &options, "copy");
    assert_eq!(raw.code, Some(3), "{raw:?}");
}

#[test]
fn supervise_always_covers_a_script_and_its_children() {
    let script = format!("{} copy /dev/dsa/wq0.0 && exit 7", program().display());
    let options = ["--profile", "1e1w-d", "--supervise", "always"];
    let output = Session::new().shell(&options, &script);
    assert_eq!(output.out, "copies 50\nclosed 1\n", "{output:?}");
    assert_eq!(output.code, Some(7), "{output:?}");
}

#[test]
fn stops_and_exits_of_children_are_reported_unchanged() {
    let script = "
import os, signal
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(7)
print(os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]))
os.kill(child, signal.SIGCONT)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os.kill(os.getpid(), signal.SIGTERM)";
    let arguments = ["--supervise", "always", "--", "python3", "-c", script];
    let output = Session::new().run(&arguments);
    assert_eq!(output.out, "True\n7\n", "{output:?}");
    assert_eq!(output.status.signal(), Some(libc::SIGTERM), "{output:?}");
}

#[test]
fn a_queue_can_be_opened_after_its_program_was_killed() {
    let script = format!(
        "{program} endless /dev/dsa/wq0.0 >said & child=$!
        while ! grep -q ready said; do :; done
        kill -KILL $child; wait $child
        {program} copy /dev/dsa/wq0.0",
        program = program().display()
    );
    let options = ["--profile", "1e1w-d", "--supervise", "always"];
    let output = Session::new().shell(&options, &script);
    assert_eq!(output.out, "copies 50\nclosed 1\n", "{output:?}");
}

#[test]
fn killing_the_launcher_ends_its_tracees() {
    let before = mounts();
    let script = format!("exec {} endless /dev/dsa/wq0.0", program().display());
    let options = ["--profile", "1e1w-d", "--supervise", "always"];
    let mut running = Session::new().start(&options, &script);
    running.line("ready");
    running.killed_with_descendants(2);
    assert_eq!(mounts(), before);
}

#[test]
#[ignore = "it measures, and prints"]
fn supervised_submission_is_measured() {
    for (profile, mode) in [("1e1w-d", "measure"), ("4e1w-s", "measure-shared")] {
        let output = run(&["--profile", profile], mode);
        assert_eq!(output.code, Some(0), "{output:?}");
        println!("{mode}: {}", output.out.trim());
    }
}
