//! `dray vhost`: what is refused, and packets of Debian's dpdk-testpmd through it.

use std::process::{Child, Command, Stdio};

use crate::common::{directory, dray};

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
    assert_eq!(printed["copies_by_executor"]["core"], 0);
    assert_eq!(printed["ports"][0]["queues"][0]["packets_per_second"], 0.0);
    let written = std::fs::read(dir.path().join("st")).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(written["packets_switched"], 0);
    assert!(!dir.path().join("s").exists(), "the socket is removed");
}

/// testpmd, which ends with the test.
struct Testpmd(Child);

impl Drop for Testpmd {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Debian's dpdk-testpmd makes packets, `dray vhost` sends them back, and both directions count them.
fn packets_come_back(name: &str, device: &str, mover: &str) {
    let dir = directory();
    let run = format!(
        "vhost --port s --forward mac --mover {mover} --duration 6 --stats-file st --format json"
    );
    let program = assert_cmd::cargo::cargo_bin("dray");
    let mut switch = Command::new(program)
        .args(run.split(' '))
        .current_dir(dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // testpmd connects once, and ends if nobody listens.
    while !dir.path().join("s").exists() {
        assert!(switch.try_wait().unwrap().is_none(), "it has ended early");
        std::thread::yield_now();
    }
    let port = format!("net_virtio_user0,path=s,queues=1,queue_size=256{device}");
    let testpmd = Command::new("dpdk-testpmd")
        .args(["--no-huge", "-m", "128", "--no-pci", "-l", "0,1"])
        .args(["--file-prefix", name, "--vdev", &port, "--"])
        .args(["--auto-start", "--forward-mode=flowgen"])
        .args(["--total-num-mbufs=4096", "--txd=256", "--rxd=256"])
        .current_dir(dir.path())
        // It ends when its input does.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(Testpmd)
        .unwrap();
    assert!(switch.wait().unwrap().success());
    drop(testpmd);
    let written = std::fs::read(dir.path().join("st")).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
    let queues = &written["ports"][0]["queues"];
    let packets = |n: usize| queues[n]["packets"].as_u64().unwrap();
    assert!(packets(1) > 1000, "from the guest: {written:#}");
    assert!(packets(0) > 1000, "to the guest: {written:#}");
    assert_eq!(written["memory_faults"], 0);
    let copies = |executor: &str| written["copies_by_executor"][executor].as_u64();
    // Packets of 60 bytes are below the threshold: the core copies them.
    assert!(copies("core").unwrap() > 1000, "{written:#}");
    assert_eq!(copies("virtual").is_some(), mover == "virtual");
}

/// One after the other: each polls on two cores.
#[test]
fn testpmd_gets_its_packets_back() {
    let id = std::process::id();
    let run = |n: u32, device: &str, mover: &str| {
        packets_come_back(&format!("dray-{id}-{n}"), device, mover);
    };
    run(0, ",mrg_rxbuf=1,in_order=1", "sync");
    run(1, ",packed_vq=1,mrg_rxbuf=1,in_order=0", "sync");
    run(2, ",mrg_rxbuf=0,in_order=0", "virtual");
}
