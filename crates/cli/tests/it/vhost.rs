//! `dray vhost`: what is refused, and packets of Debian's dpdk-testpmd through it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{directory, dray};
use crate::schemas::misfits;

#[test]
fn bad_options_are_refused_with_exit_code_2() {
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
    refused("--port s,sever", "did you mean `server`?");
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
fn a_port_without_front_end_ends_after_its_duration_with_counters() {
    let dir = directory();
    let run = "vhost --port s --forward icmp --duration 0.2 --stats-file st --format json";
    let output = dray(dir.path(), run).output().unwrap();
    assert!(output.status.success());
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["ports"][0]["name"], "s");
    assert_eq!(printed["ports"][0]["connected"], false);
    assert_eq!(printed["copies_by_executor"]["core"], 0);
    assert_eq!(printed["ports"][0]["queues"][0]["packets_per_second"], 0.0);
    let written = std::fs::read(dir.path().join("st")).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(written["packets_switched"], 0);
    assert!(!dir.path().join("s").exists(), "the socket is removed");
}

/// A pipe is written and stays one; what cannot be written is an error before a port is opened.
#[test]
fn counters_are_written_to_a_pipe_and_bad_files_refused() {
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
    let dir = directory();
    let pipe = dir.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let end = open(&pipe, OFlags::RDWR | OFlags::NONBLOCK, Mode::empty()).unwrap();
    let run = "vhost --port s --duration 0.2 --stats-file pipe";
    assert!(dray(dir.path(), run).output().unwrap().status.success());
    let mut bytes = vec![0; 1 << 16];
    let count = rustix::io::read(&end, &mut bytes).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&bytes[..count]).unwrap();
    assert_eq!(written["packets_switched"], 0);
    for place in ["none/st", "."] {
        let run = format!("vhost --port s --duration 0.2 --stats-file {place}");
        let output = dray(dir.path(), &run).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            text.contains("cannot write") && text.contains("--stats-file"),
            "{text}"
        );
    }
    assert!(!dir.path().join("s").exists(), "the socket is removed");
}

/// The number of printed lines is limited, whatever number of refused messages a front end sends.
#[test]
fn refused_messages_do_not_flood_stderr() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    const MESSAGES: u64 = 5000;
    let dir = directory();
    let run = "vhost --port s --duration 3 --format json";
    let started = Command::new(assert_cmd::cargo::cargo_bin("dray"))
        .args(run.split_whitespace())
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut program = Program(started.unwrap());
    let until = Instant::now() + TIMEOUT;
    let mut stream = loop {
        match UnixStream::connect(dir.path().join("s")) {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    };
    // SET_VRING_NUM: queue 0, size 0.
    let message: Vec<u8> = [8u32, 1, 8, 0, 0]
        .iter()
        .flat_map(|w| w.to_ne_bytes())
        .collect();
    // It may end before it has read all of them.
    let _ = stream.write_all(&message.repeat(MESSAGES as usize));
    let (mut out, mut err) = (String::new(), String::new());
    let (stdout, stderr) = (program.0.stdout.take(), program.0.stderr.take());
    stdout.unwrap().read_to_string(&mut out).unwrap();
    stderr.unwrap().read_to_string(&mut err).unwrap();
    assert!(program.0.wait().unwrap().success());
    let lines = err.lines().filter(|line| line.contains("refused:")).count();
    assert!((1..=100).contains(&lines), "{lines} lines: {err}");
    assert!(
        err.contains("more connections, refused messages and stopped rings"),
        "{err}"
    );
    let counters: serde_json::Value = serde_json::from_str(&out).unwrap();
    let refused = counters["ports"][0]["control"]["refused"].as_u64().unwrap();
    assert!(refused > 100, "{refused}");
}

/// A program, which ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run in which nothing moves for so long has failed.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Packets each way after which traffic flows.
const FLOWS: u64 = 1000;

/// The counters of `dray vhost`, if it has written them.
fn counters(file: &Path) -> Option<serde_json::Value> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// Packets that the first pair of queues has moved: to the guest, from it.
fn packets(counters: &serde_json::Value) -> [u64; 2] {
    [0, 1].map(|n| {
        let queue = &counters["ports"][0]["queues"][n];
        queue["packets"].as_u64().unwrap_or(0)
    })
}

/// Debian's dpdk-testpmd makes packets, `dray vhost` sends them back, and both directions count them.
/// Ctrl-C ends it: the counters are written, and its socket is removed.
fn packets_come_back(port: &str, options: &str, device: &str) {
    println!("{port} {options} {device}");
    let dir = directory();
    let (socket, stats) = (dir.path().join("s"), dir.path().join("st"));
    let run = format!("vhost --port s{port} --forward mac {options} --stats-file st --format json");
    let switch = Command::new(assert_cmd::cargo::cargo_bin("dray"))
        .args(run.split_whitespace())
        .current_dir(dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut switch = Program(switch.unwrap());
    let until = Instant::now() + TIMEOUT;
    let mut wait_until = |what: &str, ready: &dyn Fn() -> bool| {
        while !ready() {
            assert!(switch.0.try_wait().unwrap().is_none(), "it has ended early");
            assert!(Instant::now() < until, "{what}: {:#?}", counters(&stats));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    // testpmd connects once, and ends if no socket listens; with a client it listens itself.
    if !port.contains("client") {
        wait_until("no socket listens", &|| socket.exists());
    }
    let port = format!("net_virtio_user0,path=s,queues=1,queue_size=256{device}");
    let testpmd = Command::new("dpdk-testpmd")
        .args(["--no-huge", "-m", "128", "--no-pci", "-l", "0,1"])
        .args(["--vdev", &port, "--", "--auto-start"])
        .args(["--forward-mode=flowgen", "--total-num-mbufs=4096"])
        .args(["--txd=256", "--rxd=256"])
        .current_dir(dir.path())
        // Where it puts its own sockets and files.
        .env("RUNTIME_DIRECTORY", dir.path())
        // It ends when its input does.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(Program)
        .unwrap();
    wait_until("no traffic", &|| {
        counters(&stats).is_some_and(|c| packets(&c).iter().all(|count| *count > FLOWS))
    });
    let pid = rustix::process::Pid::from_child(&switch.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(switch.0.wait().unwrap().success(), "ctrl-C");
    drop(testpmd);
    if let Some(wrong) = misfits(&[("vhost", stats.clone())]) {
        assert!(wrong.is_empty(), "{wrong}");
    }
    let written = counters(&stats).unwrap();
    assert!(packets(&written).iter().all(|count| *count > FLOWS));
    assert_eq!(written["memory_faults"], 0);
    let copies = |executor: &str| written["copies_by_executor"][executor].as_u64();
    let executor = match options.contains("virtual") {
        true => "virtual",
        false => "core",
    };
    assert!(copies(executor).unwrap() > FLOWS, "{written:#}");
    assert_eq!(copies("virtual").is_some(), executor == "virtual");
    if !run.contains("client") {
        assert!(!socket.exists(), "the socket is removed");
    }
}

/// One after the other: each polls on two cores.
#[test]
fn testpmd_receives_the_packets_that_it_sent() {
    if dray_skip::lacks(&["dpdk-testpmd"]) {
        return;
    }
    // Its packets have 60 bytes, below the usual threshold.
    let by_device = "--mover virtual --copy-threshold 1";
    let asleep = format!("{by_device} --interrupt");
    let (split, packed) = (
        ",mrg_rxbuf=1,in_order=1",
        ",packed_vq=1,mrg_rxbuf=1,in_order=0",
    );
    packets_come_back("", "", split);
    packets_come_back("", "--interrupt", packed);
    packets_come_back("", by_device, ",mrg_rxbuf=0,in_order=0");
    packets_come_back("", &asleep, split);
    let listens = ",server=1";
    packets_come_back(",client", &asleep, &format!("{packed}{listens}"));
    packets_come_back(",client", "", &format!("{split}{listens}"));
}
