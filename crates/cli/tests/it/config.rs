//! `dray config` on trees of every kernel and version.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::common::{directory, dray};
use insta::assert_snapshot;

/// The file of a published reproduction.
const SEED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../idxd/tests/data/1e1w-d-batch64.json"
);
const KERNELS: [&str; 4] = ["5.18", "6.4", "6.8", "7.2"];

/// `dray config` on the tree in `dir`; exit code, stdout and stderr, without the directory's name.
fn config(dir: &Path, arguments: &str) -> (i32, String, String) {
    let mut command = dray(dir, &format!("config {arguments}"));
    command.env("DRAY_SYSFS_PATH", dir.join("sys"));
    command.env("DRAY_STATE_DIR", dir.join("state"));
    let output = command.output().expect("it runs");
    let here = fs::canonicalize(dir).expect("it is there");
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let text = text.replace(&here.display().to_string(), "HERE");
        text.replace(&dir.display().to_string(), "HERE")
            .replace(SEED, "SEED")
    };
    let code = output.status.code().expect("it ends by itself");
    (code, text(&output.stdout), text(&output.stderr))
}

/// Its stdout; it must have succeeded.
#[track_caller]
fn done(dir: &Path, arguments: &str) -> String {
    let (code, out, err) = config(dir, arguments);
    assert_eq!(code, 0, "{arguments}: {err}");
    out
}

/// Code and stderr of what must fail.
#[track_caller]
fn fails(dir: &Path, arguments: &str) -> String {
    let (code, out, err) = config(dir, arguments);
    assert_ne!(code, 0, "{arguments}: {out}");
    format!("exit {code}\n{err}")
}

fn tree(kernel: &str, version: u32) -> tempfile::TempDir {
    let dir = directory();
    let arguments = format!("new-tree sys --kernel {kernel} --version {version}");
    done(dir.path(), &arguments);
    dir
}

#[test]
fn the_seed_profile_is_loaded_and_saved_on_every_tree() {
    for kernel in KERNELS {
        for version in [1, 2] {
            let dir = tree(kernel, version);
            let dir = dir.path();
            done(dir, &format!("validate {SEED}"));
            done(dir, &format!("load-config -c {SEED} -e"));
            let device = done(dir, "list -d dsa0");
            assert!(device.contains("\"max_batch_size\":64"), "{device}");
            done(dir, "save-config -s saved.conf");
            let saved = fs::read_to_string(dir.join("saved.conf")).unwrap();
            done(dir, "load-config -c saved.conf -e -f");
            assert_eq!(done(dir, "list -d dsa0"), device, "{kernel} {version}");
            done(dir, "save-config -s again.conf");
            assert_eq!(fs::read_to_string(dir.join("again.conf")).unwrap(), saved);
            let named = saved.contains("\"driver_name\":\"user\"");
            assert_eq!(named, ["6.8", "7.2"].contains(&kernel), "{saved}");
        }
    }
}

#[test]
fn setup_with_a_batch_size_is_listed_and_saved() {
    let dir = tree("6.8", 1);
    let dir = dir.path();
    done(dir, "setup -d dsa0 -w 1 -m d -e 4 -s 128 -b 64");
    assert_snapshot!("setup", done(dir, "list"));
    assert_snapshot!("saved", {
        done(dir, "save-config -s saved.conf");
        fs::read_to_string(dir.join("saved.conf")).unwrap()
    });
}

#[test]
fn dry_run_prints_the_writes_and_changes_nothing() {
    let dir = tree("6.8", 1);
    let dir = dir.path();
    let before = done(dir, "list -i");
    // Paths are those of the tree, not of the machine.
    assert_snapshot!("dry-run", done(dir, "setup -w 2 -m s -e 2 --dry-run"));
    assert_eq!(done(dir, "list -i"), before);
    assert!(!dir.join("state").exists());
}

#[test]
fn undo_restores_the_configuration_and_a_second_undo_the_change() {
    let dir = tree("7.2", 2);
    let dir = dir.path();
    let bare = done(dir, "list -i");
    done(dir, "setup -w 2 -m s -e 2");
    let two = done(dir, "list -i");
    done(dir, "setup -w 1 -m d -e 4 -f");
    let one = done(dir, "list -i");
    assert_ne!(one, two);
    done(dir, "--undo");
    assert_eq!(done(dir, "list -i"), two);
    done(dir, "--undo");
    assert_eq!(done(dir, "list -i"), one);
    done(dir, "disable-device dsa0");
    // What is reset is as on a fresh device, but for the names of the drivers.
    assert_eq!(
        done(dir, "list -i").replace("_name\":\"user\"", "_name\":\"\""),
        bare
    );
    done(dir, "--undo");
    assert_eq!(done(dir, "list -i"), one);
}

#[test]
fn each_verb_changes_what_list_prints() {
    let dir = tree("6.8", 2);
    let dir = dir.path();
    done(dir, "config-device dsa0 -l 16 --event-log-size 128");
    done(dir, "config-engine dsa0/engine0.1 --group-id=0");
    done(
        dir,
        "config-wq dsa0/wq0.1 -g 0 -s 32 -p 7 -b 1 -t 24 -y user -n app -m shared -c 32 -x 65536",
    );
    done(dir, "config-group dsa0/group0.0 -r 8 -t 32 -l 1 -d 1 -p 2");
    done(dir, "enable-device dsa0");
    done(dir, "enable-wq dsa0/wq0.1");
    assert_snapshot!("verbs", done(dir, "list"));
    done(dir, "disable-wq dsa0/wq0.1 -v");
    let (_, _, note) = config(dir, "list");
    assert_eq!(note, "");
    done(dir, "disable-device dsa0");
    assert_eq!(done(dir, "list"), "[]\n");
}

#[test]
fn profiles_with_former_attribute_names_are_loaded() {
    let dir = tree("6.8", 1);
    let dir = dir.path();
    let text = fs::read_to_string(SEED).unwrap();
    let older = text
        .replace("read_buffer_limit", "token_limit")
        .replace("read_buffers_", "tokens_")
        .replace("max_read_buffers", "max_tokens");
    assert!(older.contains("\"tokens_reserved\"") && older.contains("\"use_token_limit\""));
    fs::write(dir.join("older.conf"), older).unwrap();
    done(dir, "load-config -c older.conf -e");
    let loaded = done(dir, "list");
    done(dir, &format!("load-config -c {SEED} -e -f"));
    assert_eq!(done(dir, "list"), loaded);
}

#[test]
fn validate_names_wrong_values_and_their_fix() {
    let dir = tree("6.8", 1);
    let dir = dir.path();
    let text = fs::read_to_string(SEED).unwrap();
    let wrong = text
        .replacen("\"size\":128", "\"size\":200", 1)
        .replacen("\"priority\":10", "\"priority\":0", 1)
        .replacen("\"engine0.0\"", "\"engine0.7\"", 1);
    fs::write(dir.join("wrong.conf"), wrong).unwrap();
    let (code, out, err) = config(dir, "validate wrong.conf");
    assert_snapshot!("findings", format!("exit {code}\n{out}{err}"));
    let before = done(dir, "list -i");
    let refused = fails(dir, "load-config -c wrong.conf -e");
    assert!(refused.contains("4 settings would be refused"), "{refused}");
    assert_eq!(done(dir, "list -i"), before);
    // A profile of version 2 on version 1, and against a description of another machine.
    let newer = tree("6.8", 2);
    done(newer.path(), "setup -w 1 -m d -e 4");
    let described = done(newer.path(), "list -i");
    fs::write(dir.join("newer.json"), &described).unwrap();
    let (code, out, err) = config(dir, "validate newer.json");
    assert_snapshot!("another-device", format!("exit {code}\n{out}{err}"));
    done(dir, "validate newer.json --device newer.json");
}

#[test]
fn errors_say_what_to_type_next() {
    let dir = tree("6.8", 1);
    let dir = dir.path();
    let mut text = String::new();
    for arguments in [
        "enable-device dsa0",
        "enable-device dsa1",
        "enable-wq dsa0/wq0.0",
        "config-wq dsa0/wq0.8 -s 4",
        "config-wq dsa2/wq0.0 -s 4",
        "config-wq dsa0/engine0.0 -s 4",
        "config-wq dsa0/wq0.0",
        "config-wq wq0.0 -s 129",
        "config-wq wq0.0 -m both",
        "config-group dsa0/group0.0 -l 1",
        "config-group dsa0/group0.0 -a 1 -b 2",
        "setup -s 200",
        "load-config -c nothing.conf",
    ] {
        text.push_str(&format!(
            "$ dray config {}\n{}",
            arguments.replace(SEED, "SEED"),
            fails(dir, arguments)
        ));
    }
    done(dir, "setup");
    for arguments in [
        "config-wq dsa0/wq0.0 -s 4",
        "config-wq dsa0/wq0.0 -n app",
        "enable-device dsa0",
        &format!("load-config -c {SEED}"),
    ] {
        text.push_str(&format!(
            "$ dray config {}\n{}",
            arguments.replace(SEED, "SEED"),
            fails(dir, arguments)
        ));
    }
    assert_snapshot!("errors", text);
}

#[test]
fn directories_without_the_driver_are_refused() {
    let dir = directory();
    let dir = dir.path();
    fs::create_dir(dir.join("sys")).unwrap();
    let (code, _, err) = config(dir, "list");
    assert_eq!(
        (code, err.contains("there is no DSA driver")),
        (3, true),
        "{err}"
    );
    // A profile can be looked at without any device.
    done(dir, &format!("validate {SEED}"));
    done(dir, "validate 4e1w-s");
    let dir = tree("6.8", 1);
    let dir = dir.path();
    let at = |name: &str| dir.join("sys/bus/dsa/devices").join(name);
    fs::write(at("wq0.3/size"), "many\n").unwrap();
    let garbage = fails(dir, "list -i");
    assert!(garbage.contains("wq0.3/size holds \"many\""), "{garbage}");
    fs::write(at("wq0.3/size"), [0xff, 0xfe]).unwrap();
    assert!(fails(dir, "list -i").contains("expected text"));
    fs::write(at("wq0.3/size"), "9".repeat(100_000)).unwrap();
    assert!(fails(dir, "list -i").contains("too long"));
    // A pipe does not block, and nothing outside is touched.
    fs::remove_file(at("wq0.3/size")).unwrap();
    let fifo = at("wq0.3/size");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    assert!(fails(dir, "list -i").contains("is no file"));
    fs::remove_file(&fifo).unwrap();
    let outside = dir.join("outside");
    fs::write(&outside, "0\n").unwrap();
    symlink(&outside, &fifo).unwrap();
    assert!(fails(dir, "config-wq wq0.3 -s 16").contains("leads out of"));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "0\n");
}

#[test]
fn a_failed_write_leaves_the_configuration_unchanged() {
    let dir = tree("6.8", 1);
    let dir = dir.path();
    let file = dir.join("sys/bus/dsa/devices/wq0.0/mode");
    let before = done(dir, "list -i");

    let mode = fs::read(&file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let (code, _, err) = config(dir, "setup");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    match code {
        // As root the permission does not matter.
        0 => assert_ne!(fs::read(&file).unwrap(), mode),
        _ => {
            assert!(err.contains("hint: writing needs root"), "{err}");
            assert_eq!(done(dir, "list -i"), before);
        }
    }
}

#[test]
fn each_verb_reports_what_it_changed() {
    let dir = tree("6.8", 1);
    let dir = dir.path();
    let said = |arguments: &str| {
        let (code, out, err) = config(dir, arguments);
        assert_eq!((code, out.as_str()), (0, ""), "{arguments}: {err}");
        let lines = err.lines().filter(|line| !line.starts_with("note: "));
        lines.collect::<Vec<_>>().join("\n")
    };
    let setup = said("setup -w 2 -m s -e 1");
    assert!(setup.contains("enabled 1 of 1 device: dsa0"), "{setup}");
    assert!(
        setup.contains("enabled 2 of 2 work queues: wq0.0, wq0.1"),
        "{setup}"
    );
    assert!(setup.starts_with("configured "), "{setup}");
    assert_eq!(
        said("disable-wq dsa0/wq0.1"),
        "disabled 1 of 1 work queue: wq0.1"
    );
    let configured = said("config-wq dsa0/wq0.1 -g 0 -n app -y user -m shared -t 8 -p 10");
    assert_eq!(configured, "configured wq0.1");
    assert_eq!(
        said("enable-wq dsa0/wq0.1 -v"),
        "enabled 1 of 1 work queue: wq0.1"
    );
    let disabled = said("disable-device dsa0");
    assert!(
        disabled.contains("disabled 1 of 1 device: dsa0"),
        "{disabled}"
    );
}
