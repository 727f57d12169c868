//! `dray vhost --control`: ports and channels that come and go, counters as OpenMetrics, and what is refused.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{directory, dray};

/// A switch that ends with the test.
struct Switch(Child);

impl Drop for Switch {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a switch with a control socket `c`, and waits until it listens.
fn start(dir: &Path, options: &str) -> Switch {
    let child = Command::new(assert_cmd::cargo::cargo_bin("dray"))
        .args(format!("vhost --control c --quiet {options}").split_whitespace())
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut switch = Switch(child.unwrap());
    let until = Instant::now() + Duration::from_secs(60);
    while UnixStream::connect(dir.join("c")).is_err() {
        assert!(switch.0.try_wait().unwrap().is_none(), "it has ended");
        assert!(Instant::now() < until, "nothing listens");
        std::thread::sleep(Duration::from_millis(10));
    }
    switch
}

/// Exit code, stdout and stderr of a question.
fn ask(dir: &Path, question: &str) -> (Option<i32>, String, String) {
    let line = format!("vhost {question} --control c");
    let output = dray(dir, &line).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn answer(dir: &Path, question: &str) -> String {
    let (code, out, err) = ask(dir, question);
    assert_eq!(code, Some(0), "{question}: {err}");
    out
}

fn refused(dir: &Path, question: &str, part: &str) {
    let (code, _, err) = ask(dir, question);
    assert_eq!(code, Some(2), "{question}: {err}");
    assert!(err.contains(part), "{question}: {err}");
}

#[test]
fn ports_and_channels_come_and_go_while_it_runs() {
    let dir = directory();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (a, b) = (path("a"), path("b"));
    let _switch = start(dir.path(), &format!("--port {a} --mover cpu --interrupt"));
    let mode = std::fs::metadata(path("c")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    answer(dir.path(), &format!("port add {b},queues=3"));
    let list = answer(dir.path(), "port list");
    assert!(
        list.contains(&a) && list.contains(&format!("{b},queues=3")),
        "{list}"
    );
    refused(
        dir.path(),
        &format!("port add {b},client"),
        "there is a port",
    );
    refused(dir.path(), "port add b", "give the whole path");
    refused(dir.path(), &format!("port add {b},queues=0"), "1 to 128");
    refused(
        dir.path(),
        &format!("port add {}", path("none/b")),
        "cannot listen",
    );
    std::fs::write(path("file"), "").unwrap();
    refused(
        dir.path(),
        &format!("port add {}", path("file")),
        "no socket",
    );
    // A client that sends nothing more holds nobody up.
    let mut silent = UnixStream::connect(path("c")).unwrap();
    silent.write_all(b"port li").unwrap();
    assert!(answer(dir.path(), &format!("port remove {b}")).contains("0 packets"));
    refused(dir.path(), &format!("port remove {b}"), "there is no port");
    assert!(!Path::new(&b).exists(), "its socket is removed");
    answer(dir.path(), "channel add wq0.5");
    refused(dir.path(), "channel add wq0.5", "there is a channel");
    refused(dir.path(), "channel add five", "not of the form");
    refused(dir.path(), "channel add wq0.6 --thread 1", "there are 1");
    refused(
        dir.path(),
        "channel add wq0.6 --port nothing",
        "there is no port",
    );
    assert!(answer(dir.path(), "channel list").contains("wq0.5"));
    answer(dir.path(), "channel remove wq0.5");
    assert!(!answer(dir.path(), "channel list").contains("wq0.5"));
    refused(dir.path(), "channel remove wq0.5", "there is no channel");
}

#[test]
fn a_second_switch_at_a_control_socket_and_a_port_named_twice_are_refused() {
    let dir = directory();
    let switch = start(dir.path(), "--interrupt");
    let second = dray(dir.path(), "vhost --control c --port s")
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2));
    let twice = "vhost --port s,client --port s,client";
    let output = dray(dir.path(), twice).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there are two"));
    // Killed, it leaves its socket; the next one takes its place.
    drop(switch);
    assert!(dir.path().join("c").exists());
    refused(dir.path(), "port list", "cannot ask the switch");
    let _switch = start(dir.path(), "--interrupt");
    answer(dir.path(), "port list");
}

#[test]
fn threads_need_cores_that_are_there() {
    let dir = directory();
    let refused = |list: &str, part: &str| {
        let line = format!("vhost --port s --cores {list}");
        let output = dray(dir.path(), &line).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{list}: {text}");
        assert!(text.contains(part), "{list}: {text}");
    };
    refused("0,0", "named twice");
    refused("1-0", "ends before it begins");
    refused("x", "is no core");
    refused("1023", "core 1023");
    assert!(!dir.path().join("s").exists());
}

/// All threads have the filter, and what the switch does while it runs is allowed.
#[test]
fn a_switch_works_with_a_seccomp_filter() {
    let dir = directory();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let options = format!(
        "--port {} --mover virtual --seccomp --stats-file st",
        path("a")
    );
    let switch = start(dir.path(), &options);
    answer(dir.path(), &format!("port add {}", path("b")));
    answer(dir.path(), &format!("port add {},client", path("d")));
    answer(dir.path(), "channel add wq1.0");
    answer(dir.path(), &format!("port remove {}", path("b")));
    assert!(answer(dir.path(), "metrics").ends_with("# EOF\n"));
    let tasks = std::fs::read_dir(format!("/proc/{}/task", switch.0.id())).unwrap();
    let mut threads = 0;
    for task in tasks {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        assert!(status.contains("\nSeccomp:\t2\n"), "{status}");
        threads += 1;
    }
    assert!(threads > 2, "{threads} threads");
    let until = Instant::now() + Duration::from_secs(60);
    while !dir.path().join("st").exists() {
        assert!(Instant::now() < until, "no counters were written");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The lines of OpenMetrics text are of its grammar, families stand together, and each sample has its own labels.
#[test]
fn counters_are_valid_open_metrics() {
    let dir = directory();
    let odd = dir.path().join("a\"b").display().to_string();
    let _switch = start(
        dir.path(),
        &format!("--port {odd},queues=2 --mover cpu --interrupt"),
    );
    let text = answer(dir.path(), "metrics");
    let body = text.strip_suffix("# EOF\n").expect("the end is marked");
    let (mut families, mut samples) = (BTreeSet::new(), BTreeSet::new());
    let mut family = ("", "");
    for line in body.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            family = head.split_once(' ').expect("a name and a type");
            assert!(["counter", "gauge"].contains(&family.1), "{line}");
            assert!(families.insert(family.0), "twice: {line}");
            continue;
        }
        if let Some(help) = line.strip_prefix("# HELP ") {
            assert!(help.starts_with(&format!("{} ", family.0)), "{line}");
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect("a value");
        value.parse::<u64>().expect("a number");
        let rest = sample.strip_prefix(family.0).expect("of this family");
        let rest = match family.1 {
            "counter" => rest.strip_prefix("_total").expect("a counter's sample"),
            _ => rest,
        };
        assert!(
            rest.is_empty() || rest.starts_with('{') && rest.ends_with('}'),
            "{line}"
        );
        assert!(samples.insert(sample), "twice: {line}");
    }
    assert!(
        families.contains("dray_vhost_drops") && families.contains("dray_vhost_channel_copies")
    );
    assert!(text.contains("a\\\"b"), "labels are escaped: {text}");
    let packets = samples
        .iter()
        .filter(|s| s.starts_with("dray_vhost_packets_total{"));
    assert_eq!(packets.count(), 4, "a sample for each queue");
}
