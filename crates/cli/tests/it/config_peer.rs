//! Debian's accel-config and dray read each other's files, and say the same of the same tree.
//!
//! accel-config looks at `/sys` alone: it runs in namespaces of its own, with a tree of `dray config
//! new-tree` there. Such a tree does not answer, so accel-config can list, save and write settings
//! there, not enable.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{directory, dray};

fn config(dir: &Path, arguments: &str) -> String {
    let mut command = dray(dir, &format!("config {arguments}"));
    command.env("DRAY_SYSFS_PATH", dir.join("sys"));
    command.env("DRAY_STATE_DIR", dir.join("state"));
    let output = command.output().expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments}: {err}");
    String::from_utf8(output.stdout).expect("it writes text")
}

fn in_namespace(dir: &Path, command: &str) -> Output {
    let script = format!(
        "mount --rbind '{}' /sys && {command}",
        dir.join("sys").display()
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["-Urm", "sh", "-c", &script]).current_dir(dir);
    unshare.output().expect("util-linux is there")
}

/// What accel-config prints about the tree in `dir`.
fn peer(dir: &Path, arguments: &str) -> String {
    let output = in_namespace(dir, &format!("accel-config {arguments}"));
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "accel-config {arguments}: {err}");
    String::from_utf8(output.stdout).expect("it writes text")
}

/// Whether this machine lets a test have namespaces; says so if not.
fn has_namespaces() -> bool {
    let tried = Command::new("unshare").args(["-Urm", "true"]).output();
    let tried = tried.expect("util-linux is there");
    if !tried.status.success() {
        let err = String::from_utf8_lossy(&tried.stderr);
        dray_skip::skip(&format!("no user and mount namespaces here: {err}"));
    }
    tried.status.success()
}

/// Version 3.5.3 cannot read `op_cap` as kernels from 5.19 on print it, and leaves it out.
fn without_op_cap(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("\"op_cap\""));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn dray_and_accel_config_list_and_save_the_same() {
    if dray_skip::lacks(&["accel-config"]) || !has_namespaces() {
        return;
    }
    for kernel in ["5.18", "6.4", "6.8", "7.2"] {
        let dir = directory();
        let dir = dir.path();
        config(dir, &format!("new-tree sys --kernel {kernel}"));
        for setup in ["-w 1 -m d -e 4 -s 128 -b 64", "-w 3 -m s -e 2 -f"] {
            config(dir, &format!("setup {setup}"));
            for arguments in ["list", "list -i"] {
                let ours = without_op_cap(&config(dir, arguments));
                let theirs = without_op_cap(&peer(dir, arguments));
                assert_eq!(ours, theirs, "{kernel}: {arguments}");
            }
            config(dir, "save-config -s ours.conf");
            peer(dir, "save-config -s theirs.conf");
            let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
            assert_eq!(read("ours.conf"), read("theirs.conf"), "{kernel}");
            let before = config(dir, "list");
            config(dir, "load-config -c theirs.conf -e -f");
            assert_eq!(config(dir, "list"), before, "{kernel}");
        }
    }
}

#[test]
fn dray_and_accel_config_load_each_others_profiles() {
    let profiles = Path::new("/etc/accel-config/contrib/configs");
    let names = [
        "app_profile.conf",
        "net_profile.conf",
        "os_profile.conf",
        "storage_profile.conf",
    ];
    for name in names {
        let file = profiles.join(name);
        let text = fs::read_to_string(&file).unwrap();
        let profile = dray_idxd::Profile::parse(&text, name).unwrap();
        let again = dray_idxd::Profile::parse(&profile.to_json(), name).unwrap();
        assert_eq!(profile.device_profiles(), again.device_profiles());
    }
    if dray_skip::lacks(&["accel-config"]) || !has_namespaces() {
        return;
    }
    let dir = directory();
    let dir = dir.path();
    // For version 1 accel-config does not load its own files: it writes ats_disable, which these devices lack.
    config(dir, "new-tree sys --kernel 6.4 --version 2");
    config(dir, "setup -w 2 -m d -e 2 -s 16 -b 32");
    config(dir, "save-config -s ours.conf");
    let settings = config(dir, "list");
    config(dir, "disable-device dsa0");
    // Its writes land in plain files, where ours are read from.
    peer(dir, "load-config -c ours.conf");
    let file = |name: &str| fs::read_to_string(dir.join("sys/bus/dsa/devices").join(name)).unwrap();
    for (name, value) in [
        ("wq0.1/size", "16"),
        ("wq0.1/group_id", "0"),
        ("wq0.1/mode", "dedicated"),
        ("wq0.1/name", "app1"),
        ("wq0.1/max_batch_size", "32"),
        ("engine0.1/group_id", "0"),
    ] {
        // A plain file keeps the tail of a longer value that was there.
        assert!(file(name).starts_with(value), "{name}: {}", file(name));
        assert!(
            settings.contains(&value.replace("dedicated", "\"dedicated\"")),
            "{settings}"
        );
    }
}
