//! Results are written to their targets, and pipes, sockets and device nodes are kept.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too, fail by panic")]

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use dray_output::{Output, write};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A node of a device beside the test's files; `None` where none may be made or opened.
fn device(path: &Path, minor: u32) -> Option<()> {
    mknodat(
        CWD,
        path,
        FileType::CharacterDevice,
        Mode::from_raw_mode(0o666),
        makedev(1, minor),
    )
    .ok()?;
    File::open(path).ok().map(|_| ())
}

#[test]
fn a_file_is_replaced_and_keeps_its_mode() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fig3.svg");
    let output = Output::prepare(&path).unwrap();
    assert!(!output.replaces() && !output.is_stream());
    // Nothing is made before there is a result.
    assert!(names(directory.path()).is_empty());
    output.write(b"old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&path).unwrap();
    let output = Output::prepare(&path).unwrap();
    assert!(output.replaces());
    output.write(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    let after = fs::metadata(&path).unwrap();
    assert_ne!(before.ino(), after.ino());
    assert_eq!(after.mode(), before.mode());
    assert_eq!(names(directory.path()), ["fig3.svg"]);
}

#[test]
fn links_are_followed_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("there")).unwrap();
    symlink("there/result", at("link")).unwrap();
    write(&at("link"), b"made").unwrap();
    write(&at("link"), b"again").unwrap();
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    assert_eq!(fs::read(at("there/result")).unwrap(), b"again");
    assert_eq!(names(&at("there")), ["result"]);
}

#[test]
fn device_nodes_are_written_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (null, full) = (directory.path().join("null"), directory.path().join("full"));
    let (Some(()), Some(())) = (device(&null, 3), device(&full, 7)) else {
        dray_skip::skip("no nodes of devices can be made here");
        return;
    };
    let link = directory.path().join("link");
    symlink("full", &link).unwrap();
    write(&null, b"away").unwrap();
    for path in [&full, &link] {
        let output = Output::prepare(path).unwrap();
        assert!(output.is_stream());
        let error = output.write(b"no room").unwrap_err();
        assert_eq!(error.source.kind(), ErrorKind::StorageFull, "{error}");
    }
    for path in [&null, &full] {
        let kind = fs::symlink_metadata(path).unwrap().file_type();
        assert!(kind.is_char_device(), "{}", path.display());
    }
    assert_eq!(names(directory.path()), ["full", "link", "null"]);
}

#[test]
fn writing_to_a_pipe_waits_for_a_reader() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let reader = thread::spawn({
        let path = path.clone();
        move || fs::read(path).unwrap()
    });
    let output = Output::prepare(&path).unwrap();
    // More than a pipe holds.
    let bytes = vec![7; 1 << 18];
    output.write(&bytes).unwrap();
    output.write(b"end").unwrap();
    drop(output);
    let read = reader.join().unwrap();
    assert_eq!(read.len(), bytes.len() + 3);
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    let error = Output::prepare(&path).unwrap_err();
    assert!(error.source.to_string().contains("no reader"), "{error:?}");
}

#[test]
fn a_socket_is_connected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    write(&path, b"said").unwrap();
    let mut read = Vec::new();
    listener.accept().unwrap().0.read_to_end(&mut read).unwrap();
    assert_eq!(read, b"said");
    drop(listener);
    assert!(Output::prepare(&path).is_err());
    assert!(fs::metadata(&path).unwrap().file_type().is_socket());
}

#[test]
fn an_open_file_is_written_at_its_offset() {
    // As `--svg /dev/stdout > file` has it: what was printed before stays, and so does the file.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("console");
    let mut file = File::create(&path).unwrap();
    file.write_all(b"printed\n").unwrap();
    for name in ["/dev/fd", "/proc/self/fd"] {
        let name = format!("{name}/{}", file.as_raw_fd());
        write(Path::new(&name), b"result\n").unwrap();
    }
    file.write_all(b"printed again\n").unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "printed\nresult\nresult\nprinted again\n"
    );
    let read_only = File::open(&path).unwrap();
    let name = format!("/dev/fd/{}", read_only.as_raw_fd());
    assert!(Output::prepare(Path::new(&name)).is_err());
    assert!(Output::prepare(Path::new("/dev/fd/-1")).is_err());
    assert!(Output::prepare(Path::new("/dev/fd/1000000")).is_err());
}

#[test]
fn an_unwritable_target_is_refused_by_prepare() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("taken")).unwrap();
    let error = Output::prepare(&at("taken")).unwrap_err();
    assert!(error.to_string().contains("taken"), "{error}");
    let error = Output::prepare(&at("no/fig3.svg")).unwrap_err();
    assert!(error.to_string().contains("no/fig3.svg"), "{error}");
    assert!(Output::prepare(Path::new("/")).is_err());
    assert!(Output::prepare(Path::new("/proc/dray-result")).is_err());
    assert_eq!(names(directory.path()), ["taken"]);
}

#[test]
fn links_planted_under_temporary_names_are_not_followed() {
    // A link under the name of the file beside is not followed.
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("victim"), "kept").unwrap();
    for number in 0..64 {
        let name = format!(".result.{}.{number}.tmp", std::process::id());
        symlink("victim", at(&name)).unwrap();
    }
    write(&at("result"), b"bytes").unwrap();
    assert_eq!(fs::read(at("victim")).unwrap(), b"kept");
    assert_eq!(fs::read(at("result")).unwrap(), b"bytes");
}

/// A recording that programs write may be asked for again while they run: emptied, it would end them by SIGBUS.
#[test]
fn a_file_that_is_mapped_is_left_to_its_programs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("recording");
    let first = Output::prepare(&path).unwrap().into_mapped().unwrap();
    first.set_len(4096).unwrap();
    let second = Output::prepare(&path).unwrap().into_mapped().unwrap();
    let (one, two) = (first.metadata().unwrap(), second.metadata().unwrap());
    assert_eq!((one.len(), two.len()), (4096, 0));
    assert_eq!(fs::metadata(&path).unwrap().ino(), two.ino());
    assert_eq!(names(directory.path()), ["recording"]);
}
