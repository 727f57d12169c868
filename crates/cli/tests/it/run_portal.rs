//! Portals under `dray run`: programs that map a work queue and write descriptors to it.

use crate::session::{Session, dpdk_test, shell};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/portal.py");

#[track_caller]
fn program(options: &[&str], instruction: &str) -> String {
    let mut arguments = options.to_vec();
    arguments.extend(["--", "python3", PROGRAM, "/dev/dsa/wq0.0", instruction]);
    let output = Session::new().run(&arguments);
    assert_eq!(output.code, Some(0), "{output:?}");
    output.out
}

fn expected(untouched: u8) -> String {
    format!(
        "two pages Invalid argument\ncopy 1 True\nthreads 200 {{(1, True)}}\n\
         untouched {untouched}\nnothing there 3\nchild SIGSEGV\ncopy 1 True\n"
    )
}

#[test]
fn a_dedicated_queue_takes_movdir64b() {
    let options = ["--profile", "1e1w-d"];
    assert_eq!(program(&options, "movdir64b"), expected(3));
}

#[test]
fn a_shared_queue_takes_enqcmd() {
    let options = ["--profile", "4e1w-s"];
    assert_eq!(program(&options, "enqcmd"), expected(3));
}

#[test]
fn missing_pages_are_touched_with_faults_touch() {
    let options = ["--profile", "4e1w-s", "--faults", "touch"];
    assert_eq!(program(&options, "enqcmd"), expected(1));
}

/// The end of a mapping is handled before the program's next call, as in the kernel.
#[test]
fn a_dedicated_queue_can_be_opened_again_after_munmap() {
    const REOPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/reopen.py");
    let arguments = ["--profile", "1e1w-d", "--", "python3", REOPEN];
    let arguments = [&arguments[..], &["/dev/dsa/wq0.0", "300"]].concat();
    let output = Session::new().run(&arguments);
    assert_eq!(output.out, "{'unmapped': 0, 'ended': 0}\n", "{output:?}");
}

/// Programs that close all file descriptors or use dup2 to a given number do not know the preload library's
/// connection; nor do programs that move their mappings.
#[test]
fn a_portal_survives_close_and_follows_mremap() {
    let program = crate::build::dynamic_program();
    let closed = "before 1\nclose 1\nsyscall 1\nranges 1\ndup2 1\npast 1\nagain 1\n";
    let moved = "before 1\nmoved 1 there 1\nformer code 1 there 1\ngrown 0\nstill 1\nagain 1\n";
    for (options, mode, expected) in [
        (&["--profile", "1e1w-d"][..], "close", closed),
        (&["--profile", "1e1w-d", "--redirect"], "close", closed),
        (&["--profile", "1e1w-d"], "move", moved),
        (&["--profile", "1e1w-d", "--redirect"], "move", moved),
    ] {
        let mut arguments = options.to_vec();
        let program = program.to_str().expect("the system lets a test do this");
        arguments.extend(["--", program, mode, "/dev/dsa/wq0.0"]);
        let output = Session::new().run(&arguments);
        assert_eq!(
            (output.out.as_str(), output.code),
            (expected, Some(0)),
            "{options:?}: {output:?}"
        );
    }
}

#[test]
fn dmadev_tests_of_dpdk_pass() {
    let out = dpdk_test(shell);
    for line in [
        "DMA Dev 0: Running copy Tests",
        "DMA Dev 0: Running error handling Tests",
    ] {
        assert!(out.contains(line), "{line} is missing: {out}");
    }
}

/// A page that a program itself makes present delays its descriptor, and no other.
#[test]
fn a_missing_page_delays_only_its_own_descriptor() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/missing.py");
    let options = ["--profile", "1e1w-d", "--faults", "touch"];
    let arguments = [&options[..], &["--", "python3", program, "/dev/dsa/wq0.0"]].concat();
    let output = Session::new().run(&arguments);
    if output.out.starts_with("no userfaultfd") {
        dray_skip::skip(&output.out);
        return;
    }
    let expected = "asked meanwhile True\ncopied meanwhile 0\ncopied 1 True\n";
    assert_eq!(output.out, expected, "{output:?}");
}
