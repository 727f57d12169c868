//! Sessions to look at from outside.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

use tempfile::TempDir;

/// What a session printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        Ended {
            status: output.status,
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The program.
pub(crate) fn program() -> PathBuf {
    assert_cmd::cargo::cargo_bin("dray")
}

/// Runs a script in a session, in a directory of its own.
#[track_caller]
pub(crate) fn shell(options: &[&str], script: &str) -> Ended {
    Session::new().shell(options, script)
}

/// DPDK's own test of DMA devices, on the queue that accel-config has made for it, in a session that `shell` starts.
pub(crate) fn dpdk_test(shell: fn(&[&str], &str) -> Ended) -> String {
    // What DPDK keeps at run time belongs to the test.
    let script = "
        set -e
        accel-config config-engine dsa0/engine0.0 --group-id=0
        accel-config config-wq dsa0/wq0.0 --group-id=0 --mode=dedicated --wq-size=64 --type=user \
            --name=dpdk_0 --priority=10 --max-batch-size=64 --block-on-fault=1
        accel-config enable-device dsa0
        accel-config enable-wq dsa0/wq0.0
        command -v dpdk-test >/dev/null || { echo 'apt-get install -y dpdk-dev' >&2; exit 1; }
        export RUNTIME_DIRECTORY=$PWD
        echo dmadev_autotest | timeout 300 dpdk-test --no-huge --iova-mode=va -m 256 \
            --file-prefix=dpdk --no-shconf -l 0";
    // Its first tests are of DPDK's skeleton driver, whose thread may miss its time limit on a busy machine. No work
    // queue has been opened by then.
    let has_begun = |output: &Ended| {
        let own = output.err.contains("Error performing API tests");
        !own || output.out.contains("Test dmadev instance")
    };
    let mut outputs = (0..8).map(|_| shell(&["--personality", "6.4"], script));
    let output = outputs.find(has_begun).expect("time for DPDK's own driver");
    assert_eq!(output.code, Some(0), "{output:?}");
    for line in [
        "Test dmadev instance 0 [wq0.0]",
        "DMA Dev 0: Running fill Tests",
        "Test OK",
    ] {
        assert!(output.out.contains(line), "{line} is missing: {output:?}");
    }
    assert!(!output.out.contains("Test Failed"), "{output:?}");
    output.out
}

/// This process's mounts.
pub(crate) fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").expect("the system lets a test do this")
}

/// A directory for sessions.
pub(crate) struct Session {
    directory: TempDir,
}

impl Session {
    pub(crate) fn new() -> Session {
        Session {
            directory: tempfile::tempdir().expect("the system lets a test do this"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path()).stdin(Stdio::null());
        // Where sessions without mounts keep their files.
        command.env("XDG_RUNTIME_DIR", self.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = self.command(program());
        command
            .arg("run")
            .args(arguments)
            .output()
            .expect("the system lets a test do this")
            .into()
    }

    pub(crate) fn shell(&self, options: &[&str], script: &str) -> Ended {
        let mut command = self.command(program());
        command.arg("run").args(options);
        command.args(["--", "sh", "-c", script]);
        command
            .output()
            .expect("the system lets a test do this")
            .into()
    }

    /// Lets everyone in, with a copy of the program that everyone can execute.
    pub(crate) fn share(&self) {
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o1777))
            .expect("the system lets a test do this");
        fs::copy(program(), self.path().join("dray")).expect("the system lets a test do this");
    }

    pub(crate) fn as_nobody(&self, options: &[&str], script: &str) -> Ended {
        let mut command = self.command("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "./dray",
            "run",
        ]);
        command.args(options).args(["--", "sh", "-c", script]);
        command
            .output()
            .expect("the system lets a test do this")
            .into()
    }

    /// Starts a script and goes on.
    pub(crate) fn start(self, options: &[&str], script: &str) -> Running {
        let mut command = self.command(program());
        command.arg("run").args(options);
        command.args(["--", "sh", "-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let errors =
            fs::File::create(self.path().join("errors")).expect("the system lets a test do this");
        command.stderr(errors);
        let mut child = command.spawn().expect("the system lets a test do this");
        let lines = BufReader::new(child.stdout.take().expect("the system lets a test do this"));
        Running {
            session: self,
            child,
            lines,
        }
    }
}

/// A session that runs.
pub(crate) struct Running {
    pub(crate) session: Session,
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    /// Waits for a line.
    #[track_caller]
    pub(crate) fn line(&mut self, expected: &str) {
        let mut line = String::new();
        self.lines
            .read_line(&mut line)
            .expect("the system lets a test do this");
        assert_eq!(line.trim_end(), expected, "{}", self.errors());
    }

    /// What was written to stderr so far.
    pub(crate) fn errors(&self) -> String {
        let mut text = String::new();
        let mut file = fs::File::open(self.session.path().join("errors"))
            .expect("the system lets a test do this");
        file.read_to_string(&mut text)
            .expect("the system lets a test do this");
        text
    }

    pub(crate) fn signal(&self, signal: i32) {
        Process::of(self.child.id()).signal(signal);
    }

    /// Closes stdin.
    pub(crate) fn close(&mut self) {
        drop(self.child.stdin.take());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("the system lets a test do this")
    }

    /// Kills the launcher, of which at least so many processes descend: all of them end with it.
    pub(crate) fn killed_with_descendants(&mut self, at_least: usize) {
        let processes = self.descendants();
        assert!(processes.len() >= at_least, "{processes:?}");
        self.signal(libc::SIGKILL);
        assert_eq!(self.wait().signal(), Some(libc::SIGKILL));
        for process in processes {
            process.gone();
        }
    }

    /// The first process of the session, the command, and so on.
    pub(crate) fn descendants(&self) -> Vec<Process> {
        let mut found = Vec::new();
        let mut parents = vec![self.child.id()];
        while let Some(parent) = parents.pop() {
            let path = format!("/proc/{parent}/task/{parent}/children");
            let children = fs::read_to_string(path).expect("the system lets a test do this");
            for child in children.split_whitespace() {
                let child = child.parse().expect("the system lets a test do this");
                found.push(Process::of(child));
                parents.push(child);
            }
        }
        found
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that fails leaves no session behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process, distinguished from later ones of the same number.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    file: rustix::fd::OwnedFd,
}

impl Process {
    fn of(pid: u32) -> Process {
        let flags = rustix::process::PidfdFlags::empty();
        let number =
            rustix::process::Pid::from_raw(pid as i32).expect("the system lets a test do this");
        Process {
            pid,
            file: rustix::process::pidfd_open(number, flags)
                .expect("the system lets a test do this"),
        }
    }

    pub(crate) fn signal(&self, signal: i32) {
        let signal = rustix::process::Signal::from_named_raw(signal)
            .expect("the system lets a test do this");
        rustix::process::pidfd_send_signal(&self.file, signal)
            .expect("the system lets a test do this");
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn gone(&self) {
        let mut files = [rustix::event::PollFd::new(
            &self.file,
            rustix::event::PollFlags::IN,
        )];
        let limit = rustix::event::Timespec {
            tv_sec: 60,
            tv_nsec: 0,
        };
        let ended =
            rustix::event::poll(&mut files, Some(&limit)).expect("the system lets a test do this");
        assert_eq!(ended, 1, "process {} is still there", self.pid);
    }
}

/// Whether a process has not ended.
pub(crate) fn is_alive(process: &Process) -> bool {
    let mut files = [rustix::event::PollFd::new(
        &process.file,
        rustix::event::PollFlags::IN,
    )];
    let none = rustix::event::Timespec::default();
    rustix::event::poll(&mut files, Some(&none)).expect("the system lets a test do this") == 0
}
