//! `dray vfio` and `dray vm`, as far as they can be tested without QEMU.

use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::schemas::misfits;

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
    let text = std::fs::read_to_string(&counts).unwrap();
    assert!(text.contains("\"messages\": 1"), "{text}");
    if let Some(wrong) = misfits(&[("vfio-counts", counts)]) {
        assert!(wrong.is_empty(), "{wrong}");
    }
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

/// A server of its own, started by a shell line in which `RUN` is the command.
struct Served {
    server: std::process::Child,
    said: BufReader<std::process::ChildStderr>,
    socket: std::path::PathBuf,
    _folder: TempDir,
}

impl Served {
    fn start(line: &str) -> Served {
        let folder = TempDir::new().unwrap();
        let socket = folder.path().join("dsa.sock");
        let command = format!(
            "{} vfio --socket {}",
            dray().get_program().display(),
            socket.display()
        );
        let mut server = Command::new("sh")
            .args(["-c", &line.replace("RUN", &command)])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(server.stderr.take().unwrap());
        let mut served = Served {
            server,
            said,
            socket,
            _folder: folder,
        };
        assert!(served.line().starts_with("listening on "));
        served
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn client(&self) -> UnixStream {
        UnixStream::connect(&self.socket).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.server.id() as i32).unwrap();
        let _ = kill_process(pid, Signal::TERM);
        let _ = self.server.wait();
    }
}

/// A message with files; the error number of the reply, and what follows its header.
fn ask(client: &mut UnixStream, words: &[u32], files: &[BorrowedFd<'_>]) -> (u32, Vec<u8>) {
    let message: Vec<u8> = words.iter().copied().flat_map(u32::to_le_bytes).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(files)));
    }
    let sent = sendmsg(
        &*client,
        &[IoSlice::new(&message)],
        &mut control,
        SendFlags::NOSIGNAL,
    );
    assert_eq!(sent.unwrap(), message.len());
    let mut header = [0; 16];
    client.read_exact(&mut header).unwrap();
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
    let mut payload = vec![0; word(4) as usize - header.len()];
    client.read_exact(&mut payload).unwrap();
    (word(12), payload)
}

#[test]
fn a_client_that_waits_for_another_is_reported() {
    let mut served = Served::start("exec RUN");
    let first = served.client();
    assert_eq!(served.line(), "a client has connected");
    let mut second = served.client();
    assert_eq!(
        served.line(),
        "another client waits until this one has left"
    );
    drop(first);
    assert_eq!(served.line(), "the client has left");
    assert_eq!(served.line(), "a client has connected");
    // REGION_READ of vendor and device.
    let (error, _) = ask(&mut second, &[9 << 16 | 1, 32, 0, 0, 0, 0, 7, 4], &[]);
    assert_eq!(error, 0);
}

/// Memory whose file did not arrive would fault at each access of the device.
#[test]
fn memory_beyond_the_limit_of_open_files_is_refused() {
    const TOO_MANY_FILES: u32 = 24;
    let served = Served::start("ulimit -n 40; exec RUN");
    let mut client = served.client();
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096).unwrap();
    // DMA_MAP of a page, readable and writable, each at another address.
    let map = |client: &mut UnixStream, page: u32| {
        let words = [2 << 16 | 1, 48, 0, 0, 32, 3, 0, 0, page << 12, 0, 4096, 0];
        ask(client, &words, &[file.as_fd()]).0
    };
    let errors: Vec<u32> = (1..=64).map(|page| map(&mut client, page)).collect();
    let mapped = errors.iter().take_while(|error| **error == 0).count();
    assert!((1..40).contains(&mapped), "{errors:?}");
    assert!(
        errors[mapped..]
            .iter()
            .all(|error| *error == TOO_MANY_FILES),
        "{errors:?}"
    );
    // An unmapped page makes room.
    let (error, _) = ask(
        &mut client,
        &[3 << 16 | 1, 40, 0, 0, 24, 0, 1 << 12, 0, 4096, 0],
        &[],
    );
    assert_eq!(error, 0);
    assert_eq!(map(&mut client, 65), 0);
}

/// GENCAP bits 14:13 are the size of an entry of the event log (section 9.2.2); Linux uses it on version 2.
#[test]
fn version_2_has_an_event_log() {
    for (version, has) in [("1", false), ("2", true)] {
        let served = Served::start(&format!("exec RUN --version {version}"));
        let mut client = served.client();
        let (error, payload) = ask(&mut client, &[9 << 16 | 1, 32, 0, 0, 0x10, 0, 0, 8], &[]);
        assert_eq!(error, 0);
        let capabilities = u64::from_le_bytes(payload[16..24].try_into().unwrap());
        assert_eq!(capabilities >> 13 & 3 != 0, has, "{capabilities:#x}");
    }
}
