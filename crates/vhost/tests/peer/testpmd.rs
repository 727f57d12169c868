//! dpdk-testpmd, driven through its prompt.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use crate::TIMEOUT;

/// testpmd; it ends with the test.
pub struct Testpmd {
    child: Child,
    input: ChildStdin,
    output: Receiver<String>,
    /// What it has said, for the message of a test that fails.
    said: Vec<String>,
    looked_at: usize,
}

/// How testpmd is started.
pub struct Start<'a> {
    /// Devices: `--vdev`.
    pub devices: &'a [String],
    /// Further options of the EAL.
    pub eal: &'a [&'a str],
    /// Options of testpmd itself.
    pub options: &'a [&'a str],
}

impl Testpmd {
    /// Starts it in a directory; it does not wait.
    pub fn start(directory: &Path, start: &Start<'_>) -> Testpmd {
        let mut arguments: Vec<OsString> = ["-oL", "dpdk-testpmd", "--no-huge", "--no-pci"]
            .map(OsString::from)
            .to_vec();
        arguments.extend(["-l", "0,1"].map(OsString::from));
        arguments.extend(start.eal.iter().map(OsString::from));
        for device in start.devices {
            arguments.extend([OsString::from("--vdev"), OsString::from(device)]);
        }
        arguments.extend(["--", "-i"].map(OsString::from));
        arguments.extend(start.options.iter().map(OsString::from));
        // Line by line, although it writes to a pipe.
        let mut child = Command::new("stdbuf")
            .args(arguments)
            .current_dir(directory)
            // Where it puts its own sockets and files.
            .env("RUNTIME_DIRECTORY", directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("testpmd runs: Debian's package dpdk-dev has it");
        let input = child.stdin.take().expect("a pipe");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (to, output) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if to.send(line).is_err() {
                    break;
                }
            }
        });
        Testpmd {
            child,
            input,
            output,
            said: Vec::new(),
            looked_at: 0,
        }
    }

    /// Types a command.
    pub fn say(&mut self, command: &str) {
        let typed = writeln!(self.input, "{command}");
        assert!(typed.is_ok(), "testpmd has ended: {:#?}", self.said);
    }

    /// Whether it has printed this since the last call. Never waits.
    pub fn has_said(&mut self, text: &str) -> bool {
        self.said.extend(self.output.try_iter());
        let new = &self.said[self.looked_at..];
        match new.iter().position(|line| line.contains(text)) {
            Some(at) => {
                self.looked_at += at + 1;
                true
            }
            None => {
                let ended = self.child.try_wait().is_ok_and(|status| status.is_some());
                assert!(!ended, "testpmd has ended: {:#?}", self.said);
                false
            }
        }
    }

    /// All that it has said.
    pub fn said(&self) -> &[String] {
        &self.said
    }

    /// Waits until it has ended by itself.
    pub fn wait(mut self) {
        let until = Instant::now() + TIMEOUT;
        while self.child.try_wait().expect("a child").is_none() {
            assert!(Instant::now() < until, "testpmd does not end");
            std::thread::yield_now();
        }
    }

    /// Ends it at once, as a guest that crashes.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
