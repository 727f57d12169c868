//! How sessions end, and what those are told whom they cannot serve.

use std::process::{Command, Stdio};

use crate::session::{Session, program};

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

#[test]
fn inside_it_nothing_can_be_mounted_and_it_says_so() {
    let script = format!("{} run -- true", program().display());
    let ended = Session::new().shell(&["--redirect"], &script);
    assert!(
        ended
            .err
            .contains("a session with --redirect is around this one"),
        "{ended:?}"
    );
    assert!(ended.err.contains("hint: "), "{ended:?}");
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

/// As without a session: the kernel looks at the name, and not this library.
#[test]
fn a_name_that_cannot_be_read_is_refused_by_the_kernel() {
    let program = "import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name in (8, 0):
    assert libc.execve(ctypes.c_void_p(name), None, None) == -1
    print(ctypes.get_errno())";
    let session = Session::new();
    std::fs::write(session.path().join("program.py"), program).expect("a file");
    let ended = session.shell(&[], "python3 program.py");
    assert_eq!(ended.out, "14\n14\n", "{ended:?}");
}
