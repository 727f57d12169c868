use std::fs::{File, OpenOptions};
use std::path::Path;

use super::*;
use crate::request::{Flags, time};
use crate::{Cursor, Log, Options, Session, cycles};

fn file(path: &Path) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    options.open(path).expect("a file")
}

fn options(limit_bytes: u64) -> Options {
    Options {
        kind: Kind::Calls,
        command: "program argument".to_owned(),
        min_bytes: 512,
        limit_bytes,
    }
}

fn copy(size: u64) -> Request {
    Request {
        operation: Opcode::Memmove.into(),
        ..Request::default()
    }
    .with_bytes(size)
}

fn read(path: &Path) -> Result<Recording, RecordingError> {
    Recording::read(File::open(path).expect("the file"))
}

/// A recording of two threads, of which one has filled three chunks.
fn written(path: &Path) -> Session {
    let session = Session::begin(file(path), &options(1 << 20)).expect("a session");
    let log = Log::open(path).expect("the same file");
    let (mut one, mut two) = (Cursor::new(7, 8), Cursor::new(7, 9));
    for size in 0..300 {
        assert!(log.append(&mut one, cycles(), &copy(size)).is_some());
    }
    let slot = log.append(&mut two, cycles(), &copy(5)).expect("room");
    log.end(slot, time::from_ns(1234), true);
    session
}

#[test]
fn what_threads_write_is_read_while_they_write_and_after_the_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("recording");
    let session = written(&path);
    let before = read(&path).expect("a recording");
    assert!(!before.header.ended);
    let closed = session.close().expect("it is cut");
    assert_eq!(
        (closed.lost, closed.threads, closed.bytes),
        (0, 2, 5 * 4096)
    );
    let after = read(&path).expect("a recording");
    assert!(after.header.ended);
    assert_eq!(after.threads, before.threads);
    assert_eq!(after.header.command, "program argument");
    let [one, two] = after.threads.as_slice() else {
        panic!("{} threads", after.threads.len());
    };
    let sizes: Vec<u64> = one.requests.iter().map(Request::bytes).collect();
    assert_eq!(sizes, (0..300).collect::<Vec<u64>>());
    assert_eq!((one.pid, one.tid, two.tid), (7, 8, 9));
    let last = two.requests[0];
    assert_eq!(time::to_ns(last.took), 1234);
    assert!(last.flags.has(Flags::FAILED));
}

#[test]
fn a_file_without_room_loses_requests_and_says_how_many() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("recording");
    let session = Session::begin(file(&path), &options(3 * 4096)).expect("a session");
    let (log, mut cursor) = (session.log(), Cursor::new(1, 1));
    let kept = (0..1000).filter(|_| log.append(&mut cursor, 0, &copy(1)).is_some());
    assert_eq!(kept.count(), 2 * 126);
    assert_eq!(session.close().expect("it is cut").lost, 1000 - 2 * 126);
    let found = read(&path).expect("a recording");
    assert_eq!((found.requests(), found.header.lost), (252, 748));
}

#[test]
fn nothing_is_claimed_after_the_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("recording");
    let session = Session::begin(file(&path), &options(1 << 20)).expect("a session");
    let (log, mut cursor) = (session.log(), Cursor::new(1, 1));
    session.close().expect("it is cut");
    assert!(log.append(&mut cursor, 0, &copy(1)).is_none());
}

#[test]
fn a_file_that_is_cut_off_is_read_up_to_the_last_whole_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("recording");
    written(&path).close().expect("it is cut");
    let bytes = std::fs::read(&path).expect("the file");
    let cut = |len: usize| Recording::read(&bytes[..len]);
    let found = cut(4096 + 64 + 3 * 32 + 31).expect("a recording");
    assert_eq!(found.requests(), 3);
    assert_eq!(found.cut_at, Some(4096 + 64 + 3 * 32 + 31));
    assert_eq!(cut(4096).expect("a header").requests(), 0);
    assert!(matches!(
        cut(4095),
        Err(RecordingError::Wrong { offset: 4095, .. })
    ));
    assert!(matches!(cut(7), Err(RecordingError::Magic)));
}

#[test]
fn what_is_wrong_is_named_with_its_offset() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("recording");
    written(&path).close().expect("it is cut");
    let bytes = std::fs::read(&path).expect("the file");
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        Recording::read(bytes.as_slice()).map_err(|error| error.to_string())
    };
    let second = 2 * 4096;
    for (at, byte, words) in [
        (8, 2, "version 2"),
        (12, 9, "at offset 12: a kind"),
        (22, 1, "at offset 16: more chunks"),
        (second, 1, "at offset 8192: a chunk begins"),
        (
            second + 4,
            1,
            "at offset 8196: a chunk of one thread names another",
        ),
        (second + 16, 0, "at offset 8208: a chunk of this number"),
        (second + 16, 9, "at offset 12288: the chunk before"),
        (
            second + 65,
            0xfe,
            "at offset 8256: a request has an operation",
        ),
        (
            4096 + 64 + 4,
            1,
            "at offset 4164: a request names one before",
        ),
    ] {
        let error = with(at, byte).expect_err(words);
        assert!(error.contains(words), "{error}");
    }
}
