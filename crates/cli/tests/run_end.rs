//! `dray run --redirect`: whom the end of a session ends, and whom not.

#[path = "run/session.rs"]
#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod session;

use std::process::{Command, Stdio};

use session::{Session, program};

#[test]
fn children_that_it_did_not_start_are_spared() {
    let script =
        "sleep 1000 </dev/null >/dev/null 2>&1 & echo $!; exec \"$0\" run --redirect -- true";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(program())
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    let stranger: i32 = said.trim().parse().expect("a number");
    // SAFETY: if it is there, it is the sleep, which ends by nothing else than this; a number that
    // was used a moment ago is not given out again.
    let spared = unsafe { libc::kill(stranger, libc::SIGKILL) } == 0;
    assert!(output.status.success() && spared, "{output:?}");
}

/// The session waits for what it kills; a tracer that lived would keep its tracee.
#[test]
fn a_tracer_does_not_outlive_its_session() {
    let trace = "import ctypes, os, sys, time
libc = ctypes.CDLL(None)
assert libc.ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0
print('seized', flush=True)
time.sleep(20)
open('late', 'w')";
    let session = Session::new();
    std::fs::write(session.path().join("trace.py"), trace).expect("a file");
    let ended = session.shell(
        &["--redirect"],
        "sleep 1000 & P=$!; mkfifo line
        (python3 trace.py $P >line; true) &
        read said <line; echo $said",
    );
    assert_eq!(ended.out, "seized\n", "{ended:?}");
    assert!(!session.path().join("late").exists(), "it was waited for");
}
