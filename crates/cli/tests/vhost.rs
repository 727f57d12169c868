//! `dray vhost`: what is refused, and packets of Debian's dpdk-testpmd through it.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use common::{directory, dray};

/// A program that has not said what it should within this time has failed.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn what_cannot_be_is_refused() {
    let dir = directory();
    let refused = |arguments: &str, part: &str| {
        let output = dray(dir.path(), &format!("vhost {arguments}"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {text}");
        assert!(text.contains(part), "{arguments}: {text}");
    };
    refused("", "--port");
    refused("--port s,queues=0", "1 to 128");
    refused("--port s,sever", "none of server");
    refused("--port s --duration 0", "above 0");
    refused("--port s --dmas [txd0@wq0.0]", "--mover virtual");
    refused("--port s --mover cpu --dmas [txd1@wq0.0]", "names port 1");
    refused(
        "--port s --mover virtual --dmas [txd0@wq0.9]",
        "8 work queues",
    );
    refused("--port s --mover virtual --dmas [txd0]", "not of the form");
    assert!(!dir.path().join("s").exists());
}

#[test]
fn a_port_without_a_front_end_ends_in_time_and_leaves_counters() {
    let dir = directory();
    let run = "vhost --port s --forward icmp --duration 0.2 --stats-file st --format json";
    let output = dray(dir.path(), run).output().unwrap();
    assert!(output.status.success());
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["ports"][0]["name"], "s");
    assert_eq!(printed["ports"][0]["connected"], false);
    let written = std::fs::read(dir.path().join("st")).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(written["packets_switched"], 0);
    assert!(!dir.path().join("s").exists(), "the socket is removed");
}

/// A program that is told what to do line by line.
struct Session {
    child: Child,
    input: ChildStdin,
    output: Receiver<String>,
    said: String,
}

impl Session {
    fn start(command: &mut Command) -> Session {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it can be started; tests/run installs dpdk-dev");
        let (sender, output) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take().unwrap();
        Session {
            child,
            input,
            output,
            said: String::new(),
        }
    }

    /// testpmd with a virtio-user port, without huge pages.
    fn testpmd(dir: &Path, name: &str, device: &str, extra: &str) -> Session {
        let mut command = Command::new("stdbuf");
        command.args([
            "-oL",
            "dpdk-testpmd",
            "--lcores",
            "0@0,1@0",
            "--no-pci",
            "--no-huge",
        ]);
        command.args(["-m", "128", "--no-telemetry"]);
        let prefix = format!("dray{}{name}", std::process::id());
        command.args(["--file-prefix", &prefix, "--vdev"]);
        let path = dir.join("s").display().to_string();
        command.arg(format!(
            "net_virtio_user0,mac=02:00:00:00:00:07,path={path}{device}"
        ));
        command.args([
            "--",
            "-i",
            "--total-num-mbufs=4096",
            "--txd=256",
            "--rxd=256",
        ]);
        command.args(extra.split_whitespace());
        Session::start(&mut command)
    }

    /// Gives a command, and waits until this is said.
    fn ask(&mut self, command: &str, expected: &str) -> String {
        writeln!(self.input, "{command}").unwrap();
        self.wait(expected)
    }

    /// The line in which this is said.
    fn wait(&mut self, expected: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.output.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("no {expected:?} after\n{}", self.said));
            self.said += &line;
            self.said += "\n";
            if line.contains(expected) {
                return line;
            }
        }
    }

    /// The number after a name, of a port's counters.
    fn count(&mut self, name: &str) -> u64 {
        let line = self.ask("show port stats 0", name);
        let rest = line
            .split(name)
            .nth(1)
            .unwrap()
            .trim_start_matches(':')
            .trim();
        rest.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Waits until so many packets have come.
    fn wait_for_packets(&mut self, count: u64) {
        let until = Instant::now() + PATIENCE;
        while self.count("RX-packets") < count {
            assert!(Instant::now() < until, "no packets:\n{}", self.said);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn back_end(dir: &Path, arguments: &str) -> Session {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dray"));
    command.current_dir(dir).arg("vhost");
    command.args(arguments.split_whitespace());
    let session = Session::start(&mut command);
    let until = Instant::now() + PATIENCE;
    while !dir.join("s").exists() {
        assert!(Instant::now() < until, "no socket");
        std::thread::yield_now();
    }
    session
}

/// Ends it as ctrl-C does; what it printed, as JSON.
fn end(mut session: Session) -> serde_json::Value {
    let pid = rustix::process::Pid::from_child(&session.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(
        session.child.wait().unwrap().success(),
        "ctrl-C is a clean end"
    );
    let mut text = std::mem::take(&mut session.said);
    while let Ok(line) = session.output.recv_timeout(PATIENCE) {
        text += &line;
    }
    serde_json::from_str(&text).expect("counters as JSON")
}

/// Generated packets go round through the back end; whatever it takes comes back.
fn round_trip(mover: &str, device: &str, txpkts: &str, bytes: u64) {
    let dir = directory();
    let back_end = back_end(
        dir.path(),
        &format!("--port s --forward mac --format json {mover}"),
    );
    let mut client = Session::testpmd(dir.path(), "a", device, "--burst=4 --tx-offloads=0x8000");
    client.ask(&format!("set txpkts {txpkts}"), "");
    client.ask("set fwd flowgen", "packet forwarding mode");
    client.ask("set fwd txonly", "packet forwarding mode");
    client.ask("start", "packets/burst");
    client.wait_for_packets(0);
    std::thread::sleep(Duration::from_millis(300));
    client.ask("stop", "Done.");
    let packets = client.count("TX-packets");
    assert!(packets > 0, "{device}:\n{}", client.said);
    client.ask("set fwd rxonly", "packet forwarding mode");
    client.ask("start", "packets/burst");
    client.wait_for_packets(1);
    let received = client.count("RX-packets");
    client.ask("stop", "Done.");
    client.ask("quit", "Bye");
    drop(client);
    let report = end(back_end);
    let queues = &report["ports"][0]["queues"];
    assert_eq!(
        queues[1]["packets"], packets,
        "{device} {mover}: {queues:#}"
    );
    assert_eq!(queues[1]["bytes"], packets * bytes, "{device} {mover}");
    assert_eq!(queues[1]["drops"]["descriptor"], 0);
    let delivered = queues[0]["packets"].as_u64().unwrap();
    let no_buffer = queues[0]["drops"]["no_buffer"].as_u64().unwrap();
    assert_eq!(
        delivered + no_buffer,
        packets,
        "{device} {mover}: {queues:#}"
    );
    assert!(delivered >= received);
    if mover.contains("virtual") {
        assert!(report["channels"][0]["copies"].as_u64().unwrap() > 0);
        assert_eq!(report["channels"][0]["failed"], 0);
    }
}

#[test]
fn testpmd_split_mergeable_in_order() {
    let device = ",queue_size=256,mrg_rxbuf=1,in_order=1";
    round_trip("", device, "64,64,64,2000,2000,2000", 6192);
}

#[test]
fn testpmd_packed_mergeable() {
    let device = ",queue_size=256,packed_vq=1,mrg_rxbuf=1,in_order=0";
    round_trip("--mover virtual", device, "64,64,64,2000,2000,2000", 6192);
}

#[test]
fn testpmd_split_not_mergeable() {
    let device = ",queue_size=256,mrg_rxbuf=0,in_order=0";
    round_trip("--mover virtual", device, "64,128,256,512", 960);
}
