//! Outputs of the commands: pipes and device nodes are written and kept, and outputs that cannot be written
//! are refused before the work begins.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};

use crate::common::{directory, dray, output};
use tempfile::TempDir;

const BENCH: &str = "bench --benchmark_min_time=1x --benchmark_filter=\
    move/api:c/path:dsa/exec:sync/qsize:16/bsize:4/in_mem:llc/out_mem:cc_llc/timer:proc/size:4096/real_time$";

/// A directory with two results and a tree, and the commands that write something of them to `OUT`.
fn commands() -> (TempDir, Vec<String>) {
    let dir = directory();
    output(
        dir.path(),
        &format!("{BENCH} --benchmark_out=old.json --benchmark_format=json"),
    );
    fs::copy(dir.path().join("old.json"), dir.path().join("new.json")).expect("a copy");
    output(dir.path(), "config new-tree sys");
    let commands = vec![
        format!("{BENCH} --benchmark_out=OUT"),
        "compare old.json new.json --svg OUT".to_owned(),
        "config save-config -s OUT".to_owned(),
        "doctor --capture OUT".to_owned(),
    ];
    (dir, commands)
}

fn run(dir: &Path, arguments: &str) -> std::process::Output {
    let mut command = dray(dir, arguments);
    command.env("DRAY_SYSFS_PATH", dir.join("sys"));
    command.output().expect("it runs")
}

fn node(path: &Path, kind: rustix::fs::FileType, minor: u32) -> bool {
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    let device = rustix::fs::makedev(1, minor);
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, device).is_ok()
}

fn reader(path: PathBuf) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || fs::read(path).expect("a writer"))
}

#[test]
fn output_to_a_pipe_is_written_and_the_pipe_stays() {
    let (dir, commands) = commands();
    let out = dir.path().join("OUT");
    assert!(node(&out, rustix::fs::FileType::Fifo, 0));
    for command in commands {
        let reader = reader(out.clone());
        let ended = run(dir.path(), &command);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{command}: {said}");
        assert!(!reader.join().unwrap().is_empty(), "{command}");
        let kind = fs::symlink_metadata(&out).unwrap().file_type();
        assert!(kind.is_fifo(), "{command}");
    }
}

#[test]
fn output_to_a_device_node_is_written_and_the_node_stays() {
    let (dir, commands) = commands();
    let full = dir.path().join("full");
    let device = rustix::fs::FileType::CharacterDevice;
    if !node(&full, device, 7) || fs::File::open(&full).is_err() {
        dray_skip::skip("no nodes of devices can be made here");
        return;
    }
    symlink("full", dir.path().join("OUT")).unwrap();
    for command in commands {
        let ended = run(dir.path(), &command);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("No space left"), "{command}: {said}");
        let kind = fs::symlink_metadata(&full).unwrap().file_type();
        assert!(kind.is_char_device(), "{command}");
        let link = fs::symlink_metadata(dir.path().join("OUT")).unwrap();
        assert!(link.is_symlink(), "{command}");
    }
}

#[test]
fn stdout_is_written_after_what_was_printed() {
    let (dir, _) = commands();
    for format in ["console", "json"] {
        let command = format!("{BENCH} --benchmark_format={format} --benchmark_out=/dev/stdout");
        let file = dir.path().join("console");
        let console = fs::File::create(&file).unwrap();
        let ended = std::process::Command::new(assert_cmd::cargo::cargo_bin("dray"))
            .current_dir(dir.path())
            .args(command.split(' '))
            .stdout(console)
            .status()
            .unwrap();
        assert!(ended.success());
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(
            text.matches("\"context\"").count(),
            if format == "json" { 2 } else { 1 }
        );
        assert!(
            text.starts_with(if format == "json" { "{" } else { "-" }),
            "{text}"
        );
    }
}

#[test]
fn an_unwritable_output_is_refused_before_the_work() {
    let (dir, commands) = commands();
    for command in commands {
        let command = command.replace("OUT", "none/out");
        let ended = run(dir.path(), &command);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("cannot write none/out"), "{command}: {said}");
        assert_eq!(String::from_utf8_lossy(&ended.stdout), "", "{command}");
    }
}

#[test]
fn man_pages_are_written_through_links() {
    let dir = directory();
    fs::create_dir(dir.path().join("man")).unwrap();
    symlink("../elsewhere", dir.path().join("man/dray.1")).unwrap();
    output(dir.path(), "man man");
    assert!(
        fs::read_to_string(dir.path().join("elsewhere"))
            .unwrap()
            .contains("dray")
    );
    assert!(dir.path().join("man/dray-config-list.1").exists());
}

/// A limit on the size of files stands for a disk that is full after some of them.
#[test]
fn a_tree_is_written_whole_or_not_at_all() {
    let dir = directory();
    fs::create_dir(dir.path().join("empty")).unwrap();
    for tree in ["fresh", "empty"] {
        let script = format!("trap '' XFSZ; ulimit -f 0; exec \"$0\" config new-tree {tree}");
        let ended = std::process::Command::new("sh")
            .args(["-c", &script])
            .arg(assert_cmd::cargo::cargo_bin("dray"))
            .current_dir(dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.contains("File too large"), "{said}");
    }
    assert!(!dir.path().join("fresh").exists());
    let left = fs::read_dir(dir.path().join("empty")).unwrap().count();
    assert_eq!(left, 0);
    output(dir.path(), "config new-tree empty");
}

/// Help that nobody can read is no success either.
#[test]
fn a_full_standard_output_is_named() {
    for arguments in [
        &["--help"][..],
        &["man", "--help"],
        &["--version"],
        &["fabric", "show", "local"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_dray"))
            .args(arguments)
            .stdout(full)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(
            said.starts_with("error: standard output: No space left on device"),
            "{arguments:?}: {said}"
        );
    }
}
