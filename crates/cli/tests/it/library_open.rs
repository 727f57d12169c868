//! Finding and opening the work queues of this machine: each that cannot be used names its reason.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dray::hw::{self, HwError, HwMover, HwOptions, Paths, RefusedQueue};
use tempfile::TempDir;

use crate::library::run_inside;

/// The driver's files in directories of a test.
struct Machine {
    directory: TempDir,
}

impl Machine {
    fn new() -> Machine {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("dev")).unwrap();
        Machine { directory }
    }

    fn sysfs(&self) -> std::path::PathBuf {
        self.directory.path().join("sys/bus/dsa/devices")
    }

    fn paths(&self) -> Paths {
        Paths {
            sysfs: self.sysfs(),
            dev: self.directory.path().join("dev"),
        }
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.sysfs().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    /// A device with one memory node.
    fn device(&self, number: u16, node: i32) {
        for (name, value) in [
            ("version", "0x100"),
            ("gen_cap", "0x40915f0107"),
            ("max_transfer_size", "2147483648"),
            ("max_batch_size", "1024"),
            ("numa_node", &node.to_string()),
        ] {
            self.write(&format!("dsa{number}/{name}"), value);
        }
    }

    /// A queue that programs can use, but for the attributes that are named.
    fn queue(&self, name: &str, others: &[(&str, &str)]) {
        let usual = [
            ("state", "enabled"),
            ("type", "user"),
            ("mode", "dedicated"),
            ("size", "16"),
            ("threshold", "0"),
            ("max_transfer_size", "2097152"),
            ("max_batch_size", "32"),
            ("block_on_fault", "1"),
        ];
        for (attribute, value) in usual.iter().chain(others) {
            self.write(&format!("{name}/{attribute}"), value);
        }
    }

    /// Its device file.
    fn file(&self, name: &str) {
        fs::write(self.directory.path().join("dev").join(name), "").unwrap();
    }
}

#[test]
fn without_a_device_the_error_names_the_searched_directory() {
    let machine = Machine::new();
    let Err(HwError::NoQueues { path }) = machine.paths().discover() else {
        panic!("there is nothing");
    };
    assert_eq!(path, machine.directory.path().join("dev"));
}

#[test]
fn each_unusable_queue_is_refused_with_its_reason() {
    let machine = Machine::new();
    machine.device(0, 0);
    machine.queue("wq0.0", &[("state", "disabled"), ("type", "none")]);
    machine.queue("wq0.1", &[("type", "kernel")]);
    machine.queue("wq0.2", &[]);
    machine.queue("wq0.3", &[("mode", "sideways")]);
    machine.file("wq0.3");
    // A file that has a queue's name, and no queue behind it.
    machine.file("wq0.4");
    // A queue of another kind of device in the same directory.
    machine.write("iax1/version", "0x100");
    machine.queue("wq1.0", &[]);
    let Err(error) = machine.paths().discover() else {
        panic!("none can be used");
    };
    let text = error.to_string();
    let directory = machine.directory.path().display().to_string();
    assert_eq!(
        text.replace(&directory, ""),
        "no work queue can be used: \
         wq0.1: /sys/bus/dsa/devices/wq0.1/type says \"kernel\": programs use work queues of the type \"user\"; \
         wq0.2: /dev/wq0.2 is missing, though the work queue is enabled for programs: is the directory mounted here?; \
         wq0.3: /sys/bus/dsa/devices/wq0.3/mode says \"sideways\", which is no mode of a work queue; \
         wq0.4: /sys/bus/dsa/devices/wq0.4/mode says \"\", which is no mode of a work queue; \
         wq0.0: /sys/bus/dsa/devices/wq0.0/state says \"disabled\": the work queue is not enabled (see `dray config`)"
    );
    // One that can be used is found beside them, and the others still have their reasons.
    machine.file("wq0.2");
    let found = machine.paths().discover().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name().as_str(), found[0].entries), ("wq0.2", 16));
    let survey = machine.paths().survey().unwrap();
    let usable: Vec<(&str, bool)> = survey
        .iter()
        .map(|(name, found)| (name.as_str(), found.is_ok()))
        .collect();
    let expected = [0, 1, 2, 3, 4].map(|n| (format!("wq0.{n}"), n == 2));
    assert!(
        usable.iter().copied().eq(expected
            .iter()
            .map(|(name, usable)| (name.as_str(), *usable)))
    );
}

#[test]
fn queues_that_are_not_enabled_are_named_together() {
    let machine = Machine::new();
    machine.device(0, 0);
    for n in 0..3 {
        machine.queue(&format!("wq0.{n}"), &[("state", "disabled")]);
    }
    let error = machine.paths().discover().expect_err("none is enabled");
    let text = "no work queue can be used: wq0.0, wq0.1, wq0.2: not enabled (see `dray config`)";
    assert_eq!(error.to_string(), text);
    assert_eq!(refusals(error).len(), 3);
}

#[test]
fn discovery_uses_the_directories_of_the_environment() {
    const INSIDE: &str = "DRAY_TEST_OTHER_DIRECTORIES";
    if std::env::var_os(INSIDE).is_some() {
        let names: Vec<String> = hw::discover()
            .expect("a queue")
            .iter()
            .map(|queue| queue.name())
            .collect();
        assert_eq!(names, ["wq5.2"]);
        let Err(HwError::NotEnabled { path, .. }) = hw::open(Some("wq5.3"), HwOptions::default())
        else {
            panic!("it is disabled");
        };
        assert!(path.ends_with("bus/dsa/devices/wq5.3/state"), "{path:?}");
        return;
    }
    let machine = Machine::new();
    machine.device(5, 0);
    machine.queue("wq5.2", &[]);
    machine.queue("wq5.3", &[("state", "disabled")]);
    machine.file("wq5.2");
    let test = "library_open::discovery_uses_the_directories_of_the_environment";
    for sysfs in [machine.directory.path().join("sys"), machine.sysfs()] {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(INSIDE, "1")
            .env("DRAY_SYSFS_PATH", sysfs)
            .env("DRAY_DEV_PATH", machine.directory.path().join("dev"))
            .output()
            .unwrap();
        assert!(status.status.success(), "{status:?}");
        let out = String::from_utf8_lossy(&status.stdout);
        assert!(out.contains("1 passed"), "{out}");
    }
}

#[test]
fn a_queue_has_the_lower_of_its_own_and_its_device_s_limits() {
    let machine = Machine::new();
    machine.device(0, 3);
    machine.queue("wq0.0", &[("mode", "shared"), ("threshold", "6")]);
    machine.queue(
        "wq0.1",
        &[
            ("max_transfer_size", "4294967296"),
            ("max_batch_size", "4096"),
        ],
    );
    machine.file("wq0.0");
    machine.file("wq0.1");
    let found = machine.paths().discover().unwrap();
    let limits = |n: usize| {
        let of: &hw::QueueInfo = &found[n];
        (
            of.entries,
            of.capabilities.max_transfer_bytes,
            of.capabilities.max_batch,
            of.numa_node,
        )
    };
    assert_eq!(limits(0), (6, 2 << 20, 32, Some(3)));
    assert_eq!(limits(1), (16, 1 << 31, 1024, Some(3)));
    assert!(found[0].capabilities.block_on_fault);
}

#[test]
fn opening_a_device_file_without_permission_is_an_error() {
    let machine = Machine::new();
    machine.device(0, 0);
    machine.queue("wq0.0", &[]);
    machine.file("wq0.0");
    let file = machine.directory.path().join("dev/wq0.0");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    let queue = machine.paths().discover().unwrap().remove(0);
    if fs::File::open(&file).is_ok() {
        dray_skip::skip("this process may open every file");
        return;
    }
    let Err(HwError::Open { source, path }) = HwMover::open(&queue, HwOptions::default()) else {
        panic!("nobody may open it");
    };
    assert_eq!((source.kind(), path), (ErrorKind::PermissionDenied, file));
}

#[test]
fn the_nearest_queue_is_opened_first() {
    let machine = Machine::new();
    for (device, node) in [(0, 2), (1, 1), (2, 0), (3, -1)] {
        machine.device(device, node);
        let name = format!("wq{device}.0");
        machine.queue(&name, &[]);
        machine.file(&name);
    }
    let nodes = machine.directory.path().join("sys/devices/system/node");
    for (node, distances) in [(0, "10 21 17"), (1, "21 10 25"), (2, "17 25 10")] {
        let node = nodes.join(format!("node{node}"));
        fs::create_dir_all(&node).unwrap();
        fs::write(node.join("distance"), format!("{distances}\n")).unwrap();
    }
    let order = |node| {
        let mut queues = machine.paths().discover().unwrap();
        machine.paths().sort_by_distance(&mut queues, node);
        queues.iter().map(|queue| queue.device).collect::<Vec<_>>()
    };
    // A device without a node is as near as one of this node.
    assert_eq!(order(Some(0)), [2, 3, 0, 1]);
    assert_eq!(order(Some(1)), [1, 3, 2, 0]);
    assert_eq!(order(Some(2)), [0, 3, 2, 1]);
    assert_eq!(order(None), [0, 1, 2, 3]);
    // A node without a distance table: all others count as equally far.
    assert_eq!(order(Some(7)), [3, 0, 1, 2]);
}

/// The reasons of an error.
fn refusals(error: HwError) -> Vec<RefusedQueue> {
    match error {
        HwError::NoneUsable { refused } => refused,
        other => panic!("{other}"),
    }
}

#[test]
fn busy_disabled_and_absent_queues_have_different_errors() {
    let test = "library_open::busy_disabled_and_absent_queues_have_different_errors";
    if !run_inside(test, &["--profile", "2e2w-d"]) {
        return;
    }
    let first = hw::open(Some("wq0.0"), HwOptions::default()).expect("a work queue");
    let second = hw::open(Some("wq0.0"), HwOptions::default());
    let Err(HwError::Open { source, .. }) = second else {
        panic!("{second:?}");
    };
    assert_eq!(source.kind(), ErrorKind::ResourceBusy);
    let Err(HwError::NoSuchQueue { available, .. }) = hw::open(Some("wq7.7"), HwOptions::default())
    else {
        panic!("there is no such queue");
    };
    assert!(available.starts_with("wq0.0, wq0.1"), "{available}");
    // The other one is free.
    let other = hw::open(None, HwOptions::default()).expect("another work queue");
    assert_eq!(other.info().name(), "wq0.1");
    let all = hw::open_all(HwOptions::default()).expect_err("both are taken");
    let busy = |queue: &RefusedQueue| matches!(&queue.reason, HwError::Open { source, .. } if source.kind() == ErrorKind::ResourceBusy);
    assert_eq!(refusals(all).iter().filter(|queue| busy(queue)).count(), 2);
    // One is disabled, and the other is still taken.
    drop(first);
    fs::write("/sys/bus/dsa/drivers/user/unbind", "wq0.0").unwrap();
    let Err(HwError::NotEnabled { state, .. }) = hw::open(Some("wq0.0"), HwOptions::default())
    else {
        panic!("it is not enabled");
    };
    assert_eq!(state, "disabled");
    let none = hw::open(None, HwOptions::default()).expect_err("none is free");
    let refused = refusals(none);
    let reason = |name: &str| {
        let found = refused.iter().find(|queue| queue.queue == name);
        found.unwrap_or_else(|| panic!("{name}")).to_string()
    };
    assert!(
        reason("wq0.0").contains("is not enabled"),
        "{}",
        reason("wq0.0")
    );
    let busy = reason("wq0.1");
    assert!(
        busy.contains("another process has the dedicated queue") && busy.contains("os error 16"),
        "{busy}"
    );
    drop(other);
    assert_eq!(
        hw::open_all(HwOptions::default())
            .expect("one is free")
            .len(),
        1
    );
    let each = hw::open_each(HwOptions::default()).expect("queues");
    let opened: Vec<&str> = each
        .iter()
        .filter_map(|(name, opened)| opened.as_ref().ok().map(|_| name.as_str()))
        .collect();
    assert_eq!(opened, ["wq0.1"]);
    assert!(Path::new("/dev/dsa/wq0.1").exists());
}
