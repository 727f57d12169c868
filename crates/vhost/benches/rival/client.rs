//! dpdk-testpmd, as client and as rival, driven through its prompt.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Whether it can be run.
pub fn available(testpmd: &Path) -> bool {
    Command::new(testpmd)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

/// Counters of its port.
pub struct Packets {
    pub at: Instant,
    pub received: u64,
    pub sent: u64,
}

/// How testpmd is started.
struct Start<'a> {
    device: &'a str,
    /// Part of the names of its own files.
    role: &'a str,
    cpu: usize,
    descriptors: usize,
    buffers: usize,
}

pub struct Testpmd {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Testpmd {
    /// net_vhost, listening.
    pub fn back_end(testpmd: &Path, socket: &Path, cpu: usize) -> Result<Testpmd, String> {
        let device = format!("net_vhost0,iface={},queues=1", socket.display());
        let start = Start {
            device: &device,
            role: "rival",
            cpu,
            descriptors: 1024,
            buffers: 16384,
        };
        let mut started = Testpmd::start(testpmd, socket, &start)?;
        started.wait_for("Checking link statuses")?;
        started.wait_for("Done")?;
        Ok(started)
    }

    /// virtio-user, connecting.
    pub fn client(
        testpmd: &Path,
        socket: &Path,
        cpu: usize,
        packed: bool,
    ) -> Result<Testpmd, String> {
        let until = Instant::now() + TIMEOUT;
        while !socket.exists() {
            if Instant::now() > until {
                return Err("no back end listens at the socket".to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let device = format!(
            "net_virtio_user0,mac=00:01:02:03:04:05,path={},queues=1,queue_size=256,\
             packed_vq={},mrg_rxbuf=1,in_order=1",
            socket.display(),
            u8::from(packed)
        );
        let start = Start {
            device: &device,
            role: "client",
            cpu,
            descriptors: 256,
            buffers: 4096,
        };
        let mut started = Testpmd::start(testpmd, socket, &start)?;
        started.wait_for("Checking link statuses")?;
        started.wait_for("Done")?;
        Ok(started)
    }

    fn start(testpmd: &Path, socket: &Path, start: &Start<'_>) -> Result<Testpmd, String> {
        let (cpu, descriptors) = (start.cpu, start.descriptors);
        // Line by line, although it writes to a pipe.
        let mut child = Command::new("stdbuf")
            .arg("-oL")
            .arg(testpmd)
            .args(["--lcores", &format!("0@{cpu},1@{cpu}")])
            .args(["--no-pci", "--no-huge", "-m", "256"])
            .args(["--file-prefix", start.role, "--vdev", start.device])
            .args(["--", "-i"])
            .arg(format!("--total-num-mbufs={}", start.buffers))
            .arg(format!("--txd={descriptors}"))
            .arg(format!("--rxd={descriptors}"))
            // Where it puts its own sockets and files: beside the socket, and removed with it.
            .env(
                "RUNTIME_DIRECTORY",
                socket.parent().unwrap_or(Path::new(".")),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err("no pipes".to_owned());
        };
        let (to, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if to.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Testpmd {
            child,
            input,
            lines,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn say(&mut self, command: &str) -> Result<(), String> {
        writeln!(self.input, "{command}").map_err(|e| format!("{command}: {e}"))
    }

    /// The next line that contains a word.
    fn wait_for(&mut self, word: &str) -> Result<String, String> {
        self.wait_at_most(TIMEOUT, word)
    }

    fn wait_at_most(&mut self, patience: Duration, word: &str) -> Result<String, String> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(word) => return Ok(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Err(format!("testpmd: no {word:?}")),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("testpmd has ended before {word:?}"));
                }
            }
        }
    }

    /// Begins to forward.
    pub fn begin(&mut self, mode: &str, size: usize, first: bool) -> Result<(), String> {
        self.say(&format!("set fwd {mode}"))?;
        self.say(&format!("set txpkts {size}"))?;
        self.say(if first { "start tx_first 32" } else { "start" })?;
        self.wait_for("packets/burst")?;
        // Its first burst is waited for by a loop, which must not run at real-time priority.
        self.say("show port stats 0")?;
        self.wait_for("TX-packets:").map(drop)
    }

    pub fn end(&mut self) -> Result<(), String> {
        self.say("stop")?;
        self.wait_for("Done.").map(drop)
    }

    pub fn packets(&mut self) -> Result<Packets, String> {
        self.say("show port stats 0")?;
        // Perhaps at real-time priority: not for long.
        let mut count = |word| number(&self.wait_at_most(Duration::from_secs(1), word)?, word);
        let received = count("RX-packets:")?;
        let sent = count("TX-packets:")?;
        Ok(Packets {
            at: Instant::now(),
            received,
            sent,
        })
    }
}

fn number(line: &str, after: &str) -> Result<u64, String> {
    let words = line.split(after).nth(1).unwrap_or_default();
    let word = words.split_whitespace().next().unwrap_or_default();
    word.parse().map_err(|_| format!("no number in {line:?}"))
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // It ends by itself; if it does not, it is ended.
        let _ = self.say("quit");
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
