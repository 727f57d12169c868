//! `dray vfio` and `dray vm`, as far as they can be tested without QEMU.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

fn dray() -> Command {
    Command::new(env!("CARGO_BIN_EXE_dray"))
}

#[test]
fn a_client_is_answered_and_sigterm_ends_the_server() {
    let folder = TempDir::new().unwrap();
    let (socket, counts) = (folder.path().join("dsa.sock"), folder.path().join("counts"));
    let mut server = dray()
        .arg("vfio")
        .arg("--socket")
        .arg(&socket)
        .arg("--counts")
        .arg(&counts)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(server.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, format!("listening on {}\n", socket.display()));
    let mut client = UnixStream::connect(&socket).unwrap();
    // REGION_READ of vendor and device: configuration space is region 7.
    let words = [9_u32 << 16 | 1, 32, 0, 0, 0, 0, 7, 4];
    let request: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    client.write_all(&request).unwrap();
    let mut reply = [0; 36];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(reply[32..], [0x86, 0x80, 0x25, 0x0b]);
    // A second server does not replace the socket.
    let second = dray()
        .arg("vfio")
        .arg("--socket")
        .arg(&socket)
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    let message = String::from_utf8(second.stderr).unwrap();
    assert!(
        message.contains("another server answers on this socket"),
        "{message}"
    );
    let pid = Pid::from_raw(server.id() as i32).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
    assert!(!socket.exists());
    let counts = std::fs::read_to_string(counts).unwrap();
    assert!(counts.contains("\"messages\": 1"), "{counts}");
}

#[test]
fn a_malformed_profile_is_refused_with_exit_code_2() {
    let folder = TempDir::new().unwrap();
    let profile = folder.path().join("broken.json");
    std::fs::write(&profile, "[{").unwrap();
    let mut vfio = dray();
    vfio.arg("vfio").arg("--profile").arg(&profile);
    let refused = vfio.args(["--socket", "/nowhere"]).output().unwrap();
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("broken.json"), "{message}");
}

#[test]
fn a_signal_to_dray_vm_ends_its_script() {
    assert_eq!(ended_by(Signal::TERM), Some(130));
}

#[test]
fn killing_dray_vm_ends_its_script() {
    assert_eq!(ended_by(Signal::KILL), None);
}

/// Sends `dray vm` a signal, and waits until its script says that it has ended; the exit code.
fn ended_by(signal: Signal) -> Option<i32> {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink("/usr/bin/setpriv", folder.path().join("setpriv")).unwrap();
    // In place of bash: says that it runs, and how it ends.
    let bash = folder.path().join("bash");
    let text = "#!/bin/sh\ntrap 'echo ended; exit 130' TERM\necho runs\n\
                i=0; while [ $i -lt 600 ]; do i=$((i+1)); /bin/sleep 0.1; done\n";
    std::fs::write(&bash, text).unwrap();
    std::fs::set_permissions(&bash, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut vm = dray()
        .arg("vm")
        .env("PATH", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(vm.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "runs\n");
    kill_process(Pid::from_child(&vm), signal).unwrap();
    line.clear();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "ended\n");
    vm.wait().unwrap().code()
}

#[test]
fn bad_options_are_refused_before_anything_starts() {
    for (arguments, said) in [
        (
            &["vfio", "--socket", "/tmp/x", "--profile", "nothing-such"][..],
            "nothing-such",
        ),
        (
            &["vfio", "--socket", "/tmp/x", "--inject", "sometimes"],
            "sometimes",
        ),
        (&["vfio"], "--socket"),
        (&["vm", "--module", "/nowhere/idxd.ko"], "/nowhere/idxd.ko"),
        (&["vm", "--version", "7"], "--version"),
        (&["vm", "--watchdog", "0", "--", "true"], "--watchdog"),
        (&["vm", "--memory", "100M", "--", "true"], "needs 256 MiB"),
        (&["vm", "--memory", "300M", "--tiers"], "needs 512 MiB"),
        (&["vm", "--memory", "much"], "`much` is not a size"),
        (&["vm", "--processors", "0"], "--processors"),
        (&["vm", "--file", "a", "--", "true"], "--file a: no `=`"),
        (&["vm", "--file", "a=/nowhere"], "/nowhere: no such file"),
        (&["vm", "--versoin", "2"], "--version"),
        (&["vm", "true"], "[-- <COMMAND>...]"),
    ] {
        let output = dray().args(arguments).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && message.contains(said),
            "{message}"
        );
    }
}
