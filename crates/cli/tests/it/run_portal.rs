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
fn pages_can_be_touched_instead() {
    let options = ["--profile", "4e1w-s", "--faults", "touch"];
    assert_eq!(program(&options, "enqcmd"), expected(1));
}

/// What ends a mapping is done before the program's next call, as the kernel does it.
#[test]
fn a_dedicated_queue_is_free_when_its_mapping_has_ended() {
    const REOPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/reopen.py");
    let arguments = ["--profile", "1e1w-d", "--", "python3", REOPEN];
    let arguments = [&arguments[..], &["/dev/dsa/wq0.0", "300"]].concat();
    let output = Session::new().run(&arguments);
    assert_eq!(output.out, "{'unmapped': 0, 'ended': 0}\n", "{output:?}");
}

#[test]
fn dpdk_tests_its_dma_devices() {
    let out = dpdk_test(shell);
    for line in [
        "DMA Dev 0: Running copy Tests",
        "DMA Dev 0: Running error handling Tests",
    ] {
        assert!(out.contains(line), "{line} is missing: {out}");
    }
}
