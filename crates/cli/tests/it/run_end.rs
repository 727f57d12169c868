//! How sessions end, and which errors programs get when their device has ended.

use std::process::{Command, Stdio};

use crate::session::{Ended, Session, program};

#[test]
fn children_not_started_by_the_session_keep_running() {
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

/// The session waits for the processes that it kills; a tracer that stayed alive would hold its tracee.
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
fn a_mounting_session_inside_a_redirected_one_is_refused() {
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

/// As without a session: the kernel reads the name, and the preload library does not.
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

const WAITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/waits.py");

/// Checks that a session has ended with its device and named the thread.
#[track_caller]
fn ended_with_its_device(ended: &Ended, thread: &str) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let error = format!(
        "error: the virtual device has ended: {thread} panicked: injected by a test; \
         its programs are killed"
    );
    assert!(ended.err.contains(&error), "{ended:?}");
    assert!(ended.err.contains("hint: "), "{ended:?}");
}

/// Descriptors that were accepted end with an error, calls are refused.
#[test]
fn waiting_programs_get_an_error_when_the_device_ends() {
    let cases = [
        ("movdir64b", "1e1w-d", &[][..], "map ENXIO"),
        ("enqcmd", "4e1w-s", &[], "map ENXIO"),
        ("write", "1e1w-d", &["--personality", "7.2"], "write ENXIO"),
        ("write", "4e1w-s", &["--personality", "7.2"], "write ENXIO"),
    ];
    for (way, profile, more, last) in cases {
        let options = [
            &["--profile", profile, "--inject-panic", "dispatcher:8:60000"],
            more,
        ]
        .concat();
        let script = format!("python3 {WAITS} /dev/dsa/wq0.0 {way} 8");
        let ended = Session::new().shell(&options, &script);
        let expected = format!("last 0x20\nstate ENXIO\nopen ENXIO\n{last}\n");
        assert_eq!(ended.out, expected, "{way} {profile}: {ended:?}");
        ended_with_its_device(&ended, "dray-dispatcher");
    }
}

#[test]
fn the_end_of_the_device_is_reported_with_redirect() {
    let options = [
        "--redirect",
        "--profile",
        "4e1w-s",
        "--inject-panic",
        "dispatcher:8:60000",
    ];
    let script = format!("python3 {WAITS} /dev/dsa/wq0.0 enqcmd 8");
    let ended = Session::new().shell(&options, &script);
    assert!(ended.out.starts_with("last 0x20\n"), "{ended:?}");
    ended_with_its_device(&ended, "dray-dispatcher");
}

/// A traced program, and one that does not wait for the device.
#[test]
fn the_end_of_the_device_ends_all_programs() {
    let program = crate::build::static_program();
    let script = format!(
        "{} copy-shared /dev/dsa/wq0.0 & sleep 1000",
        program.display()
    );
    let options = ["--profile", "4e1w-s", "--inject-panic", "dispatcher:3"];
    let ended = Session::new().shell(&options, &script);
    ended_with_its_device(&ended, "dray-dispatcher");
}

#[test]
fn a_panic_of_the_driver_or_file_thread_ends_the_session() {
    for (panic, script, thread) in [
        ("driver", "exec 9<>/dev/dsa/wq0.0", "dray-driver-0"),
        ("files", "ls /sys/bus/dsa/devices", "fuser-0"),
    ] {
        let panic = format!("{panic}:1:60000");
        let options = ["--profile", "1e1w-d", "--inject-panic", &panic];
        // The call fails and does not hang.
        let script = format!("({script}) 2>/dev/null || echo refused");
        let ended = Session::new().shell(&options, &script);
        assert_eq!(ended.out, "refused\n", "{ended:?}");
        ended_with_its_device(&ended, thread);
    }
}
